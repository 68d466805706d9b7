//! Containers: what is listed, under which path, and what is refused.

mod support;

use codeobj::container::{self, Kind, Member};
use codeobj::{CodeObject, ErrorKind, Place};
use md5::Digest;
use std::io::Write;
use support::bytes;

fn paths(bytes: &[u8]) -> Vec<String> {
    all(bytes).into_iter().map(|member| member.path).collect()
}

fn all(bytes: &[u8]) -> Vec<Member<'_>> {
    let members = container::select(bytes, "").unwrap_or_else(|error| panic!("{error}"));
    for member in &members {
        assert_eq!(member.problems, [""; 0], "{}", member.path);
        let object = CodeObject::parse(&member.bytes).unwrap_or_else(|error| panic!("{}: {error}", member.path));
        assert!(!object.kernels.is_empty(), "{}", member.path);
    }
    members
}

const MULTI: [&str; 6] = ["gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx1100", "gfx1201"];

#[test]
fn entries_of_a_bundle_are_named_by_target() {
    let plain = bytes("fatbin/multi_plain.hipfb");
    assert_eq!(paths(&plain), MULTI);
    let contents = container::open(&plain).expect("bundle");
    assert_eq!(contents.skipped[0].reason, "host code");
    assert!(contents.problems.is_empty());
    for (member, target) in all(&plain).iter().zip(MULTI) {
        assert_eq!(member.declared_target.as_ref().expect("target").short(), target);
        assert_eq!(CodeObject::parse(&member.bytes).expect("code object").target.short(), target);
    }
}

#[test]
fn compressed_bundles_hold_the_same_bytes() {
    let (plain, compressed) = (bytes("fatbin/multi_plain.hipfb"), bytes("fatbin/multi_ccob.hipfb"));
    assert_eq!(all(&plain), all(&compressed));
    let listed = container::open(&compressed).expect("bundle").entries;
    assert_eq!((listed.len(), listed[0].kind), (1, Kind::CompressedBundle));
    let expected = container::select(&plain, "gfx942").expect("entry");
    for single in ["fatbin/single_ccob_v2.hipfb", "fatbin/single_ccob_v3.hipfb"] {
        assert_eq!(all(&bytes(single)), expected, "{single}");
    }
}

#[test]
fn a_library_holds_several_bundles() {
    let library = bytes("fatbin/host_fatbin.so");
    let mut expected: Vec<String> = Vec::new();
    for bundle in ["hip_fatbin[0]", "hip_fatbin[1]"] {
        expected.extend(MULTI.iter().map(|target| format!("{bundle}!{target}")));
    }
    expected.push("hip_fatbin[2]!gfx942".to_string());
    assert_eq!(paths(&library), expected);
    assert_eq!(container::open(&library).expect("library").entries.len(), 6 + 1 + 1);
}

#[test]
fn packages_are_numbered_images() {
    assert_eq!(paths(&bytes("fatbin/offload_packager.bin")), ["image[0]!gfx942", "image[1]!gfx1100"]);
}

#[test]
fn version_2_packages_hold_several_images() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let package = package_v2(&[("amdgcn-amd-amdhsa", "gfx942", &object), ("x86_64-linux-gnu", "", b"host")]);
    assert_eq!(paths(&package), ["image[0]!gfx942"]);
    assert_eq!(container::open(&package).expect("package").skipped[0].reason, "not for an AMD GPU");
}

#[test]
fn bundles_behind_each_other_are_numbered() {
    let mut file = bytes("fatbin/multi_plain.hipfb");
    file.resize(file.len().next_multiple_of(4096), 0);
    file.extend(bytes("fatbin/single_ccob_v3.hipfb"));
    file.extend([0; 100]);
    file.extend(bundle(&[("hip-amdgcn-amd-amdhsa--gfx942", &bytes("code-objects/vector_add.gfx942.hsaco"))]));
    let listed = paths(&file);
    assert_eq!(listed[0], "bundle[0]!gfx906");
    assert_eq!(listed[6..], ["bundle[1]!gfx942", "bundle[2]!gfx942"]);
}

#[test]
fn version_1_bundles_do_not_say_their_size() {
    let plain = bytes("fatbin/multi_plain.hipfb");
    for method in [0, 1] {
        let mut file = ccob_v1(&plain, method);
        file.extend([0; 37]);
        file.extend(ccob_v1(&plain, method));
        let listed = paths(&file);
        assert_eq!((listed.len(), &*listed[6]), (12, "bundle[1]!gfx906"), "method {method}");
    }
}

#[test]
fn archives_are_named_by_member() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let long = "a_name_that_is_longer_than_sixteen.o";
    let host = bytes("fatbin/host_fatbin.so");
    let archive =
        archive(&[("x.o", &object), (long, &object), ("x.o", &object), ("host.so", &host), ("a.txt", b"text")]);
    let listed = paths(&archive);
    assert_eq!(listed[..3], ["x.o".to_string(), long.to_string(), "x.o#2".to_string()]);
    assert_eq!(listed[3], "host.so!hip_fatbin[0]!gfx906");
    assert_eq!(container::open(&archive).expect("archive").skipped.last().expect("text").reason, "a text");
}

#[test]
fn thin_archives_are_refused_with_the_reason() {
    let error = container::open(b"!<thin>\nx.o/            0           0     0     644     5         `\n")
        .expect_err("refused");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("only the names"), "{error}");
}

#[test]
fn a_target_that_occurs_twice_is_numbered() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let twice = bundle(&[("hip-amdgcn-amd-amdhsa--gfx942", &object), ("openmp-amdgcn-amd-amdhsa--gfx942", &object)]);
    assert_eq!(paths(&twice), ["gfx942", "gfx942#2"]);
}

#[test]
fn a_stated_target_that_differs_is_a_problem_of_the_member() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let file = bundle(&[("hip-amdgcn-amd-amdhsa--gfx950", &object)]);
    let members = container::select(&file, "gfx950").expect("member");
    assert_eq!(members[0].problems, ["the container says gfx950, the code object is for gfx942"]);
}

#[test]
fn paths_select_members_and_groups() {
    let library = bytes("fatbin/host_fatbin.so");
    let count = |path: &str| container::select(&library, path).map(|members| members.len());
    assert_eq!(count(""), Ok(13));
    assert_eq!(count("hip_fatbin[1]"), Ok(6));
    assert_eq!(count("hip_fatbin[1]!gfx90a:xnack+"), Ok(1));
    let error = count("hip_fatbin[1]!gfx90a").expect_err("refused");
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("`hip_fatbin[1]!gfx90a:xnack+`"), "{error}");
    assert_eq!(container::split_path("lib.so!hip_fatbin[3]!gfx942"), ("lib.so", "hip_fatbin[3]!gfx942"));
    assert_eq!(container::split_path("lib.so"), ("lib.so", ""));
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    assert_eq!(container::select(&object, "").expect("object")[0].path, "");
    assert!(container::select(&object, "gfx942").expect_err("refused").message.contains("not a container"));
}

#[test]
fn what_is_no_container_is_named() {
    for (content, name) in [(&b"hello\n"[..], "a text"), (b"", "empty"), (b"\x00\x01\x02", "data of no known format")] {
        let error = container::open(content).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::WrongFormat);
        assert!(error.message.contains(name), "{error}");
    }
    let mut host = bytes("fatbin/host_fatbin.so");
    let at = memchr::memmem::find(&host, b".hip_fatbin\0").expect("section name");
    host[at + 1] = b'x';
    assert!(container::open(&host).expect_err("refused").message.contains("holds no device code"));
}

#[test]
fn foreign_bytes_between_bundles_are_a_problem() {
    let mut file = bytes("fatbin/single_ccob_v2.hipfb");
    file.extend(b"what is this");
    file.extend(bytes("fatbin/single_ccob_v2.hipfb"));
    let contents = container::open(&file).expect("bundles");
    assert_eq!(contents.entries.len(), 2);
    assert_eq!(
        contents.problems.iter().map(|p| p.to_string()).collect::<Vec<_>>(),
        ["12 bytes at offset 0x7f0 are neither an offload bundle nor zero padding"]
    );
}

#[test]
fn nesting_has_a_limit() {
    let mut file = bytes("code-objects/vector_add.gfx942.hsaco");
    for _ in 0..container::DEPTH_LIMIT {
        file = archive(&[("inner", &file)]);
    }
    assert_eq!(paths(&file), [["inner"; container::DEPTH_LIMIT].join("!")]);
    assert_eq!(container::open(&archive(&[("inner", &file)])).expect_err("refused").kind, ErrorKind::Limit);
}

#[test]
fn compressed_content_is_held_to_its_stated_size() {
    let content = bytes("fatbin/multi_plain.hipfb");
    for stated in [content.len() - 1, content.len() + 1, 0, u32::MAX as usize] {
        let mut file = ccob_v1(&content, 1);
        file[8..12].copy_from_slice(&(stated as u32).to_le_bytes());
        let entry = &container::open(&file).expect("listed").entries[0];
        assert!(matches!(entry.load().expect_err("refused").kind, ErrorKind::Malformed | ErrorKind::Limit), "{stated}");
    }
}

fn listed(file: &[u8]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let contents = container::open(file).unwrap_or_else(|error| panic!("{error}"));
    let entries = contents.entries.into_iter().map(|entry| entry.path).collect();
    let skipped = contents.skipped.iter().map(|skipped| format!("{}: {}", skipped.path, skipped.reason)).collect();
    (entries, skipped, contents.problems.iter().map(|problem| problem.to_string()).collect())
}

#[test]
fn a_code_object_under_a_foreign_id_is_listed_and_a_problem() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let ids = ["host-x86_64-unknown-linux-gnu-", "hip-amdgdn-amd-amdhsa--gfx942", "hip-nvptx64-nvidia-cuda--sm_90"];
    for id in ids {
        let (entries, skipped, problems) = listed(&bundle(&[(id, &object)]));
        assert_eq!((entries, skipped), (vec![id.to_string()], vec![]));
        assert_eq!(problems, [format!("`{id}`: the ID names no AMD GPU, but its 5304 bytes are a code object")]);
    }
    let package = package_v2(&[("amdgdn-amd-amdhsa", "gfx942", &object)]);
    let problem = "`image[0]`: triple `amdgdn-amd-amdhsa` names no AMD GPU, but its 5304 bytes are a code object";
    assert_eq!(listed(&package), (vec!["image[0]".into()], vec![], vec![problem.into()]));
}

#[test]
fn an_image_of_another_kind_that_is_a_code_object_is_listed_and_a_problem() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let mut package = package_v2(&[("amdgcn-amd-amdhsa", "gfx942", &object)]);
    package[32] = 2;
    let problem = "`image[0]!gfx942`: stated to be LLVM bitcode, but its 5304 bytes are a code object";
    assert_eq!(listed(&package), (vec!["image[0]!gfx942".into()], vec![], vec![problem.into()]));
    let bitcode = package_v2(&[("amdgcn-amd-amdhsa", "gfx942", b"BC\xc0\xde....")]);
    assert_eq!(listed(&bitcode), (vec![], vec!["image[0]!gfx942: LLVM bitcode".into()], vec![]));
}

#[test]
fn unknown_bytes_are_passed_over_only_for_an_architecture_that_is_known() {
    let unknown = b"\x01\x02\x03".as_slice();
    for id in ["host-x86_64-unknown-linux-gnu-", "openmp-x86_64-pc-linux-gnu", "cuda-nvptx64-nvidia-cuda--sm_90"] {
        let (entries, skipped, problems) = listed(&bundle(&[(id, unknown)]));
        assert_eq!((entries.len(), skipped.len(), problems), (0, 1, vec![]), "{id}");
    }
    for id in ["hip-amdgdn-amd-amdhsa--gfx942", "gfx942", "hip-x86_65-unknown-linux-gnu"] {
        let problem = format!(
            "`{id}`: the ID names no architecture that is known here, and its 3 bytes are data of no known format"
        );
        assert_eq!(listed(&bundle(&[(id, unknown)])), (vec![], vec![], vec![problem]));
        assert_eq!(listed(&bundle(&[(id, b"")])).1, [format!("{id}: empty")]);
        assert_eq!(listed(&bundle(&[(id, b"BC\xc0\xde....")])).1, [format!("{id}: LLVM bitcode")]);
    }
}

#[test]
fn an_entry_for_an_amd_gpu_that_is_another_elf_file_is_a_problem() {
    let mut object = bytes("code-objects/vector_add.gfx942.hsaco");
    object[18] = 62; // EM_X86_64
    let problem = "`gfx942`: holds no code object: its 5304 bytes are an ELF file for another machine";
    let entry = [("hip-amdgcn-amd-amdhsa--gfx942", &*object)];
    assert_eq!(listed(&bundle(&entry)), (vec![], vec![], vec![problem.into()]));
}

#[test]
fn an_archive_member_named_like_an_object_is_one() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    for name in ["lost.o", "lost.co", "lost.hsaco", "LOST.OBJ"] {
        let file = archive(&[("x.o", &object), (name, &[0; 512]), ("a.dat", &[0; 512])]);
        let problem = format!("`{name}`: named like an object, but its 512 bytes are data of no known format");
        let skipped = "a.dat: data of no known format".to_string();
        assert_eq!(listed(&file), (vec!["x.o".into()], vec![skipped], vec![problem]));
    }
    assert_eq!(listed(&archive(&[("lto.o", b"BC\xc0\xde....")])).1, ["lto.o: LLVM bitcode"]);
    assert_eq!(listed(&archive(&[("lost.o", b"")])).2, ["`lost.o`: named like an object, but it is empty"]);
}

#[test]
fn one_foreign_member_does_not_hide_the_others() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let elf =
        |class, endian, machine| [b"\x7fELF", &[class, endian, 1][..], &[0; 11], &[machine; 1], &[0; 45]].concat();
    let other = elf(2, 1, 62);
    let file = archive(&[("32.o", &elf(1, 1, 3)), ("big.o", &elf(2, 2, 0)), ("host.o", &other), ("x.o", &object)]);
    let (entries, skipped, problems) = listed(&file);
    assert_eq!((entries, problems), (vec!["x.o".to_string()], vec![]));
    assert!(skipped[0].starts_with("32.o: this ELF file is not 64-bit little-endian"), "{skipped:?}");
    assert!(skipped[1].starts_with("big.o: this ELF file is not 64-bit little-endian"), "{skipped:?}");
    assert_eq!(skipped[2], "host.o: host code without device code");
}

#[test]
fn one_damaged_member_is_a_problem_and_does_not_hide_the_others() {
    let object = bytes("code-objects/vector_add.gfx942.hsaco");
    let library = bytes("fatbin/host_fatbin.so");
    let bundled = bytes("fatbin/multi_plain.hipfb");
    let thin = b"!<thin>\n".as_slice();
    let members = [("cut.so", &library[..1000]), ("cut.hipfb", &bundled[..9000]), ("thin.a", thin), ("x.o", &object)];
    let file = archive(&members);
    let (entries, _, problems) = listed(&file);
    assert_eq!(entries, ["x.o"]);
    assert!(problems.len() == 3 && problems[0].starts_with("`cut.so`: the file is cut"), "{problems:?}");
    assert!(problems[1].starts_with("`cut.hipfb`: bundle entry 1"), "{problems:?}");
    assert!(problems[2].starts_with("`thin.a`: a thin archive"), "{problems:?}");

    // Who asks for a part hears what is wrong with it, and only that.
    assert_eq!(container::select(&file, "x.o").expect("member")[0].problems, [""; 0]);
    let error = container::select(&file, "cut.so").map(drop).expect_err("damaged");
    assert!(error.kind == ErrorKind::Malformed && error.message.starts_with("`cut.so`: the file is cut"), "{error}");
    assert_eq!(container::select(&file, "").expect("members")[0].problems, problems);
}

#[test]
fn compressed_content_is_held_to_its_hash() {
    let v1 = [0, 1].map(|method| ccob_v1(&bytes("fatbin/multi_plain.hipfb"), method));
    let v2_and_v3 = ["fatbin/single_ccob_v2.hipfb", "fatbin/single_ccob_v3.hipfb"].map(bytes);
    for (file, hash_at) in v1.iter().chain(&v2_and_v3).zip([12, 12, 16, 24]) {
        container::open(file).expect("listed").entries[0].load().unwrap_or_else(|error| panic!("{error}"));
        let mut changed = file.clone();
        changed[hash_at + 7] ^= 1;
        let error = container::open(&changed).expect("listed").entries[0].load().map(drop).expect_err("refused");
        assert_eq!((error.kind, error.place.clone()), (ErrorKind::Malformed, Place::File(hash_at as u64)));
        let shown = |file: &[u8]| file[hash_at..hash_at + 8].iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert!(error.message.contains(&shown(&changed)) && error.message.contains(&shown(file)), "{error}");
    }
}

fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let header = 32 + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    file.extend((entries.len() as u64).to_le_bytes());
    let mut offset = header;
    for (id, bytes) in entries {
        [offset, bytes.len(), id.len()].iter().for_each(|n| file.extend((*n as u64).to_le_bytes()));
        file.extend(id.as_bytes());
        offset += bytes.len();
    }
    entries.iter().for_each(|(_, bytes)| file.extend(*bytes));
    file
}

fn ccob_v1(content: &[u8], method: u16) -> Vec<u8> {
    let mut file = b"CCOB\x01\x00".to_vec();
    file.extend(method.to_le_bytes());
    file.extend((content.len() as u32).to_le_bytes());
    file.extend(&md5::Md5::digest(content)[..8]);
    if method == 0 {
        let mut encoder = flate2::write::ZlibEncoder::new(&mut file, flate2::Compression::fast());
        encoder.write_all(content).and_then(|()| encoder.finish().map(drop)).expect("compressed");
    } else {
        file.extend(zstd::encode_all(content, 3).expect("compressed"));
    }
    file
}

/// A GNU archive.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let header = |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    let long_names: String =
        members.iter().filter(|(name, _)| name.len() > 15).map(|(name, _)| format!("{name}/\n")).collect();
    let mut file = b"!<arch>\n".to_vec();
    let mut add = |name: &str, bytes: &[u8]| {
        file.extend(header(name, bytes.len()).as_bytes());
        file.extend(bytes);
        if bytes.len() % 2 == 1 {
            file.push(b'\n');
        }
    };
    if !long_names.is_empty() {
        add("//", long_names.as_bytes());
    }
    for (name, bytes) in members {
        let at = long_names.find(&format!("{name}/\n")).filter(|_| name.len() > 15);
        add(&at.map_or(format!("{name}/"), |at| format!("/{at}")), bytes);
    }
    file
}

fn package_v2(images: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let (mut entries, mut strings, mut texts) = (Vec::new(), Vec::new(), b"triple\0arch\0".to_vec());
    let strings_at = 32 + 40 * images.len();
    let texts_at = strings_at + 48 * images.len();
    let images_at = 1024;
    let mut contents: Vec<u8> = Vec::new();
    for (triple, arch, image) in images {
        entries.extend([1u16, 4].iter().flat_map(|n| n.to_le_bytes()));
        entries.extend(0u32.to_le_bytes());
        let numbers = [strings_at + strings.len(), 2, images_at + contents.len(), image.len()];
        numbers.iter().for_each(|n| entries.extend((*n as u64).to_le_bytes()));
        for (key_at, value) in [(0, triple), (7, arch)] {
            let row = [texts_at + key_at, texts_at + texts.len(), value.len()];
            row.iter().for_each(|n| strings.extend((*n as u64).to_le_bytes()));
            texts.extend(value.as_bytes());
        }
        contents.extend(*image);
    }
    let mut file = b"\x10\xff\x10\xad\x02\0\0\0".to_vec();
    [images_at + contents.len(), 32, images.len()].iter().for_each(|n| file.extend((*n as u64).to_le_bytes()));
    file.extend(entries.iter().chain(&strings).chain(&texts));
    file.resize(images_at, 0);
    file.extend(contents);
    file
}

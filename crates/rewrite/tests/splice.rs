//! A code object goes back into its container so that clang's and LLVM's tools find it there, and all others.

mod support;

use codeobj::container;
use llvm::Toolchain;
use rewrite::{Edit, ErrorKind, Labels, change, splice};
use std::path::Path;
use std::process::Command;

/// The member with `size` bytes of `s_nop` at its start.
fn grown(llvm: &Toolchain, object: &[u8], size: usize) -> Vec<u8> {
    let edit = Edit { old: 0..0, new: support::nops(size), labels: Labels::Before };
    change::apply(llvm, object, &[edit]).expect("grows").code_object
}

fn members(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let members = container::select(file, "").expect("members");
    members.into_iter().map(|member| (member.path, member.bytes.into_owned())).collect()
}

/// Runs a tool in a folder; none, said on stderr, when it is not installed.
fn run(folder: &Path, tool: &str, arguments: &[&str]) -> Option<()> {
    match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(error) => {
            assert!(!std::env::var("REQUIRE").is_ok_and(|needed| needed.contains("llvm-tools")), "{tool}: {error}");
            eprintln!("skipped: {tool}: {error}");
            None
        }
    }
}

#[test]
fn a_bundle_is_the_one_that_clang_makes_of_the_new_members() {
    let Some(llvm) = support::llvm() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let old = support::bytes("fatbin/multi_plain.hipfb");
    for (index, (path, object)) in members(&old).iter().enumerate() {
        for size in [4, 20_000] {
            let new_object = grown(&llvm, object, size);
            let new = splice::replace(&old, path, &new_object).unwrap_or_else(|error| panic!("{path}: {error}"));
            let mut targets = "-targets=host-x86_64-unknown-linux-gnu".to_string();
            let mut arguments = vec!["-type=o".to_string(), "-bundle-align=4096".into(), "-input=/dev/null".into()];
            for (other, (path, object)) in members(&old).iter().enumerate() {
                let bytes = if other == index { &new_object } else { object };
                std::fs::write(folder.path().join(format!("{other}.co")), bytes).expect("written");
                targets += &format!(",hipv4-amdgcn-amd-amdhsa--{path}");
                arguments.push(format!("-input={other}.co"));
            }
            arguments.extend([targets, "-output=out".into()]);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let Some(()) = run(folder.path(), "clang-offload-bundler-22", &arguments) else { return };
            assert!(std::fs::read(folder.path().join("out")).expect("bundled") == new, "{path}, {size} bytes");
        }
    }
}

#[test]
fn compressed_bundles_are_unbundled_by_clang() {
    let Some(llvm) = support::llvm() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["multi_ccob", "single_ccob_v2", "single_ccob_v3"] {
        let old = support::bytes(&format!("fatbin/{name}.hipfb"));
        for (path, object) in members(&old) {
            let new_object = grown(&llvm, &object, 4096);
            let new =
                splice::replace(&old, &path, &new_object).unwrap_or_else(|error| panic!("{name}!{path}: {error}"));
            assert_eq!(new[..8], old[..8], "magic, version and method");
            std::fs::write(folder.path().join("in"), new).expect("written");
            let target = format!("-targets=hipv4-amdgcn-amd-amdhsa--{path}");
            let arguments = ["-type=o", "-unbundle", "-input=in", "-output=out", &target];
            let Some(()) = run(folder.path(), "clang-offload-bundler-22", &arguments) else { return };
            assert!(std::fs::read(folder.path().join("out")).expect("unbundled") == new_object, "{name}!{path}");
        }
    }
}

#[test]
fn offload_packages_are_read_by_llvm() {
    let Some(llvm) = support::llvm() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let old = support::bytes("fatbin/offload_packager.bin");
    for (path, object) in members(&old) {
        let new_object = grown(&llvm, &object, 12);
        let new = splice::replace(&old, &path, &new_object).unwrap_or_else(|error| panic!("{path}: {error}"));
        std::fs::write(folder.path().join("in"), new).expect("written");
        let arch = path.rsplit('!').next().expect("a target");
        let image = format!("--image=file=out,triple=amdgcn-amd-amdhsa,arch={arch},kind=hip");
        let Some(()) = run(folder.path(), "llvm-offload-binary-22", &["in", &image]) else { return };
        assert!(std::fs::read(folder.path().join("out")).expect("extracted") == new_object, "{path}");
    }
}

#[test]
fn archives_keep_their_symbol_table_right() {
    let Some(llvm) = support::llvm() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (bytes, name) in [
        (support::bytes("code-objects/quoted.gfx942.co"), "a_rather_long_member_name.co"),
        (support::bytes("fatbin/multi_plain.hipfb"), "bundle.o"),
        (support::bytes("code-objects/topksoftmax_4x128x4.gfx942.co"), "last.co"),
    ] {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    }
    let names = ["a_rather_long_member_name.co", "bundle.o", "last.co"];
    let Some(()) = run(folder.path(), "llvm-ar-22", &[&["rcs", "lib.a"][..], &names].concat()) else { return };
    let old = std::fs::read(folder.path().join("lib.a")).expect("an archive");
    let map = |file: &str| {
        let output = Command::new("llvm-nm-22").args(["--print-armap", file]).current_dir(folder.path()).output();
        let text = String::from_utf8_lossy(&output.expect("llvm-nm-22").stdout).into_owned();
        text.split("\n\n").next().unwrap_or_default().to_string()
    };
    assert!(map("lib.a").contains("last.co"));
    for (path, object) in members(&old) {
        let new_object = grown(&llvm, &object, 20_000);
        let new = splice::replace(&old, &path, &new_object).unwrap_or_else(|error| panic!("{path}: {error}"));
        std::fs::write(folder.path().join("new.a"), &new).expect("written");
        assert_eq!(map("new.a"), map("lib.a"), "{path}");
        let extracted = folder.path().join("extracted");
        std::fs::create_dir_all(&extracted).expect("a folder");
        run(&extracted, "llvm-ar-22", &["x", "../new.a"]);
        let member = path.split('!').next().expect("a member");
        let file = std::fs::read(extracted.join(member)).expect("extracted");
        assert!(members(&file).iter().any(|(_, bytes)| *bytes == new_object), "{path}");
    }
}

#[test]
fn a_bundle_in_a_host_keeps_its_place_or_is_refused() {
    let Some(llvm) = support::llvm() else { return };
    let old = support::bytes("fatbin/host_fatbin.so");
    let (mut fit, mut refused) = (0, 0);
    for (path, object) in members(&old) {
        for size in [4, 256, 20_000] {
            match splice::replace(&old, &path, &grown(&llvm, &object, size)) {
                Ok(new) => {
                    fit += 1;
                    assert_eq!(new.len(), old.len());
                    let section = 0x1000..0x1000 + 0x10e6d;
                    assert!(new[..section.start] == old[..section.start] && new[section.end..] == old[section.end..]);
                }
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::NoRoom, "{path}: {error}");
                    refused += 1;
                }
            }
        }
    }
    eprintln!("{fit} fit, {refused} refused");
    assert!(fit > 0 && refused > 0);
}

#[test]
fn the_wrong_member_or_object_is_refused() {
    let old = support::bytes("fatbin/multi_plain.hipfb");
    let object = support::bytes("code-objects/topksoftmax_4x128x4.gfx942.co");
    let kind = |path: &str, object: &[u8]| splice::replace(&old, path, object).expect_err("refused").kind;
    assert_eq!(kind("gfx1234", &object), ErrorKind::NotFound);
    assert_eq!(kind("gfx906", &object), ErrorKind::Input);
    assert_eq!(kind("", &object), ErrorKind::Input);
    assert_eq!(kind("gfx942", b"text"), ErrorKind::Input);
    assert!(splice::replace(&old, "gfx942", &object).is_ok());
}

#[test]
fn a_damaged_container_is_an_error_and_no_panic() {
    let object = support::bytes("code-objects/topksoftmax_4x128x4.gfx942.co");
    let mut random = support::Random(7);
    for name in ["multi_plain.hipfb", "multi_ccob.hipfb", "offload_packager.bin", "host_fatbin.so"] {
        let intact = support::bytes(&format!("fatbin/{name}"));
        let path =
            members(&intact).into_iter().map(|(path, _)| path).find(|path| path.contains("gfx942")).expect("gfx942");
        for _ in 0..300 {
            let mut damaged = intact.clone();
            for _ in 0..=random.below(3) {
                let at = if random.below(2) == 0 { random.below(512) } else { random.below(intact.len()) };
                damaged[at] ^= 1 << random.below(8);
            }
            _ = splice::replace(&damaged, &path, &object);
            _ = splice::replace(&intact[..random.below(intact.len())], &path, &object);
        }
    }
}

#[test]
fn a_triton_cache_entry_says_what_no_longer_matches() {
    let folder = tempfile::tempdir().expect("a folder");
    for extension in ["hsaco", "amdgcn", "json", "ttir"] {
        std::fs::write(folder.path().join("kernel").with_extension(extension), "").expect("written");
    }
    let stale = splice::stale_companions(&folder.path().join("kernel.hsaco"));
    assert_eq!(stale, [folder.path().join("kernel.amdgcn"), folder.path().join("kernel.json")]);
    assert!(splice::stale_companions(&folder.path().join("kernel.co")).is_empty());
}

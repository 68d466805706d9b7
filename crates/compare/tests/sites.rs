//! What a site file may not say, and where each argument of one stands: every refusal names what is wrong.

use std::path::Path;

use codeobj::metadata::{Detail, KernelMetadata, Metadata};
use compare::pack::{self, Layout};
use compare::site::{ArgumentValue, DeviceFacts, Site};

const DEVICE: DeviceFacts = DeviceFacts { compute_units: 304, wave_size: 64 };

/// A pointer, a scalar of 4 bytes, another pointer, and one behind a gap that no argument fills: offsets 0, 8, 20 (by hand, as a
/// structure with packed members has them) and 32.
const SITE: &str = r#"
kernel = "k"
grid = ["cu_count"]
block = [64, 4]
dynamic-lds = 1024
[dims]
N = 100

[[arg]]
name = "out"
dtype = "f32"
shape = ["N"]
[[arg]]
name = "n"
type = "i32"
value = "N"
[[arg]]
name = "in"
dtype = "f32"
shape = ["N"]
fill = { kind = "uniform" }
[[arg]]
name = "scale"
type = "f64"
value = 0.5
"#;

const METADATA: &str = "\
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 40
    .max_flat_workgroup_size: 256
    .args:
      - { .name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: n, .offset: 8, .size: 4, .value_kind: by_value }
      - { .name: in, .offset: 20, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: scale, .offset: 32, .size: 8, .value_kind: by_value }
      - { .offset: 40, .size: 4, .value_kind: hidden_block_count_x }
";

fn site(text: &str) -> Site {
    Site::parse(text, "site", Path::new(""), DEVICE).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn metadata(text: &str) -> KernelMetadata {
    let mut metadata = Metadata::from_yaml(text, Detail::Full).expect("valid YAML");
    assert_eq!(metadata.problems, [""; 0]);
    metadata.kernels.remove(0)
}

/// The problems of a site that does not fit.
fn problems(site_text: &str, metadata_text: &str) -> Vec<String> {
    Layout::from_metadata(&site(site_text), &metadata(metadata_text)).expect_err("they do not fit")
}

#[test]
fn offsets_are_those_of_the_metadata() {
    let site = site(SITE);
    let layout = Layout::from_metadata(&site, &metadata(METADATA)).expect("fits");
    assert_eq!((layout.offsets.as_slice(), layout.bytes), (&[0, 8, 20, 32][..], 40));
    let packed = layout.pack(&site, &[0x1111_2222_3333_4444, 0x5555_6666_7777_8888]);
    let mut expected = vec![0; 40];
    expected[..8].copy_from_slice(&0x1111_2222_3333_4444_u64.to_le_bytes());
    expected[8..12].copy_from_slice(&100_i32.to_le_bytes());
    expected[20..28].copy_from_slice(&0x5555_6666_7777_8888_u64.to_le_bytes());
    expected[32..].copy_from_slice(&0.5_f64.to_le_bytes());
    assert_eq!(packed, expected);
}

#[test]
fn arguments_are_found_by_name_and_else_by_position() {
    // In another order, with names.
    let mut blocks: Vec<&str> = SITE.split("[[arg]]").collect();
    blocks[1..].reverse();
    let reversed = site(&blocks.join("\n[[arg]]"));
    let layout = Layout::from_metadata(&reversed, &metadata(METADATA)).expect("fits");
    assert_eq!(layout.offsets, [32, 20, 8, 0]);
    // Without any.
    let nameless = site(&SITE.lines().filter(|line| !line.starts_with("name")).collect::<Vec<_>>().join("\n"));
    assert_eq!(Layout::from_metadata(&nameless, &metadata(METADATA)).expect("fits").offsets, [0, 8, 20, 32]);
    // Names that the metadata has more than once say nothing.
    let padded = METADATA.replace(".name: n,", ".name: pad,").replace(".name: scale", ".name: pad");
    assert_eq!(Layout::from_metadata(&site(SITE), &metadata(&padded)).expect("fits").offsets, [0, 8, 20, 32]);
}

#[test]
fn what_does_not_fit_the_metadata_is_refused() {
    let without = |name: &str| {
        let blocks: Vec<&str> = SITE.split("[[arg]]").collect();
        let kept: Vec<&str> = blocks.into_iter().filter(|block| !block.contains(&format!("\"{name}\""))).collect();
        kept.join("[[arg]]")
    };
    for (name, described) in [
        ("out", "argument 0 `out` (global_buffer, 8 bytes)"),
        ("n", "argument 1 `n` (by_value, 4 bytes)"),
        ("in", "argument 2 `in` (global_buffer, 8 bytes)"),
        ("scale", "argument 3 `scale` (by_value, 8 bytes)"),
    ] {
        assert_eq!(
            problems(&without(name), METADATA),
            [format!("the kernel takes {described}, which the site does not give")]
        );
    }
    let more = format!("{SITE}[[arg]]\nname = \"more\"\ntype = \"i32\"\nvalue = 1\n");
    assert_eq!(problems(&more, METADATA), ["the kernel takes 4 arguments and has none for `more`"]);
    for (from, to, why) in [
        ("type = \"i32\"", "type = \"i64\"", "argument 1 `n` (by_value, 4 bytes): the site's `n` has 8 bytes"),
        ("type = \"f64\"", "type = \"f32\"", "argument 3 `scale` (by_value, 8 bytes): the site's `scale` has 4 bytes"),
        (
            "type = \"i32\"\nvalue = \"N\"",
            "dtype = \"f32\"\nshape = [1]",
            "argument 1 `n` (by_value, 4 bytes): the site gives the buffer `n`; it is a value",
        ),
        (
            "type = \"f64\"\nvalue = 0.5",
            "bytes = \"00\"",
            "argument 3 `scale` (by_value, 8 bytes): the site's `scale` has 1 bytes",
        ),
        (
            "dtype = \"f32\"\nshape = [\"N\"]\nfill = { kind = \"uniform\" }",
            "type = \"u64\"\nvalue = 0",
            "argument 2 `in` (global_buffer, 8 bytes): the site gives `in` by value; it is a pointer",
        ),
        (
            "name = \"n\"",
            "name = \"n\"\noffset = 12",
            "argument 1 `n` (by_value, 4 bytes): the site says offset 12, the metadata 8",
        ),
        ("[64, 4]", "[64, 5]", "block has 320 work-items; .max_flat_workgroup_size is 256"),
        ("[64, 4]", "[65536, 65536, 65536]", "block has 281474976710656 work-items; .max_flat_workgroup_size is 256"),
    ] {
        assert_eq!(problems(&SITE.replacen(from, to, 1), METADATA), [why], "{to}");
    }
}

#[test]
fn metadata_that_leaves_something_open_is_refused() {
    for (from, to, why) in [
        (".offset: 8, ", "", "the metadata does not say where argument 1 `n` (by_value, 4 bytes) stands"),
        (
            ", .value_kind: by_value }\n      - { .name: in",
            " }\n      - { .name: in",
            "argument 1 `n` (?, 4 bytes): the metadata does not say what kind it is",
        ),
        (
            "size: 4, .value_kind: by_value",
            "size: 4, .value_kind: dynamic_shared_pointer",
            "argument 1 `n` (dynamic_shared_pointer, 4 bytes): arguments of kind dynamic_shared_pointer cannot be passed",
        ),
        (
            "size: 8, .value_kind: by_value",
            "size: 8, .value_kind: queue",
            "argument 3 `scale` (queue, 8 bytes): arguments of kind queue cannot be passed",
        ),
        (".offset: 20", ".offset: 10", "arguments `n` (bytes 8 to 12) and `in` (10 to 18) overlap"),
        (".offset: 32", ".offset: 70000", "the arguments end at byte 70008; at most 65536 are passed"),
        (
            "    .args",
            "    .reqd_workgroup_size: [256, 1, 1]\n    .args",
            "block is [64, 4, 1]; .reqd_workgroup_size is [256, 1, 1]",
        ),
    ] {
        assert!(METADATA.contains(from), "{from}");
        assert_eq!(problems(SITE, &METADATA.replacen(from, to, 1)), [why], "{to}");
    }
}

#[test]
fn metadata_without_arguments_says_at_least_their_length() {
    let bare = |size: &str| format!("amdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n{size}");
    let placed = SITE
        .replace("name = \"in\"", "name = \"in\"\noffset = 20")
        .replace("name = \"scale\"", "name = \"scale\"\noffset = 32");
    for size in [40, 44, 47] {
        let text = bare(&format!("    .kernarg_segment_size: {size}\n"));
        let layout = Layout::from_metadata(&site(&placed), &metadata(&text)).expect("fits");
        assert_eq!(layout.offsets, [0, 8, 20, 32]);
    }
    for (size, said) in
        [("    .kernarg_segment_size: 48\n", "48"), ("    .kernarg_segment_size: 39\n", "39"), ("", "not there")]
    {
        let expected = format!(
            "the metadata lists no arguments; those of the site end at byte 40, and .kernarg_segment_size is {said}"
        );
        assert_eq!(problems(&placed, &bare(size)), [expected]);
    }
    // A kernel that takes nothing is given nothing.
    assert_eq!(problems(SITE, &bare("    .kernarg_segment_size: 0\n")).len(), 4);
}

#[test]
fn without_metadata_arguments_stand_as_c_has_them() {
    let layout = Layout::from_site(&site(SITE)).expect("fits");
    assert_eq!((layout.offsets.as_slice(), layout.bytes), (&[0, 8, 16, 24][..], 32));
    let structure = |before: &str| {
        site(&format!(
            "kernel = \"k\"\ngrid = [1]\nblock = [1]\n{before}[[arg]]\nname = \"s\"\nbytes = \"{}\"\n",
            "00".repeat(12)
        ))
    };
    let scalar = "[[arg]]\nname = \"n\"\ntype = \"i32\"\nvalue = 1\n";
    assert_eq!(Layout::from_site(&structure("")).expect("fits").offsets, [0]);
    let why = Layout::from_site(&structure(scalar)).expect_err("4 or 16");
    assert_eq!(why, ["`s`: bytes do not say how a structure is aligned behind byte 4; give its offset"]);
    let overlapping = SITE.replace("name = \"in\"", "name = \"in\"\noffset = 9");
    let why = Layout::from_site(&site(&overlapping)).expect_err("they overlap");
    assert_eq!(
        why,
        [
            "arguments `n` (bytes 8 to 12) and `in` (9 to 17) overlap",
            "arguments `in` (bytes 9 to 17) and `scale` (24 to 32) overlap"
        ][..1]
    );
    let far = SITE.replace("name = \"in\"", "name = \"in\"\noffset = 9223372036854775807");
    assert!(Layout::from_site(&site(&far)).is_err());
}

#[test]
fn lds_above_the_device_s_is_refused() {
    let site = site(SITE);
    assert_eq!(pack::lds_problem(&site, 64 << 10, 66_560), None);
    assert_eq!(
        pack::lds_problem(&site, 64 << 10, 64 << 10).as_deref(),
        Some("65536 bytes of static and 1024 of dynamic LDS; a work-group has at most 65536")
    );
    assert!(pack::lds_problem(&site, u64::MAX, 64 << 10).is_some());
    // A driver that does not tell is left to refuse by itself.
    assert_eq!(pack::lds_problem(&site, 1 << 30, 0), None);
}

#[test]
fn what_a_site_does_not_have_is_told_with_its_place() {
    let mut wrong = Vec::new();
    for (from, to, why) in [
        ("dynamic-lds = 1024", "lds = 1024", "5:1: unknown field `lds`"),
        ("type = \"i32\"", "kind = \"i32\"", "15:1: unknown field `kind`"),
        ("{ kind = \"uniform\" }", "{ kind = \"uniform\", lo = 1 }", "21:28: unknown field `lo`"),
        ("grid = [\"cu_count\"]", "grid = [\"cu_count\"", "4:1: missing comma"),
        ("kernel = \"k\"", "", "missing field `kernel`"),
        ("{ kind = \"uniform\" }", "{ kind = \"uniform\", mask = 1 }", " arg `in`: fill `uniform` has no `mask`"),
        ("{ kind = \"uniform\" }", "{ kind = \"range\", path = \"x\" }", " arg `in`: fill `range` has no `path`"),
        ("{ kind = \"uniform\" }", "{ kind = \"constant\" }", " arg `in`: fill `constant` needs `value`"),
        ("{ kind = \"uniform\" }", "{ kind = \"bytes\", mask = 256 }", " arg `in`: fill.mask: 256 is no byte"),
        ("{ kind = \"uniform\" }", "{ kind = \"one-hot\", index = -1 }", " arg `in`: fill.index: -1 is no index"),
        ("{ kind = \"uniform\" }", "{ kind = \"one-hot\", index = 0.5 }", " arg `in`: fill.index: 0.5 is no index"),
        ("{ kind = \"uniform\" }", "{ kind = \"ones\" }", " arg `in`: `ones` is no fill; there are bits, uniform"),
        ("{ kind = \"uniform\" }", "{ kind = \"file\" }", " arg `in`: fill `file` needs `path`"),
        ("N = 100", "cu_count = 100", " dims.cu_count: the device says what cu_count is"),
        ("N = 100", "N = \"M\"", "`M` is not known"),
        ("N = 100", "N = \"M + 1\"\nM = \"K\"\nK = \"N\"", " dims."),
        ("N = 100", "N = \"N\"", "`N` is not known"),
        ("N = 100", "N = -5", "9: arg `out`: shape: `N` = -5 is not between 0 and"),
        ("N = 100", "N = 0", "arg `out`: shape [0] (N = 0) has no elements"),
        ("N = 100", "N = 100\nX = \"1e308*10\"", "8: dims.X: inf is no finite number"),
        ("N = 100", "N = 100\nX = \"ceil_div(N, 0)\"", "takes two whole numbers, the second above 0; found 100, 0"),
        ("shape = [\"N\"]\n", "shape = [\"N\"]\nunwritten = \"yes\"\n", "unknown variant `yes`, expected `allowed`"),
        ("fill = {", "unwritten = \"allowed\"\nfill = {", " arg `in`: unwritten belongs to outputs"),
        ("value = \"N\"", "value = \"N/3\"", " arg `n`: `N/3`, column 4: 100/3 leaves a remainder"),
        ("value = \"N\"", "value = 2147483648", " arg `n`: 2147483648 does not fit into i32"),
        ("value = \"N\"", "value = 1.5", " arg `n`: 1.5 is no whole number"),
        ("value = \"N\"", "", " arg `n`: a scalar needs both type and value"),
        ("type = \"i32\"", "null = true", "found type and value (a scalar) and null"),
        ("type = \"i32\"", "type = \"int\"", "`int` is no type of a scalar"),
        ("type = \"i32\"\nvalue = \"N\"", "bytes = \"0\"", "expected pairs of hexadecimal digits"),
        ("type = \"i32\"\nvalue = \"N\"", "bytes = \"é0\"", "expected pairs of hexadecimal digits"),
        ("name = \"n\"", "name = \"out\"", " arg `out`: the name is there twice"),
        ("name = \"n\"", "name = \"n\"\nposition = 0", " arg `n`: position 0 is taken by another"),
        ("name = \"n\"", "name = \"n\"\nposition = 4", " arg `n`: position 4 of 4 arguments"),
        ("shape = [\"N\"]", "shape = [0]", " arg `out`: shape [0] has no elements"),
        ("shape = [\"N\"]", "shape = [\"0x10000000000\", 2]", "is larger than"),
        ("shape = [\"N\"]", "shape = [-1]", "-1 is not between 0 and"),
        ("shape = [\"N\"]\nfill", "fill", " arg `in`: a buffer needs both dtype and shape"),
        ("fill = { kind = \"uniform\" }", "role = \"inout\"", " arg `in`: an input needs a fill"),
        ("shape = [\"N\"]\n", "shape = [\"N\"]\nrole = \"out\"\nfill = { kind = \"bits\" }\n", "an output has no fill"),
        ("[64, 4]", "[0]", "4: block: 0 is not between 1 and 4294967295"),
        ("[64, 4]", "[1, 1, 1, 1]", " block: 4 numbers, expected 1 to 3"),
        (
            "grid = [\"cu_count\"]",
            "grid = [\"cu_count - 304\"]",
            "3: grid: `cu_count - 304` = 0 (cu_count = 304) is not between 1 and 4294967295",
        ),
        ("dynamic-lds = 1024", "dynamic-lds = 4294967296", " dynamic-lds: 4294967296 is not between 0 and 4294967295"),
        ("dynamic-lds = 1024", "flop = \"0 - N\"", "5: flop: `0 - N` = -100 (N = 100) is not above 0"),
    ] {
        assert!(SITE.contains(from), "{from}");
        let text = SITE.replacen(from, to, 1);
        let said = Site::parse(&text, "site", Path::new(""), DEVICE).expect_err(&text);
        if !said.contains(why) {
            wrong.push(format!("{to}: `{why}` is not in `{said}`"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn dims_may_use_each_other_in_any_order() {
    let site = site(&SITE.replace("N = 100", "A = \"B * 2\"\nB = \"ceil_div(N, wave_size)\"\nN = \"10 * K\"\nK = 13"));
    let dims: Vec<String> = site.dims.iter().map(|(name, value)| format!("{name}={}", value.as_f64())).collect();
    assert_eq!(dims, ["A=6", "B=3", "K=13", "N=130"]);
    let sizes: Vec<u64> = site.buffers().map(|(_, buffer)| buffer.bytes).collect();
    assert_eq!(sizes, [520, 520]);
    assert_eq!(site.grid, [304, 1, 1]);
}

#[test]
fn scalars_stand_in_little_endian() {
    for (scalar, value, bytes) in [
        ("i8", "-1", &[0xff][..]),
        ("u16", "0x1234", &[0x34, 0x12]),
        ("i32", "-2", &[0xfe, 0xff, 0xff, 0xff]),
        ("u64", "1", &[1, 0, 0, 0, 0, 0, 0, 0]),
        ("f16", "1.0", &[0x00, 0x3c]),
        ("bf16", "-2.0", &[0x00, 0xc0]),
        ("f32", "0.5", &[0, 0, 0, 0x3f]),
    ] {
        let text = SITE.replace("type = \"i32\"\nvalue = \"N\"", &format!("type = \"{scalar}\"\nvalue = {value}"));
        let site = site(&text);
        let ArgumentValue::Bytes(found) = &site.arguments[1].value else { panic!("a scalar") };
        assert_eq!(found, bytes, "{scalar}");
    }
}

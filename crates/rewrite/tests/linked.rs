//! Code objects with everything that a linker resolves, from one source: grown here, and linked with the same insertion.

mod support;

use llvm::{Assembler, Target, Toolchain};
use rewrite::{Edit, ErrorKind, Labels, change};
use support::relink::loadable;

/// `@BEFORE@` and `@LOOP@` are where something is inserted; `@KERNEL2@` starts another kernel.
const SOURCE: &str = r#"
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl k
    .p2align 8
    .type k,@function
k:
    @BEFORE@
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, variable@gotpcrel32@lo+4
    s_addc_u32 s5, s5, variable@gotpcrel32@hi+12
    s_load_dwordx2 s[4:5], s[4:5], 0x0
    s_getpc_b64 s[6:7]
    s_add_u32 s6, s6, table@rel32@lo+4
    s_addc_u32 s7, s7, table@rel32@hi+12
    s_load_dwordx2 s[6:7], s[6:7], 0x0
.Lloop:
    @LOOP@
    s_add_u32 s0, s0, 1
    s_cbranch_scc0 .Lloop
    s_getpc_b64 s[8:9]
    s_add_u32 s8, s8, f@rel32@lo+4
    s_addc_u32 s9, s9, f@rel32@hi+12
    s_swappc_b64 s[30:31], s[8:9]
    s_call_b64 s[30:31], f
    s_getpc_b64 s[10:11]
.Lpc:
    s_sub_u32 s10, s10, (.Lpc-.Lloop)&0xffffffff
    s_subb_u32 s11, s11, 0
    s_setpc_b64 s[10:11]
    s_endpgm
.Lk_end:
    .size k, .Lk_end-k
    .hidden f
    .globl f
    .p2align 2
    .type f,@function
f:
    s_nop 1
    s_setpc_b64 s[30:31]
.Lf_end:
    .size f, .Lf_end-f
    .globl k2
    .p2align 8
    .type k2,@function
k2:
    s_branch .Lk2
    s_nop 2
.Lk2:
    s_endpgm
.Lk2_end:
    .size k2, .Lk2_end-k2

    .section .data.rel.ro,"aw",@progbits
    .p2align 3
table:
    .quad f
    .quad variable
    .data
    .globl variable
    .p2align 4
    .type variable,@object
variable:
    .quad 5
    .size variable, 8
    .local zeroed
    .comm zeroed,64,16

    .rodata
    .amdhsa_kernel k
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset 8
    .end_amdhsa_kernel
    .amdhsa_kernel k2
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset 8
    .end_amdhsa_kernel
    .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
  - .name: k2
    .symbol: k2.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .end_amdgpu_metadata
"#;

fn link(llvm: &Toolchain, source: &str) -> Vec<u8> {
    let assembly = llvm.assemble(&Target::new("gfx942"), source).expect("LLVM");
    let object = assembly.object.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics));
    llvm::link(None, &object).expect("ld.lld")
}

/// The source with as many `s_nop` at its two marks.
fn with_nops(before: usize, in_loop: usize) -> String {
    let nops = |count| format!(".rept {count}\n s_nop 0\n .endr");
    SOURCE.replace("@BEFORE@", &nops(before)).replace("@LOOP@", &nops(in_loop))
}

fn insertion(at: u64, nops: usize) -> Edit {
    Edit { old: at..at, new: support::nops(4 * nops), labels: Labels::Before }
}

/// Bytes from the start of the kernel to `.Lloop`.
const LOOP: u64 = 56;

#[test]
fn tables_pointers_calls_and_got_lead_where_the_linker_has_them_lead() {
    let Some(llvm) = support::llvm() else { return };
    let old = link(&llvm, &with_nops(0, 0));
    for (before, in_loop) in [(0, 0), (1, 0), (0, 1), (3, 2), (64, 0), (0, 1024), (5000, 5000), (1, 30_000)] {
        let edits = [insertion(0, before), insertion(LOOP, in_loop)];
        let grown = change::apply(&llvm, &old, &edits).unwrap_or_else(|error| panic!("{before}, {in_loop}: {error}"));
        let linked = link(&llvm, &with_nops(before, in_loop));
        let (ours, theirs) = (loadable(&grown.code_object), loadable(&linked));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.0, theirs.0, "{before}, {in_loop}");
            let differs = ours.1.iter().zip(&theirs.1).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{before}, {in_loop}: {}", ours.0);
        }
        assert!(ours == theirs, "{before}, {in_loop}");
        assert_eq!(grown.warnings, Vec::<String>::new());
        let edits = [
            Edit { old: 0..4 * before as u64, new: Vec::new(), labels: Labels::Before },
            Edit {
                old: LOOP + 4 * before as u64..LOOP + 4 * (before + in_loop) as u64,
                new: Vec::new(),
                labels: Labels::Before,
            },
        ];
        let shrunk =
            change::apply(&llvm, &linked, &edits).unwrap_or_else(|error| panic!("{before}, {in_loop}: {error}"));
        assert!(loadable(&shrunk.code_object) == loadable(&old), "{before}, {in_loop}: taken out again");
    }
}

#[test]
fn debug_sections_go_and_the_symbols_behind_them_stay_where_they_belong() {
    let Some(llvm) = support::llvm() else { return };
    let tail =
        ".section .debug_line,\"\",@progbits\n.long 1, 2, 3\n.section .zz,\"\",@progbits\n.local mark\nmark: .long 7\n";
    let old = link(&llvm, &(with_nops(0, 0) + tail));
    let grown = change::apply(&llvm, &old, &[insertion(0, 1)]).expect("grows");
    assert_eq!(grown.warnings.len(), 2, "{:?}", grown.warnings);
    assert!(grown.warnings.iter().any(|w| w.starts_with("dropped .debug_line")), "{:?}", grown.warnings);
    assert!(grown.warnings.iter().any(|w| w.starts_with("section .zz was kept")), "{:?}", grown.warnings);
    let sections = |bytes: &[u8]| {
        let sections = codeobj::CodeObject::parse(bytes).expect("reads").sections;
        sections.into_iter().map(|section| (section.name, bytes[section.file_range].to_vec())).collect::<Vec<_>>()
    };
    let symbol = |bytes: &[u8]| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.co"), bytes).expect("written");
        let output = std::process::Command::new("llvm-readelf-22")
            .args(["-s", "-W", "a.co"])
            .current_dir(folder.path())
            .output();
        let text = String::from_utf8_lossy(&output.expect("llvm-readelf-22").stdout).into_owned();
        let line = text.lines().find(|line| line.ends_with(" mark")).expect("a symbol").to_string();
        line.split_whitespace().nth(6).expect("a section").parse::<usize>().expect("a number")
    };
    let (was, is) = (sections(&old), sections(&grown.code_object));
    assert_eq!(was.len(), is.len() + 1);
    assert_eq!(was[symbol(&old)].0, ".zz");
    assert_eq!(is[symbol(&grown.code_object)], (".zz".to_string(), vec![7, 0, 0, 0]));
}

/// The forms of gfx12: a counter of 48 bits, and gfx1250's own instructions with 64-bit literals.
#[test]
fn later_forms_of_the_same_lead_where_the_linker_has_them_lead() {
    let Some(llvm) = support::llvm() else { return };
    let gfx1201 = "s_getpc_b64 s[4:5]\n s_sext_i32_i16 s5, s5\n s_add_co_u32 s4, s4, table@rel32@lo+8\n \
                   s_add_co_ci_u32 s5, s5, table@rel32@hi+16\n s_swappc_b64 s[30:31], s[4:5]";
    let gfx1250 = "s_get_pc_i64 s[4:5]\n s_add_nc_u64 s[4:5], s[4:5], table@rel64+4\n s_swap_pc_i64 s[30:31], s[4:5]\n \
                   s_cbranch_scc0 .Lend\n s_add_pc_i64 (.Lend-.Lpc)\n.Lpc:\n s_call_i64 s[30:31], .Lk\n \
                   s_get_pc_i64 s[8:9]\n s_prefetch_inst s[8:9], 0x1000, m0, 31";
    for (target, code) in [("gfx1201", gfx1201), ("gfx1250", gfx1250)] {
        let source = |nops: usize| {
            format!(
                ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{code}\n\
                 .rept {nops}\ns_nop 0\n.endr\n.Lk: s_nop 1\n.Lend: s_endpgm\n.Lk_end: .size k, .Lk_end-k\n\
                 .data\n.p2align 3\ntable: .quad 7\n.rodata\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 8\n\
                 .amdhsa_next_free_sgpr 32\n.end_amdhsa_kernel\n"
            )
        };
        let link = |nops| {
            let assembly = llvm.assemble(&Target::new(target), &source(nops)).expect("LLVM");
            llvm::link(None, &assembly.object.unwrap_or_else(|| panic!("{target}: {:?}", assembly.diagnostics)))
                .expect("ld.lld")
        };
        let old = link(0);
        let object = codeobj::CodeObject::parse(&old).expect("reads");
        let at = object.functions[0].code.file_range.len() as u64 - 8;
        // Whole cache lines: the assembler ends the code of these processors with filler up to the next one.
        for nops in [32, 64, 1024, 5024] {
            let grown = change::apply(&llvm, &old, &[Edit { labels: Labels::Behind, ..insertion(at, nops) }]);
            let grown = grown.unwrap_or_else(|error| panic!("{target}: {nops}: {error}"));

            let linked = link(nops);
            for (ours, theirs) in loadable(&grown.code_object).iter().zip(&loadable(&linked)) {
                assert_eq!(ours.0, theirs.0, "{target}: {nops}");
                let differs = ours.1.iter().zip(&theirs.1).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{target}: {nops}: {}", ours.0);
            }
            assert!(loadable(&grown.code_object) == loadable(&linked), "{target}: {nops}");
        }
    }
}

#[test]
fn a_branch_that_cannot_reach_is_refused_with_the_distance() {
    let Some(llvm) = support::llvm() else { return };
    let old = link(&llvm, &with_nops(0, 0));
    let error = change::apply(&llvm, &old, &[insertion(LOOP, 40_000)]).expect_err("too far");
    assert_eq!(error.kind, ErrorKind::NoRoom);
    assert!(error.to_string().contains("s_cbranch_scc0") && error.to_string().contains("-40002 words"), "{error}");
}

/// What is done with the program counter, and what the message has to show.
#[test]
fn an_address_that_is_computed_in_an_unknown_way_is_refused_and_shown() {
    let Some(llvm) = support::llvm() else { return };
    for (code, shown) in [
        ("s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, s6\n s_addc_u32 s5, s5, 0", "s_add_u32 s4, s4, s6"),
        ("s_getpc_b64 s[4:5]\n s_load_dword s6, s[4:5], 0x100", "s_load_dword s6, s[4:5], 0x100"),
        ("s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, 0x100\n s_mov_b32 s5, 0", "s_add_u32 s4, s4, 0x100"),
        ("s_getpc_b64 s[4:5]\n v_mov_b32 v1, s5", "v_mov_b32_e32 v1, s5"),
        (
            "s_getpc_b64 s[4:5]\n s_cbranch_scc0 1f\n s_mov_b64 s[4:5], 0\n 1: s_mov_b64 s[8:9], s[4:5]",
            "s_mov_b64 s[8:9], s[4:5]",
        ),
    ] {
        let old = link(&llvm, &SOURCE.replace("@BEFORE@", code).replace("@LOOP@", ""));
        let error = change::apply(&llvm, &old, &[insertion(0, 1)]).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Unsupported, "{code}");
        assert!(error.to_string().contains(shown), "{code}: {error}");
    }
    let harmless = "s_getpc_b64 s[4:5]\n s_mov_b64 s[4:5], 0\n v_mov_b32 v1, s4";
    let old = link(&llvm, &SOURCE.replace("@BEFORE@", harmless).replace("@LOOP@", ""));
    assert!(change::apply(&llvm, &old, &[insertion(0, 1)]).is_ok());
}

#[test]
fn an_edit_of_a_part_of_an_address_computation_is_refused() {
    let Some(llvm) = support::llvm() else { return };
    let old = link(&llvm, &with_nops(0, 0));
    let edit = Edit { old: 4..12, new: support::nops(8), labels: Labels::Before };
    let error = change::apply(&llvm, &old, &[edit]).expect_err("refused");
    assert!(error.to_string().contains("a part of the address computation"), "{error}");
    let edit = Edit { old: 0..20, new: support::nops(24), labels: Labels::Before };
    assert!(change::apply(&llvm, &old, &[edit]).is_ok(), "the whole of it may go");
}

#[test]
fn a_second_entry_stays_where_it_has_to_be_or_the_edit_is_refused() {
    let Some(llvm) = support::llvm() else { return };
    let prologue =
        "s_load_dwordx2 s[8:9], s[4:5], 0x0\n s_waitcnt lgkmcnt(0)\n s_branch .Lsecond\n .p2align 8\n.Lsecond:";
    let preloads =
        ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n .amdhsa_user_sgpr_kernarg_preload_length 2\n .end_amdhsa_kernel";
    let source = SOURCE.replacen(".end_amdhsa_kernel", preloads, 1).replace("@LOOP@", "");
    let old = link(&llvm, &source.replace("@BEFORE@", prologue));
    let longer = link(&llvm, &source.replace("@BEFORE@", &format!("s_nop 0\n s_nop 0\n {prologue}")));
    let grown = change::apply(&llvm, &old, &[insertion(0, 2)]).expect("the filler takes it");
    assert!(loadable(&grown.code_object) == loadable(&longer));
    let error = change::apply(&llvm, &old, &[insertion(0, 100)]).expect_err("no room");
    assert_eq!(error.kind, ErrorKind::NoRoom);
    assert!(error.to_string().contains("second entry"), "{error}");
    let behind = link(&llvm, &source.replace("@BEFORE@", &format!("{prologue}\n .rept 100\n s_nop 0\n .endr")));
    let grown = change::apply(&llvm, &old, &[insertion(256, 100)]).expect("behind the prologue there is room");
    assert!(loadable(&grown.code_object) == loadable(&behind));
}

/// A program counter that is saved in a lane of a VGPR, and what is restored from there.
#[test]
fn a_saved_program_counter_may_be_prefetched_from_and_nothing_else() {
    let Some(llvm) = support::llvm() else { return };
    let link = |between: &str, last: &str| {
        let source = format!(
            ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1250\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n\
             s_get_pc_i64 s[4:5]\n s_set_vgpr_msb 0x41\n v_writelane_b32 v248, s4, 11\n v_writelane_b32 v248, s5, 12\n\
             s_set_vgpr_msb 0\n s_mov_b64 s[4:5], 0\n {between}\n s_set_vgpr_msb 1\n v_readlane_b32 s6, v248, 11\n\
             v_readlane_b32 s7, v248, 12\n s_set_vgpr_msb 0\n {last}\n s_nop 1\n s_endpgm\n.Lk_end: .size k, .Lk_end-k\n\
             .rodata\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 512\n.amdhsa_next_free_sgpr 32\n.end_amdhsa_kernel\n\
             .amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n\x20   \
             .kernarg_segment_size: 0\n    .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n\x20   \
             .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    .sgpr_count: 32\n    .vgpr_count: 512\n\x20   \
             .max_flat_workgroup_size: 256\n.end_amdgpu_metadata\n"
        );
        let assembly = llvm.assemble(&Target::new("gfx1250"), &source).expect("LLVM");
        llvm::link(None, &assembly.object.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics))).expect("ld.lld")
    };
    let prefetch = "s_prefetch_inst s[6:7], 0x1000, m0, 31";
    let refused = |between, last: &str| match change::apply(&llvm, &link(between, last), &[insertion(0, 32)]) {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
            let message = error.to_string();
            Some(message.split('`').nth(1).unwrap_or_default().to_owned())
        }
    };
    let other_value = "s_set_vgpr_msb 1\n v_readlane_b32 s20, v248, 3\n s_set_vgpr_msb 0\n s_add_co_u32 s20, s20, 1";
    let other_lane = "s_set_vgpr_msb 1\n v_readlane_b32 s20, v248, 3";
    for (between, last, reader) in [
        ("v_add_f32_e32 v248, v248, v248", prefetch, None), // v248, not v504
        (other_lane, prefetch, None),
        (other_value, prefetch, None),
        ("s_set_vgpr_msb 1\n v_mov_b32 v1, v248", prefetch, Some("v_mov_b32_e32 v1, v248")),
        ("s_set_vgpr_msb 1\n v_pk_mul_f32 v[2:3], v[4:5], v[248:249]", prefetch, None), // src1 is of bank 0
        (
            "s_set_vgpr_msb 4\n v_pk_mul_f32 v[2:3], v[4:5], v[248:249]",
            prefetch,
            Some("v_pk_mul_f32 v[2:3], v[4:5], v[248:249]"),
        ),
        // A jump to anywhere leaves nothing known of banks.
        ("", "s_set_pc_i64 s[6:7]", Some("v_writelane_b32 v248, s4, 11")),
        ("", "s_add_nc_u64 s[6:7], s[6:7], 8", Some("s_add_nc_u64 s[6:7], s[6:7], 8")),
        ("", "v_writelane_b32 v1, s6, 0", Some("v_writelane_b32 v1, s6, 0")),
        ("s_set_vgpr_msb 1\n v_readlane_b32 s20, v248, s9", prefetch, Some("v_readlane_b32 s20, v248, s9")),
        // Nobody knows which VGPR that is.
        ("s_setreg_b32 hwreg(HW_REG_WAVE_MODE), s9\n v_mov_b32 v1, v248", prefetch, Some("v_mov_b32_e32 v1, v248")),
    ] {
        assert_eq!(refused(between, last).as_deref(), reader, "{between} / {last}");
    }
}

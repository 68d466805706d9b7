//! Texts of linked code whose edits move what the code computes addresses of: `build` has to give what the linker makes
//! of the source with the same edit, or refuse.

mod support;

use llvm::{Assembler, Target, Toolchain};
use rewrite::disasm::{self, Options};
use rewrite::{ErrorKind, Object, Source, build};
use support::relink::loadable;

/// Slots of a `.got`, data, functions before and behind, and two computations whose parts are mixed.
const GFX942: &str = r#"
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, variable@gotpcrel32@lo+4
    s_addc_u32 s5, s5, variable@gotpcrel32@hi+12
    s_load_dwordx2 s[4:5], s[4:5], 0x0
    s_getpc_b64 s[20:21]
    s_getpc_b64 s[6:7]
    s_add_u32 s6, s6, table@rel32@lo+8+4
    s_addc_u32 s7, s7, table@rel32@hi+8+12
    s_add_u32 s20, s20, hidden@gotpcrel32@lo+24
    s_addc_u32 s21, s21, hidden@gotpcrel32@hi+32
    s_getpc_b64 s[8:9]
    s_add_u32 s8, s8, f@rel32@lo+4
    s_addc_u32 s9, s9, f@rel32@hi+12
    s_swappc_b64 s[30:31], s[8:9]
    s_getpc_b64 s[8:9]
    s_add_u32 s8, s8, .Linside@rel32@lo+4
    s_addc_u32 s9, s9, .Linside@rel32@hi+12
    s_setpc_b64 s[8:9]
    s_getpc_b64 s[8:9]
    s_add_u32 s8, s8, k@rel32@lo+4
    s_addc_u32 s9, s9, k@rel32@hi+12
    s_setpc_b64 s[8:9]
"#;

const GFX1250: &str = r#"
    s_get_pc_i64 s[4:5]
    s_add_nc_u64 s[4:5], s[4:5], table@rel64+4
    s_get_pc_i64 s[6:7]
    s_add_nc_u64 s[6:7], s[6:7], f@rel64+4
    s_swap_pc_i64 s[30:31], s[6:7]
    s_add_pc_i64 .Linside-.Lpc
.Lpc:
    s_add_pc_i64 k-.Lpc2
.Lpc2:
"#;

fn source(target: &str, code: &str, nops: usize) -> String {
    format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n.amdhsa_code_object_version 5\n.text\n.globl k\n.protected k\n\
         .p2align 8\n.type k,@function\nk:\ns_nop 5\n{code}\n.rept {nops}\ns_nop 0\n.endr\n.Linside: s_nop 1\ns_endpgm\n\
         .Lk_end: .size k, .Lk_end-k\n.hidden f\n.globl f\n.type f,@function\nf: s_nop 2\ns_endpgm\n.Lf: .size f, .Lf-f\n\
         .section .data.rel.ro,\"aw\",@progbits\n.p2align 3\ntable: .quad f\n.quad variable\n.quad 7\n.data\n\
         .globl variable\n.p2align 4\n.type variable,@object\nvariable: .quad 5\n.size variable, 8\n.globl hidden\n\
         .hidden hidden\n.type hidden,@object\nhidden: .quad 6\n.size hidden, 8\n.rodata\n.amdhsa_kernel k\n\
         .amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 96\n{}.end_amdhsa_kernel\n.amdgpu_metadata\n\
         amdhsa.version: [1, 2]\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    .kernarg_segment_size: 0\n\x20   \
         .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n\x20   \
         .wavefront_size: 64\n    .sgpr_count: 96\n    .vgpr_count: 8\n    .max_flat_workgroup_size: 256\n\
         .end_amdgpu_metadata\n",
        if target == "gfx942" { ".amdhsa_accum_offset 8\n" } else { "" },
    )
}

fn link(llvm: &Toolchain, target: &str, source: &str) -> Vec<u8> {
    let assembly = llvm.assemble(&Target::new(target), source).expect("LLVM");
    llvm::link(None, &assembly.object.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics))).expect("ld.lld")
}

fn text(llvm: &Toolchain, linked: &[u8]) -> disasm::Disassembly {
    let object = Object::parse(linked).expect("reads");
    let written = disasm::disassemble(llvm, &object, Options { comments: true }).expect("a text");
    assert_eq!(disasm::check(llvm, &object, &written), Ok(None));
    written
}

/// The text with a larger `.size` of `k`, which is a number there.
fn longer(text: &str, bytes: usize) -> String {
    let at = text.find(".size k, ").expect("a size") + ".size k, ".len();
    let end = at + text[at..].find('\n').expect("a line");
    let size: usize = text[at..end].parse().expect("a number");
    format!("{}{}{}", &text[..at], size + bytes, &text[end..])
}

fn same_image(made: &[u8], linked: &[u8], what: &str) {
    for (ours, theirs) in loadable(made).iter().zip(&loadable(linked)) {
        assert_eq!(ours.0, theirs.0, "{what}");
        let differs = ours.1.iter().zip(&theirs.1).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}: {}", ours.0);
    }
    assert!(loadable(made) == loadable(linked), "{what}");
}

/// What `text` gives, checked; or its error.
fn built(llvm: &Toolchain, text: &str) -> rewrite::Result<(Vec<u8>, Vec<rewrite::Message>)> {
    let source = Source::read(text);
    let made = build::code_object(llvm, None, &source)?;
    let notes = build::check(llvm, &made, &source)?;
    Ok((made, notes))
}

#[test]
fn what_code_computes_the_address_of_is_found_where_the_linker_puts_it() {
    let Some(llvm) = support::llvm() else { return };
    for (target, code) in [("gfx942", GFX942), ("gfx1250", GFX1250)] {
        let written = text(&llvm, &link(&llvm, target, &source(target, code, 0)));
        assert!(!written.text.contains(";@pc fixed"), "{target}: all of it has a name\n{}", written.text);
        assert!(!written.omitted.iter().any(|what| what.contains(".got")), "{target}: {:?}", written.omitted);
        let mark = written.text.find("s_nop 1").expect("the instruction behind");
        let label = written.text[..mark].rfind("\n.L").expect("its label") + 1;
        // Whole cache lines: the assembler ends the code of later processors with filler up to the next one.
        for nops in [0, 32, 64, 1024, 5024] {
            let lines = "\ts_nop 0\n".repeat(nops);
            let edited = format!("{}{lines}{}", &written.text[..label], &written.text[label..]);
            let edited = longer(&edited, 4 * nops);
            let (made, _) = built(&llvm, &edited).unwrap_or_else(|error| panic!("{target}: {nops}: {error}"));
            same_image(&made, &link(&llvm, target, &source(target, code, nops)), &format!("{target}: {nops}"));
        }
    }
}

/// What stands between the parts of a computation is counted.
#[test]
fn an_instruction_within_a_computation_does_not_change_where_it_leads() {
    let Some(llvm) = support::llvm() else { return };
    let code = |between: &str, lo: u32, hi: u32| {
        format!(
            "s_getpc_b64 s[8:9]\n{between}\ns_add_u32 s8, s8, f@rel32@lo+{lo}\ns_addc_u32 s9, s9, f@rel32@hi+{hi}\n"
        )
    };
    let written = text(&llvm, &link(&llvm, "gfx942", &source("gfx942", &code("", 4, 12), 0)));
    let at = written.text.find("\ts_add_u32 s8").expect("the addition");
    let edited = format!("{}\ts_nop 3\n{}", &written.text[..at], &written.text[at..]);
    let (made, _) = built(&llvm, &longer(&edited, 4)).expect("assembles");
    let linked = link(&llvm, "gfx942", &source("gfx942", &code("s_nop 3", 8, 16), 0));
    same_image(&made, &linked, "an instruction more");
}

#[test]
fn a_number_that_is_edited_is_not_overruled_by_the_name_beside_it() {
    let Some(llvm) = support::llvm() else { return };
    let written = text(&llvm, &link(&llvm, "gfx942", &source("gfx942", GFX942, 0)));
    let at = written.text.find("s_add_u32 s8, s8, ").expect("an addition");
    let end = at + written.text[at..].find(" ;@pc").expect("its hint");
    let edited = format!("{}s_add_u32 s8, s8, 0x12345{}", &written.text[..at], &written.text[end..]);
    let error = built(&llvm, &edited).expect_err("refused");
    assert!(error.to_string().contains("is not in this line"), "{error}");
    assert_eq!(error.messages[0].line as usize, written.text[..at].lines().count(), "{error}");
    // Without the hint the number is the author's.
    let end = at + written.text[at..].find('\n').expect("a line");
    let edited = format!("{}s_add_u32 s8, s8, 0x12345{}", &written.text[..at], &written.text[end..]);
    assert!(built(&llvm, &edited).is_ok());
    // The program counter is read nowhere any more.
    let at = written.text.find("\ts_getpc_b64 s[4:5]").expect("the first");
    let end = at + written.text[at..].find('\n').expect("a line");
    let edited = format!("{}\ts_nop 0{}", &written.text[..at], &written.text[end..]);
    let error = built(&llvm, &edited).expect_err("refused");
    assert!(error.to_string().contains("is not above it"), "{error}");
}

#[test]
fn what_is_not_understood_may_not_move() {
    let Some(llvm) = support::llvm() else { return };
    let code = "s_getpc_b64 s[4:5]\ns_add_u32 s4, s4, s6\ns_addc_u32 s5, s5, 0\ns_setpc_b64 s[4:5]\n";
    let written = text(&llvm, &link(&llvm, "gfx942", &source("gfx942", code, 0)));
    assert!(written.text.contains(";@pc fixed 0x4"), "{}", written.text);
    assert!(written.omitted.iter().any(|what| what.contains("program counter of .text+0x4")), "{:?}", written.omitted);
    let (_, notes) = built(&llvm, &written.text).expect("as it is");
    assert!(notes.iter().any(|note| note.text.contains("only if it has not moved")), "{notes:?}");
    let (_, notes) = built(&llvm, &written.text.replacen("s_nop 5", "s_nop 6", 1)).expect("nothing moves");
    assert!(!notes.is_empty());
    for (mark, why) in [("\ts_nop 5", "it is at .text+0x8 now"), ("\ts_nop 1", ".text had ")] {
        let at = written.text.find(mark).expect(mark);
        let edited = format!("{}\ts_nop 0\n{}", &written.text[..at], &written.text[at..]);
        let error = built(&llvm, &edited).expect_err("moved");
        assert_eq!(error.kind, ErrorKind::Moved, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn sections_that_an_edit_moves_are_told_where_data_may_count_on_their_place() {
    let Some(llvm) = support::llvm() else { return };
    let code = "s_nop 7\n";
    let written = text(&llvm, &link(&llvm, "gfx942", &source("gfx942", code, 0)));
    let lines = "\ts_nop 0\n".repeat(5000);
    let edited = written.text.replacen("\ts_nop 7", &format!("{lines}\ts_nop 7"), 1);
    let (_, notes) = built(&llvm, &edited).expect("assembles");
    let found = notes.iter().filter(|note| note.text.contains("sections are elsewhere")).count();
    assert_eq!(found, 1, "{notes:?}");
    let (_, notes) = built(&llvm, &written.text).expect("assembles");
    assert!(!notes.iter().any(|note| note.text.contains("elsewhere")), "{notes:?}");
}

/// A program counter in a lane of a VGPR that is only prefetched from leads nowhere.
#[test]
fn what_is_only_prefetched_from_may_move() {
    let Some(llvm) = support::llvm() else { return };
    let code = "s_get_pc_i64 s[4:5]\ns_set_vgpr_msb 0x40\nv_writelane_b32 v3, s4, 11\nv_writelane_b32 v3, s5, 12\n\
                s_mov_b64 s[4:5], 0\ns_set_vgpr_msb 1\nv_readlane_b32 s6, v3, 11\nv_readlane_b32 s7, v3, 12\n\
                s_set_vgpr_msb 0\ns_prefetch_inst s[6:7], 0x1000, m0, 31\n";
    let written = text(&llvm, &link(&llvm, "gfx1250", &source("gfx1250", code, 0)));
    assert!(!written.text.contains(";@pc"), "{}", written.text);
}

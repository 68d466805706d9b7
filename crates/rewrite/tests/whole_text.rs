//! The text of a code object says everything that is loaded: LLVM's own tools find the same in what it assembles to.

mod support;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::process::Command;

use llvm::{Assembler, Target, Toolchain};
use rewrite::disasm::{self, Options};
use rewrite::{Object, Source, build};

/// Data of every kind, and code that names it in every way.
const SOURCE: &str = r#"
    .text
    .globl behind
    .globl k
    .p2align 8
    .type k,@function
k:
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, counter@rel32@lo+4
    s_addc_u32 s5, s5, counter@rel32@hi+12
    s_getpc_b64 s[6:7]
    s_add_u32 s6, s6, constants@rel32@lo+8
    s_addc_u32 s7, s7, constants@rel32@hi+16
    s_mov_b32 s8, 0x12345678
.Linner:
    s_endpgm
.Lk_end:
    .size k, .Lk_end-k
    .hidden behind
    .type behind,@function
behind:
    s_setpc_b64 s[30:31]
    .section .rodata,"a",@progbits
    .p2align 3
constants:
    .byte 1
    .long 0x01020304
    .byte 2, 3, 4
    .type constants,@object
    .size constants, 8
    .long k-.
    .long inside-constants
    .p2align 6
    .amdhsa_kernel k
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset 8
    .end_amdhsa_kernel
inside:
    .quad 77
    .section .rodata.str1.1,"aMS",@progbits,1
.Lhello:
    .asciz "hello"
    .asciz "world, which is long"
    .data
    .p2align 4
    .globl counter
    .protected counter
    .type counter,@object
counter:
    .long 7
    .zero 60
    .short 9
    .size counter, 66
    .section .data.rel.ro,"aw",@progbits
    .p2align 3
    .type pointers,@object
pointers:
    .quad counter+4
    .quad .Linner
    .quad behind
    .quad inside+8
    .size pointers, 32
    .section .init_array,"aw",@init_array
    .p2align 3
    .quad behind
    .section .mine,"aw",@progbits
    .byte 1, 2, 3
    .bss
    .p2align 5
    .globl zeros
    .type zeros,@object
zeros:
    .zero 100
    .size zeros, 100
    .weak maybe
    .set some.number, 0x1234
    .type tentative,@object
    .globl tentative
    .hidden tentative
    .comm tentative,24,3
"#;

/// What only an object that is not linked can have.
const UNLINKED: &str = r#"
    .text
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, other@gotpcrel32@lo+4
    s_addc_u32 s5, s5, other@gotpcrel32@hi+12
    s_mov_b32 s4, table@abs32@lo
    s_mov_b32 s5, table@abs32@hi
    v_mov_b32 v0, maybe@rel32@lo
    s_add_u32 s6, s6, 0x12
    .reloc .-4, R_AMDGPU_REL32_LO, other+8
    .section .table,"a",@progbits
    .byte 0
table:
    .long other-.
    .long other@abs32@lo
    .quad other+1
    .quad other-.
    .long 5
    .reloc .-4, R_AMDGPU_REL16, other
"#;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Content of the sections that are loaded, symbols and relocations by `llvm-readelf-22`, in an order of their own.
fn facts(bytes: &[u8], is_linked: bool) -> BTreeMap<String, Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).expect("written");
    let readelf = |arguments: &[&str]| {
        let output = Command::new("llvm-readelf-22").args(arguments).arg(&path).output().expect("llvm-readelf-22");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut facts = BTreeMap::new();
    let object = codeobj::CodeObject::parse(bytes).expect("a code object");
    let section = |index: &str| index.parse::<usize>().map_or(index.to_owned(), |at| object.sections[at].name.clone());
    for own in object.sections.iter().filter(|section| section.is_allocated() && section.size > 0) {
        let (content, address) = (&bytes[own.file_range.clone()], if is_linked { own.address } else { 0 });
        let lines =
            vec![format!("{address:#x} {:#x} {}", own.size, own.section_type), format!("content {:x}", hash(content))];
        facts.insert(format!("section {}", own.name), lines);
    }
    let mut symbols: Vec<String> = Vec::new();
    for line in readelf(&["-s", "-W"]).lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, value, size, kind, binding, visibility, index, name @ ..] = &fields[..]
            && !["SECTION", "Type"].contains(kind)
            && !name.is_empty()
        {
            let name = name.join(" ");
            symbols.push(format!("{value} {size} {kind} {binding} {visibility} {} {name}", section(index)));
        }
    }
    symbols.sort();
    facts.insert("symbols".into(), symbols);
    let rows = readelf(&["-r", "-W"]);
    let mut holder = "";
    for line in rows.lines() {
        if let Some(at) = line.strip_prefix("Relocation section '") {
            holder = at.split('\'').next().unwrap_or_default();
        } else if let [offset, _, kind, target @ ..] = &line.split_whitespace().collect::<Vec<_>>()[..]
            && kind.starts_with("R_AMDGPU")
        {
            let target = target.get(1..).unwrap_or_default().join(" ");
            facts.entry(format!("relocations {holder}")).or_default().push(format!("{offset} {kind} {target}"));
        }
    }
    facts.values_mut().filter(|lines| lines.len() > 2).for_each(|lines| lines.sort());
    facts
}

fn assembled(llvm: &Toolchain, target: &Target, source: &str) -> Vec<u8> {
    let assembly = llvm.assemble(target, source).expect("LLVM");
    assembly.object.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics))
}

fn text(llvm: &Toolchain, name: &str, object: &Object<'_>) -> disasm::Disassembly {
    let written = disasm::disassemble(llvm, object, Options { comments: true }).expect(name);
    assert_eq!(disasm::check(llvm, object, &written), Ok(None), "{name}");
    written
}

fn source(more: &str) -> String {
    let mut parts = vec![".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.amdhsa_code_object_version 5\n", SOURCE, more];
    parts.retain(|part| !part.is_empty());
    parts.concat()
}

#[test]
fn data_symbols_and_relocations_of_an_object_come_back() {
    let Some(llvm) = support::llvm() else { return };
    let own = assembled(&llvm, &Target::new("gfx942"), &source(UNLINKED));
    let object = Object::parse(&own).expect("reads");
    let written = text(&llvm, "source", &object);
    assert_eq!(written.omitted, Vec::<String>::new());
    for line in ["s_add_u32 s4, s4, counter@rel32@lo+4", "s_add_u32 s4, s4, other@gotpcrel32@lo+4", ".quad counter+4"] {
        assert!(written.text.contains(line), "{line}\n{}", written.text);
    }
    let again = assembled(&llvm, &object.target, &written.text);
    for (what, lines) in facts(&own, false) {
        // LLVM names a local symbol by its section where it can; `check` holds those together.
        if what != "relocations .rela.table" && what != "relocations .rela.text" {
            assert_eq!(facts(&again, false).get(&what), Some(&lines), "{what}");
        }
    }
}

#[test]
fn a_linked_object_is_linked_again() {
    let Some(llvm) = support::llvm() else { return };
    let linked = llvm::link(None, &assembled(&llvm, &Target::new("gfx942"), &source(""))).expect("ld.lld");
    let object = Object::parse(&linked).expect("reads");
    let written = text(&llvm, "source", &object);
    let again = build::code_object(&llvm, None, &Source::read(&written.text)).expect("assembles");
    assert_eq!(facts(&linked, true), facts(&again, true), "{}", written.text);
}

/// Where the linker places everything as it was, everything is as it was.
#[test]
fn real_objects_come_back() {
    let Some(llvm) = support::llvm() else { return };
    let (mut equal, mut elsewhere) = (0, 0);
    for (name, bytes) in support::objects() {
        let object = Object::parse(&bytes).expect("reads");
        let written = text(&llvm, &name, &object);
        let again = build::code_object(&llvm, None, &Source::read(&written.text))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let [own, new] = [&bytes, &again].map(|bytes| facts(bytes, true));
        let placed = |facts: &BTreeMap<String, Vec<String>>| {
            let sections =
                facts.iter().filter(|(what, _)| what.starts_with("section ") && !what.contains("relro_padding"));
            sections.map(|(what, lines)| (what.clone(), lines[0].clone())).collect::<Vec<_>>()
        };
        if placed(&own) != placed(&new) {
            eprintln!("{name}: placed otherwise");
            elsewhere += 1;
            continue;
        }
        equal += 1;
        for (what, lines) in own.iter().filter(|(what, _)| !what.contains("relro_padding")) {
            assert_eq!(new.get(what), Some(lines), "{name}: {what}");
        }
    }
    eprintln!("{equal} equal, {elsewhere} placed otherwise");
    assert!(equal >= 8);
}

/// A linker keeps one of the groups of a name: the text cannot have that, and says so.
#[test]
fn a_comdat_group_is_named_and_what_only_tells_the_producer_is_not() {
    let Some(llvm) = support::llvm() else { return };
    let more = "\n.section .text.inline,\"axG\",@progbits,inline_f,comdat\n.weak inline_f\n.type inline_f,@function\n\
                inline_f: s_nop 1\ns_setpc_b64 s[30:31]\n.section .tail,\"\",@progbits\n.long 7\n.ident \"someone\"\n";
    let own = assembled(&llvm, &Target::new("gfx942"), &source(more));
    let object = Object::parse(&own).expect("reads");
    let written = text(&llvm, "group", &object);
    let wanted = [
        ".tail, which no GPU loads",
        "the COMDAT group `inline_f` of .text.inline: a linker will not take these for another object's copies",
    ];
    assert_eq!(written.omitted, wanted);
    for what in wanted.into_iter().chain([".comment, which no GPU loads"]) {
        assert!(written.text.contains(&format!("; not in this text: {what}\n")), "{what}\n{}", written.text);
    }
}

/// Which bits of `s_set_vgpr_msb` are whose: LLVM's disassembler names the register that each operand means.
#[test]
fn comments_have_the_banks_that_llvm_reads_operands_with() {
    let Some(llvm) = support::llvm() else { return };
    let code = "k:\n v_add_f32_e32 v7, v8, v9\n s_set_vgpr_msb 0x89\n v_add_f32_e32 v1, v2, v3\n s_set_vgpr_msb 0x1b\n \
                v_fma_f32 v1, v2, v3, v4\n s_endpgm\n";
    let source = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1250\"\n.amdhsa_code_object_version 5\n.text\n.globl k\n.p2align 8\n\
         .type k,@function\n{code}.rodata\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1024\n\
         .amdhsa_next_free_sgpr 16\n.end_amdhsa_kernel\n.amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n  \
         - .name: k\n    .symbol: k.kd\n    .kernarg_segment_size: 0\n    .kernarg_segment_align: 8\n    \
         .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    \
         .sgpr_count: 16\n    .vgpr_count: 1024\n    .max_flat_workgroup_size: 256\n.end_amdgpu_metadata\n"
    );
    let own = assembled(&llvm, &Target::new("gfx1250"), &source);
    let object = Object::parse(&own).expect("reads");
    let written = text(&llvm, "banks", &object);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::write(&path, &own).expect("written");
    let output = Command::new("llvm-objdump-22").args(["-d", "--mcpu=gfx1250"]).arg(&path).output().expect("objdump");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    // `v1 /*v513*/`: low bits in the text, all of it in the comment.
    let banks = |line: &str| -> Vec<u32> {
        let operands = line.split("//").next().unwrap_or_default().split_once("v_").map_or("", |(_, rest)| rest);
        let operands = operands.split_once(' ').map_or("", |(_, operands)| operands).split(", ");
        let number = |text: &str| text.trim().trim_start_matches('v').parse::<u32>().expect("a register");
        let bank = |operand: &str| match operand.split_once("/*") {
            Some((_, whole)) => number(whole.trim().trim_end_matches("*/")) / 256,
            None => 0,
        };
        operands.map(bank).collect()
    };
    let theirs: Vec<Vec<u32>> = printed.lines().filter(|line| line.contains("\tv_")).map(banks).collect();
    assert_eq!(theirs, [vec![0, 0, 0], vec![2, 1, 2], vec![0, 3, 2, 1]], "{printed}");
    let comment = |line: &str| line.split_once("msbs: ").map(|(_, banks)| banks.to_owned());
    let ours: Vec<String> = written.text.lines().filter_map(comment).collect();
    let words = |banks: &Vec<u32>| match &banks[..] {
        [0, 0, 0] => "0".to_owned(),
        [dst, src0, src1] => format!("dst={dst} src0={src0} src1={src1} src2=0"),
        [dst, src0, src1, src2] => format!("dst={dst} src0={src0} src1={src1} src2={src2}"),
        _ => panic!("{banks:?}"),
    };
    assert_eq!(ours, theirs.iter().map(words).collect::<Vec<_>>(), "{}", written.text);
}

//! Synthetic final ISA dumps: the shape, mix of lines and size of a GEMM's dump for gfx950, with other numbers in each.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// One loop body's worth of instruction lines. `{v}` is a VGPR number, `{q}` the start of a VGPR quadruple, `{s}` an SGPR number.
const BODY: [&str; 24] = [
    "v_mfma_f32_16x16x32_bf16 v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}]",
    "ds_read_b128 v[{q}:{q+3}], v{v} offset:4608",
    "v_mfma_f32_16x16x32_bf16 v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}]",
    "s_waitcnt lgkmcnt(3)",
    "v_mfma_f32_16x16x32_bf16 a[0:3], v[{q}:{q+3}], v[{q}:{q+3}], a[0:3]",
    "v_mov_b32_e32 v{v}, v{v}",
    "v_cvt_pk_bf16_f32 v{v}, v{v}, v{v}",
    "buffer_store_short v{v}, v{v}, s[8:11], 0 offen",
    "buffer_load_dwordx4 v[{q}:{q+3}], v{v}, s[4:7], 0 offen offset:64",
    "v_mfma_f32_16x16x32_bf16 v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}]",
    "s_waitcnt vmcnt(2)",
    "ds_write_b128 v{v}, v[{q}:{q+3}]",
    "v_add_u32_e32 v{v}, 0x4000, v{v}",
    "v_or_b32_e32 v{v}, s{s}, v{v}",
    "v_lshlrev_b32_e32 v{v}, 1, v{v}",
    "v_mfma_f32_16x16x32_bf16 v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}], v[{q}:{q+3}]",
    "v_bitop3_b32 v{v}, v{v}, v{v}, 56 bitop3:0x6c",
    "s_mov_b32 s{s}, 0x27000",
    "v_cvt_pk_bf16_f32 v{v}, v{v}, v{v}",
    "buffer_store_short_d16_hi v{v}, v{v}, s[8:11], 0 offen offset:2",
    "s_lshl_b32 s{s}, s{s}, 17",
    "s_barrier",
    "v_lshl_add_u32 v{v}, v{v}, 3, v{v}",
    "s_nop 1",
];

/// Directives of the kernel descriptor that are the same in every dump.
const DESCRIPTOR: [(&str, u32); 25] = [
    ("user_sgpr_count", 2),
    ("user_sgpr_dispatch_ptr", 0),
    ("user_sgpr_queue_ptr", 0),
    ("user_sgpr_kernarg_segment_ptr", 1),
    ("user_sgpr_dispatch_id", 0),
    ("user_sgpr_kernarg_preload_length", 0),
    ("user_sgpr_kernarg_preload_offset", 0),
    ("user_sgpr_private_segment_size", 0),
    ("uses_dynamic_stack", 0),
    ("enable_private_segment", 0),
    ("system_sgpr_workgroup_id_x", 1),
    ("system_sgpr_workgroup_id_y", 1),
    ("system_sgpr_workgroup_id_z", 0),
    ("system_sgpr_workgroup_info", 0),
    ("system_vgpr_workitem_id", 0),
    ("next_free_sgpr", 96),
    ("reserve_vcc", 0),
    ("float_round_mode_32", 0),
    ("float_round_mode_16_64", 0),
    ("float_denorm_mode_32", 3),
    ("float_denorm_mode_16_64", 3),
    ("dx10_clamp", 1),
    ("ieee_mode", 1),
    ("fp16_overflow", 0),
    ("tg_split", 0),
];

/// Writes `count` dumps as `<kernel>/22_final_isa.s`.
pub fn write_tree(folder: &Path, count: usize, lines: usize, worse: bool) -> io::Result<()> {
    for index in 0..count {
        let name = format!("bench_kernel_{index}");
        let directory = folder.join(&name);
        fs::create_dir_all(&directory)?;
        let arch_vgprs = 96 + (index as u32 % 30) * 4 + if worse && index % 10 == 0 { 4 } else { 0 };
        fs::write(directory.join("22_final_isa.s"), dump(&name, lines, arch_vgprs, index as u64))?;
    }
    Ok(())
}

fn dump(name: &str, lines: usize, arch_vgprs: u32, seed: u64) -> String {
    let mut text = String::with_capacity(lines * 56 + 8192);
    let _ = write!(
        text,
        "\t.amdgcn_target \"amdgcn-amd-amdhsa-unknown-gfx950\"\n\t.amdhsa_code_object_version 6\n\t.text\n\
         \t.globl\t{name}\n\t.p2align\t8\n\t.type\t{name},@function\n{name}:\n"
    );
    push_instructions(&mut text, lines.saturating_sub(1), seed);
    let _ = write!(text, "\ts_endpgm\n.Lfunc_end0:\n\t.size\t{name}, .Lfunc_end0-{name}\n");
    push_descriptor(&mut text, name, arch_vgprs);
    push_symbols(&mut text, name, arch_vgprs);
    push_metadata(&mut text, name, arch_vgprs + 28);
    text
}

fn push_instructions(text: &mut String, lines: usize, seed: u64) {
    // A linear congruential generator: the numbers only have to differ, and to be the same in every run.
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for line in 0..lines {
        if line % 180 == 179 {
            let _ = writeln!(text, ".LBB0_{}:", line / 180);
        }
        text.push('\t');
        let mut rest = BODY[line % BODY.len()];
        let mut quadruple = 0;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (hole, after) = after.split_once('}').unwrap_or((after, ""));
            let number = match hole {
                "q" => {
                    quadruple = next(60) * 4;
                    quadruple
                }
                "q+3" => quadruple + 3,
                "s" => 12 + next(80),
                _ => next(250),
            };
            let _ = write!(text, "{number}");
            rest = after;
        }
        text.push_str(rest);
        text.push('\n');
    }
}

fn push_descriptor(text: &mut String, name: &str, arch_vgprs: u32) {
    let _ = write!(
        text,
        "\t.section\t.rodata,\"a\",@progbits\n\t.p2align\t6, 0x0\n\t.amdhsa_kernel {name}\n\
         \t\t.amdhsa_group_segment_fixed_size 32768\n\t\t.amdhsa_private_segment_fixed_size 0\n\
         \t\t.amdhsa_kernarg_size 76\n\t\t.amdhsa_next_free_vgpr {}\n\t\t.amdhsa_accum_offset {arch_vgprs}\n",
        arch_vgprs + 28
    );
    for (directive, value) in DESCRIPTOR {
        let _ = writeln!(text, "\t\t.amdhsa_{directive} {value}");
    }
    text.push_str("\t.end_amdhsa_kernel\n\t.text\n\n");
}

fn push_symbols(text: &mut String, name: &str, arch_vgprs: u32) {
    let values = [
        ("num_vgpr", arch_vgprs),
        ("num_agpr", 28),
        ("numbered_sgpr", 21),
        ("num_named_barrier", 0),
        ("private_seg_size", 0),
        ("uses_vcc", 0),
        ("uses_flat_scratch", 0),
        ("has_dyn_sized_stack", 0),
        ("has_recursion", 0),
        ("has_indirect_call", 0),
    ];
    for (symbol, value) in values {
        let _ = writeln!(text, "\t.set .L{name}.{symbol}, {value}");
    }
    text.push_str(
        "\t.p2alignl 6, 3212836864\n\t.fill 256, 4, 3212836864\n\t.section\t\".note.GNU-stack\",\"\",@progbits\n",
    );
}

fn push_metadata(text: &mut String, name: &str, vgprs: u32) {
    text.push_str("\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .agpr_count:     28\n    .args:\n");
    for argument in 0..4 {
        let _ = write!(
            text,
            "      - .address_space:  global\n        .offset:         {}\n        .size:           8\n        .value_kind:     global_buffer\n",
            argument * 8
        );
    }
    for argument in 0..4 {
        let _ = write!(
            text,
            "      - .offset:         {}\n        .size:           4\n        .value_kind:     by_value\n",
            32 + argument * 4
        );
    }
    let _ = write!(
        text,
        "    .group_segment_fixed_size: 32768\n    .kernarg_segment_align: 8\n    .kernarg_segment_size: 76\n    \
         .max_flat_workgroup_size: 256\n    .name:           {name}\n    .private_segment_fixed_size: 0\n    \
         .reqd_workgroup_size:\n      - 256\n      - 1\n      - 1\n    .sgpr_count:     27\n    \
         .sgpr_spill_count: 0\n    .symbol:         {name}.kd\n    .uniform_work_group_size: 1\n    \
         .uses_dynamic_stack: false\n    .vgpr_count:     {vgprs}\n    .vgpr_spill_count: 0\n    \
         .wavefront_size: 64\namdhsa.target:   amdgcn-amd-amdhsa-unknown-gfx950\namdhsa.version:\n  - 1\n  - 2\n...\n\n\
         \t.end_amdgpu_metadata\n"
    );
}

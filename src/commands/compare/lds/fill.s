// Fills the LDS of a work-group with a word: work-item i of 256 writes words i, i + 256, …
// What stands in capitals differs between processors and is put in.
	.amdgcn_target "amdgcn-amd-amdhsa--TARGET"
	.text
	.globl	coax_fill_lds
	.p2align	8
	.type	coax_fill_lds,@function
coax_fill_lds:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v0, 2, v0
	v_mov_b32 v2, 0x400
	WAIT_FOR_ARGUMENTS
	v_mov_b32 v1, s4
.Lnext:
	ds_write_b32 v0, v1
	v_lshl_add_u32 v0, v2, 0, v0
	s_sub_u32 s5, s5, 0x400
	s_cmp_gt_i32 s5, 0
	s_cbranch_scc1 .Lnext
	s_endpgm
.Lend:
	.size	coax_fill_lds, .Lend-coax_fill_lds
	.rodata
	.p2align	6
	.amdhsa_kernel coax_fill_lds
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 8
		ACCUM_OFFSET
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .name: word
        .offset: 0
        .size: 4
        .value_kind: by_value
      - .name: bytes
        .offset: 4
        .size: 4
        .value_kind: by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .name: coax_fill_lds
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: coax_fill_lds.kd
    .vgpr_count: 4
    .wavefront_size: WAVE_SIZE
amdhsa.target: amdgcn-amd-amdhsa--TARGET
amdhsa.version:
  - 1
  - 1
...
	.end_amdgpu_metadata

//! The model against what `llc-22` printed.

use super::*;

/// Columns of the table, by name.
fn check(table: &str) -> usize {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    let mut rows = 0;
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |name: &str| cells[names.iter().position(|n| *n == name).expect("a column")];
        let number = |name: &str| cell(name).parse::<u32>().unwrap_or_else(|_| panic!("{name} of {line}"));
        let usage = Usage {
            wave_size: number("wave"),
            wgp_mode: cell("mode") == "wgp",
            vgprs: number("vgprs"),
            agprs: number("agprs"),
            sgprs: number("sgprs"),
            lds_bytes: number("lds_bytes"),
            work_items: number("wg_lo")..=number("wg_hi"),
        };
        let limits = Limits::of(cell("target")).expect("a measured target");
        assert_eq!(limits.total_vgprs(usage.vgprs, usage.agprs), number("total_vgprs"), "{line}");
        assert_eq!(limits.occupancy(&usage).waves, number("occupancy"), "{line}");
        rows += 1;
    }
    rows
}

#[test]
fn a_sample_of_kernels_has_the_occupancy_that_llvm_prints() {
    assert!(check(include_str!("../../tests/data/occupancy.tsv")) > 100);
}

#[test]
fn the_whole_table_has_the_occupancy_that_llvm_prints() {
    let Some(corpus) = std::env::var_os("COAX_CORPUS") else {
        return eprintln!("skipped: set COAX_CORPUS to a folder with isa/occupancy_llvm22.tsv");
    };
    match std::fs::read_to_string(std::path::Path::new(&corpus).join("isa/occupancy_llvm22.tsv")) {
        Ok(table) => assert!(check(&table) > 2000),
        Err(error) => eprintln!("skipped: isa/occupancy_llvm22.tsv: {error}"),
    }
}

#[test]
fn one_register_too_many_halves_the_waves() {
    let limits = Limits::of("gfx942").expect("measured");
    let usage = |vgprs, agprs| Usage {
        wave_size: 64,
        wgp_mode: false,
        vgprs,
        agprs,
        sgprs: 32,
        lds_bytes: 0,
        work_items: 256..=256,
    };
    assert_eq!(limits.occupancy(&usage(128, 128)).waves, 2);
    assert_eq!(limits.occupancy(&usage(132, 128)).waves, 1);
}

#[test]
fn impossible_numbers_give_the_smallest_occupancy() {
    for limits in LIMITS {
        let usage = Usage {
            wave_size: 0,
            wgp_mode: true,
            vgprs: u32::MAX,
            agprs: u32::MAX,
            sgprs: u32::MAX,
            lds_bytes: u32::MAX,
            work_items: 0..=0,
        };
        assert_eq!(limits.occupancy(&usage).waves, 1, "{}", limits.processor);
    }
}

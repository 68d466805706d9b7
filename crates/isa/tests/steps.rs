//! The next steps of an occupancy, held against the model by trying every figure between.

use isa::occupancy::{LIMITS, Limits, MAX_SGPRS, MAX_WORK_ITEMS, Resource, Step, Usage};

const FIGURES: [Resource; 3] = [Resource::Vgprs, Resource::Sgprs, Resource::LdsBytes];

fn with(usage: &Usage, resource: Resource, figure: u32) -> Usage {
    let mut usage = usage.clone();
    match resource {
        Resource::Vgprs => (usage.vgprs, usage.agprs) = (figure, 0),
        Resource::Sgprs => usage.sgprs = figure,
        Resource::LdsBytes => usage.lds_bytes = figure,
        Resource::WorkGroups => usage.work_items = figure..=figure,
    }
    usage
}

fn largest(limits: &Limits, resource: Resource) -> u32 {
    match resource {
        Resource::Vgprs => limits.max_total_vgprs(),
        Resource::Sgprs => MAX_SGPRS,
        _ => limits.max_lds_bytes(),
    }
}

fn check(limits: &Limits, usage: &Usage) {
    let waves = |usage: &Usage| limits.occupancy(usage).waves;
    let now = waves(usage);
    let steps = limits.steps(usage);
    let place = format!("{} {usage:?} {steps:?}", limits.processor);
    assert_eq!(steps.limiters.is_empty(), now == limits.max_waves, "{place}");
    for resource in FIGURES {
        let from = limits.figure(resource, usage);
        let step = steps.lower.iter().find(|step| step.resource == resource);
        let first = (from + 1..=largest(limits, resource)).find(|f| waves(&with(usage, resource, *f)) < now);
        assert_eq!(step.map(|step| step.to), first, "lower, {resource:?}: {place}");
        if let Some(step) = step {
            assert_eq!(step.waves, waves(&with(usage, resource, step.to)), "{place}");
        }
        let alone = (0..from).rev().find(|f| waves(&with(usage, resource, *f)) > now);
        match steps.higher.as_slice() {
            [only] if only.resource == resource => assert_eq!(Some(only.to), alone, "higher, {resource:?}: {place}"),
            _ => assert_eq!(alone, None, "higher, {resource:?}: {place}"),
        }
    }
    check_together(limits, usage, &steps.higher, &place);
    if steps.higher.is_empty() && now < limits.max_waves {
        assert!(steps.limiters.contains(&Resource::WorkGroups), "{place}");
        let nothing = FIGURES.into_iter().fold(usage.clone(), |usage, resource| with(&usage, resource, 0));
        assert_eq!(waves(&nothing), now, "{place}");
    }
}

/// All steps up together give their waves; one that is a single unit short does not.
fn check_together(limits: &Limits, usage: &Usage, higher: &[Step], place: &str) {
    let waves = |usage: &Usage| limits.occupancy(usage).waves;
    let all = |short: Option<usize>| {
        let steps = higher.iter().enumerate();
        steps.fold(usage.clone(), |usage, (at, step)| {
            with(&usage, step.resource, step.to + u32::from(short == Some(at)))
        })
    };
    for (at, step) in higher.iter().enumerate() {
        assert_eq!(waves(&all(None)), step.waves, "{place}");
        assert!(step.waves > waves(usage), "{place}");
        assert!(waves(&all(Some(at))) <= waves(usage), "{place}");
    }
}

/// A fixed sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

#[test]
fn each_step_is_the_nearest_figure_with_other_waves() {
    let mut numbers = Numbers(1);
    for limits in LIMITS {
        for _ in 0..40 {
            let wave_size = limits.only_wave_size().unwrap_or([32, 64][numbers.below(2) as usize]);
            let high = [64, 128, 192, 256, 320, 512, 1024][numbers.below(7) as usize];
            let low = [1, high / 2, high][numbers.below(3) as usize];
            let has_agprs = limits.max_total_vgprs() > limits.max_vgprs() && numbers.below(2) == 0;
            check(
                limits,
                &Usage {
                    wave_size,
                    wgp_mode: numbers.below(2) == 0,
                    vgprs: numbers.below(257),
                    agprs: if has_agprs { numbers.below(257) } else { 0 },
                    sgprs: numbers.below(MAX_SGPRS + 1),
                    lds_bytes: [0, numbers.below(4096), numbers.below(limits.max_lds_bytes())]
                        [numbers.below(3) as usize],
                    work_items: low..=high,
                },
            );
        }
    }
}

fn gfx942(vgprs: u32, agprs: u32, sgprs: u32, lds_bytes: u32, work_items: u32) -> Usage {
    Usage { wave_size: 64, wgp_mode: false, vgprs, agprs, sgprs, lds_bytes, work_items: work_items..=work_items }
}

#[test]
fn two_limits_at_once_are_told_together() {
    let limits = Limits::of("gfx942").expect("measured");
    // 132 + 128 = 260 registers are one wave; 64 KiB of LDS are one work-group of 4 waves, one on each SIMD.
    let steps = limits.steps(&gfx942(132, 128, 0, 65536, 256));
    assert_eq!(steps.limiters, [Resource::Vgprs, Resource::LdsBytes]);
    let to: Vec<_> = steps.higher.iter().map(|step| (step.from, step.to, step.waves)).collect();
    assert_eq!(to, [(260, 256, 2), (65536, 32768, 2)]);
}

#[test]
fn the_size_of_work_groups_is_no_matter_of_registers() {
    let limits = Limits::of("gfx1100").expect("measured");
    // 11 waves of 32 lanes: two such groups are 22 of the 32 waves of a compute unit.
    let usage = Usage { wave_size: 32, wgp_mode: false, ..gfx942(8, 0, 0, 0, 352) };
    let steps = limits.steps(&usage);
    assert_eq!(steps.limiters, [Resource::WorkGroups]);
    assert!(steps.higher.is_empty());
}

#[test]
fn only_whole_work_groups_are_resident() {
    let limits = Limits::of("gfx942").expect("measured");
    // 168 registers: 3 waves on each SIMD, 12 on a compute unit; of groups of 8 waves one fits.
    let resident = limits.resident(&gfx942(168, 0, 0, 0, 512));
    assert_eq!((resident.work_groups, resident.waves(), resident.slots, resident.per_mille()), (1, 8, 32, 250));
    assert_eq!(limits.resident(&gfx942(512, 0, 0, 0, MAX_WORK_ITEMS)).work_groups, 0);
}

#[test]
fn the_trap_handlers_registers_stand_beside_the_model() {
    let limits = Limits::of("gfx942").expect("measured");
    let groups = |usage: &Usage| limits.resident(usage).work_groups;
    for (sgprs, model, observed) in [(84, 32, 32), (85, 32, 28), (92, 32, 28), (106, 28, 28)] {
        let usage = gfx942(32, 0, sgprs, 0, 64);
        let beside = limits.with_trap_handler(&usage).expect("observed on gfx942");
        assert_eq!((groups(&usage), groups(&beside)), (model, observed), "{sgprs}");
    }
    assert_eq!(Limits::of("gfx90a").expect("measured").with_trap_handler(&gfx942(32, 0, 92, 0, 64)), None);
}

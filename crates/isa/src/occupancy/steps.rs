//! What bounds the waves of a kernel, and how far the next step is in each direction.
//!
//! Where two resources bound together, less of one of them helps nothing; [`Steps::higher`] then names what each must
//! come down to. More of any one resource can cost a wave by itself.

use super::{Limits, MAX_SGPRS, Usage};

/// What can bound the waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Vector registers: the total of the file that decides, see [`Limits::total_vgprs`].
    Vgprs,
    /// SGPRs, VCC and the like included.
    Sgprs,
    /// LDS of a work-group, bytes.
    LdsBytes,
    /// The size of a work-group: waves of it that do not fit, or more work-groups than there can be.
    WorkGroups,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 4] = [Resource::Vgprs, Resource::Sgprs, Resource::LdsBytes, Resource::WorkGroups];
}

/// A figure at which the waves change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Of what.
    pub resource: Resource,
    /// What the kernel takes now.
    pub from: u32,
    /// The nearest figure with other waves.
    pub to: u32,
    /// The waves then: for [`Steps::higher`], when all its steps are made.
    pub waves: u32,
}

/// What bounds the waves of a kernel now, and the next steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// What allows no more waves than there are; empty where there are as many as possible.
    pub limiters: Vec<Resource>,
    /// What must shrink for more waves, all of it together. Empty when nothing bounds, and when the work-group's size
    /// does: no register helps then.
    pub higher: Vec<Step>,
    /// What may not grow so far, each by itself.
    pub lower: Vec<Step>,
}

impl Limits {
    /// What bounds the waves, and the next steps.
    pub fn steps(&self, usage: &Usage) -> Steps {
        let now = self.occupancy(usage);
        let mut limiters = Vec::new();
        if now.waves < self.max_waves {
            let without_lds = self.by_work_groups(&Usage { lds_bytes: 0, ..usage.clone() });
            let bounds = [
                (Resource::Vgprs, now.by_vgprs),
                (Resource::Sgprs, now.by_sgprs),
                (Resource::LdsBytes, if without_lds > now.waves { now.by_work_groups } else { self.max_waves }),
                (Resource::WorkGroups, without_lds),
            ];
            limiters.extend(bounds.into_iter().filter(|(_, bound)| *bound <= now.waves).map(|(resource, _)| resource));
        }
        const FIGURES: [Resource; 3] = [Resource::Vgprs, Resource::Sgprs, Resource::LdsBytes];
        let lower = FIGURES.into_iter().filter_map(|resource| self.lower(resource, usage, now.waves)).collect();
        Steps { higher: self.higher(&limiters, usage, now.waves), limiters, lower }
    }

    /// What the kernel takes of a resource; of the last one the most work-items.
    pub fn figure(&self, resource: Resource, usage: &Usage) -> u32 {
        match resource {
            Resource::Vgprs => self.total_vgprs(usage.vgprs, usage.agprs),
            Resource::Sgprs => usage.sgprs,
            Resource::LdsBytes => usage.lds_bytes,
            Resource::WorkGroups => *usage.work_items.end(),
        }
    }

    /// The most of a resource, not above what a kernel can have, with which it alone still allows `waves`; none when it
    /// never does, and none for the size of work-groups.
    pub fn most(&self, resource: Resource, usage: &Usage, waves: u32) -> Option<u32> {
        match resource {
            Resource::Vgprs => {
                let (file, granule) = self.vgpr_file(usage.wave_size);
                let whole = file / waves.max(1) / granule * granule;
                // Below a granule LLVM charges nothing.
                let most = if whole == 0 { granule - 1 } else { whole };
                (waves <= self.max_waves).then_some(if waves <= 1 { self.max_total_vgprs() } else { most })
            }
            Resource::Sgprs => (0..=MAX_SGPRS).rev().find(|sgprs| self.by_sgprs(*sgprs) >= waves),
            Resource::LdsBytes => self.lds_steps(usage).find(|lds_bytes| self.by_lds(usage, *lds_bytes) >= waves),
            Resource::WorkGroups => None,
        }
        .map(|most| if resource == Resource::Vgprs { most.min(self.max_total_vgprs()) } else { most })
    }

    fn higher(&self, limiters: &[Resource], usage: &Usage, waves: u32) -> Vec<Step> {
        let mut changed = usage.clone();
        let mut steps = Vec::new();
        for &resource in limiters {
            let from = self.figure(resource, usage);
            let to = match resource {
                // From above: less LDS is not always more waves over a range of work-group sizes.
                Resource::LdsBytes => self.lds_steps(usage).find(|lds| *lds < from && self.by_lds(usage, *lds) > waves),
                _ => self.most(resource, usage, waves + 1),
            };
            let Some(to) = to else { return Vec::new() };
            set(&mut changed, resource, to);
            steps.push(Step { resource, from, to, waves });
        }
        let reached = self.occupancy(&changed).waves;
        steps.iter_mut().for_each(|step| step.waves = reached);
        steps
    }

    fn lower(&self, resource: Resource, usage: &Usage, waves: u32) -> Option<Step> {
        let from = self.figure(resource, usage);
        let (to, largest) = match resource {
            Resource::LdsBytes => {
                let mut ends: Vec<u32> = self.lds_steps(usage).collect();
                ends.reverse();
                let to =
                    ends.into_iter().map(|end| end + 1).find(|lds| *lds > from && self.by_lds(usage, *lds) < waves);
                (to?, self.max_lds_bytes())
            }
            Resource::Vgprs => (self.most(resource, usage, waves)?.max(from) + 1, self.max_total_vgprs()),
            _ => (self.most(resource, usage, waves)?.max(from) + 1, MAX_SGPRS),
        };
        let mut changed = usage.clone();
        set(&mut changed, resource, to);
        let after = self.occupancy(&changed).waves;
        (to <= largest && after < waves).then_some(Step { resource, from, to, waves: after })
    }

    fn by_lds(&self, usage: &Usage, lds_bytes: u32) -> u32 {
        self.by_work_groups(&Usage { lds_bytes, ..usage.clone() })
    }

    /// The largest LDS sizes with which 1, 2, … work-groups fit: between them nothing changes. From large to small, and
    /// none above what a work-group can have.
    fn lds_steps(&self, usage: &Usage) -> impl Iterator<Item = u32> {
        let unit = self.unit(usage);
        let most = self.max_lds_bytes();
        (1..=self.max_waves * unit.execution_units).map(move |groups| (unit.lds_bytes / groups).min(most))
    }
}

fn set(usage: &mut Usage, resource: Resource, figure: u32) {
    match resource {
        Resource::Vgprs => (usage.vgprs, usage.agprs) = (figure, 0),
        Resource::Sgprs => usage.sgprs = figure,
        Resource::LdsBytes => usage.lds_bytes = figure,
        Resource::WorkGroups => usage.work_items = figure.min(*usage.work_items.start())..=figure,
    }
}

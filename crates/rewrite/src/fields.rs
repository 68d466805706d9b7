//! Fields of the kernel descriptor and counts of the metadata, changed over the original bytes.

use crate::error::{Error, ErrorKind, Result};
use crate::grow::Grown;
use crate::metadata;
use codeobj::descriptor::{Descriptor, Family};
use codeobj::{CodeObject, Kernel};
use isa::occupancy::{Limits, Occupancy, Usage};
use llvm::Decoder;

/// Registers and LDS that a kernel is to have at least. 0 asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// VGPRs: the highest number used, and one.
    pub vgprs: u32,
    /// AGPRs, likewise.
    pub agprs: u32,
    /// SGPRs, likewise; VCC and the like not included.
    pub sgprs: u32,
    /// LDS of a work-group, bytes.
    pub lds_bytes: u32,
}

/// A code object with a raised allocation, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The new file, with what was left out.
    pub grown: Grown,
    /// What was changed: `accum_offset 128 → 132`; empty when the kernel has all of it already.
    pub changes: Vec<String>,
    /// Waves per execution unit before and after, for the largest work-group that the kernel may be launched with; none
    /// for a processor whose occupancy is not modelled.
    pub occupancy: Option<(Occupancy, Occupancy)>,
}

/// Sets a descriptor field of a kernel by its directive's name, with or without `.amdhsa_`. The value is the
/// directive's: `accum_offset` counts VGPRs and `next_free_vgpr` registers; every other is the field itself.
///
/// # Errors
/// `NotFound` for a kernel or field that is not there, `NoRoom` for a value that the field cannot hold.
pub fn set(code_object: &[u8], kernel: &str, field: &str, value: u64) -> Result<Vec<u8>> {
    let object = CodeObject::parse(code_object)?;
    let family = family(&object)?;
    let kernel = find(&object, kernel)?;
    let mut edited = Edited::new(kernel, family)?;
    edited.set_directive(field.strip_prefix(".amdhsa_").unwrap_or(field), value)?;
    Ok(edited.write(code_object))
}

/// What a descriptor field of a kernel is, its bits.
pub(crate) fn get(code_object: &[u8], kernel: &str, field: &str) -> Result<u64> {
    let object = CodeObject::parse(code_object)?;
    let family = family(&object)?;
    let edited = Edited::new(find(&object, kernel)?, family)?;
    Ok(Descriptor::field(family, field).map_or(0, |field| field.get(edited.descriptor.bytes())))
}

/// Sets the bits of a descriptor field of a kernel.
pub(crate) fn set_bits(code_object: &[u8], kernel: &str, field: &str, value: u64) -> Result<Vec<u8>> {
    let object = CodeObject::parse(code_object)?;
    let mut edited = Edited::new(find(&object, kernel)?, family(&object)?)?;
    edited.set_raw(field, value)?;
    Ok(edited.write(code_object))
}

/// Registers that a kernel's descriptor allocates: VGPRs and AGPRs together, and SGPRs where they are counted.
pub(crate) fn allocated(code_object: &[u8], kernel: &str) -> Result<(u32, Option<u32>)> {
    let object = CodeObject::parse(code_object)?;
    let family = family(&object)?;
    let edited = Edited::new(find(&object, kernel)?, family)?;
    Ok((edited.allocated_vgprs(), edited.descriptor.allocated_sgprs(family)))
}

/// Waves per execution unit, for the largest work-group that the kernel may be launched with; none for a processor whose
/// occupancy is not modelled.
///
/// # Errors
/// `NotFound` for a kernel that is not there.
pub fn occupancy(code_object: &[u8], kernel: &str) -> Result<Option<Occupancy>> {
    let object = CodeObject::parse(code_object)?;
    let kernel = find(&object, kernel)?;
    let usage = usage(kernel, &Edited::new(kernel, family(&object)?)?);
    Ok(object.target.processor.as_deref().and_then(Limits::of).map(|limits| limits.occupancy(&usage)))
}

/// A count of a kernel's metadata entry; none where it is not recorded.
pub(crate) fn count(code_object: &[u8], kernel: &str, key: &str) -> Result<Option<u64>> {
    let object = CodeObject::parse(code_object)?;
    Ok(recorded(find(&object, kernel)?, key))
}

/// Raises the registers and LDS of a kernel in the descriptor and in the metadata, and says what that costs. Nothing is
/// ever lowered.
///
/// # Errors
/// `NotFound` for a kernel that is not there, `NoRoom` for more than the processor has; as [`metadata::set_counts`].
pub fn raise_allocation(decoder: &dyn Decoder, code_object: &[u8], kernel: &str, wanted: Allocation) -> Result<Raised> {
    let object = CodeObject::parse(code_object)?;
    let family = family(&object)?;
    let kernel = find(&object, kernel)?;
    let mut edited = Edited::new(kernel, family)?;
    let before = usage(kernel, &edited);
    let mut counts = Vec::new();
    edited.raise_vgprs(kernel, wanted, &mut counts)?;
    let sgprs = edited.raise_sgprs(&object, kernel, wanted.sgprs, &mut counts)?;
    let limits = object.target.processor.as_deref().and_then(Limits::of);
    edited.raise_lds(wanted.lds_bytes, limits, &mut counts)?;
    let mut after = usage(kernel, &edited);
    after.sgprs = after.sgprs.max(sgprs);
    counts.retain(|(key, value)| recorded(kernel, key).is_some_and(|old| old < *value));
    for (key, value) in &counts {
        edited.changes.push(format!("{key} {} → {value}", recorded(kernel, key).unwrap_or(0)));
    }
    let with_descriptor = edited.write(code_object);
    let grown = metadata::set_counts(decoder, &with_descriptor, &kernel.name, &counts)?;
    let occupancy = limits.map(|limits| (limits.occupancy(&before), limits.occupancy(&after)));
    Ok(Raised { grown, changes: edited.changes, occupancy })
}

fn family(object: &CodeObject) -> Result<Family> {
    let processor = object.target.processor.as_deref();
    processor.and_then(Family::of).ok_or_else(|| {
        Error::unsupported(format!(
            "the descriptor of {} is not known here",
            processor.unwrap_or("an unknown processor")
        ))
    })
}

fn find<'o>(object: &'o CodeObject, name: &str) -> Result<&'o Kernel> {
    object.kernels.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
        let names: Vec<String> = object.kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect();
        Error::new(ErrorKind::NotFound, format!("there is no kernel `{name}`; there are {}", names.join(", ")))
    })
}

/// A count of a kernel's metadata entry.
fn recorded(kernel: &Kernel, key: &str) -> Option<u64> {
    let metadata = &kernel.metadata;
    match key {
        ".vgpr_count" => metadata.vgpr_count.value(),
        ".agpr_count" => metadata.agpr_count.value(),
        ".sgpr_count" => metadata.sgpr_count.value(),
        ".group_segment_fixed_size" => metadata.group_segment_fixed_size.value(),
        ".private_segment_fixed_size" => metadata.private_segment_fixed_size.value(),
        ".kernarg_segment_size" => metadata.kernarg_segment_size.value(),
        ".wavefront_size" => metadata.wavefront_size.value(),
        _ => None,
    }
}

/// A descriptor that is being changed.
struct Edited {
    kernel: String,
    family: Family,
    descriptor: Descriptor,
    at: std::ops::Range<usize>,
    changes: Vec<String>,
}

impl Edited {
    fn new(kernel: &Kernel, family: Family) -> Result<Edited> {
        let damaged = |reason: &String| Error::input(format!("kernel `{}`: {reason}", kernel.name));
        let placed = kernel.descriptor.as_ref().map_err(damaged)?;
        let (descriptor, at) = (placed.descriptor, placed.file_range.clone());
        Ok(Edited { kernel: kernel.name.clone(), family, descriptor, at, changes: Vec::new() })
    }

    fn write(&self, code_object: &[u8]) -> Vec<u8> {
        let mut changed = code_object.to_vec();
        changed[self.at.clone()].copy_from_slice(self.descriptor.bytes());
        changed
    }

    fn wave32(&self) -> bool {
        self.family.has_wave32() && self.descriptor.wavefront_size32()
    }

    fn allocated_vgprs(&self) -> u32 {
        self.descriptor.allocated_vgprs(self.family, self.wave32())
    }

    fn set_raw(&mut self, name: &str, value: u64) -> Result<()> {
        let family = self.family;
        let field = Descriptor::field(family, name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the descriptors of this processor have no field `{name}`"))
        })?;
        if self.descriptor.set(field, value) {
            return Ok(());
        }
        let message = format!(
            "`{name}` of kernel `{}` cannot be {value}: its {} bits hold at most {}",
            self.kernel,
            field.width,
            field.max()
        );
        Err(Error::no_room(message))
    }

    fn set_directive(&mut self, name: &str, value: u64) -> Result<()> {
        match name {
            "accum_offset" if !value.is_multiple_of(4) || !(4..=256).contains(&value) => {
                Err(Error::no_room(format!("accum_offset has to be a multiple of 4 from 4 to 256, not {value}")))
            }
            "accum_offset" => self.set_raw(name, value / 4 - 1),
            "next_free_vgpr" => {
                let granule = u64::from(self.family.vgpr_granule(self.wave32()));
                self.set_raw("granulated_workitem_vgpr_count", value.max(1).div_ceil(granule) - 1)
            }
            _ => self.set_raw(name, value),
        }
    }

    /// Sets a directive and notes the change, when the new value is larger.
    fn raise(&mut self, name: &str, old: u32, new: u32) -> Result<()> {
        if new <= old {
            return Ok(());
        }
        self.set_directive(name, new.into())?;
        self.changes.push(format!(".amdhsa_{name} {old} → {new}"));
        Ok(())
    }

    fn raise_vgprs(
        &mut self,
        kernel: &Kernel,
        wanted: Allocation,
        counts: &mut Vec<(&'static str, u64)>,
    ) -> Result<()> {
        let allocated = self.allocated_vgprs();
        let agprs_recorded = kernel.metadata.agpr_count.value().map(|count| count.min(256) as u32);
        let most = if self.family == Family::Gfx125 { 1024 } else { 256 };
        for (count, kind) in [(wanted.vgprs, "VGPRs"), (wanted.agprs, "AGPRs")] {
            if count > most {
                return Err(Error::no_room(format!("{count} {kind} are more than the {most} that a wave can have")));
            }
        }
        let total = match self.descriptor.accum_offset(self.family) {
            Some(offset) => {
                let agprs = agprs_recorded.unwrap_or(allocated.saturating_sub(offset)).max(wanted.agprs);
                let arch = if wanted.vgprs > offset { wanted.vgprs.next_multiple_of(4) } else { offset };
                // Without AGPRs the offset says nothing about the VGPRs in use.
                let used = if agprs > 0 { arch + agprs } else { wanted.vgprs };
                if wanted.vgprs != 0 || wanted.agprs != 0 {
                    self.raise("accum_offset", offset, arch)?;
                }
                counts.push((".agpr_count", agprs.into()));
                used
            }
            None if wanted.agprs == 0 => wanted.vgprs,
            None if self.family == Family::Gfx9 => {
                counts.push((".agpr_count", wanted.agprs.into()));
                wanted.vgprs.max(wanted.agprs)
            }
            None => return Err(Error::unsupported("this processor has no AGPRs")),
        };
        if wanted.vgprs == 0 && wanted.agprs == 0 {
            return Ok(());
        }
        counts.push((".vgpr_count", total.into()));
        self.raise("next_free_vgpr", allocated, total)
    }

    /// Returns the SGPRs that the kernel then has.
    fn raise_sgprs(
        &mut self,
        object: &CodeObject,
        kernel: &Kernel,
        wanted: u32,
        counts: &mut Vec<(&'static str, u64)>,
    ) -> Result<u32> {
        let recorded = kernel.metadata.sgpr_count.value().unwrap_or(0).min(128) as u32;
        if wanted == 0 {
            return Ok(recorded);
        }
        // From gfx10 on every wave has all of them.
        let most = if self.family.has_wave32() { 106 } else { 102 };
        if wanted > most {
            return Err(Error::no_room(format!("{wanted} SGPRs are more than the {most} that a wave can have")));
        }
        let (processor, generation) =
            (object.target.processor.as_deref().unwrap_or_default(), object.target.generation());
        let extra = isa::Target::new(processor, generation.unwrap_or(9)).extra_sgprs(true, false, false);
        let total = wanted + extra as u32;
        counts.push((".sgpr_count", total.into()));
        if let Some(allocated) = self.descriptor.allocated_sgprs(self.family).filter(|allocated| total > *allocated) {
            const GRANULE: u32 = 8;
            self.set_raw("granulated_wavefront_sgpr_count", u64::from(total.div_ceil(GRANULE) - 1))?;
            self.changes.push(format!(
                ".amdhsa_next_free_sgpr: {allocated} allocated SGPRs → {}",
                total.next_multiple_of(GRANULE)
            ));
        }
        Ok(recorded.max(total))
    }

    fn raise_lds(&mut self, wanted: u32, limits: Option<&Limits>, counts: &mut Vec<(&'static str, u64)>) -> Result<()> {
        if let Some(most) = limits.map(Limits::max_lds_bytes).filter(|most| wanted > *most) {
            return Err(Error::no_room(format!(
                "{wanted} bytes of LDS are more than the {most} that a work-group can have"
            )));
        }
        counts.push((".group_segment_fixed_size", wanted.into()));
        self.raise("group_segment_fixed_size", self.descriptor.group_segment_fixed_size(), wanted)
    }
}

/// What the descriptor makes the hardware give. The work-group is the largest that the metadata allows.
fn usage(kernel: &Kernel, edited: &Edited) -> Usage {
    let metadata = &kernel.metadata;
    let required =
        metadata.reqd_workgroup_size.map(|size| size.iter().fold(1, |product: u64, n| product.saturating_mul(*n)));
    let work_items = required.or(metadata.max_flat_workgroup_size.value()).unwrap_or(1024).clamp(1, 1024) as u32;
    let wgp = Descriptor::field(edited.family, "workgroup_processor_mode");
    Usage {
        wave_size: if edited.wave32() { 32 } else { 64 },
        wgp_mode: wgp.is_some_and(|field| field.get(edited.descriptor.bytes()) == 1),
        vgprs: edited.allocated_vgprs(),
        agprs: 0,
        sgprs: metadata.sgpr_count.value().unwrap_or(0).min(128) as u32,
        lds_bytes: edited.descriptor.group_segment_fixed_size(),
        work_items: work_items..=work_items,
    }
}

//! Descriptor and metadata after an edit: what the text says of them, applied as fields over the original bytes, and the
//! allocation that the code needs. Where both record the same number, a change of one changes the other.

use std::collections::{BTreeMap, BTreeSet};

use llvm::Decoder;

use crate::error::{Error, ErrorKind, Message, Result};
use crate::facts::edits::{FieldChange, FieldEdit};
use crate::fields::{self, Allocation};
use crate::metadata;
use crate::registers::File;

/// Descriptor fields, and the metadata keys that record the same.
const SAME: &[(&str, &str)] = &[
    ("group_segment_fixed_size", ".group_segment_fixed_size"),
    ("private_segment_fixed_size", ".private_segment_fixed_size"),
    ("kernarg_size", ".kernarg_segment_size"),
];

/// A code object that is being updated.
pub struct Update<'a> {
    decoder: &'a dyn Decoder,
    bytes: Vec<u8>,
    changes: Vec<String>,
    warnings: Vec<String>,
    kernels: BTreeSet<String>,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Each field with its old and new value, and what that costs.
    pub changes: Vec<String>,
    /// What was left out when the metadata grew.
    pub warnings: Vec<String>,
}

impl<'a> Update<'a> {
    /// Of a file that holds a code object.
    pub fn new(decoder: &'a dyn Decoder, bytes: Vec<u8>) -> Self {
        Update { decoder, bytes, changes: Vec::new(), warnings: Vec::new(), kernels: BTreeSet::new() }
    }

    /// The file as it is now.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes the fields what a text says.
    ///
    /// # Errors
    /// With its line, what is no field that can be changed; as [`fields::set`] and [`metadata::set_counts`].
    pub fn apply(&mut self, edits: &[FieldEdit]) -> Result<()> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for edit in edits {
            match &edit.change {
                FieldChange::Metadata { kernel, key, value } => {
                    counts.insert((kernel, key), *value);
                }
                FieldChange::Descriptor { .. } => {}
                FieldChange::Other => {
                    let help = "what can be changed are fields of the descriptor, and in the metadata numbers of a kernel's \
                                own entry; for anything else `coax asm` makes a new code object";
                    return Err(Message::at(edit.line, edit.what.as_str()).help(help).into());
                }
            }
        }
        refuse_contradictions(edits, &counts)?;
        for edit in edits {
            let FieldChange::Descriptor { kernel, field, value, said } = &edit.change else { continue };
            self.set_bits(kernel, field, *value).map_err(|error| at(edit.line, error))?;
            if let Some((key, value)) = self.recorded_as(kernel, field, *value, *said)? {
                counts.entry((kernel, key)).or_insert(value);
            }
        }
        for ((kernel, key), value) in counts {
            if let Some((field, _)) = SAME.iter().find(|(field, own)| *own == key && *field != "kernarg_size") {
                let has = fields::get(&self.bytes, kernel, field)?;
                if value < has {
                    let message =
                        format!("{kernel}: {key} was not lowered to {value}: its descriptor has {field} {has}");
                    self.warnings.push(message);
                    continue;
                }
            }
            self.set_count(kernel, key, value)?;
            let small = u32::try_from(value).unwrap_or(u32::MAX);
            match key {
                ".vgpr_count" if small > fields::allocated(&self.bytes, kernel)?.0 => {
                    self.set_directive(kernel, "next_free_vgpr", value)?;
                }
                ".sgpr_count" if fields::allocated(&self.bytes, kernel)?.1.is_some_and(|given| small > given) => {
                    self.set_bits(kernel, "granulated_wavefront_sgpr_count", value.div_ceil(8).saturating_sub(1))?;
                }
                _ => {}
            }
            if let Some((field, _)) = SAME.iter().find(|(_, own)| *own == key) {
                // Most compilers leave the descriptor's size of the kernel arguments 0.
                let is_used = *field != "kernarg_size" || fields::get(&self.bytes, kernel, field)? != 0;
                if is_used {
                    self.set_bits(kernel, field, value)?;
                }
            }
        }
        Ok(())
    }

    /// Gives a kernel at least as many registers.
    ///
    /// # Errors
    /// As [`fields::raise_allocation`].
    pub fn raise(&mut self, kernel: &str, file: File, count: u32) -> Result<()> {
        let mut wanted = Allocation::default();
        match file {
            File::Vgpr => wanted.vgprs = count,
            File::Agpr => wanted.agprs = count,
            File::Sgpr => wanted.sgprs = count,
        }
        self.raise_to(kernel, wanted)
    }

    /// Gives a kernel at least as many bytes of LDS.
    ///
    /// # Errors
    /// As [`fields::raise_allocation`].
    pub fn raise_lds(&mut self, kernel: &str, bytes: u64) -> Result<()> {
        let lds_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.raise_to(kernel, Allocation { lds_bytes, ..Allocation::default() })
    }

    fn raise_to(&mut self, kernel: &str, wanted: Allocation) -> Result<()> {
        let raised = fields::raise_allocation(self.decoder, &self.bytes, kernel, wanted)?;
        self.bytes = raised.grown.code_object;
        self.warnings.extend(raised.grown.warnings);
        self.changes.extend(raised.changes.into_iter().map(|change| format!("{kernel}: {change}")));
        self.kernels.insert(kernel.to_owned());
        Ok(())
    }

    /// The new file, against the one before any change.
    ///
    /// # Errors
    /// As [`fields::occupancy`].
    pub fn finish(mut self, before: &[u8]) -> Result<Updated> {
        for kernel in &self.kernels {
            let (was, is) = (fields::occupancy(before, kernel)?, fields::occupancy(&self.bytes, kernel)?);
            if let (Some(was), Some(is)) = (was, is) {
                self.changes.push(match was.waves == is.waves {
                    true => format!("{kernel}: occupancy stays {} waves per SIMD", is.waves),
                    false => format!("{kernel}: occupancy {} → {} waves per SIMD", was.waves, is.waves),
                });
            }
        }
        Ok(Updated { bytes: self.bytes, changes: self.changes, warnings: self.warnings })
    }

    fn set_bits(&mut self, kernel: &str, field: &str, value: u64) -> Result<()> {
        let old = fields::get(&self.bytes, kernel, field)?;
        if old != value {
            self.bytes = fields::set_bits(&self.bytes, kernel, field, value)?;
            self.changes.push(format!("{kernel}: descriptor {field} {old} → {value}"));
            self.kernels.insert(kernel.to_owned());
        }
        Ok(())
    }

    fn set_directive(&mut self, kernel: &str, name: &str, value: u64) -> Result<()> {
        let old = fields::allocated(&self.bytes, kernel)?.0;
        self.bytes = fields::set(&self.bytes, kernel, name, value)?;
        let new = fields::allocated(&self.bytes, kernel)?.0;
        self.changes.push(format!("{kernel}: descriptor allocates {old} → {new} VGPRs"));
        self.kernels.insert(kernel.to_owned());
        Ok(())
    }

    fn set_count(&mut self, kernel: &str, key: &str, value: u64) -> Result<()> {
        let old = fields::count(&self.bytes, kernel, key)?;
        if old == Some(value) {
            return Ok(());
        }
        let grown = match metadata::set_counts(self.decoder, &self.bytes, kernel, &[(key, value)]) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(()), // nothing records it
            other => other?,
        };
        if grown.code_object != self.bytes {
            let old = old.map_or(String::new(), |old| format!(" {old}"));
            self.changes.push(format!("{kernel}: metadata {key}{old} → {value}"));
            self.kernels.insert(kernel.to_owned());
        }
        self.bytes = grown.code_object;
        self.warnings.extend(grown.warnings);
        Ok(())
    }

    /// The metadata that records what a descriptor field was set to.
    fn recorded_as(
        &self,
        kernel: &str,
        field: &str,
        value: u64,
        said: Option<u64>,
    ) -> Result<Option<(&'static str, u64)>> {
        let (vgprs, sgprs) = fields::allocated(&self.bytes, kernel)?;
        let found = match field {
            "granulated_workitem_vgpr_count" => Some((".vgpr_count", said.unwrap_or(vgprs.into()))),
            "granulated_wavefront_sgpr_count" => sgprs.map(|given| (".sgpr_count", said.unwrap_or(given.into()))),
            "wavefront_size32" => Some((".wavefront_size", if value == 0 { 64 } else { 32 })),
            _ => SAME.iter().find(|(own, _)| *own == field).map(|(_, key)| (*key, value)),
        };
        let Some((key, value)) = found else { return Ok(None) };
        Ok(fields::count(&self.bytes, kernel, key)?.map(|_| (key, value)))
    }
}

/// What both descriptor and metadata record has to be the same in both.
fn refuse_contradictions(edits: &[FieldEdit], counts: &BTreeMap<(&str, &str), u64>) -> Result<()> {
    for edit in edits {
        let FieldChange::Descriptor { kernel, field, value, .. } = &edit.change else { continue };
        let key = SAME.iter().find(|(own, _)| own == field).map(|(_, key)| *key);
        let Some((key, other)) = key.and_then(|key| Some((key, *counts.get(&(&**kernel, key))?))) else { continue };
        if other != *value {
            let message = format!("the descriptor of `{kernel}` gets {field} {value}, and the metadata {key} {other}");
            return Err(Message::at(edit.line, message).help("say the same in both").into());
        }
    }
    Ok(())
}

/// The error, with the line that is its cause.
fn at(line: u32, mut error: Error) -> Error {
    for message in error.messages.iter_mut().filter(|message| message.line == 0) {
        message.line = line;
    }
    error
}

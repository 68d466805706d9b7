//! One AMDGPU ELF file: what it was made for, and its kernels with metadata, descriptor and code.
//!
//! Which symbol belongs to what: "ELF Code Object" in LLVM's AMDGPUUsage. `kernel` follows a
//! metadata entry to its descriptor and code, `checks` compares what is recorded twice.

mod checks;
mod code;
mod entry;
mod kernel;
mod named;
mod symbols;

pub use crate::elf::Section;
pub use code::{CodeRange, Function};
pub use kernel::{Kernel, PlacedDescriptor};
pub use named::{Binding, NamedSymbol, SymbolKind, Visibility};

use self::code::Bodies;
use self::entry::Entries;
use self::kernel::Found;
use self::symbols::SymbolMap;
use crate::elf::{Elf, Note};
use crate::error::{Error, Place, Result};
use crate::metadata::{Detail, Metadata};
use crate::target::{TargetId, mach};
use object::elf;

/// `e_machine` of AMD GPU code objects.
pub(crate) const EM_AMDGPU: u16 = 224;
/// Type of the note with MessagePack metadata; owner `AMDGPU`.
const NT_AMDGPU_METADATA: u32 = 32;
/// Type of the note with YAML metadata of code object v2; owner `AMD`.
const NT_AMD_HSA_METADATA: u32 = 10;

/// How far a code object was linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// An assembler's output, `ET_REL`.
    Relocatable,
    /// What the loader takes, `ET_DYN`.
    Dynamic,
}

/// A code object. It owns what it says; code and data stay in the bytes it was parsed from, at the `file_range`s.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeObject {
    /// From `e_flags`; for a processor number unknown to this crate, from the metadata.
    pub target: TargetId,
    /// `EI_ABIVERSION`: 1 for code object v3, 2 for v4, 3 for v5, 4 for v6.
    pub abi_version: u8,
    /// `e_flags`
    pub e_flags: u32,
    /// Relocatable or dynamic.
    pub kind: ObjectKind,
    /// All sections, at their ELF index.
    pub sections: Vec<Section>,
    /// The metadata outside the kernels' entries; each entry is in its [`Kernel`] and `metadata.kernels` is empty.
    /// None when there is no note.
    pub metadata: Option<Metadata>,
    /// One per metadata entry, in order.
    pub kernels: Vec<Kernel>,
    /// Device functions: named code that is no kernel's entry, in address order.
    pub functions: Vec<Function>,
    /// What contradicts itself outside a single kernel.
    pub problems: Vec<String>,
}

impl CodeObject {
    /// Parses with [`Detail::Counts`]: everything but the kernels' arguments.
    ///
    /// # Errors
    /// `WrongFormat` when `bytes` are something else, said by name; `Malformed` with section and offset for damage,
    /// truncation included; `Unsupported` for code object v2.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject> {
        CodeObject::parse_with(bytes, Detail::Counts)
    }

    /// [`parse`](Self::parse), arguments included if `detail` says so.
    pub fn parse_with(bytes: &[u8], detail: Detail) -> Result<CodeObject> {
        let file = Elf::parse(bytes)?;
        if file.machine() != EM_AMDGPU {
            let message =
                format!("this is an ELF file for {}, expected EM_AMDGPU ({EM_AMDGPU})", machine_name(file.machine()));
            return Err(Error::wrong_format(message));
        }
        let kind = match elf::FileType(file.file_type()) {
            elf::ET_REL => ObjectKind::Relocatable,
            elf::ET_DYN | elf::ET_EXEC => ObjectKind::Dynamic,
            other => {
                let message = format!("ELF type {} is neither relocatable nor dynamic", other.0);
                return Err(Error::unsupported(Place::File(16), message));
            }
        };
        let mut problems = Vec::new();
        if file.abi_version() > mach::NEWEST_ABI {
            // EI_ABIVERSION counts from 0 for code object v2.
            let version = u32::from(file.abi_version()) + 2;
            problems.push(format!("unknown code object version {version}: its flags may mean something else"));
        }
        let mut metadata = read_metadata(&file, detail, &mut problems)?;
        let target = target(&file, metadata.as_ref(), &mut problems);
        let entries = metadata.as_mut().map(|m| std::mem::take(&mut m.kernels)).unwrap_or_default();
        let symbols = SymbolMap::new(&file, kind)?;
        let entry_points = Entries::new(&file, &symbols, kind)?;
        let found: Vec<Found> =
            entries.into_iter().map(|entry| Found::new(&file, &symbols, &entry_points, entry)).collect();
        problems.extend(kernel::unclaimed(&symbols, &found));
        let bodies = Bodies::new(&symbols, found.iter().filter_map(Found::entry).collect());
        let mut kernels: Vec<Kernel> = found.into_iter().map(|found| found.with_body(&bodies)).collect();
        let functions = bodies.functions();
        checks::compare(&target, &mut kernels);
        Ok(CodeObject {
            target,
            abi_version: file.abi_version(),
            e_flags: file.flags(),
            kind,
            sections: file.sections,
            metadata,
            kernels,
            functions,
            problems,
        })
    }
}

/// Whether `bytes` start like an AMDGPU ELF file.
pub(crate) fn is_code_object(bytes: &[u8]) -> bool {
    bytes.starts_with(crate::elf::MAGIC) && bytes.get(18..20) == Some(&EM_AMDGPU.to_le_bytes())
}

fn machine_name(machine: u16) -> String {
    match elf::Machine(machine) {
        elf::EM_X86_64 => "x86-64".to_string(),
        elf::EM_AARCH64 => "AArch64".to_string(),
        elf::EM_CUDA => "NVIDIA CUDA".to_string(),
        other => format!("machine {}", other.0),
    }
}

fn read_metadata(file: &Elf<'_>, detail: Detail, problems: &mut Vec<String>) -> Result<Option<Metadata>> {
    let in_sections = file.section_notes()?;
    let notes = if in_sections.iter().any(is_metadata) {
        problems.extend(unlike_what_is_loaded(&in_sections, file));
        in_sections
    } else {
        file.segment_notes()?
    };
    if let Some(old) = notes.iter().find(|note| note.owner == b"AMD" && note.note_type == NT_AMD_HSA_METADATA) {
        let message = "code object v2 is not supported; rebuild with -mcode-object-version=4 or later";
        return Err(Error::unsupported(old.place.clone(), message));
    }
    let mut read = Vec::new();
    for note in notes.iter().filter(|note| is_metadata(note) && !note.descriptor.is_empty()) {
        read.push(Metadata::from_msgpack(note.descriptor, detail).map_err(|error| in_note(error, note))?);
    }
    // The assembler adds a note without kernels of its own behind the one that the source wrote.
    let with_kernels = read.iter().filter(|metadata| !metadata.kernels.is_empty()).count();
    if with_kernels > 1 {
        problems.push(format!("{with_kernels} metadata notes list kernels, expected one; the first is used"));
    }
    let chosen = read.iter().position(|metadata| !metadata.kernels.is_empty()).unwrap_or(0);
    Ok((!read.is_empty()).then(|| read.swap_remove(chosen)))
}

fn is_metadata(note: &Note<'_>) -> bool {
    note.owner == b"AMDGPU" && note.note_type == NT_AMDGPU_METADATA
}

/// Tools read the notes of sections, the loader those of segments: normally the same bytes.
fn unlike_what_is_loaded(in_sections: &[Note<'_>], file: &Elf<'_>) -> Option<String> {
    let in_segments = match file.segment_notes() {
        Ok(notes) => notes,
        Err(error) => return Some(format!("a PT_NOTE segment, which the loader reads: {error}")),
    };
    let known: Vec<&[u8]> = in_sections.iter().filter(|note| is_metadata(note)).map(|note| note.descriptor).collect();
    // One slice at one place needs no look at its bytes.
    let is_known = |note: &&Note<'_>| known.iter().any(|k| std::ptr::eq(*k, note.descriptor) || *k == note.descriptor);
    let other = in_segments.iter().filter(|note| is_metadata(note)).find(|note| !is_known(note))?;
    let place = &other.place;
    Some(format!(
        "the metadata note{place} in a PT_NOTE segment, which the loader reads, is not the one in the sections"
    ))
}

/// Moves an error's offset within the note to the file.
fn in_note(mut error: Error, note: &Note<'_>) -> Error {
    let inner = if let Place::File(offset) = error.place { offset } else { 0 };
    error.place = match note.place.clone() {
        Place::Section { name, offset, file_offset } => {
            Place::Section { name, offset: offset + inner, file_offset: file_offset + inner }
        }
        Place::File(offset) => Place::File(offset + inner),
        other => other,
    };
    error
}

fn target(file: &Elf<'_>, metadata: Option<&Metadata>, problems: &mut Vec<String>) -> TargetId {
    let from_flags = TargetId::from_elf(file.flags(), file.abi_version());
    let text = metadata.and_then(|metadata| metadata.target.as_deref());
    let from_metadata = text.map(TargetId::parse);
    if let Some(Err(error)) = &from_metadata {
        problems.push(format!("amdhsa.target: {}", error.message));
    }
    match (from_flags, from_metadata.and_then(Result::ok)) {
        (Some(flags), Some(said)) => {
            if !flags.same_as(&said) {
                problems.push(format!("the ELF header says {}, amdhsa.target says {}", flags.short(), said.short()));
            }
            flags
        }
        (Some(flags), None) => flags,
        (None, said) => {
            let number = file.flags() & mach::MACH_MASK;
            match said {
                Some(TargetId { processor: Some(processor), features, text }) => {
                    if let Some(known) = mach::number(&processor) {
                        problems.push(format!(
                            "processor number {number:#x} in e_flags is unknown; amdhsa.target says {processor}, which \
                             is number {known:#x}"
                        ));
                    }
                    TargetId { processor: Some(processor), features, text }
                }
                _ => {
                    problems.push(format!(
                        "processor number {number:#x} in e_flags is unknown, and no amdhsa.target names it"
                    ));
                    TargetId { processor: None, features: Default::default(), text: format!("processor {number:#x}") }
                }
            }
        }
    }
}

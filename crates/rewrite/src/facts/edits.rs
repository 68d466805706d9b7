//! What a text says about descriptors and metadata, against what its reference has.

use codeobj::CodeObject;
use codeobj::Metadata;
use codeobj::descriptor::SIZE;
use codeobj::metadata::Node;
use llvm::{Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection, ObjectSymbol};

use super::{descriptor, descriptor_name, metadata};
use crate::build;
use crate::error::{Error, Message, Result};
use crate::object::Object;
use crate::source::{Block, Source};

/// Bytes in front of a note's content: three words and the owner (AMDGPU backend guide, "Note Records").
const NOTE_HEADER: usize = 20;

/// Descriptors and metadata that a text describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// Kernel and descriptor, the entry not filled in.
    pub descriptors: Vec<(String, [u8; SIZE])>,
    /// The content of the note, MessagePack.
    pub metadata: Option<Vec<u8>>,
}

/// One field that a text wants otherwise than the reference has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdit {
    /// The line that says so, or that opens the block.
    pub line: u32,
    /// Which field of what, and both values.
    pub what: String,
    /// The same, to be applied.
    pub change: FieldChange,
}

/// A field and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldChange {
    /// A field of a kernel's descriptor.
    Descriptor {
        /// The kernel.
        kernel: String,
        /// As [`codeobj::descriptor::FIELDS`] has it.
        field: &'static str,
        /// Its bits.
        value: u64,
        /// What the text's directive says, which may count otherwise than the bits.
        said: Option<u64>,
    },
    /// A number of a kernel's entry in the metadata.
    Metadata {
        /// The kernel.
        kernel: String,
        /// `.vgpr_count`
        key: String,
        /// The new number.
        value: u64,
    },
    /// Something else of the metadata, which is not applied.
    Other,
}

impl FieldEdit {
    /// Whether it says how much LDS a kernel is given.
    pub(crate) fn is_of_lds(&self, of: &str) -> bool {
        match &self.change {
            FieldChange::Descriptor { kernel, field, .. } => kernel == of && *field == "group_segment_fixed_size",
            FieldChange::Metadata { kernel, key, .. } => kernel == of && key == ".group_segment_fixed_size",
            FieldChange::Other => false,
        }
    }
}

impl Described {
    /// Assembles `source` for what it says.
    ///
    /// # Errors
    /// What does not assemble.
    pub fn of(toolchain: &Toolchain, target: &Target, source: &Source<'_>) -> Result<Described> {
        Described::in_object(&build::relocatable(toolchain, target, source)?)
    }

    /// What an object has that LLVM's assembler made.
    pub(crate) fn in_object(object: &[u8]) -> Result<Described> {
        let damaged = |error: object::read::Error| Error::input(format!("LLVM's object: {error}"));
        let file = ElfFile::<FileHeader64<LittleEndian>>::parse(object).map_err(damaged)?;
        let mut described = Described::default();
        for symbol in file.symbols() {
            let Some(kernel) = symbol.name().ok().and_then(|name| name.strip_suffix(".kd")) else { continue };
            let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
            let content = section.as_ref().and_then(|section| section.data().ok()).unwrap_or_default();
            if let Some(bytes) = content.get(symbol.address() as usize..).and_then(|rest| rest.first_chunk()) {
                described.descriptors.push((kernel.to_owned(), *bytes));
            }
        }
        let note = file.section_by_name(".note").and_then(|note| note.data().ok());
        described.metadata = note.and_then(|note| {
            let size = u32::from_le_bytes(*note.get(4..)?.first_chunk()?) as usize;
            note.get(NOTE_HEADER..NOTE_HEADER + size).map(<[u8]>::to_vec)
        });
        Ok(described)
    }
}

/// The fields that `source` wants otherwise than `object` has them.
///
/// # Errors
/// What does not assemble; damaged metadata.
pub fn field_edits(toolchain: &Toolchain, object: &Object<'_>, source: &Source<'_>) -> Result<Vec<FieldEdit>> {
    let range = CodeObject::metadata_range(object.bytes)?;
    let content = range.map(|range| &object.bytes[range]);
    if source.blocks.iter().all(|block| is_unchanged(object, content, block))
        && bytes_are_unchanged(object, content, source)
    {
        return Ok(Vec::new());
    }
    let described = Described::of(toolchain, &object.target, source)?;
    let mut edits = Vec::new();
    for (name, bytes) in &described.descriptors {
        let Some(kernel) = object.code_object.kernels.iter().find(|kernel| kernel.name == *name) else { continue };
        let Ok(placed) = &kernel.descriptor else { continue };
        let differing = descriptor::differing(placed.descriptor.bytes(), bytes, object.family());
        if differing.is_empty() && !descriptor::same(placed.descriptor.bytes(), bytes) {
            let what = format!("the descriptor of `{name}` has other bits where this processor has no field");
            edits.push(FieldEdit { line: line_of(source, name, "").0, what, change: FieldChange::Other });
        }
        for (field, own, wanted) in differing {
            let what = format!("the descriptor of `{name}` has {field} {own}, this text makes it {wanted}");
            let (line, said) = line_of(source, name, field);
            let change = FieldChange::Descriptor { kernel: name.clone(), field, value: wanted, said };
            edits.push(FieldEdit { line, what, change });
        }
    }
    if let (Some(own), Some(wanted)) = (content, &described.metadata)
        && own != wanted
    {
        let line = source.blocks.iter().find(|block| block.kernel.is_none()).map_or(0, |block| block.line);
        let mut differing = Vec::new();
        let own = Metadata::tree(own)?;
        differences(&own, &Metadata::tree(wanted)?, String::new(), &mut differing);
        edits.extend(differing.into_iter().map(|difference| FieldEdit {
            line,
            change: change_of(&own, &difference).unwrap_or(FieldChange::Other),
            what: format!("metadata: {}", difference.what),
        }));
    }
    Ok(edits)
}

/// Whether a block is as [`super::Facts`] writes it.
fn is_unchanged(object: &Object<'_>, content: Option<&[u8]>, block: &Block<'_>) -> bool {
    match block.kernel {
        None => content.is_some_and(|content| metadata::yaml(content).is_ok_and(|yaml| yaml == block.body)),
        Some(name) => {
            let name = name.trim_matches('"');
            let kernel = object.code_object.kernels.iter().find(|kernel| kernel.name == name);
            let placed = kernel.and_then(|kernel| kernel.descriptor.as_ref().ok());
            placed.zip(object.family()).is_some_and(|(placed, family)| {
                let own = descriptor::block(&placed.descriptor, family, &object.code_object.target, name);
                own.is_some_and(|own| own.contains(block.body))
            })
        }
    }
}

/// Whether what stands as bytes in the text is as [`super::Facts`] writes it.
fn bytes_are_unchanged(object: &Object<'_>, content: Option<&[u8]>, source: &Source<'_>) -> bool {
    let descriptors = object.code_object.kernels.iter().all(|kernel| match &kernel.descriptor {
        Ok(placed) if label_line(source, &kernel.name).is_some() => {
            source.text.contains(&descriptor::as_bytes(&placed.descriptor, object.family(), &kernel.name))
        }
        _ => true,
    });
    let has_note = source.text.contains(metadata::NOTE_SECTION);
    descriptors && (!has_note || content.is_some_and(|content| source.text.contains(&metadata::as_bytes(content))))
}

/// The line of the label of a descriptor that is bytes.
fn label_line(source: &Source<'_>, kernel: &str) -> Option<u32> {
    let label = format!("\n{}:", descriptor_name(kernel));
    let at = memchr::memmem::find(source.text.as_bytes(), label.as_bytes())?;
    Some(memchr::memchr_iter(b'\n', &source.text.as_bytes()[..=at]).count() as u32 + 1)
}

/// The line of a kernel's block that sets a field, and the number there; else the line that opens the block.
fn line_of(source: &Source<'_>, kernel: &str, field: &str) -> (u32, Option<u64>) {
    let block = source.blocks.iter().find(|block| block.kernel.is_some_and(|name| name.trim_matches('"') == kernel));
    let Some(block) = block else { return (label_line(source, kernel).unwrap_or(0), None) };
    let directive = match field {
        "granulated_workitem_vgpr_count" => "next_free_vgpr",
        "granulated_wavefront_sgpr_count" => "next_free_sgpr",
        field => field,
    };
    let mut lines = block.body.lines().zip(block.line + 1..);
    let names = |line: &str| {
        line.trim_start().strip_prefix(".amdhsa_").and_then(|rest| rest.split_ascii_whitespace().next())
            == Some(directive)
    };
    lines.find(|(line, _)| names(line)).map_or((block.line, None), |(line, number)| {
        (number, line.split_ascii_whitespace().nth(1).and_then(|said| said.parse().ok()))
    })
}

/// A place of the metadata at which a text says something else.
struct Difference {
    what: String,
    path: String,
    /// The new number in the place of a number.
    number: Option<u64>,
}

/// The change of a number in a kernel's own entry: `amdhsa.kernels[0].vgpr_count`.
fn change_of(own: &Node<'_>, difference: &Difference) -> Option<FieldChange> {
    let (index, key) = difference.path.strip_prefix("amdhsa.kernels[")?.split_once(']')?;
    let is_own = key.starts_with('.') && !key[1..].contains(['.', '[']);
    let value = difference.number.filter(|_| is_own)?;
    let kernel = match at(own, "amdhsa.kernels")? {
        Node::List(kernels) => at(kernels.get(index.parse::<usize>().ok()?)?, ".name")?,
        _ => return None,
    };
    let Node::Str(kernel) = kernel else { return None };
    Some(FieldChange::Metadata { kernel: kernel.to_string(), key: key.to_owned(), value })
}

/// Paths at which two trees differ, with both values.
fn differences(own: &Node<'_>, wanted: &Node<'_>, path: String, found: &mut Vec<Difference>) {
    match (own, wanted) {
        (Node::Map(own), Node::Map(wanted)) if own.len() == wanted.len() => {
            for ((key, own), (other, wanted)) in own.iter().zip(wanted) {
                if key != other {
                    let what = format!("{path}: key {} became {}", metadata::scalar(key), metadata::scalar(other));
                    found.push(Difference { what, path: path.clone(), number: None });
                } else {
                    differences(own, wanted, format!("{path}{}", metadata::scalar(key)), found);
                }
            }
        }
        (Node::List(own), Node::List(wanted)) if own.len() == wanted.len() => {
            for (number, (own, wanted)) in own.iter().zip(wanted).enumerate() {
                differences(own, wanted, format!("{path}[{number}]"), found);
            }
        }
        (own, wanted) if own == wanted => {}
        (Node::Map(own), Node::Map(wanted)) => {
            for (key, node) in own {
                match wanted.iter().find(|(other, _)| other == key) {
                    Some((_, other)) => differences(node, other, format!("{path}{}", metadata::scalar(key)), found),
                    None => {
                        let what = format!("{path}{} is not in this text", metadata::scalar(key));
                        found.push(Difference { what, path: path.clone(), number: None });
                    }
                }
            }
            for (key, _) in wanted.iter().filter(|(key, _)| !own.iter().any(|(other, _)| other == key)) {
                let what = format!("{path}{} is new in this text", metadata::scalar(key));
                found.push(Difference { what, path: path.clone(), number: None });
            }
        }
        (Node::List(own), Node::List(wanted)) => {
            let what = format!("{path} has {} entries, this text makes it {}", own.len(), wanted.len());
            found.push(Difference { what, path, number: None });
        }
        (Node::Map(_) | Node::List(_), _) | (_, Node::Map(_) | Node::List(_)) => {
            found.push(Difference { what: format!("{path} has other entries"), path, number: None });
        }
        (own, wanted) => {
            let what = format!("{path} is {}, this text makes it {}", metadata::scalar(own), metadata::scalar(wanted));
            let number = match (own, wanted) {
                (Node::Int(_), Node::Int(wanted)) => u64::try_from(*wanted).ok(),
                _ => None,
            };
            found.push(Difference { what, path, number });
        }
    }
}

/// The value of a key of a map.
fn at<'n, 'a>(node: &'n Node<'a>, key: &str) -> Option<&'n Node<'a>> {
    let Node::Map(pairs) = node else { return None };
    pairs.iter().find(|(own, _)| matches!(own, Node::Str(own) if *own == key)).map(|(_, node)| node)
}

/// Fields that would be changed, as an error: they are not a patch's to change.
pub(crate) fn refuse(edits: &[FieldEdit]) -> Result<()> {
    let messages: Vec<Message> = edits
        .iter()
        .map(|edit| {
            Message::at(edit.line, edit.what.as_str()).help("say --update-descriptor if that is meant, or undo it")
        })
        .collect();
    match messages.first().cloned() {
        None => Ok(()),
        Some(first) => Err(Error { messages, ..Error::from(first) }),
    }
}

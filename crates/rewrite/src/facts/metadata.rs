//! Metadata as the YAML that LLVM prints and reads.

use codeobj::Metadata;
use codeobj::metadata::Node;
use llvm::Toolchain;

use super::{byte_lines, prologue, section_of};
use crate::error::Result;
use crate::object::Object;

/// Owner and type of the note (AMDGPU backend guide, "Code Object V3 and Above Note Records").
const OWNER: &[u8; 8] = b"AMDGPU\0\0";
const NT_AMDGPU_METADATA: u32 = 32;

/// The content of the note, MessagePack, as a block of YAML, or as bytes where LLVM makes other bytes of that.
pub(super) fn write(toolchain: &Toolchain, object: &Object<'_>, content: &[u8]) -> Result<String> {
    let yaml = yaml(content)?;
    let block = format!("\n\t.amdgpu_metadata\n{yaml}\t.end_amdgpu_metadata\n");
    let note = section_of(toolchain, &object.target, &(prologue(object) + &block), ".note")?;
    if note.as_deref().and_then(|note| note.get(20..20 + content.len())) == Some(content)
        && note.is_some_and(|note| note[4..8] == (content.len() as u32).to_le_bytes())
    {
        return Ok(block);
    }
    let mut text = as_bytes(content);
    yaml.lines().for_each(|line| text += &format!("\t; {line}\n"));
    Ok(text)
}

/// What begins the section of metadata that is bytes.
pub(super) const NOTE_SECTION: &str = "\n\t.section .note,\"a\",@note\n";

/// The whole note as bytes.
pub(super) fn as_bytes(content: &[u8]) -> String {
    let words = [7, content.len() as u32, NT_AMDGPU_METADATA].map(u32::to_le_bytes).concat();
    let mut text = format!("{NOTE_SECTION}\t.p2align 2\n");
    text += &byte_lines(&[&words, &OWNER[..]].concat());
    text += &byte_lines(content);
    text + "\t.p2align 2\n"
}

/// The content of the note as YAML.
pub(super) fn yaml(content: &[u8]) -> Result<String> {
    let mut yaml = String::from("---\n");
    value(&Metadata::tree(content)?, 0, &mut yaml);
    Ok(yaml + "...\n")
}

/// A value at the end of a line, or below it.
fn value(node: &Node<'_>, indent: usize, text: &mut String) {
    match node {
        Node::Map(pairs) if !pairs.is_empty() => {
            for (number, (key, inner)) in pairs.iter().enumerate() {
                if number > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&scalar(key));
                text.push(':');
                below(inner, indent, text);
            }
        }
        Node::List(items) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str("- ");
                value(item, indent + 2, text);
                if !matches!(item, Node::Map(inner) if !inner.is_empty())
                    && !matches!(item, Node::List(inner) if !inner.is_empty())
                {
                    text.push('\n');
                }
            }
        }
        other => text.push_str(&scalar(other)),
    }
}

/// What follows a key's colon.
fn below(node: &Node<'_>, indent: usize, text: &mut String) {
    let nests =
        matches!(node, Node::Map(inner) if !inner.is_empty()) || matches!(node, Node::List(inner) if !inner.is_empty());
    if nests {
        text.push('\n');
        text.push_str(&" ".repeat(indent + 2));
        value(node, indent + 2, text);
    } else {
        text.push(' ');
        text.push_str(&scalar(node));
        text.push('\n');
    }
}

/// A value in one word.
pub(super) fn scalar(node: &Node<'_>) -> String {
    match node {
        Node::Map(_) => "{}".into(),
        Node::List(_) => "[]".into(),
        Node::Int(number) => number.to_string(),
        Node::Bool(truth) => truth.to_string(),
        Node::Float(number) => number.to_string(),
        Node::Nil => "null".into(),
        Node::Str(text) if is_plain(text) => text.to_string(),
        Node::Str(text) => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Whether a text without quotes is read as this text.
fn is_plain(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-$<>()".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '.' || first == '_')
        && text.bytes().all(is_inner)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", ".nan", ".inf", "inf"]
            .contains(&&*text.to_ascii_lowercase())
}

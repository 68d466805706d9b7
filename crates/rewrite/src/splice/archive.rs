//! Archives in the common and the GNU form.
//!
//! ```text
//! "!<arch>\n"  { name 16  date 12  owner 6  group 6  mode 8  size 10  "`\n" | content, padded to an even size }…
//! member "/":       u32 count, u32 offset of a member's header for each symbol, big-endian, then the names
//! member "/SYM64/": the same with u64
//! ```

use crate::error::{Error, Result};
use std::ops::Range;

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;
const SIZE: Range<usize> = 48..58;

struct Member<'a> {
    header: usize,
    name: &'a [u8],
    content: Range<usize>,
}

/// The archive, the content at `range` of one of its members exchanged.
pub(super) fn put(archive: &[u8], range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
    let members = members(archive)?;
    let changed = members.iter().find(|member| member.content.start <= range.start && range.end <= member.content.end);
    let changed = changed.ok_or_else(|| Error::input("the code object is in no member of its archive"))?;
    // A name of the BSD form is in front of the content, and is counted with it.
    let before = if changed.name.starts_with(b"#1/") { long_name(changed.name)? } else { 0 };
    let start = changed.content.start + before;
    let old = &archive[start..changed.content.end];
    let content = super::put(old, range.start - start..range.end - start, new)?;
    let size = format!("{:<10}", before + content.len());
    if size.len() != SIZE.len() {
        return Err(Error::no_room("the archive's header cannot say the new size"));
    }
    let mut written = archive[..start].to_vec();
    written[changed.header + SIZE.start..changed.header + SIZE.end].copy_from_slice(size.as_bytes());
    written.extend(&content);
    if written.len() % 2 == 1 {
        written.push(b'\n');
    }
    let rest = padded(changed.content.end).min(archive.len());
    let moved = |at: usize| if at >= rest { at - rest + written.len() } else { at };
    let mut tables = Vec::new();
    for member in &members {
        let width = match member.name {
            b"/" => 4,
            b"/SYM64/" => 8,
            name if name.starts_with(b"__.SYMDEF") => {
                return Err(Error::unsupported(
                    "an archive with a BSD symbol table is not written here; run ranlib of GNU or LLVM on it",
                ));
            }
            _ => continue,
        };
        tables.extend(symbol_table(archive, member, width, moved)?);
    }
    written.extend(&archive[rest..]);
    for (at, bytes) in tables {
        written[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(written)
}

fn padded(end: usize) -> usize {
    end.next_multiple_of(2)
}

fn members(archive: &[u8]) -> Result<Vec<Member<'_>>> {
    if !archive.starts_with(MAGIC) {
        return Err(Error::unsupported("only archives that start with `!<arch>` are written here"));
    }
    let mut members = Vec::new();
    let mut at = MAGIC.len();
    while let Some(header) = archive.get(at..at + HEADER) {
        let size = decimal(&header[SIZE])?;
        let start = at + HEADER;
        let end = start.checked_add(size).filter(|end| *end <= archive.len());
        let end = end.ok_or_else(|| Error::input(format!("the archive member at {at:#x} runs past the archive")))?;
        members.push(Member { header: at, name: header[..16].trim_ascii_end(), content: start..end });
        at = padded(end);
    }
    Ok(members)
}

fn decimal(digits: &[u8]) -> Result<usize> {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.trim_end().parse().ok());
    number.ok_or_else(|| Error::input("a size in an archive's header is no number"))
}

fn long_name(name: &[u8]) -> Result<usize> {
    decimal(&name[3..])
}

/// New bytes of a symbol table, and where. The table is at the start of the archive and does not move.
fn symbol_table(
    archive: &[u8],
    table: &Member<'_>,
    width: usize,
    moved: impl Fn(usize) -> usize,
) -> Result<Vec<(usize, Vec<u8>)>> {
    let bytes = &archive[table.content.clone()];
    let read = |at: usize| {
        let field = bytes.get(at..at + width).ok_or_else(|| Error::input("the archive's symbol table is cut short"))?;
        Ok::<usize, Error>(field.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) as usize)
    };
    let mut written = Vec::new();
    for index in 1..=read(0)? {
        let at = index.checked_mul(width).ok_or_else(|| Error::input("the archive's symbol table is damaged"))?;
        let new = (moved(read(at)?) as u64).to_be_bytes();
        if new[..8 - width].iter().any(|byte| *byte != 0) {
            return Err(Error::no_room("the archive's symbol table cannot say where a member has moved"));
        }
        written.push((table.content.start + at, new[8 - width..].to_vec()));
    }
    Ok(written)
}

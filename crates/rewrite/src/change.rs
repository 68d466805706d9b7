//! Changing the code of a code object, from the edit to the proven result.

use crate::edit::{self, CodeEdit, Edit, OffsetMap};
use crate::error::{Error, Result};
use crate::grow::{self, Grown};
use crate::image::Image;
use crate::linked::Code;
use crate::moves::Moves;
use crate::{check, entries, resolve};
use codeobj::CodeObject;
use llvm::Decoder;

/// Inserts, replaces and removes bytes of the code, in ascending order; offsets are those of the section with the code.
/// Kernels are kept at multiples of 256 bytes, and second entries where they have to be, by means of the filler before
/// them.
///
/// # Errors
/// As [`exchange`]; `BadInput` for edits that overlap, or that are no whole instructions.
pub fn apply(decoder: &dyn Decoder, code_object: &[u8], edits: &[Edit]) -> Result<Grown> {
    let object = CodeObject::parse(code_object)?;
    let code = Code::read(decoder, code_object, &object)?;
    check_edits(&code, edits)?;
    let fitted = entries::fit(&code, edits)?;
    let edit = edit::splice(code.section, code.bytes, &fitted)?;
    finish(decoder, code_object, &code, edit)
}

/// Exchanges the code. Kept instructions get their branch targets and PC-relative addresses again, everything behind
/// the code moves, and the result is decoded and compared with the original.
///
/// # Errors
/// `NoRoom` for a branch that would have to reach too far and for a kernel that would start at a place where none may
/// start; `Unsupported`, by name, for what is not understood; `CheckFailed` when the result is not what it should be.
pub fn exchange(decoder: &dyn Decoder, code_object: &[u8], edit: CodeEdit) -> Result<Grown> {
    let object = CodeObject::parse(code_object)?;
    let code = Code::read(decoder, code_object, &object)?;
    if edit.section != code.section {
        return Err(Error::input(format!(
            "the edit is of section {}, the code is in section {}",
            edit.section, code.section
        )));
    }
    finish(decoder, code_object, &code, edit)
}

/// As [`exchange`], and then kernels and second entries are put where they have to be by means of the filler before them.
///
/// # Errors
/// As [`exchange`].
pub fn exchange_fitted(decoder: &dyn Decoder, code_object: &[u8], edit: CodeEdit) -> Result<Grown> {
    let object = CodeObject::parse(code_object)?;
    let code = Code::read(decoder, code_object, &object)?;
    let edits = edit.map.edits(&edit.new_code);
    let filler = entries::fit(&code, &edits)?;
    let filler: Vec<Edit> = filler.into_iter().filter(|edit| !edits.contains(edit)).collect();
    if filler.is_empty() {
        return exchange(decoder, code_object, edit);
    }
    // In the code as the edit leaves it.
    let filler: Vec<Edit> = filler.into_iter().map(|filler| behind(&edit.map, filler)).collect();
    let filler = edit::splice(edit.section, &edit.new_code, &filler)?;
    entries::check(&code, &edit.map.then(&filler.map)?)?;
    let first = exchange_unchecked(decoder, code_object, &code, edit)?;
    let object = CodeObject::parse(&first.code_object)?;
    let code = Code::read(decoder, &first.code_object, &object)?;
    let filler = CodeEdit { new_code: with_kept(&filler, code.bytes), ..filler };
    let mut grown = exchange_unchecked(decoder, &first.code_object, &code, filler)?;
    grown.warnings = [first.warnings, grown.warnings].concat();
    Ok(grown)
}

/// An edit of filler, which `map` keeps, in the code that `map` leads to.
fn behind(map: &OffsetMap, filler: Edit) -> Edit {
    let size = filler.old.end - filler.old.start;
    let start = match map.kept(filler.old.start).filter(|_| size != 0) {
        Some(start) => start,
        None => filler
            .old
            .start
            .checked_sub(1)
            .and_then(|last| map.kept(last))
            .map_or(map.place(filler.old.start), |last| last + 1),
    };
    Edit { old: start..start + size, ..filler }
}

/// The new code of `edit` with what it keeps taken from `code`.
fn with_kept(edit: &CodeEdit, code: &[u8]) -> Vec<u8> {
    let mut new_code = edit.new_code.clone();
    for (old, byte) in code.iter().enumerate() {
        if let Some(place) = edit.map.kept(old as u64).and_then(|at| new_code.get_mut(at as usize)) {
            *place = *byte;
        }
    }
    new_code
}

/// Whether edits are in order and of whole instructions.
fn check_edits(code: &Code<'_>, edits: &[Edit]) -> Result<()> {
    let is_boundary = |at: u64| at == code.bytes.len() as u64 || code.index_at(at).is_some();
    let mut end = 0;
    for edit in edits {
        let (start, range) = (edit.old.start, format!("{:#x}..{:#x}", edit.old.start, edit.old.end));
        if start < end || edit.old.end < start {
            return Err(Error::input(format!("the edit of .text+{range} is out of order")));
        }
        if !is_boundary(start) || !is_boundary(edit.old.end) || edit.new.len() % 4 != 0 {
            return Err(Error::input(format!("the edit of .text+{range} is not of whole instructions")));
        }
        end = edit.old.end;
    }
    Ok(())
}

/// Exchanges a section that is not code for content of another size: code keeps its bytes, but for the addresses that
/// it computes.
pub(crate) fn resize_data(decoder: &dyn Decoder, code_object: &[u8], edit: &CodeEdit) -> Result<Grown> {
    let object = CodeObject::parse(code_object)?;
    let code = Code::read(decoder, code_object, &object)?;
    let image = Image::parse(code_object)?;
    let moves = Moves::new(&image, edit.section, &edit.map)?;
    let map = OffsetMap::identity(code.bytes.len() as u64);
    let mut same_code = CodeEdit { section: code.section, new_code: code.bytes.to_vec(), map };
    resolve::resolve(&code, &moves, &mut same_code)?;
    let grown = grow::move_all(&moves, &[edit, &same_code])?;
    check::check(decoder, &code, &moves, &grown.code_object)?;
    Ok(grown)
}

fn finish(decoder: &dyn Decoder, code_object: &[u8], code: &Code<'_>, edit: CodeEdit) -> Result<Grown> {
    entries::check(code, &edit.map)?;
    exchange_unchecked(decoder, code_object, code, edit)
}

/// Without a look at where kernels start.
fn exchange_unchecked(decoder: &dyn Decoder, code_object: &[u8], code: &Code<'_>, mut edit: CodeEdit) -> Result<Grown> {
    let image = Image::parse(code_object)?;
    let map = edit.map.clone();
    let moves = Moves::new(&image, edit.section, &map)?;
    resolve::resolve(code, &moves, &mut edit)?;
    let grown = grow::grow(code_object, &edit)?;
    check::check(decoder, code, &moves, &grown.code_object)?;
    Ok(grown)
}

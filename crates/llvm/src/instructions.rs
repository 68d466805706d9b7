//! Many instructions in one run of the assembler: each stands on a line of its own behind a line with a label, and the
//! labels' addresses tell each one's bytes. (A label costs 0.7 µs, an instruction 5.4 µs. What a run costs by itself
//! is 0.3 ms, so that an instruction must not have a run of its own.)

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use crate::assembler::Severity;
use crate::emitter::Emission;
use crate::encoder::{Encoded, Refusal};

/// What labels begin with; a number follows. No instruction's text has it.
const LABEL: &str = "coax.at.";

/// Encodes `texts` by `emit`, an assembler. A text that spoils those behind it is found by halving.
pub(crate) fn encode(texts: &[&str], emit: &mut dyn FnMut(&str) -> Emission) -> Vec<Encoded> {
    match run(texts, emit) {
        Ok(encoded) => encoded,
        Err(why) if texts.len() < 2 => vec![Err(why); texts.len()],
        Err(_) => {
            let (left, right) = texts.split_at(texts.len() / 2);
            let mut encoded = encode(left, emit);
            encoded.extend(encode(right, emit));
            encoded
        }
    }
}

/// An error is one of no text, or of one that nobody knows.
fn run(texts: &[&str], emit: &mut dyn FnMut(&str) -> Emission) -> Result<Vec<Encoded>, Refusal> {
    let mut refusals: Vec<Option<Refusal>> = texts.iter().map(|text| misfit(text)).collect();
    let mut emission = emit(&source(texts, &refusals));
    // The program `llvm-mc` makes an object only of a source without errors, and tells some errors only then.
    while refuse(&mut refusals, &emission)? > 0 && emission.object.is_empty() {
        emission = emit(&source(texts, &refusals));
    }
    pieces(&emission.object, refusals).ok_or_else(|| refusal("not one instruction"))
}

/// Notes what the errors say of the texts, and how many are newly refused.
fn refuse(refusals: &mut [Option<Refusal>], emission: &Emission) -> Result<usize, Refusal> {
    let errors = emission.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut new = 0;
    for error in errors {
        let refusal = Refusal { column: error.column, message: error.message.clone() };
        // Lines are counted from 1, and the first of each pair is the label's.
        let place = (error.line as usize).checked_sub(2).filter(|line| line % 2 == 0).map(|line| line / 2);
        match place.and_then(|place| refusals.get_mut(place)) {
            Some(slot) => {
                new += usize::from(slot.is_none());
                slot.get_or_insert(refusal);
            }
            None => return Err(refusal),
        }
    }
    Ok(new)
}

/// The code between the labels; `None` when it is not understood.
fn pieces(object: &[u8], mut refusals: Vec<Option<Refusal>>) -> Option<Vec<Encoded>> {
    let object = ElfFile::<FileHeader64<LittleEndian>>::parse(object).ok()?;
    let section = object.section_by_name(".text")?;
    let code = section.data().ok()?;
    let labels = labels(&object, refusals.len() + 1)?;
    for (place, _) in section.relocations() {
        let place = labels.partition_point(|label| *label <= place).checked_sub(1)?;
        refusals.get_mut(place)?.get_or_insert_with(|| refusal("it refers to a symbol"));
    }
    let pieces = labels.windows(2).map(|ends| code.get(ends[0] as usize..ends[1] as usize));
    let encoded = pieces.zip(refusals).map(|(piece, refused)| match (refused, piece?) {
        (Some(refusal), _) => Some(Err(refusal)),
        (None, []) => Some(Err(refusal("not an instruction"))),
        (None, bytes) => Some(Ok(bytes.into())),
    });
    encoded.collect()
}

fn source(texts: &[&str], refusals: &[Option<Refusal>]) -> String {
    let mut source = String::with_capacity(texts.iter().map(|text| text.len() + 24).sum());
    for (i, (text, refusal)) in texts.iter().zip(refusals).enumerate() {
        let text = if refusal.is_none() { text } else { "" };
        source += &format!("{LABEL}{i}:\n{text}\n");
    }
    source + &format!("{LABEL}{}:\n", texts.len())
}

/// The addresses of all labels, in order; `None` when one is missing.
fn labels(object: &ElfFile<FileHeader64<LittleEndian>>, count: usize) -> Option<Vec<u64>> {
    let mut labels = vec![None; count];
    for symbol in object.symbols() {
        let number = symbol.name().ok().and_then(|name| name.strip_prefix(LABEL)?.parse::<usize>().ok());
        if let Some(place) = number.and_then(|number| labels.get_mut(number)) {
            *place = Some(symbol.address());
        }
    }
    labels.into_iter().collect()
}

/// What cannot be the line of an instruction: a directive, a label, an assignment, or more than a line.
fn misfit(text: &str) -> Option<Refusal> {
    let text = text.trim_start();
    let mnemonic_len = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (mnemonic, rest) = text.split_at(mnemonic_len);
    let operands = rest.trim_start();
    let fits = !mnemonic.is_empty()
        && (rest.is_empty() || rest.starts_with([' ', '\t']))
        && !operands.starts_with(['=', ':'])
        && !text.contains(['\n', '\r', '\0'])
        && !text.contains(LABEL);
    (!fits).then(|| refusal("not an instruction"))
}

fn refusal(message: &str) -> Refusal {
    Refusal { column: 0, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::Diagnostic;

    #[test]
    fn what_cannot_be_an_instruction_never_reaches_the_assembler() {
        for text in
            ["", ".if 0", "a:", "a :", "a = 1", "s_nop 0\ns_nop 1", "; a", "s_branch coax.at.3", "\"", "/* */ s_nop 0"]
        {
            assert!(misfit(text).is_some(), "{text}");
        }
        for text in ["s_endpgm", " s_nop 0", "v_mov_b32\tv0, v1 ; a = b", "V_MOV_B32 v0, v1"] {
            assert!(misfit(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_assembler_that_only_complains_is_asked_so_often_and_no_more() {
        let mut asked = 0;
        let mut complain = |_: &str| {
            asked += 1;
            Emission {
                object: Vec::new(),
                diagnostics: vec![Diagnostic::parse(Severity::Error, "<inline asm>:2:1: no")],
            }
        };
        let encoded = encode(&["s_nop 0", "s_nop 1"], &mut complain);
        assert!(encoded.iter().all(Result::is_err));
        assert!(asked < 10, "{asked}");
    }
}

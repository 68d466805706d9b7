//! The first exercise of somebody who tunes kernels by hand, step by step on real code objects: round trip, a comment, two
//! equal instructions swapped, one instruction more, one less; and each row of its troubleshooting table.

#[path = "harness/process.rs"]
mod process;
#[path = "harness/requirements.rs"]
mod requirements;

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

type Test = Result<(), Failed>;
type Step = fn(&Desk) -> Test;

fn main() -> ExitCode {
    let steps: [(&str, Step); 12] = [
        ("0_the_doctor_says_what_works", doctor),
        ("1_a_round_trip_is_byte_identical", round_trip),
        ("2a_a_comment_changes_no_byte", comment),
        ("2b_two_equal_instructions_swapped_change_no_byte", swap),
        ("3a_one_more_instruction_is_refused_in_place", one_more),
        ("3a_one_more_instruction_is_accepted_with_room", one_more_grown),
        ("3a_any_number_of_instructions_more_is_accepted_with_room", grown_by_any_size),
        ("3a_one_more_instruction_goes_back_into_an_archive", archive),
        ("3b_one_less_is_filled_up", one_less),
        ("4a_a_drifted_reference_is_told", drifted),
        ("4b_what_is_not_an_instruction_is_shown_with_its_line", mistake),
        ("4c_a_damaged_reference_is_refused", damaged),
    ];
    let missing = requirements::missing("llvm").unwrap_or_else(Some);
    let mut trials = Vec::new();
    // One from a compiler, with a second entry behind a run of s_nop; one written by hand.
    for object in ["vector_add.gfx942.hsaco", "topksoftmax_4x128x4.gfx942.co"] {
        for (name, step) in steps {
            let reason = missing.clone();
            let run = move || match reason {
                Some(reason) => Err(reason.into()),
                None => step(&Desk::new(object)?),
            };
            let ignored = missing.is_some() && !requirements::is_required("llvm");
            let kind = missing.clone().unwrap_or_default();
            trials.push(Trial::test(format!("{object}::{name}"), run).with_kind(kind).with_ignored_flag(ignored));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A working directory with the reference and its text.
struct Desk {
    folder: tempfile::TempDir,
}

/// What a command said.
struct Said {
    exit: i32,
    text: String,
}

impl Said {
    fn expect(self, exit: i32, parts: &[&str]) -> Result<Said, Failed> {
        let missing: Vec<&&str> = parts.iter().filter(|part| !self.text.contains(**part)).collect();
        match (self.exit == exit, missing.is_empty()) {
            (true, true) => Ok(self),
            _ => Err(format!("exit {} (expected {exit}), without {missing:?}:\n{}", self.exit, self.text).into()),
        }
    }
}

impl Desk {
    fn new(object: &str) -> Result<Desk, Failed> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/code-objects");
        let desk = Desk { folder: tempfile::tempdir()? };
        fs::copy(data.join(object), desk.path("ref.co"))?;
        desk.coax("disasm ref.co -o roundtrip.s")?.expect(0, &["BYTE-IDENTICAL"])?;
        Ok(desk)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn coax(&self, line: &str) -> Result<Said, Failed> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let outcome = process::run_coax(&words, self.folder.path(), &[])?;
        let text = [outcome.stdout, outcome.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Ok(Said { exit: outcome.exit, text })
    }

    /// The lines of the text.
    fn lines(&self) -> Result<Vec<String>, Failed> {
        Ok(fs::read_to_string(self.path("roundtrip.s"))?.lines().map(str::to_owned).collect())
    }

    /// Instructions and labels alone, as an assembly text from elsewhere has them.
    fn bare_lines(&self) -> Result<Vec<String>, Failed> {
        let text = self.lines()?;
        let code = text.iter().skip_while(|line| line.trim() != ".text").skip(1);
        let code = code.take_while(|line| !line.trim_start().starts_with(".section"));
        let is_bare = |line: &&String| !line.starts_with("\t.") && !line.is_empty();
        Ok(code.filter(is_bare).map(|line| line.split(" ;").next().unwrap_or_default().to_owned()).collect())
    }

    fn write(&self, name: &str, lines: &[String]) -> Test {
        Ok(fs::write(self.path(name), lines.join("\n") + "\n")?)
    }

    fn original(&self) -> Result<Vec<u8>, Failed> {
        Ok(fs::read(self.path("ref.co"))?)
    }

    /// `New code: 1408 bytes`, the size being that of the reference with a change.
    fn sizes(&self, change: i64) -> Result<[String; 2], Failed> {
        let said = self.coax("patch ref.co roundtrip.s same.co")?.text;
        let original = said.lines().find(|line| line.starts_with("Original .text: offset=0x")).ok_or("no size")?;
        let size = original.split("size=").nth(1).and_then(|rest| rest.split(' ').next()).ok_or("no size")?;
        let size: i64 = size.parse()?;
        Ok([original.to_owned(), format!("New code: {} bytes", size + change)])
    }
}

fn position(lines: &[String], instruction: &str) -> Result<usize, Failed> {
    let found = lines.iter().position(|line| line.trim_start().starts_with(instruction));
    found.ok_or_else(|| format!("no {instruction}").into())
}

fn doctor(desk: &Desk) -> Test {
    let said = desk.coax("doctor")?.expect(0, &["LLVM      LLVM ", "knows gfx90a, gfx942"])?;
    assert!(said.text.lines().last().is_some_and(|line| line.starts_with("everything works")), "{}", said.text);
    desk.coax("doctor --llvm nowhere")?
        .expect(3, &["LLVM      not found: disables disasm", "some commands do not work"])?;
    Ok(())
}

fn round_trip(desk: &Desk) -> Test {
    let [original, new] = desk.sizes(0)?;
    let said = desk.coax("patch ref.co roundtrip.s roundtrip.co")?.expect(0, &[&original, &new, "BYTE-IDENTICAL"])?;
    assert!(!said.text.contains("WARNING"), "{}", said.text);
    assert_eq!(fs::read(desk.path("roundtrip.co"))?, desk.original()?);
    desk.coax("cmp ref.co roundtrip.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    // The same from instructions alone.
    desk.write("bare.s", &desk.bare_lines()?)?;
    desk.coax("patch ref.co bare.s bare.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    Ok(())
}

fn comment(desk: &Desk) -> Test {
    let mut lines = desk.lines()?;
    lines.insert(position(&lines, "s_endpgm")?, "; my first edit".into());
    desk.write("edit1.s", &lines)?;
    desk.coax("patch ref.co edit1.s -o edit1.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    assert_eq!(fs::read(desk.path("edit1.co"))?, desk.original()?);
    Ok(())
}

fn swap(desk: &Desk) -> Test {
    let mut lines = desk.lines()?;
    let first = position(&lines, "s_nop 0")?;
    let second = first + 1 + position(&lines[first + 1..], "s_nop 0")?;
    lines.swap(first, second);
    desk.write("edit1.s", &lines)?;
    desk.coax("patch ref.co edit1.s -o edit1.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    Ok(())
}

fn one_more(desk: &Desk) -> Test {
    let mut lines = desk.bare_lines()?;
    let end = lines.iter().rposition(|line| line.trim() == "s_endpgm").ok_or("no s_endpgm")?;
    lines.insert(end, "\ts_nop 0".into());
    desk.write("edit2.s", &lines)?;
    let [original, new] = desk.sizes(4)?;
    let refused = "ERROR: new code is larger than original — cannot patch in place";
    let parts = [&*original, &*new, "WARNING: size mismatch!", refused, "4 bytes too large", "--grow"];
    desk.coax("patch ref.co edit2.s -o edit2.co")?.expect(1, &parts)?;
    assert!(!desk.path("edit2.co").exists(), "nothing is written");
    Ok(())
}

fn one_more_grown(desk: &Desk) -> Test {
    one_more(desk)?;
    let [original, new] = desk.sizes(4)?;
    let parts = [&*original, &*new, "Grown .text from ", "edit2.co: written"];
    desk.coax("patch ref.co edit2.s -o edit2.co --grow")?.expect(0, &parts)?;
    desk.coax("cmp edit2.co edit2.s")?.expect(0, &["BYTE-IDENTICAL"])?;
    desk.coax("roundtrip edit2.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    Ok(())
}

fn grown_by_any_size(desk: &Desk) -> Test {
    let lines = desk.lines()?;
    let end = lines.iter().position(|line| line.trim().starts_with("s_endpgm")).ok_or("no s_endpgm")?;
    // Behind the second entry, where there is one: nothing but filler may be put in front of that.
    let entry = lines.iter().rposition(|line| line.starts_with("\t.p2align 8")).ok_or("no entry")?;
    let start =
        entry + 1 + lines[entry + 1..].iter().position(|line| line.contains("; +0x")).ok_or("no instruction")?;
    let summary = desk.coax("summarize ref.co")?.expect(0, &[])?.text;
    for place in [start, end] {
        for bytes in [4, 12, 256, 4096, 20_000] {
            let added = vec!["\ts_nop 1".to_owned(); bytes / 4];
            desk.write("grown.s", &[&lines[..place], &added, &lines[place..]].concat())?;
            let said = desk.coax("patch ref.co grown.s -o grown.co --grow")?.expect(0, &["Grown .text from "])?;
            // What was added, and nothing but addresses that follow the code.
            let compared = desk.coax("cmp ref.co grown.co")?.expect(1, &["+ s_nop 1", "DIFFER"])?;
            let code = compared.text.split("\n.text: ").skip(1);
            assert!(code.clone().all(|part| !part.contains("\n  - ")), "{bytes}: {}{}", said.text, compared.text);
            desk.coax("roundtrip grown.co")?.expect(0, &["BYTE-IDENTICAL"])?;
            let grown = desk.coax("summarize grown.co")?.expect(0, &[])?.text;
            assert_eq!(grown.replace("grown.co", "ref.co"), summary);
        }
    }
    Ok(())
}

fn archive(desk: &Desk) -> Test {
    let object = desk.original()?;
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in [("ref.co/", &object[..]), ("note.txt/", b"kept")] {
        archive.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "644", bytes.len()).bytes());
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    fs::write(desk.path("ref.a"), archive)?;
    one_more(desk)?;
    let said = desk.coax("patch ref.a edit2.s -o new.a --grow")?.expect(0, &["a copy of ref.a with "])?.text;
    let member = said.split("a copy of ref.a with ").nth(1).and_then(|rest| rest.split(" replaced").next());
    let member = member.ok_or("no member")?;
    desk.coax(&format!("cmp new.a!{member} edit2.s"))?.expect(0, &["BYTE-IDENTICAL"])?;
    assert!(fs::read(desk.path("new.a"))?.ends_with(b"kept"));
    Ok(())
}

fn one_less(desk: &Desk) -> Test {
    let mut lines = desk.bare_lines()?;
    let first = position(&lines, "s_nop 0")?;
    lines.remove(first);
    desk.write("edit2.s", &lines)?;
    let [original, new] = desk.sizes(-4)?;
    let parts = [&*original, &*new, "WARNING: size mismatch!", "with 4 bytes of s_nop 0"];
    desk.coax("patch ref.co edit2.s -o edit2.co")?.expect(0, &parts)?;
    let patched = fs::read(desk.path("edit2.co"))?;
    assert_eq!(patched.len(), desk.original()?.len());
    // Taken apart again, it has as many instructions, and the entries are where they were.
    desk.coax("roundtrip edit2.co")?.expect(0, &["BYTE-IDENTICAL"])?;
    Ok(())
}

fn drifted(desk: &Desk) -> Test {
    let mut other = desk.original()?;
    let comment = other.windows(3).position(|window| window == b"LLD").ok_or("no linker's comment")?;
    // The linker's name: another file, the same code, descriptor and metadata.
    other[comment] = b'M';
    fs::write(desk.path("other.co"), other)?;
    desk.coax("patch other.co roundtrip.s -o new.co")?
        .expect(0, &["warning: the text was made of another reference"])?;
    desk.coax("cmp ref.co other.co")?.expect(1, &["DIFFER", "section .comment+"])?;
    Ok(())
}

fn mistake(desk: &Desk) -> Test {
    let mut lines = desk.lines()?;
    let place = position(&lines, "s_nop 0")?;
    lines[place] = "\ts_nopp 0".into();
    desk.write("edit.s", &lines)?;
    let at = format!("--> edit.s:{}:2", place + 1);
    desk.coax("patch ref.co edit.s -o new.co")?.expect(2, &["error: invalid instruction", &at])?;
    assert!(!desk.path("new.co").exists(), "nothing is written");
    Ok(())
}

fn damaged(desk: &Desk) -> Test {
    fs::write(desk.path("cut.co"), &desk.original()?[..1000])?;
    desk.coax("patch cut.co roundtrip.s -o new.co")?.expect(2, &["error: "])?;
    desk.coax("patch ref.co roundtrip.s -o ref.co")?.expect(2, &["is an input", "--in-place"])?;
    desk.coax("patch ref.co roundtrip.s -o ref.co --in-place")?.expect(0, &["BYTE-IDENTICAL"])?;
    Ok(())
}

//! The last resort: the programs `llvm-objdump` and, beside it, `llvm-mc`, for machines that have LLVM's tools and no
//! shared library of it (ROCm links its LLVM statically). Slower by far, because a process starts for every batch, and
//! equal in what it answers (tested).
//!
//! The code is wrapped into the smallest ELF file that the program reads. It prints address and words of every
//! instruction, so that nothing is guessed; what it printed before it died of a word is complete up to that word.

mod mc;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mc::Mc;

use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::probe::family_word;
use crate::source::{Learn, Source};
use crate::target::TRIPLE;
use crate::{Assembly, Encoded, Error, ErrorKind, Target};

/// How much code one process is given: starting it takes as long as decoding that much.
const BATCH_BYTES: usize = 64 << 10;
/// What LLVM's tools write to standard error about a processor that they do not know.
const UNKNOWN_PROCESSOR: &str = "is not a recognized processor";

/// See the module.
pub(crate) struct Spawned {
    tool: PathBuf,
    mc: Mc,
    version: String,
    timeout: Duration,
}

/// What one run of the program printed.
struct Run {
    status: ExitStatus,
    lines: Vec<Line>,
    stderr: String,
}

struct Line {
    offset: usize,
    words: u8,
    text: String,
}

/// Whether `path` names the program rather than a library.
pub(crate) fn is_tool(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-objdump"))
}

impl Spawned {
    /// # Errors
    /// [`ErrorKind::NotFound`] when `tool` does not run or was built without AMD GPUs.
    pub fn start(tool: &Path, timeout: Duration) -> Result<Self, Error> {
        let not_found = |why: &str| Error::new(ErrorKind::NotFound, why);
        let output = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| not_found(&error.to_string()))?;
        let output = String::from_utf8_lossy(&output.stdout);
        if !output.contains("amdgcn") {
            return Err(not_found("it was built without AMD GPUs"));
        }
        let version =
            output.lines().find_map(|line| line.split_once("LLVM version ")).map_or("", |(_, version)| version);
        let (mc, version) = (Mc::beside(tool, timeout), version.trim().to_owned());
        Ok(Spawned { tool: tool.to_owned(), mc, version, timeout })
    }

    /// Disassembles what starts before `stop` in `code`.
    fn run(&self, target: &Target, code: &[u8], stop: usize) -> io::Result<Run> {
        let folder = tempfile::tempdir()?;
        let [object, out, err] = ["code.elf", "out", "err"].map(|name| folder.path().join(name));
        std::fs::write(&object, wrapped(code))?;
        let mut command = Command::new(&self.tool);
        command
            .args(["-d", "-z", "-j", ".text"])
            .arg(format!("--triple={TRIPLE}"))
            .arg(format!("--mcpu={}", target.processor()))
            .arg(format!("--mattr={}", target.feature_string()))
            .arg(format!("--stop-address={stop}"))
            .arg(&object)
            .stdout(std::fs::File::create(&out)?)
            .stderr(std::fs::File::create(&err)?);
        let status = run_within(self.timeout, folder.path(), &mut command)?;
        let out = std::fs::read_to_string(out)?;
        let whole_lines = out.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let lines = whole_lines.lines().filter_map(Line::parse).collect();
        Ok(Run { status, lines, stderr: String::from_utf8_lossy(&std::fs::read(err)?).into_owned() })
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::new(ErrorKind::WorkerFailed, format!("cannot run {}: {error}", self.tool.display()))
    }

    fn unknown(&self, target: &Target) -> Error {
        let message = format!("{} does not know the processor `{}`", self.describe(), target.processor());
        Error::new(ErrorKind::UnknownTarget, message)
    }
}

impl Source for Spawned {
    fn describe(&self) -> String {
        format!("LLVM {} ({}), started for every batch", self.version, self.tool.display())
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        let (window, mnemonic) = family_word(target).unwrap_or((Window::default(), ""));
        let run = self.run(target, &window.bytes(), 1).map_err(|error| self.failed(&error))?;
        let expected = run.lines.first().is_some_and(|line| line.text.starts_with(mnemonic));
        if expected && run.status.success() && !run.stderr.contains(UNKNOWN_PROCESSOR) {
            return Ok(());
        }
        Err(self.unknown(target))
    }

    /// A run that dies does so at the instruction behind the last that it printed. That one is asked for alone: if the
    /// program dies again, it is the culprit, else it was an accident.
    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        let until = code.len().min(BATCH_BYTES);
        let mut batch = code[..code.len().min(BATCH_BYTES + MAX_INSTRUCTION_BYTES)].to_vec();
        batch.resize(until + MAX_INSTRUCTION_BYTES, 0); // words behind the end count as zero
        let learn_from = |start: usize, stop: usize, learn: &mut Learn| -> Result<Run, Error> {
            let run = self.run(target, &batch[start..], stop).map_err(|error| self.failed(&error))?;
            for line in &run.lines {
                learn(&Window::at(&batch, start + line.offset), &line.outcome());
            }
            Ok(run)
        };
        let mut start = 0;
        while start < until {
            let rest = learn_from(start, until - start, learn)?;
            start += rest.end();
            if rest.status.success() {
                break;
            }
            let alone = learn_from(start, 1, learn)?;
            start += alone.end();
            if alone.lines.is_empty() {
                learn(&Window::at(&batch, start), &Outcome::Crashed);
                start += 4;
            }
        }
        Ok(())
    }

    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        self.mc.encode(target, texts)
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error> {
        self.mc.assemble(target, source)
    }
}

/// Runs `command` in `folder`, where a core file goes with it, and ends it when it takes too long.
fn run_within(timeout: Duration, folder: &Path, command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = command.current_dir(folder).stdin(Stdio::null()).spawn()?;
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            return child.wait();
        }
        sleep(Duration::from_millis(1));
    }
}

impl Run {
    /// The offset behind the last instruction.
    fn end(&self) -> usize {
        self.lines.last().map_or(0, |line| line.offset + 4 * usize::from(line.words))
    }
}

impl Line {
    /// Reads `\ts_nop 0    // 000000001C00: BF800000`; `None` for the other lines.
    fn parse(line: &str) -> Option<Self> {
        let (text, place) = line.strip_prefix('\t')?.rsplit_once("// ")?;
        let (address, words) = place.split_once(':')?;
        // Behind the words of a branch stands its target: `<.text+0x10>`.
        let words = words.split_whitespace().take_while(|word| !word.starts_with('<')).count();
        let words =
            u8::try_from(words).ok().filter(|words| (1..=MAX_INSTRUCTION_BYTES / 4).contains(&usize::from(*words)))?;
        let offset = usize::from_str_radix(address, 16).ok()?;
        Some(Line { offset, words, text: without_bank_comments(text.trim()) })
    }

    fn outcome(&self) -> Outcome<'_> {
        if self.text.starts_with(".long") {
            return Outcome::Undecodable;
        }
        Outcome::Decoded { words: self.words, text: &self.text }
    }
}

/// Takes off what the program adds on gfx1250 from the last `s_set_vgpr_msb` it met: `v158 /*v414*/`.
fn without_bank_comments(text: &str) -> String {
    let mut parts = text.split(" /*v");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once("*/").map_or("", |(_, behind)| behind));
    }
    kept
}

/// The smallest object that the program takes: an ELF header, `code` as `.text` at address 0, and section names.
/// The machine is `EM_AMDGPU`, the processor is left to `--mcpu`.
fn wrapped(code: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.text\0.shstrtab\0";
    const HEADER_BYTES: usize = 64;
    const EM_AMDGPU: u64 = 224;
    let names_at = HEADER_BYTES + code.len();
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);

    // 64-bit, little-endian, version 1, ABI 64 (AMDGPU HSA), ABI version 3 (code object 5).
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 3, 0, 0, 0, 0, 0, 0, 0];
    // Type 1 (relocatable), machine, version; entry, program and section header offsets; flags; sizes and counts.
    put(&mut elf, &[(1, 2), (EM_AMDGPU, 2), (1, 4), (0, 8), (0, 8), (sections_at as u64, 8), (0, 4)]);
    put(&mut elf, &[(HEADER_BYTES as u64, 2), (0, 2), (0, 2), (64, 2), (3, 2), (2, 2)]);
    elf.extend(code);
    elf.extend(NAMES);
    elf.resize(sections_at + 64, 0); // and the null section
    // Name, type, flags, address, offset, size, link, info, alignment, entry size.
    let mut section = |name, kind, flags, at: usize, len: usize| {
        let (at, len) = (at as u64, len as u64);
        put(&mut elf, &[(name, 4), (kind, 4), (flags, 8), (0, 8), (at, 8), (len, 8), (0, 4), (0, 4), (4, 8), (0, 8)]);
    };
    section(1, 1, 6, HEADER_BYTES, code.len()); // PROGBITS, ALLOC | EXECINSTR
    section(7, 3, 0, names_at, NAMES.len()); // STRTAB
    elf
}

/// Appends integers of so many bytes each.
fn put(elf: &mut Vec<u8>, fields: &[(u64, usize)]) {
    for (value, bytes) in fields {
        elf.extend(&value.to_le_bytes()[..*bytes]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_place_length_and_text() {
        let line = Line::parse("\tv_mov_b32_e32 v158 /*v414*/, v1 // 000000002410: 7F3C03B8 00000001");
        let line = line.map(|line| (line.offset, line.words, line.text));
        assert_eq!(line, Some((0x2410, 2, "v_mov_b32_e32 v158, v1".to_owned())));
        assert!(Line::parse("0000000000000000 <.text>:").is_none());
        let branch = Line::parse("\ts_cbranch_scc0 82 // 000000000208: BF840052 <.text+0x354>");
        assert_eq!(branch.map(|line| line.words), Some(1));
        let line = Line::parse("\t.long 0xffffffff // 00000000000C: FFFFFFFF");
        assert_eq!(line.as_ref().map(Line::outcome), Some(Outcome::Undecodable));
    }
}

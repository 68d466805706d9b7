//! Workers that crash, are killed, hang: everything else still decodes, encodes and assembles.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use llvm::{Assembler, Assembly, Decoder, Encoder, Listing, Options, State, Target, Toolchain};
use tempfile::TempDir;

use crate::{Engine, Outcome};

/// LLVM 22.1.8 dies of it with a segmentation fault, on gfx942.
const KILLER: [u32; 2] = [0x7eaa_14f9, 0x0006_1758];
/// The environment variable that makes this program [`be_a_victim`].
pub const VICTIM: &str = "COAX_TEST_VICTIM";
/// The file that the victim makes beside its library.
const READY: &str = "ready";
const S_NOP: u32 = 0xbf80_0000;

pub fn trials(engines: &[Engine]) -> Vec<Trial> {
    let survivors = engines.iter().filter(|engine| **engine != Engine::InProcess);
    let mut trials: Vec<Trial> = survivors
        .map(|&engine| Trial::test(format!("only_the_word_that_kills_is_marked_{engine:?}"), move || crashes(engine)))
        .collect();
    for &engine in engines.iter().filter(|engine| **engine != Engine::InProcess) {
        trials
            .push(Trial::test(format!("only_the_text_that_kills_is_refused_{engine:?}"), move || killer_text(engine)));
        trials
            .push(Trial::test(format!("a_source_that_kills_or_hangs_is_refused_{engine:?}"), move || sources(engine)));
    }
    trials.extend([
        Trial::test("a_killed_worker_is_replaced", || disturbed("-KILL", all_decoded)),
        Trial::test("a_hung_worker_is_replaced", || disturbed("-STOP", all_decoded)),
        Trial::test("a_worker_killed_while_it_encodes_is_replaced", || disturbed("-KILL", all_encoded)),
        Trial::test("a_worker_hung_while_it_encodes_is_replaced", || disturbed("-STOP", all_encoded)),
        Trial::test("no_child_outlives_its_decoder", no_child_is_left),
        Trial::test("no_worker_outlives_a_killed_parent", no_orphan_is_left),
        Trial::test("threads_do_not_change_the_answer", threads),
    ]);
    trials
}

fn code(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// So many different instructions: `s_mov_b32 s0, literal`.
fn distinct(count: u32, from: u32) -> Vec<u8> {
    code((0..count).flat_map(|i| [0xbe80_00ff, 0x1000_0000 + from + i]))
}

fn crashes(engine: Engine) -> Outcome {
    let decoder = engine.open()?;
    let words =
        [S_NOP, S_NOP + 1, KILLER[0], KILLER[1], S_NOP + 2, KILLER[0], KILLER[1], S_NOP + 3, S_NOP, S_NOP, S_NOP];
    let listing = decoder.decode(&Target::new("gfx942"), &code(words))?;
    let crashed: Vec<u32> = of_state(&listing, State::Crashed).collect();
    if crashed != [8, 20] {
        return Err(format!("crashed at {crashed:?}").into());
    }
    for (offset, text) in [(0, "s_nop 0"), (4, "s_nop 1"), (16, "s_nop 2"), (28, "s_nop 3"), (40, "s_nop 0")] {
        let found = listing.instructions().iter().find(|instruction| instruction.offset == offset);
        if found.is_none_or(|instruction| listing.text(instruction) != text || instruction.untrusted != (offset > 8)) {
            return Err(format!("at {offset}: {found:?}, expected {text}").into());
        }
    }
    Ok(())
}

fn of_state(listing: &Listing, state: State) -> impl Iterator<Item = u32> {
    listing
        .instructions()
        .iter()
        .filter(move |instruction| instruction.state == state)
        .map(|instruction| instruction.offset)
}

/// LLVM's parser of expressions calls itself for each.
fn parentheses() -> String {
    "(".repeat(1_000_000)
}

fn killer_text(engine: Engine) -> Outcome {
    let killer = format!("s_mov_b32 s0, {}", parentheses());
    let mut texts: Vec<String> = (0..100).map(|i| format!("s_nop {}", i % 16)).collect();
    texts[70] = killer.clone();
    texts[20] = killer;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let encoded = engine.open()?.encode(&Target::new("gfx942"), &texts)?;
    for (i, encoded) in encoded.iter().enumerate() {
        let expected = S_NOP + i as u32 % 16;
        let right = match encoded {
            Ok(bytes) => **bytes == expected.to_le_bytes(),
            Err(_) => i == 20 || i == 70,
        };
        if !right {
            return Err(format!("{i}: {encoded:x?}").into());
        }
    }
    Ok(())
}

fn sources(engine: Engine) -> Outcome {
    let tool = (engine == Engine::Spawned).then(|| crate::OBJDUMP.into());
    let toolchain = llvm::open(&Options { path: tool, batch_timeout: Duration::from_secs(2), ..Options::default() })?;
    let target = Target::new("gfx942");
    for source in [
        format!("s_mov_b32 s0, {}\n", parentheses()),
        ".rept 2000000000\n.endr\n".into(),
        ".amdhsa_code_object_version 9\n".into(),
    ] {
        match toolchain.assemble(&target, &source) {
            Ok(Assembly { object: None, diagnostics }) if diagnostics[0].message.starts_with("LLVM dies of it") => {}
            result => return Err(format!("{result:?}").into()),
        }
    }
    let assembly = toolchain.assemble(&target, "s_nop 0\n")?;
    if assembly.object.is_some() { Ok(()) } else { Err("nothing is assembled any more".into()) }
}

/// Sends a signal to every worker, five times, while new instructions are dealt with.
fn disturbed(signal: &str, work: fn(&Toolchain, &Target, u32) -> Outcome) -> Outcome {
    let (decoder, folder) = open_under_another_name()?;
    let target = Target::new("gfx942");
    let (done, mut signals) = (AtomicBool::new(false), 0);
    let mut result = Ok(());
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20 {
                result = work(&decoder, &target, round);
                if result.is_err() {
                    break;
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) && signals < 5 {
            thread::sleep(Duration::from_millis(100));
            for child in children(folder.path()) {
                let sent = Command::new("kill").args([signal, &child.to_string()]).status();
                signals += usize::from(sent.is_ok_and(|status| status.success()));
            }
        }
    });
    result?;
    if signals == 0 { Err("nobody was disturbed".into()) } else { Ok(()) }
}

fn all_decoded(decoder: &Toolchain, target: &Target, round: u32) -> Outcome {
    let count = 30_000;
    let listing = decoder.decode(target, &distinct(count, round * count))?;
    let decoded = listing.instructions().iter().filter(|instruction| instruction.state == State::Decoded);
    let right = decoded.zip(0..).filter(|(instruction, i)| {
        listing.text(instruction) == format!("s_mov_b32 s0, {:#x}", 0x1000_0000 + round * count + i)
    });
    let right = right.count();
    // A signal can hit two workers in succession at the same word. One in 600,000 is luck enough for that.
    let blamed = of_state(&listing, State::Crashed).count();
    if right + blamed < count as usize || blamed > 1 {
        return Err(format!("{right} of {count} are right, {blamed} blamed").into());
    }
    Ok(())
}

fn all_encoded(toolchain: &Toolchain, target: &Target, round: u32) -> Outcome {
    let count = 30_000;
    let literals = (0..count).map(|i| 0x1000_0000 + round * count + i);
    let texts: Vec<String> = literals.clone().map(|literal| format!("s_mov_b32 s0, {literal:#x}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let encoded = toolchain.encode(target, &texts)?;
    let right = literals
        .zip(&encoded)
        .filter(|(literal, encoded)| encoded.as_deref().is_ok_and(|bytes| bytes == code([0xbe80_00ff, *literal])));
    let right = right.count();
    let blamed = encoded.iter().filter(|encoded| encoded.is_err()).count();
    if right + blamed < count as usize || blamed > 1 {
        return Err(format!("{right} of {count} are right, {blamed} blamed").into());
    }
    Ok(())
}

/// A decoder whose workers can be told from those of other tests, by the path of their library; it lives as long as the
/// folder.
fn open_under_another_name() -> Result<(Toolchain, TempDir), Failed> {
    let description = Engine::Worker.open()?.describe();
    let path = description.split_once('(').and_then(|(_, rest)| rest.split_once(')')).ok_or("no path")?.0;
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    std::os::unix::fs::symlink(path, &library)?;
    Ok((open_impatiently(library)?, folder))
}

fn open_impatiently(library: PathBuf) -> Result<Toolchain, llvm::Error> {
    llvm::open(&Options {
        path: Some(library),
        workers: 2,
        batch_timeout: Duration::from_secs(1),
        ..Options::default()
    })
}

/// What this program does when [`VICTIM`] names a library: it uses a worker, says so, and waits to be killed.
pub fn be_a_victim(library: PathBuf) -> Outcome {
    let decoder = open_impatiently(library.clone())?;
    decoder.decode(&Target::new("gfx942"), &distinct(10, 0))?;
    std::fs::write(library.with_file_name(READY), "")?;
    thread::sleep(Duration::from_secs(60));
    Ok(())
}

fn no_orphan_is_left() -> Outcome {
    let (decoder, folder) = open_under_another_name()?;
    drop(decoder);
    let library = folder.path().join("libLLVM.so");
    let mut victim = Command::new(std::env::current_exe()?).env(VICTIM, &library).spawn()?;
    let started = within_seconds(20, || folder.path().join(READY).exists()) && !children(folder.path()).is_empty();
    victim.kill()?;
    victim.wait()?;
    let ended = within_seconds(20, || children(folder.path()).is_empty());
    if started && ended { Ok(()) } else { Err(format!("started: {started}, ended: {ended}").into()) }
}

fn within_seconds(seconds: u64, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// The workers whose library lies in that folder.
fn children(folder: &Path) -> Vec<u32> {
    let library = folder.join("libLLVM.so");
    let processes = Path::new("/proc").read_dir().into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let arguments = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == library.as_os_str().as_encoded_bytes())
    })
    .collect()
}

fn no_child_is_left() -> Outcome {
    let (decoder, folder) = open_under_another_name()?;
    decoder.decode(&Target::new("gfx942"), &distinct(10, 0))?;
    let before = children(folder.path());
    let _ = Command::new("kill").args(["-STOP", &before.first().ok_or("no worker")?.to_string()]).status();
    drop(decoder);
    let after = children(folder.path());
    if before.is_empty() || !after.is_empty() { Err(format!("{before:?}, then {after:?}").into()) } else { Ok(()) }
}

/// What one thread gets from a fresh decoder equals what each of eight gets that share one.
fn threads() -> Outcome {
    let target = Target::new("gfx942");
    let pieces: Vec<Vec<u8>> = (0..8).map(|i| distinct(3000, 1000 * i)).collect();
    let all = Engine::Worker.open()?;
    let shared = thread::scope(|scope| -> Result<Vec<Listing>, llvm::Error> {
        let handles: Vec<_> = pieces.iter().map(|piece| scope.spawn(|| all.decode(&target, piece))).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    })?;
    let alone = Engine::Worker.open()?;
    for (piece, shared) in pieces.iter().zip(&shared) {
        let alone = alone.decode(&target, piece)?;
        if shown(&alone) != shown(shared) {
            return Err("eight threads give another answer".into());
        }
    }
    if shared.len() == pieces.len() { Ok(()) } else { Err("a thread panicked".into()) }
}

fn shown(listing: &Listing) -> Vec<(u32, u8, &str)> {
    let instructions = listing.instructions().iter();
    instructions.map(|instruction| (instruction.offset, instruction.len, listing.text(instruction))).collect()
}

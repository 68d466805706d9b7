//! Runs the program under test: fixed environment, both streams read at once, a time limit.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a finished command left behind.
pub struct Outcome {
    /// The exit code; a signal counts as 128 and its number, as in a shell.
    pub exit: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Long enough for a loaded machine, short enough that a hang is found.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// What changes the behaviour of `coax` or of what it starts; a developer's own settings must not reach a test.
/// COAX_LLVM stays: it is how a machine with LLVM in an unusual place is tested.
const FOREIGN: [&str; 14] = [
    "CLICOLOR_FORCE",
    "COAX_CUDA",
    "COAX_DRIVER_TIMEOUT",
    "COAX_HIP",
    "CUDA_VISIBLE_DEVICES",
    "FLYDSL_DUMP_DIR",
    "FLYDSL_DUMP_IR",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "RUST_BACKTRACE",
    "TRITON_CACHE_DIR",
    "TRITON_DUMP_DIR",
];

/// `coax`, to be started in `directory` with the environment of a test. The environment variable COAX names another
/// build to test.
pub fn coax(directory: &Path) -> Result<Command, String> {
    let program = std::env::var("COAX").unwrap_or_else(|_| env!("CARGO_BIN_EXE_coax").into());
    let program = std::path::absolute(&program).map_err(|error| format!("{program}: {error}"))?;
    let mut command = Command::new(program);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.current_dir(directory).env("COLUMNS", "80").env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
    command.env("COAX_CACHE", "off"); // what an earlier test learnt must not reach a later one
    Ok(command)
}

/// Runs `coax` with `args` in `directory`.
pub fn run_coax(args: &[String], directory: &Path, env: &[(String, String)]) -> Result<Outcome, String> {
    let mut command = coax(directory)?;
    command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
    run(command)
}

/// Runs a prepared command to its end.
pub fn run(mut command: Command) -> Result<Outcome, String> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: {error}"))?;
    let stdout = read_in_background(child.stdout.take().expect("stdout is piped"));
    let stderr = read_in_background(child.stderr.take().expect("stderr is piped"));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > TIME_LIMIT {
            child.kill().map_err(|error| error.to_string())?;
            return Err(format!("{shown} did not end within {} s", TIME_LIMIT.as_secs()));
        }
        thread::sleep(Duration::from_millis(2));
    };
    Ok(Outcome {
        exit: exit_code(status),
        stdout: stdout.join().map_err(|_| "the reader of stdout failed")?,
        stderr: stderr.join().map_err(|_| "the reader of stderr failed")?,
    })
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe shows as missing output, which the comparison reports.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

//! Makes large inputs for coax and measures it from outside: what `scripts/bench` calls.
//!
//! It knows nothing of coax but its command line, so that the figures are those of a user.

mod dumps;
mod library;
mod measure;
mod objects;
mod reading;

use clap::{Parser, Subcommand};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes large inputs for coax and measures it from outside.
#[derive(Parser)]
struct Opts {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes a tree of final ISA dumps, a directory per kernel
    Dumps {
        /// Directory to fill
        folder: PathBuf,
        /// How many dumps
        #[arg(long, default_value_t = 2000)]
        count: usize,
        /// Instruction lines in each
        #[arg(long, default_value_t = 2000)]
        lines: usize,
        /// Gives every tenth kernel four VGPRs more
        #[arg(long)]
        worse: bool,
    },
    /// Fills a directory with copies of code objects
    Objects {
        /// Directory to fill
        folder: PathBuf,
        /// How many files
        #[arg(long, default_value_t = 2000)]
        count: usize,
        /// What to copy, in turn
        #[arg(required = true)]
        sources: Vec<PathBuf>,
    },
    /// Writes a shared library with one code object in each of many bundles
    Library {
        /// File to write
        file: PathBuf,
        /// How many bundles
        #[arg(long, default_value_t = 777)]
        count: usize,
        /// Size of the file
        #[arg(long, default_value_t = 1_300_000_000)]
        bytes: u64,
        /// Code objects, taken in turn
        #[arg(required = true)]
        sources: Vec<PathBuf>,
    },
    /// Reads all files below the directories and reports the speed
    Read {
        /// Threads that share the files
        #[arg(long, default_value_t = 2)]
        threads: usize,
        /// Directories or files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Runs a command several times and reports time, speed and peak memory
    Measure {
        /// Label of the printed line
        #[arg(long)]
        label: String,
        /// Runs; the median is reported
        #[arg(long, default_value_t = 5)]
        runs: usize,
        /// Inputs, for the speed in MB/s and files/s
        #[arg(long, value_delimiter = ',')]
        input: Vec<PathBuf>,
        /// The highest exit code that counts as a success
        #[arg(long, default_value_t = 0)]
        allow: i32,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Opts::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(task: Task) -> io::Result<()> {
    match task {
        Task::Dumps { folder, count, lines, worse } => dumps::write_tree(&folder, count, lines, worse),
        Task::Objects { folder, count, sources } => objects::copy_in_turn(&folder, count, &sources),
        Task::Library { file, count, bytes, sources } => library::write(&file, count, bytes, &sources),
        Task::Read { threads, paths } => reading::report(&paths, threads),
        Task::Measure { label, runs, input, allow, command } => measure::report(&label, runs, &input, allow, &command),
    }
}

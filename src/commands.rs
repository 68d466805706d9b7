//! The list of commands. To add one: a file here with its `Opts` (whose doc comment is the help) and its `run`, and a
//! line in each of the two lists below.

mod asm;
mod baseline;
mod capture;
mod cmp;
pub mod compare;
mod completions;
mod diff;
mod disasm;
mod doctor;
mod edited;
mod formats;
mod gate;
mod history;
mod inputs;
mod man;
mod occupancy;
mod patch;
mod report;
mod roundtrip;
mod show;
mod site;
mod summarize;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Coaxes speed out of AMD GPU code objects, and proves that nothing else changed.
#[derive(Parser)]
#[command(name = "coax", version, max_term_width = 100, infer_subcommands = false)]
#[command(
    after_help = "Exit codes: 0 yes, 1 no, 2 cannot say (bad input, unsupported, not trustworthy), 3 not available here."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Summarize(summarize::Opts),
    Diff(Box<diff::Opts>),
    Baseline(baseline::Opts),
    Occupancy(occupancy::Opts),
    Show(show::Opts),
    Capture(capture::Opts),
    Disasm(disasm::Opts),
    Asm(asm::Opts),
    Patch(patch::Opts),
    Cmp(cmp::Opts),
    Roundtrip(roundtrip::Opts),
    Compare(Box<compare::Opts>),
    History(history::Opts),
    Site(site::Opts),
    Doctor(doctor::Opts),
    Completions(completions::Opts),
    Man(man::Opts),
}

/// Reads argv and runs the command. A usage error exits with 2.
pub fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Summarize(opts) => opts.run(),
        Command::Diff(opts) => opts.run(),
        Command::Baseline(opts) => opts.run(),
        Command::Occupancy(opts) => opts.run(),
        Command::Show(opts) => opts.run(),
        Command::Capture(opts) => opts.run(),
        Command::Disasm(opts) => opts.run(),
        Command::Asm(opts) => opts.run(),
        Command::Patch(opts) => opts.run(),
        Command::Cmp(opts) => opts.run(),
        Command::Roundtrip(opts) => opts.run(),
        Command::Compare(opts) => opts.run(),
        Command::History(opts) => opts.run(),
        Command::Site(opts) => opts.run(),
        Command::Doctor(opts) => opts.run(),
        Command::Completions(opts) => opts.run(Cli::command()),
        Command::Man(opts) => opts.run(Cli::command()),
    }
}

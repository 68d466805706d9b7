//! `co_compare`: the original program's options and lines.
//!
//! ```text
//! co_compare REF.co TEST.co [--benchmark] [--warmup N] [--iters N] [--site NAME]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use compare::report::seed::{self, Word};
use compare::site::builtin::{BUILTIN, Builtin};

use super::owner::Ending;
use super::said::ended;
use super::worker::{Failed, SiteSource};
use super::{Images, Running};
use crate::output;

/// Compare two FP8 grouped GEMM kernels on the six sites of one layer, forward and backward
///
/// `[PASS]`: bit-identical in all rounds (exit 0). `[CLOSE]`: not, but cos >= 0.999 and the relative norm of the difference is
/// <= 1e-3, with signed inputs too; `[FAIL]`: neither (exit 1). Exit 2: nothing can be said; 3: no device here.
/// `coax compare` does the same for any kernel.
#[derive(Parser)]
#[command(name = "co_compare", version, max_term_width = 100)]
struct Opts {
    /// The one that is right by definition
    #[arg(value_name = "REF.co")]
    reference: PathBuf,
    /// The one that is judged
    #[arg(value_name = "TEST.co")]
    test: PathBuf,
    /// One site: gate_up_fwd, down_fwd, down_dgrad, gate_up_dgrad, gate_up_wgrad, down_wgrad [default: all whose kernel the
    /// images have]
    #[arg(long, value_name = "NAME", value_parser = BUILTIN.map(|site| site.name))]
    site: Option<String>,
    #[command(flatten)]
    running: Running,
}

/// Runs the program.
pub fn run() -> ExitCode {
    let opts = Opts::parse();
    let images = match Images::read([&opts.reference, &opts.test]) {
        Ok(images) => images,
        Err(why) => {
            output::list("error", &[why]);
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&Builtin> =
        BUILTIN.iter().filter(|site| opts.site.as_deref().is_none_or(|name| name == site.name)).collect();
    let (mut exit, mut has_head) = (0, false);
    let mut left_out = Vec::new();
    let sites = chosen.len();
    for builtin in chosen {
        let site = SiteSource::Builtin(builtin.name.to_owned());
        let ending = match opts.running.run(&images, site, "bits", false) {
            Ok(ending) => ending,
            Err(error) => {
                output::list("error", &[format!("the device's process: {error}")]);
                return ExitCode::from(2);
            }
        };
        if let (Ending::Failed(Failed::NoKernel(why)), None) = (&ending, &opts.site) {
            left_out.push(format!("{}: {why}", builtin.name));
            continue;
        }
        let own = match ended(ending) {
            Ok(report) => {
                let head = if has_head { String::new() } else { seed::head(&report) };
                has_head = true;
                if output::stdout(&(head + &seed::site(&report, builtin))).is_err() {
                    return ExitCode::from(2);
                }
                Word::of(&report).exit_code()
            }
            Err(end) => {
                output::list("error", &end.errors);
                // What is not available for one site is not for the others.
                if end.exit == 3 {
                    return ExitCode::from(3);
                }
                if output::stdout(&format!("{:<16} [{}]\n", builtin.name, end.verdict)).is_err() {
                    return ExitCode::from(2);
                }
                end.exit
            }
        };
        exit = exit.max(own);
    }
    // The images of one direction have no kernel of the other; images of neither are a mistake.
    if left_out.len() == sites {
        output::list("error", &left_out);
        return ExitCode::from(2);
    }
    output::list("note", &left_out);
    ExitCode::from(exit)
}

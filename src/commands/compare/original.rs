//! `co_compare`: the original program's options and lines.
//!
//! ```text
//! co_compare REF.co TEST.co [--benchmark] [--warmup N] [--iters N] [--site NAME]
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use compare::report::seed::{self, Word};
use compare::site::builtin::{BUILTIN, Builtin};
use resources::printable;

use super::owner::Ending;
use super::said::ended;
use super::worker::{Begun, Failed, SiteSource};
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
    /// One site: gate_up_fwd, down_fwd, down_dgrad, gate_up_dgrad, gate_up_wgrad, down_wgrad [default: all, but those
    /// whose kernel neither image has]
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
    let mut page = Page::default();
    for builtin in chosen {
        let site = SiteSource::Builtin(builtin.name.to_owned());
        let own = match opts.running.run(&images, site, Some("bits"), false, &mut |begun| page.begin(begun)) {
            Ok(ending) => page.take(builtin, ending, opts.site.is_none()),
            Err(error) => Err(page.fail(format!("the device's process: {error}"), 2)),
        };
        if let Err(exit) = own {
            return ExitCode::from(exit);
        }
    }
    page.end()
}

/// What was printed so far.
#[derive(Default)]
struct Page {
    exit: u8,
    has_head: bool,
    /// Whether anything is said of any site.
    has_site: bool,
    /// What several sites say alike is told once.
    errors: BTreeSet<String>,
    /// Why sites were left out, and which.
    left_out: Vec<(String, Vec<&'static str>)>,
}

impl Page {
    /// The head, as soon as it is known: a site takes minutes.
    fn begin(&mut self, Begun { device, compute_units, kernel }: &Begun) {
        if !self.has_head {
            self.has_head = true;
            // The next line that is printed tells of an output that is closed.
            let _ = print(&seed::head(&printable(device), *compute_units, &printable(kernel)));
        }
    }

    /// Prints how a site ended. The error is an exit code that ends the program.
    fn take(&mut self, builtin: &Builtin, ending: Ending, may_leave_out: bool) -> Result<(), u8> {
        // The images of one direction have no kernel of the other.
        if let (Ending::Failed(Failed::NoKernel(why)), true) = (&ending, may_leave_out) {
            match self.left_out.iter_mut().find(|(known, _)| known == why) {
                Some((_, sites)) => sites.push(builtin.name),
                None => self.left_out.push((why.clone(), vec![builtin.name])),
            }
            return Ok(());
        }
        self.has_site = true;
        match ended(ending) {
            Ok(report) => {
                self.exit = self.exit.max(Word::of(&report).exit_code());
                print(&seed::site(&report, builtin))
            }
            Err(end) => {
                for error in end.errors {
                    self.fail(error, end.exit);
                }
                // What is not available for one site is not for the others.
                if end.exit == 3 {
                    return Err(3);
                }
                print(&format!("{:<16} [{}]\n", builtin.name, end.verdict))
            }
        }
    }

    /// Tells an error, and returns its exit code.
    fn fail(&mut self, error: String, exit: u8) -> u8 {
        self.exit = self.exit.max(exit);
        if !self.errors.contains(&error) {
            output::list("error", std::slice::from_ref(&error));
            self.errors.insert(error);
        }
        exit
    }

    /// The end of the program. Images that have none of the kernels are a mistake.
    fn end(self) -> ExitCode {
        let why = self.left_out.iter().map(|(why, sites)| format!("{}: {why}", sites.join(", ")));
        let why: Vec<String> = why.collect();
        output::list(if self.has_site { "note" } else { "error" }, &why);
        ExitCode::from(if self.has_site { self.exit } else { 2 })
    }
}

fn print(text: &str) -> Result<(), u8> {
    output::stdout(text).map_err(|_| 2)
}

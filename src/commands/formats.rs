//! `--format FORMAT -o FILE`: what else a command writes of its findings; shared by the commands that judge.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches};
use resources::Verdict;
use resources::report::Format;

use super::report::{Fill, Output, Report};

/// The arguments as they are written.
#[derive(Args)]
struct Arguments {
    /// Write the findings in this format too, to the FILE of the -o behind it; may be given several times
    #[arg(long = "format", value_name = "FORMAT", value_parser = parser())]
    formats: Vec<Format>,
    /// Where the format in front of it goes; `github` alone goes to stdout without one
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn parser() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.map(|format| PossibleValue::new(format.name()).help(format.purpose()));
    PossibleValuesParser::new(values).try_map(|word| {
        Format::ALL.into_iter().find(|format| format.name() == word).ok_or("no such format") // clap allows only these
    })
}

/// Formats and where each goes; none is stdout.
#[derive(Debug, Default)]
pub struct Formats(Vec<(Format, Option<PathBuf>)>);

impl Formats {
    /// The files that are written.
    pub fn outputs(&self) -> impl Iterator<Item = Output<'_>> {
        self.0.iter().filter_map(|(format, file)| {
            Some(Output { flag: "-o", path: file.as_deref()?, extensions: format.extensions() })
        })
    }

    /// What goes to files.
    pub fn files<'r>(&self, findings: &'r resources::Report) -> Vec<(PathBuf, Fill<'r>)> {
        let file = |(format, file): &(Format, Option<PathBuf>)| {
            let format = *format;
            let fill: Fill<'r> = Box::new(move |out| format.write(findings, out));
            Some((file.clone()?, fill))
        };
        self.0.iter().filter_map(file).collect()
    }

    /// What goes to stdout, above the verdict.
    pub fn on_stdout(&self, findings: &resources::Report) -> String {
        let here = self.0.iter().any(|(_, file)| file.is_none());
        if here { resources::report::annotations(findings) } else { String::new() }
    }

    /// A run that had nothing to look at is told in every format: a pull request must not keep the comment of a better day.
    pub fn failure(&self, command: &'static str, errors: Vec<String>) -> Verdict {
        let findings = resources::Report::of_failure(command, errors.clone());
        let (body, files) = (self.on_stdout(&findings), self.files(&findings));
        Report { body, files, ..Report::error(errors) }.deliver()
    }
}

/// Each `-o` goes with the format in front of it; where there are as many of the one as of the other, in their order.
fn pair(arguments: Arguments, places: [Vec<usize>; 2]) -> Result<Formats, String> {
    let Arguments { formats, files } = arguments;
    let mut pairs: Vec<(Format, Option<PathBuf>)> = formats.into_iter().map(|format| (format, None)).collect();
    if pairs.len() == files.len() {
        pairs.iter_mut().zip(files).for_each(|(pair, file)| pair.1 = Some(file));
        return Ok(Formats(pairs));
    }
    let [of_formats, of_files] = places;
    for (file, place) in files.into_iter().zip(of_files) {
        let in_front = of_formats.iter().filter(|format| **format < place).count();
        match in_front.checked_sub(1).and_then(|at| pairs.get_mut(at)) {
            Some((_, free @ None)) => *free = Some(file),
            Some((format, Some(_))) => {
                return Err(format!("--format {} has two files: `-o {}` is too many", format.name(), file.display()));
            }
            None => return Err(format!("`-o {}` has no --format in front of it", file.display())),
        }
    }
    match pairs.iter().find(|(format, file)| *format != Format::Github && file.is_none()) {
        Some((format, _)) => {
            let (name, ending) = (format.name(), format.extensions()[0]);
            Err(format!(
                "--format {name} needs a file, since stdout ends with the verdict: --format {name} -o FILE.{ending}"
            ))
        }
        None => Ok(Formats(pairs)),
    }
}

impl FromArgMatches for Formats {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Formats, clap::Error> {
        let places = ["formats", "files"].map(|id| matches.indices_of(id).into_iter().flatten().collect());
        let arguments = Arguments::from_arg_matches(matches)?;
        pair(arguments, places).map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, why))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Formats::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Formats {
    fn augment_args(command: clap::Command) -> clap::Command {
        Arguments::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Arguments::augment_args_for_update(command)
    }
}

//! Runs the groups of a case and compares, or rewrites the expectations (`BLESS=1`).

use crate::case::{Body, Case, Section};
use crate::data::data_directory;
use crate::normalize::normalize;
use crate::process::run_coax;
use crate::words;
use crate::workdir::WorkDirectory;
use similar::TextDiff;
use std::fs;
use std::path::Path;

/// Runs the case; the error is what to show to the developer.
pub fn check(case: &Case) -> Result<(), String> {
    let actual = replay(case)?;
    if actual.sections == with_all_exits(case).sections {
        return Ok(());
    }
    let (expected, actual) = (with_all_exits(case).to_string(), actual.to_string());
    let diff = TextDiff::from_lines(&expected, &actual);
    Err(format!(
        "the output differs (- expected, + actual):\n{}\nBLESS=1 accepts the new output.",
        diff.unified_diff().context_radius(3)
    ))
}

/// The same case with the outputs that the program gives now.
pub fn replay(case: &Case) -> Result<Case, String> {
    let work = WorkDirectory::new()?;
    let data = data_directory();
    let expand = |text: &str| text.replace("%data", &data.to_string_lossy());
    let env: Vec<_> = case.env.iter().map(|(name, value)| (name.clone(), expand(value))).collect();
    let mut sections = Vec::new();
    for section in &case.sections {
        match section {
            Section::File { path, body } => write_input(&work.path.join(path), &body.bytes()?)?,
            Section::Setup(lines) => {
                for line in lines {
                    let words: Vec<_> = words::split(line)?.iter().map(|word| expand(word)).collect();
                    work.prepare(&words)?;
                }
            }
            Section::Run(lines) => {
                sections.push(section.clone());
                sections.extend(run_group(lines, &work, &env, &expand)?);
                continue;
            }
            Section::Stdout(_) | Section::Stderr(_) | Section::Exit(_) => continue,
        }
        sections.push(section.clone());
    }
    Ok(Case { sections, ..case.clone() })
}

fn write_input(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let parent = path.parent().expect("a file inside the directory has a parent");
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn run_group(
    lines: &[String],
    work: &WorkDirectory,
    env: &[(String, String)],
    expand: &dyn Fn(&str) -> String,
) -> Result<Vec<Section>, String> {
    for (index, line) in lines.iter().enumerate() {
        let args: Vec<_> = words::split(line)?.iter().map(|word| expand(word)).collect();
        let outcome = run_coax(&args, &work.path, env)?;
        let clean = |bytes: &[u8]| normalize(bytes, &work.path, &data_directory());
        let (stdout, stderr) = (clean(&outcome.stdout), clean(&outcome.stderr));
        if index + 1 == lines.len() {
            let mut sections = Vec::new();
            if !stdout.is_empty() {
                sections.push(Section::Stdout(Body::from_bytes(&stdout)));
            }
            if !stderr.is_empty() {
                sections.push(Section::Stderr(Body::from_bytes(&stderr)));
            }
            sections.push(Section::Exit(outcome.exit));
            return Ok(sections);
        }
        if outcome.exit != 0 {
            return Err(format!(
                "`coax {line}` must exit 0, because it is not the last of its group, but gave {}:\n{}{}",
                outcome.exit,
                String::from_utf8_lossy(&stdout),
                String::from_utf8_lossy(&stderr)
            ));
        }
    }
    Err("a `run` section without commands".into())
}

/// The case with `exit 0` written out and with its expectations in the order in which blessing writes them.
fn with_all_exits(case: &Case) -> Case {
    let mut sections: Vec<Section> = Vec::new();
    let mut expected: Option<[Option<Section>; 3]> = None;
    for section in &case.sections {
        let slot = match section {
            Section::Stdout(_) => 0,
            Section::Stderr(_) => 1,
            Section::Exit(_) => 2,
            _ => {
                close_group(&mut sections, expected.take());
                sections.push(section.clone());
                if matches!(section, Section::Run(_)) {
                    expected = Some([None, None, Some(Section::Exit(0))]);
                }
                continue;
            }
        };
        if let Some(slots) = &mut expected {
            slots[slot] = Some(section.clone());
        }
    }
    close_group(&mut sections, expected);
    Case { sections, ..case.clone() }
}

fn close_group(sections: &mut Vec<Section>, expected: Option<[Option<Section>; 3]>) {
    sections.extend(expected.into_iter().flatten().flatten());
}

//! Parses every code object in files and folders: prints what contradicts itself, then how fast it went.
//!
//! `cargo run --release -p codeobj --example survey -- FOLDER [--repeat N]`; one thread, files read beforehand.

use codeobj::{CodeObject, Detail, Metadata, container};
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let repeat = match arguments.iter().position(|a| a == "--repeat") {
        Some(at) if at + 1 < arguments.len() => arguments.drain(at..at + 2).nth(1).and_then(|n| n.parse().ok()),
        _ => None,
    };
    let mut files = Vec::new();
    arguments.iter().for_each(|argument| collect(Path::new(argument), &mut files));
    files.sort();
    let mut objects = Vec::new();
    let mut texts = Vec::new();
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if container::sniff(&bytes).is_some() {
            list(&path, &bytes, &mut objects);
        } else if let Some(text) = metadata_text(&bytes) {
            texts.push((path, text));
        }
    }
    for (path, text) in &texts {
        report(path, Metadata::from_yaml(text, Detail::Full).map(|m| m.problems));
    }
    measure("code objects", &objects, repeat.unwrap_or(1), |bytes| CodeObject::parse(bytes).is_ok());
    let texts: Vec<Vec<u8>> = texts.into_iter().map(|(_, text)| text.into_bytes()).collect();
    measure("metadata texts", &texts, repeat.unwrap_or(1), |bytes| {
        std::str::from_utf8(bytes).is_ok_and(|text| Metadata::from_yaml(text, Detail::Counts).is_ok())
    });
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) => files.push(path.to_path_buf()),
    }
}

fn list(path: &Path, bytes: &[u8], objects: &mut Vec<Vec<u8>>) {
    let contents = match container::open(bytes) {
        Ok(contents) => contents,
        Err(error) => return println!("{}: {error}", path.display()),
    };
    report(path, Ok(contents.problems.iter().map(|problem| problem.to_string()).collect()));
    for entry in contents.entries {
        match entry.load() {
            Err(error) => println!("{}: {error}", path.display()),
            Ok(loaded) => {
                report(path, Ok(loaded.problems.iter().map(|problem| problem.to_string()).collect()));
                for member in loaded.entries {
                    let place = path.join(&member.path);
                    report(&place, Ok(member.problems));
                    report(&place, CodeObject::parse(&member.bytes).map(all_problems));
                    objects.push(member.bytes.into_owned());
                }
            }
        }
    }
}

fn all_problems(object: CodeObject) -> Vec<String> {
    let of_kernels = object.kernels.into_iter().flat_map(|kernel| {
        let name = kernel.name;
        let problems = kernel.problems.into_iter().chain(kernel.metadata.problems);
        problems.map(move |problem| format!("{name}: {problem}")).collect::<Vec<_>>()
    });
    object.problems.into_iter().chain(of_kernels).collect()
}

fn report(path: &Path, problems: Result<Vec<String>, codeobj::Error>) {
    match problems {
        Ok(problems) => problems.iter().for_each(|problem| println!("{}: {problem}", path.display())),
        Err(error) => println!("{}: error: {error}", path.display()),
    }
}

fn metadata_text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("\t.amdgpu_metadata")?;
    let (metadata, _) = rest.split_once("\t.end_amdgpu_metadata")?;
    Some(metadata.split_once('\n')?.1.to_string())
}

fn measure(what: &str, inputs: &[Vec<u8>], repeat: usize, parse: impl Fn(&[u8]) -> bool) {
    let start = Instant::now();
    let read = (0..repeat).flat_map(|_| inputs).filter(|bytes| parse(bytes)).count();
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = (inputs.iter().map(Vec::len).sum::<usize>() * repeat) as f64 / 1e6;
    println!("{what}: {read} in {seconds:.3} s, {:.0}/s, {:.0} MB/s", read as f64 / seconds, megabytes / seconds);
}

//! Following containers into each other, down to code objects and compressed bundles.

use super::{
    Contents, DEPTH_LIMIT, Entry, Kind, STEP, Skipped, archive, bundle, describe, host, is_bitcode, package, sniff,
};
use crate::error::{Error, Place, Result};
use crate::target::TargetId;
use std::collections::HashMap;

/// Lists a whole file.
pub(super) fn walk(bytes: &[u8]) -> Result<Contents<Entry<'_>>> {
    let mut walk = Walk { contents: Contents::default() };
    walk.visit(bytes, &Step { path: String::new(), depth: 0 }, None)?;
    Ok(walk.contents)
}

/// Lists what a compressed bundle turned out to hold.
pub(super) fn walk_inside<'b>(bytes: &'b [u8], around: &Entry<'_>) -> Result<Contents<Entry<'b>>> {
    let step = Step { path: around.path.clone(), depth: around.depth + 1 };
    if sniff(bytes) != Some(Kind::Bundle) {
        let message = format!("a compressed bundle holds {}, expected an offload bundle", describe(bytes));
        return Err(Error::malformed(0, message).within(&step.path));
    }
    let mut walk = Walk { contents: Contents::default() };
    walk.visit(bytes, &step, around.declared_target.clone())?;
    Ok(walk.contents)
}

struct Walk<'a> {
    contents: Contents<Entry<'a>>,
}

/// Where the walk is.
struct Step {
    path: String,
    depth: usize,
}

impl Step {
    fn down(&self, name: &str) -> Step {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}{STEP}{name}", self.path) };
        Step { path, depth: self.depth + 1 }
    }
}

/// Numbers names that occur again: `gfx942`, `gfx942#2`.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn unique(&mut self, name: &str) -> String {
        let seen = self.0.entry(name.to_string()).or_insert(0);
        *seen += 1;
        if *seen == 1 { name.to_string() } else { format!("{name}#{seen}") }
    }
}

impl<'a> Walk<'a> {
    /// Lists `bytes`, whatever they are.
    fn visit(&mut self, bytes: &'a [u8], at: &Step, declared: Option<TargetId>) -> Result<()> {
        if at.depth > DEPTH_LIMIT {
            let message = format!("containers are nested more than {DEPTH_LIMIT} deep");
            return Err(Error::limit(Place::Whole, message).within(&at.path));
        }
        let visited = match sniff(bytes) {
            Some(Kind::CodeObject) => {
                self.push(Kind::CodeObject, bytes, at, declared);
                Ok(())
            }
            Some(Kind::Bundle | Kind::CompressedBundle) => self.bundles(bytes, at, "bundle", declared),
            Some(Kind::HostElf) => self.host(bytes, at),
            Some(Kind::Archive) => self.archive(bytes, at),
            Some(Kind::OffloadPackage) => self.packages(bytes, at, "image"),
            None => {
                // What a container states to be for an AMD GPU is code that a loader would want.
                if declared.is_some() && !is_bitcode(bytes) {
                    let size = bytes.len();
                    self.problem(at, format!("holds no code object: its {size} bytes are {}", describe(bytes)));
                } else {
                    self.skip(at, describe(bytes));
                }
                Ok(())
            }
        };
        visited.map_err(|error| if error.message.starts_with('`') { error } else { error.within(&at.path) })
    }

    fn push(&mut self, kind: Kind, bytes: &'a [u8], at: &Step, declared_target: Option<TargetId>) {
        self.contents.entries.push(Entry { path: at.path.clone(), kind, bytes, declared_target, depth: at.depth });
    }

    fn skip(&mut self, at: &Step, reason: &str) {
        self.contents.skipped.push(Skipped { path: at.path.clone(), reason: reason.to_string() });
    }

    fn problem(&mut self, at: &Step, problem: String) {
        let whose = if at.path.is_empty() { String::new() } else { format!("`{}`: ", at.path) };
        self.contents.problems.push(whose + &problem);
    }

    /// One or several bundles back to back. A single one in a file of its own gets no step.
    fn bundles(&mut self, bytes: &'a [u8], at: &Step, group: &str, declared: Option<TargetId>) -> Result<()> {
        let (parts, problems) = bundle::split(bytes)?;
        for problem in problems {
            self.problem(at, problem);
        }
        let alone = parts.len() == 1 && group == "bundle";
        for (index, part) in parts.into_iter().enumerate() {
            let numbered = at.down(&format!("{group}[{index}]"));
            let here = if alone { at } else { &numbered };
            match part {
                bundle::Part::Compressed(bytes) => self.push(Kind::CompressedBundle, bytes, here, declared.clone()),
                bundle::Part::Plain(entries) => self.bundle(entries, here)?,
            }
        }
        Ok(())
    }

    fn bundle(&mut self, entries: Vec<bundle::BundleEntry<'a>>, at: &Step) -> Result<()> {
        let mut names = Names::default();
        for entry in entries {
            if entry.is_host() {
                self.skip(&at.down(&names.unique(entry.id)), "host code");
                continue;
            }
            let target = match entry.target() {
                Ok(Some(target)) => target,
                Ok(None) => {
                    self.skip(&at.down(&names.unique(entry.id)), "not for an AMD GPU");
                    continue;
                }
                Err(error) => {
                    self.problem(at, format!("bundle entry: {}", error.message));
                    self.visit(entry.bytes, &at.down(&names.unique(entry.id)), None)?;
                    continue;
                }
            };
            let here = at.down(&names.unique(&target.short()));
            self.visit(entry.bytes, &here, Some(target))?;
        }
        Ok(())
    }

    fn host(&mut self, bytes: &'a [u8], at: &Step) -> Result<()> {
        let sections = host::device_sections(bytes)?;
        if sections.is_empty() {
            if at.path.is_empty() {
                let message = "this ELF file is for another machine and holds no device code: it has neither .hip_fatbin \
                               nor .llvm.offloading";
                return Err(Error::wrong_format(message));
            }
            self.skip(at, "host code without device code");
        }
        for (section, bytes) in sections {
            match section {
                host::DeviceSection::HipFatbin => self.bundles(bytes, at, "hip_fatbin", None)?,
                host::DeviceSection::Offloading => self.packages(bytes, at, "offloading")?,
            }
        }
        Ok(())
    }

    fn archive(&mut self, bytes: &'a [u8], at: &Step) -> Result<()> {
        let mut names = Names::default();
        for (name, bytes) in archive::members(bytes)? {
            self.visit(bytes, &at.down(&names.unique(&name)), None)?;
        }
        Ok(())
    }

    fn packages(&mut self, bytes: &'a [u8], at: &Step, group: &str) -> Result<()> {
        let (images, problems) = package::split(bytes)?;
        for problem in problems {
            self.problem(at, problem);
        }
        for (index, image) in images.into_iter().enumerate() {
            let numbered = at.down(&format!("{group}[{index}]"));
            match image.target() {
                Ok(Some(target)) if image.may_be_object() => {
                    let here = Step { depth: numbered.depth, ..numbered.down(&target.short()) };
                    self.visit(image.bytes, &here, Some(target))?;
                }
                Ok(Some(_)) => self.skip(&numbered, image.kind_name()),
                Ok(None) => self.skip(&numbered, "not for an AMD GPU"),
                Err(error) => {
                    self.problem(&numbered, error.message);
                    self.visit(image.bytes, &numbered, None)?;
                }
            }
        }
        Ok(())
    }
}

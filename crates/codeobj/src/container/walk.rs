//! Following containers into each other, down to code objects and compressed bundles.

use super::{
    Contents, DEPTH_LIMIT, Entry, Kind, Problem, STEP, Skipped, archive, bundle, describe, foreign, host, is_bitcode,
    package, sniff,
};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::target::TargetId;
use std::collections::HashMap;

/// Reason to skip what is for another architecture.
const NOT_AMD: &str = "not for an AMD GPU";

/// Lists a whole file.
pub(super) fn walk(bytes: &[u8]) -> Result<Contents<Entry<'_>>> {
    let mut walk = Walk { contents: Contents::default() };
    walk.list(bytes, &Step { path: String::new(), depth: 0 }, None)?;
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
    let listed = walk.list(bytes, &step, around.declared_target.clone());
    listed.map_err(|error| if error.kind == ErrorKind::Limit { error } else { error.within(&step.path) })?;
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
    /// Lists a part of a container. What is wrong with it is said of it alone, so that the parts beside it show.
    fn visit(&mut self, bytes: &'a [u8], at: &Step, declared: Option<TargetId>) -> Result<()> {
        let may_be_foreign = declared.is_none();
        match self.list(bytes, at, declared) {
            Err(error) if error.kind == ErrorKind::Limit => return Err(error),
            Err(error) if error.kind == ErrorKind::WrongFormat && may_be_foreign => self.skip(at, &error.message),
            Err(error) => self.problem(at, error.to_string()),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Lists `bytes`, whatever they are. Errors speak of these bytes and name no path, but for limits.
    fn list(&mut self, bytes: &'a [u8], at: &Step, declared: Option<TargetId>) -> Result<()> {
        if at.depth > DEPTH_LIMIT {
            let message = format!("containers are nested more than {DEPTH_LIMIT} deep");
            return Err(Error::limit(Place::Whole, message).within(&at.path));
        }
        match sniff(bytes) {
            Some(Kind::CodeObject) => {
                self.push(Kind::CodeObject, bytes, at, declared);
                Ok(())
            }
            Some(Kind::Bundle | Kind::CompressedBundle) => self.bundles(bytes, at, "bundle", declared),
            Some(Kind::HostElf) => self.host(bytes, at, declared.is_some()),
            Some(Kind::Archive) => self.archive(bytes, at),
            Some(Kind::OffloadPackage) => self.packages(bytes, at, "image"),
            None => {
                // What a container states to be for an AMD GPU is code that a loader would want.
                if declared.is_some() && !is_bitcode(bytes) {
                    self.problem(at, format!("holds no code object: {}", content(bytes)));
                } else {
                    self.skip(at, describe(bytes));
                }
                Ok(())
            }
        }
    }

    /// A part that by its `name` (`the ID`) is for no AMD GPU. Its bytes have the last word.
    fn foreign(&mut self, bytes: &'a [u8], at: &Step, name: &str, reason: Option<&str>) -> Result<()> {
        match (sniff(bytes), reason) {
            (Some(Kind::CodeObject), _) => {
                self.problem(at, format!("{name} names no AMD GPU, but {}", content(bytes)));
                self.visit(bytes, at, None)?;
            }
            (Some(_), _) => self.visit(bytes, at, None)?,
            (None, Some(reason)) => self.skip(at, reason),
            (None, None) if bytes.is_empty() || is_bitcode(bytes) => self.skip(at, describe(bytes)),
            (None, None) => {
                let content = content(bytes);
                self.problem(at, format!("{name} names no architecture that is known here, and {content}"));
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, bytes: &'a [u8], at: &Step, declared_target: Option<TargetId>) {
        self.contents.entries.push(Entry { path: at.path.clone(), kind, bytes, declared_target, depth: at.depth });
    }

    fn skip(&mut self, at: &Step, reason: &str) {
        self.contents.skipped.push(Skipped { path: at.path.clone(), reason: reason.to_string() });
    }

    fn problem(&mut self, at: &Step, message: String) {
        self.contents.problems.push(Problem { path: at.path.clone(), message });
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
            match entry.target() {
                Ok(Some(target)) => {
                    let here = at.down(&names.unique(&target.short()));
                    self.visit(entry.bytes, &here, Some(target))?;
                }
                Ok(None) => {
                    let here = at.down(&names.unique(entry.id));
                    let reason = if entry.is_host() { "host code" } else { NOT_AMD };
                    let reason = entry.is_known_foreign().then_some(reason);
                    self.foreign(entry.bytes, &here, "the ID", reason)?;
                }
                Err(error) => {
                    let here = at.down(&names.unique(entry.id));
                    self.problem(&here, error.message);
                    self.visit(entry.bytes, &here, None)?;
                }
            }
        }
        Ok(())
    }

    fn host(&mut self, bytes: &'a [u8], at: &Step, is_for_amdgpu: bool) -> Result<()> {
        let sections = host::device_sections(bytes)?;
        if sections.is_empty() {
            if is_for_amdgpu {
                self.problem(at, format!("holds no code object: {}", content(bytes)));
                return Ok(());
            }
            if at.depth == 0 {
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
            let here = at.down(&names.unique(&name));
            if is_named_like_an_object(&name) && sniff(bytes).is_none() && !is_bitcode(bytes) {
                self.problem(&here, format!("named like an object, but {}", content(bytes)));
            } else {
                self.visit(bytes, &here, None)?;
            }
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
                Ok(Some(target)) => {
                    let here = Step { depth: numbered.depth, ..numbered.down(&target.short()) };
                    if !image.may_be_object() && sniff(image.bytes) == Some(Kind::CodeObject) {
                        let stated = image.kind_name();
                        self.problem(&here, format!("stated to be {stated}, but {}", content(image.bytes)));
                    }
                    self.visit(image.bytes, &here, Some(target))?;
                }
                Ok(None) => {
                    let reason = foreign::is_known(image.triple).then_some(NOT_AMD);
                    self.foreign(image.bytes, &numbered, &format!("triple `{}`", image.triple), reason)?;
                }
                Err(error) => {
                    self.problem(&numbered, error.message);
                    self.visit(image.bytes, &numbered, None)?;
                }
            }
        }
        Ok(())
    }
}

/// What a part holds, for the end of a sentence about it.
fn content(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        "it is empty".to_string()
    } else {
        format!("its {} bytes are {}", bytes.len(), describe(bytes))
    }
}

fn is_named_like_an_object(member: &str) -> bool {
    let extension = member.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| ["o", "obj", "co", "hsaco"].contains(&&*extension))
}

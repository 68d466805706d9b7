//! A small real file of each format, in a folder of its own where it can be damaged, and what coax answers to it.

use crate::process;
use resources::binary::Instructions;
use resources::collect::{self, Options};
use resources::{Metric, Record, Verdict};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One file that gets damaged.
pub struct Sample {
    /// The format.
    pub name: &'static str,
    /// The whole bytes.
    pub bytes: Vec<u8>,
    /// What `summarize` is given: the file, or the tree that it lies in.
    pub input: PathBuf,
    /// The file.
    pub path: PathBuf,
    _work: tempfile::TempDir,
}

/// Column and figure as a table shows it, by kernel.
pub type Figures = BTreeMap<String, Vec<(Metric, String)>>;

/// What coax says about a damaged sample.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// An error, or NOT TRUSTWORTHY.
    Refused,
    /// RESULT: OK, with these figures.
    Ok(Figures),
}

impl Answer {
    /// The figures whose increase is a regression; none when refused.
    pub fn triggers(&self) -> Option<Figures> {
        let Answer::Ok(kernels) = self else { return None };
        let triggers =
            |figures: &Vec<(Metric, String)>| figures.iter().filter(|(m, _)| m.is_trigger()).cloned().collect();
        Some(kernels.iter().map(|(key, figures)| (key.clone(), triggers(figures))).collect())
    }

    /// What is other in `damaged`, for people.
    pub fn difference(&self, damaged: &Answer) -> String {
        let (Answer::Ok(whole), Answer::Ok(damaged)) = (self, damaged) else { return "refused".into() };
        let lost = whole.keys().filter(|key| !damaged.contains_key(*key)).map(|key| format!("{key} is lost"));
        let new = damaged.keys().filter(|key| !whole.contains_key(*key)).map(|key| format!("{key} is new"));
        let moved =
            damaged.iter().filter_map(|(key, now)| Some((key, whole.get(key)?, now))).flat_map(|(key, was, now)| {
                let moved = was.iter().zip(now).filter(|(was, now)| was != now);
                moved.map(move |(was, now)| format!("{key}: {}: {} is now {}", was.0.name(), was.1, now.1))
            });
        lost.chain(new).chain(moved).collect::<Vec<_>>().join(", ")
    }
}

impl Sample {
    /// A copy of `tests/data/<from>`; `tree` is its path below the input, or empty when it is the input.
    fn copied(name: &'static str, from: &str, tree: &str) -> Sample {
        let bytes = fs::read(data(from)).unwrap_or_else(|error| panic!("{from}: {error}"));
        let name_alone = Path::new(from).file_name().expect("a file");
        let place: &Path = if tree.is_empty() { name_alone.as_ref() } else { tree.as_ref() };
        Sample::made(name, bytes, place, !tree.is_empty())
    }

    fn made(name: &'static str, bytes: Vec<u8>, place: &Path, is_tree: bool) -> Sample {
        let work = tempfile::tempdir().expect("a temporary folder");
        let path = work.path().join(place);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, &bytes).expect("the sample is written");
        let input = if is_tree { work.path().to_owned() } else { path.clone() };
        Sample { name, bytes, input, path, _work: work }
    }

    /// Adds a file beside the damaged one.
    fn beside(self, from: &str) -> Sample {
        let from = data(from);
        fs::copy(&from, self.path.with_file_name(from.file_name().expect("a file"))).expect("a file beside");
        self
    }

    /// What coax says about the file as it is now.
    pub fn answer(&self) -> Answer {
        let options = Options { instructions: Instructions::NotWanted, progress: &|_, _| {} };
        match collect::snapshot(&self.input, options) {
            Ok(snapshot) if snapshot.verdict() == Verdict::Ok => {
                let figures =
                    |record: &Record| record.cells.iter().map(|(m, cell)| (m, cell.show().to_string())).collect();
                Answer::Ok(snapshot.kernels.iter().map(|(key, record)| (key.to_string(), figures(record))).collect())
            }
            _ => Answer::Refused,
        }
    }

    /// The answer with other bytes in the file.
    pub fn answer_to(&self, bytes: &[u8]) -> Answer {
        fs::write(&self.path, bytes).expect("the sample is written");
        self.answer()
    }

    /// The answer with one byte changed; the file is whole afterwards.
    pub fn answer_with_byte(&self, at: usize, value: u8) -> Answer {
        let file = File::options().write(true).open(&self.path).expect("the sample opens");
        file.write_all_at(&[value], at as u64).expect("the sample is written");
        let answer = self.answer();
        file.write_all_at(&[self.bytes[at]], at as u64).expect("the sample is written");
        answer
    }

    /// Lengths below the whole one at which the answer is OK, from long to short.
    pub fn lengths_that_are_ok(&self) -> Vec<(usize, Answer)> {
        let file = File::options().write(true).open(&self.path).expect("the sample opens");
        let mut found = Vec::new();
        for length in (0..self.bytes.len()).rev() {
            file.set_len(length as u64).expect("the sample is cut");
            match self.answer() {
                Answer::Refused => {}
                ok => found.push((length, ok)),
            }
        }
        found
    }
}

const LDS: &str = "flydsl/lds/before/softmax_kernel_0/22_final_isa.s";
const SMALL: &str = "clang/extra/small.gfx90a_xnack+";

/// Texts, whose lines can be damaged.
pub fn texts() -> Vec<Sample> {
    let triton =
        |file: &str| format!("triton-cache/before/ANMKYHFO6VLMK3RTUTXH6ZGR666QLERAFCNQWP7M4DNXBG75XQOQ/{file}");
    vec![
        Sample::copied("dump", LDS, "softmax_kernel_0/22_final_isa.s"),
        Sample::copied("assembly", &format!("{SMALL}.s"), ""),
        Sample::copied("triton entry", &triton("row_norm.amdgcn"), "hash/row_norm.amdgcn")
            .beside(&triton("row_norm.json"))
            .beside(&triton("row_norm.source")),
    ]
}

/// Code objects and what they travel in.
pub fn binaries() -> Vec<Sample> {
    let archive =
        archive(&[("small.co", &format!("{SMALL}.co")), ("topk.co", "code-objects/topksoftmax_4x128x4.gfx942.co")]);
    vec![
        Sample::copied("linked code object", &format!("{SMALL}.co"), ""),
        Sample::copied("hand-written code object", "code-objects/topksoftmax_4x128x4.gfx942.co", ""),
        Sample::copied("relocatable object", "clang/gfx942/ind.o", ""),
        Sample::copied("bundle", "fatbin/multi_plain.hipfb", ""),
        Sample::copied("compressed bundle, version 2", "fatbin/single_ccob_v2.hipfb", ""),
        Sample::copied("compressed bundle, version 3", "fatbin/single_ccob_v3.hipfb", ""),
        Sample::copied("host library", "fatbin/host_fatbin.so", ""),
        Sample::copied("offload package", "fatbin/offload_packager.bin", ""),
        Sample::made("archive", archive, "kernels.a".as_ref(), false),
    ]
}

/// A snapshot, a report that is no snapshot, and the metadata file of Triton.
pub fn json() -> Vec<Sample> {
    let work = tempfile::tempdir().expect("a temporary folder");
    let written = |command: &str, sides: &[&str]| {
        let inputs = sides.iter().map(|side| data(&format!("flydsl/lds/{side}")).display().to_string());
        let mut arguments = [command, "-q", "--json", "out.json"].map(str::to_owned).to_vec();
        arguments.extend(inputs);
        process::run_coax(&arguments, work.path(), &[]).expect("coax runs");
        fs::read(work.path().join("out.json")).expect("coax writes the file")
    };
    let triton =
        |file: &str| format!("triton-cache/before/4A5ARKLUF3DAWT2W3OR5T5UFWY4PCKXI26HB5B4WFDQ3MD2B6BSA/{file}");
    vec![
        Sample::made("snapshot", written("summarize", &["before"]), "snapshot.json".as_ref(), false),
        Sample::made("report", written("diff", &["before", "after"]), "report.json".as_ref(), false),
        Sample::copied("triton metadata", &triton("tile_matmul.json"), "hash/tile_matmul.json")
            .beside(&triton("tile_matmul.amdgcn"))
            .beside(&triton("tile_matmul.source")),
    ]
}

/// An archive as `ar` writes it, without a symbol table.
fn archive(members: &[(&str, &str)]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, from) in members {
        let bytes = fs::read(data(from)).unwrap_or_else(|error| panic!("{from}: {error}"));
        assert!(bytes.len().is_multiple_of(2), "{from}: needs a padding byte");
        out.extend(
            format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, bytes.len()).bytes(),
        );
        out.extend(bytes);
    }
    out
}

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

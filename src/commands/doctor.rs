//! `coax doctor`: what coax finds on this machine, and what it cannot do without the rest.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use llvm::{Decoder, Linker, Target};

use super::compare::owner;
use super::edited;
use crate::toolchain::Llvm;

/// Say what is installed, and what its absence disables
///
/// Looks for LLVM, ld.lld, ROCm, and devices of HIP and CUDA. Exit code: 0 when every command that needs no GPU works, 3 when not.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax doctor
  coax doctor --llvm /opt/rocm/llvm")]
pub struct Opts {
    #[command(flatten)]
    llvm: Llvm,
}

/// Processors that hand-written kernels exist for; an LLVM need not know all of them.
const PROCESSORS: [&str; 4] = ["gfx90a", "gfx942", "gfx950", "gfx1250"];
/// Where the driver lists its devices.
const KFD_NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// Where ROCm is, when `$ROCM_PATH` does not say so.
const ROCM: &str = "/opt/rocm";

#[derive(Default)]
struct Page {
    text: String,
    missing: Vec<String>,
}

impl Page {
    fn found(&mut self, what: &str, description: &str) {
        let _ = writeln!(self.text, "{what:<9} {description}");
    }

    /// `disables` is what does not work; `remedy` is what to do.
    fn missing(&mut self, what: &str, disables: &str, remedy: &str) {
        let _ = writeln!(self.text, "{what:<9} not found: disables {disables}\n{:<9} {remedy}", "");
        self.missing.push(what.to_owned());
    }
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        edited::guarded(|| {
            let mut page = Page::default();
            self.llvm(&mut page);
            let path = self.llvm.path();
            match llvm::linker(path.as_deref()) {
                Some(Linker::Lld(linker)) => page.found("ld.lld", &linker.display().to_string()),
                Some(Linker::Comgr(comgr)) => page.found("ld.lld", &format!("none needed: {comgr} links")),
                None => page.missing("ld.lld", "asm", "install it (Debian, Ubuntu: apt install lld-22)"),
            }
            // It adds nothing that the others cannot do, so that its absence is no gap.
            if let Some(comgr) = llvm::comgr(path.as_deref()) {
                page.found("COMGR", &comgr);
            }
            cache(&mut page);
            let without_gpu = page.missing.is_empty();
            rocm(&mut page);
            gpu(&mut page);
            let verdict = match (without_gpu, page.missing.is_empty()) {
                (true, true) => "everything works",
                (true, false) => "everything works that needs no GPU",
                (false, _) => "some commands do not work here",
            };
            edited::finish(&format!("{}{verdict}\n", page.text), if without_gpu { 0 } else { 3 })
        })
    }

    fn llvm(&self, page: &mut Page) {
        let toolchain = match self.llvm.open() {
            Ok(toolchain) => toolchain,
            Err(error) => {
                let disables = "disasm, asm, patch, roundtrip, cmp of code, instruction counts of summarize and diff";
                let remedy = error.to_string().lines().last().unwrap_or_default().to_owned();
                return page.missing("LLVM", disables, &remedy);
            }
        };
        page.found("LLVM", &toolchain.describe());
        let (known, unknown): (Vec<&str>, Vec<&str>) =
            PROCESSORS.iter().partition(|name| toolchain.describe_for(&Target::new(name)).is_ok());
        page.found("", &format!("knows {}", known.join(", ")));
        if !unknown.is_empty() {
            page.found("", &format!("does not know {}: a newer LLVM does", unknown.join(", ")));
        }
    }
}

/// What is kept of LLVM's answers.
fn cache(page: &mut Page) {
    let Some(folder) = llvm::cache_folder() else {
        return page.found("cache", "off: every run asks LLVM anew ($COAX_CACHE)");
    };
    let (files, bytes) = llvm::cache_size(&folder);
    let size = bytes as f64 / f64::from(1 << 20);
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    page.found("cache", &format!("{} ({files}, {size:.1} MiB)", folder.display()));
}

/// Where the rest of ROCm is; nothing of coax needs it by itself.
fn rocm(page: &mut Page) {
    let root = std::env::var_os("ROCM_PATH").filter(|path| !path.is_empty()).map_or(ROCM.into(), PathBuf::from);
    if root.is_dir() {
        let version = fs::read_to_string(root.join(".info/version")).unwrap_or_default();
        let version = if version.trim().is_empty() { "unknown version" } else { version.trim() };
        page.found("ROCm", &format!("{version} ({})", root.display()));
    } else {
        page.found("ROCm", &format!("none in {}; nothing by itself needs it", root.display()));
    }
}

/// What `compare` needs: a driver with a device, HIP's or CUDA's.
fn gpu(page: &mut Page) {
    let mut are_there = false;
    for (name, kind) in [("HIP", "hip"), ("CUDA", "cuda")] {
        match owner::devices(kind) {
            Ok(devices) => {
                are_there = true;
                page.found(name, devices.first().map_or("", |device| &device.driver));
                devices.iter().for_each(|device| page.found(&device.id, &resources::printable(&device.description)));
            }
            Err(why) => page.found(name, &format!("none: {}", resources::printable(&why))),
        }
    }
    for processor in processors() {
        page.found("amdgpu", &format!("the kernel driver has {processor}"));
    }
    if !are_there {
        page.missing("GPU", "compare", "it needs a device of HIP or CUDA");
    }
}

/// What the kernel's driver lists; HIP may see fewer.
fn processors() -> Vec<String> {
    let entries = Path::new(KFD_NODES).read_dir().into_iter().flatten().flatten();
    let mut nodes: Vec<PathBuf> = entries.map(|entry| entry.path().join("properties")).collect();
    nodes.sort();
    nodes.iter().filter_map(|node| processor(&fs::read_to_string(node).ok()?)).collect()
}

/// The processor in a node's properties: `gfx_target_version 90402` is gfx942; a CPU has 0.
fn processor(properties: &str) -> Option<String> {
    let line = properties.lines().find_map(|line| line.strip_prefix("gfx_target_version "))?;
    let version: u32 = line.trim().parse().ok()?;
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    (version != 0).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

#[cfg(test)]
mod tests {
    use super::processor;

    #[test]
    fn a_processor_is_read_off_the_driver() {
        assert_eq!(processor("simd_count 304\ngfx_target_version 90402\n").as_deref(), Some("gfx942"));
        assert_eq!(processor("gfx_target_version 120500").as_deref(), Some("gfx1250"));
        assert_eq!(processor("gfx_target_version 90010").as_deref(), Some("gfx90a"));
        assert_eq!(processor("gfx_target_version 0"), None);
    }
}

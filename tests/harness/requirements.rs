//! What a case may need from the machine, how that is found out, and when a lack of it is a failure.

use std::path::Path;
use std::process::{Command, Stdio};

/// Debian 12's.
const COMGR: &str = "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0";

/// Debian 12's.
const HIP: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

/// Why `name` is not met here; none if it is met.
pub fn missing(name: &str) -> Result<Option<String>, String> {
    let reason = |met: bool, reason: &str| Ok((!met).then(|| reason.to_owned()));
    match name {
        "llvm" => reason(has_llvm(), "no shared library of LLVM 22 or later (Debian: libllvm22)"),
        "llvm-tools" => reason(starts("llvm-readobj-22"), "no llvm-readobj-22 (Debian: llvm-22)"),
        "lld" => reason(starts("ld.lld-22") || starts("ld.lld"), "no ld.lld (Debian: lld-22)"),
        "comgr" => reason(Path::new(COMGR).exists(), "no COMGR 2.4 (Debian 12: libamd-comgr2)"),
        "hip-without-device" if Path::new("/dev/kfd").exists() => reason(false, "there is an AMD GPU"),
        "hip-without-device" => reason(Path::new(HIP).exists(), "no HIP runtime 5 (Debian 12: libamdhip64-5)"),
        "nvidia" => reason(has_nvidia(), "no NVIDIA GPU"),
        "no-nvidia" => reason(!has_nvidia(), "there is an NVIDIA GPU"),
        "flock" => reason(starts("flock"), "no flock (Debian: util-linux)"),
        "git" => reason(starts("git"), "no git"),
        "linux" => reason(cfg!(target_os = "linux"), "not Linux"),
        "not-root" => reason(!is_root(), "root may read and write everything"),
        _ => Err(format!(
            "unknown need `{name}`; known: llvm, llvm-tools, lld, comgr, hip-without-device, nvidia, no-nvidia, \
             flock, git, linux, not-root"
        )),
    }
}

/// Whether REQUIRE, a list with commas, says that a lack of `name` is a failure and not a skip.
pub fn is_required(name: &str) -> bool {
    std::env::var("REQUIRE").is_ok_and(|list| list.split(',').any(|entry| entry.trim() == name))
}

/// Looks where the program under test looks too: COAX_LLVM, else the usual places of a distribution and of ROCm.
fn has_llvm() -> bool {
    if let Some(path) = std::env::var_os("COAX_LLVM") {
        return Path::new(&path).exists();
    }
    let newest = 22..=40;
    let in_folder = |folder: &str| newest.clone().any(|major| holds_llvm(Path::new(folder), major));
    let own_folder = |major: u32| holds_llvm(Path::new(&format!("/usr/lib/llvm-{major}/lib")), major);
    newest.clone().any(own_folder)
        || [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/opt/rocm/lib/llvm/lib",
        ]
        .into_iter()
        .any(in_folder)
}

fn holds_llvm(folder: &Path, major: u32) -> bool {
    let names = [format!("libLLVM-{major}.so"), format!("libLLVM.so.{major}")];
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        names
            .iter()
            .any(|name| found.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    })
}

fn has_nvidia() -> bool {
    Path::new("/dev/nvidiactl").exists()
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn is_root() -> bool {
    // Root reads a file that nobody may read.
    let probe = tempfile::NamedTempFile::new().and_then(|file| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o000))?;
        Ok(std::fs::File::open(file.path()).is_ok())
    });
    probe.unwrap_or(false)
}

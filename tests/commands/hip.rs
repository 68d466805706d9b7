//! `coax compare` over a driver library: the HIP path on a library of ours whose device is host memory and whose failures are
//! scripted (`tests/fake_hip`), on Debian's HIP runtime without a device, and on an NVIDIA GPU through HIP's symbols over the
//! CUDA driver (`tests/hip_over_cuda`). Nothing here says anything about an AMD GPU.

use crate::Test;
use crate::process;
use crate::run::{Said, coax, data};
use crate::workdir::WorkDirectory;
use codeobj::CodeObject;
use libtest_mimic::Failed;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("a_code_object_is_compared_through_hip", "", compares),
    ("a_test_that_declares_more_is_another_kernel", "", declares_more),
    ("a_descriptor_that_says_something_else_is_another_kernel", "", declares_otherwise),
    ("a_test_that_cannot_be_launched_as_the_reference_is_refused", "", cannot_be_launched_alike),
    ("every_failure_of_a_driver_is_one_line_with_its_exit_code", "", failures),
    ("a_launch_that_hangs_or_crashes_is_told", "", ends_badly),
    ("a_driver_that_hangs_elsewhere_is_told", "", hangs_elsewhere),
    ("what_a_kernel_prints_is_no_verdict", "", forges),
    ("a_kernel_that_hangs_and_prints_hangs", "", spams),
    ("a_signal_ends_a_run_and_leaves_nothing", "", interrupted),
    ("a_device_is_used_by_one_run_at_a_time", "flock", one_at_a_time),
    ("a_missing_or_other_library_is_not_available", "", no_library),
    ("debian_s_hip_finds_no_device_and_says_so", "hip-without-device", debian),
    ("hip_over_cuda_builds_and_finds_no_device_where_there_is_none", "no-nvidia", over_nothing),
    ("hip_over_cuda_compares_on_an_nvidia_gpu", "nvidia", over_cuda),
    ("the_doctor_tells_drivers_and_devices", "", doctor),
];

const SITE: &str = r#"kernel = "vector_add"
grid = ["ceil_div(N, 256)"]
block = [256]
bytes = "12*N"
[dims]
N = 1000
[[arg]]
name = "a"
dtype = "f32"
shape = ["N"]
fill = { kind = "uniform" }
[[arg]]
name = "b"
dtype = "f32"
shape = ["N"]
fill = { kind = "normal" }
[[arg]]
name = "out"
dtype = "f32"
shape = ["N"]
[[arg]]
name = "n"
type = "i32"
value = "N"
"#;

/// The last two arguments of Triton's kernels, for scratch that this one does not use.
const SCRATCH: &str = "[[arg]]\nnull = true\n[[arg]]\nnull = true\n";

/// The library of a C file of `tests/`, made once.
fn library(name: &str) -> Result<PathBuf, Failed> {
    static MADE: [OnceLock<Result<PathBuf, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = &MADE[usize::from(name == "fake_hip")];
    made.get_or_init(|| make(name)).clone().map_err(Failed::from)
}

fn make(name: &str) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}/{name}.c"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (own, library) = (folder.join(format!("{name}.{}", std::process::id())), folder.join(format!("lib{name}.so")));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&own).arg(source).arg("-ldl");
    let output = cc.output().map_err(|error| format!("cc: {error}"))?;
    if !output.status.success() {
        return Err(format!("{cc:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(own, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// A site, and a code object of Triton's as reference and test.
struct Desk {
    work: WorkDirectory,
    hip: String,
    /// Of the fake devices: each desk has its own, so that tests do not wait for each other.
    bus: String,
    env: Vec<(&'static str, String)>,
}

/// Nobody else's.
impl Drop for Desk {
    fn drop(&mut self) {
        for device in 0..3 {
            let _ = fs::remove_file(self.lock(device));
        }
    }
}

impl Desk {
    fn new(hip: &Path) -> Result<Desk, Failed> {
        let work = WorkDirectory::new()?;
        let object = data("code-objects/vector_add.gfx942.hsaco");
        for name in ["ref.co", "test.co"] {
            fs::copy(&object, work.path.join(name))?;
        }
        fs::write(work.path.join("site.toml"), format!("{SITE}{SCRATCH}"))?;
        static DESKS: AtomicU32 = AtomicU32::new(0);
        let bus = format!("fake-{}-{}", std::process::id(), DESKS.fetch_add(1, Ordering::Relaxed));
        Ok(Desk { work, hip: hip.display().to_string(), bus, env: Vec::new() })
    }

    /// The file that locks a device: where everybody may write.
    fn lock(&self, device: u32) -> PathBuf {
        let is_open = fs::metadata("/run/lock").is_ok_and(|found| found.permissions().mode() & 0o002 != 0);
        let folder = if is_open { "/run/lock" } else { "/tmp" };
        Path::new(folder).join(format!("coax-device-{}-{device}.lock", self.bus))
    }

    /// What the kernel prints.
    fn prints(&mut self, text: &[u8]) -> Result<(), Failed> {
        let path = self.work.path.join("printed");
        fs::write(&path, text)?;
        self.env.push(("FAKE_HIP_PRINTS", path.display().to_string()));
        Ok(())
    }

    fn fake() -> Result<Desk, Failed> {
        Desk::new(&library("fake_hip")?)
    }

    /// `coax compare ref.co test.co` on `hip:0`, unless another device is among the options.
    fn compare(&self, script: &str, options: &[&str]) -> Result<Said, Failed> {
        self.compare_images(["ref.co", "test.co"], script, options)
    }

    fn compare_images(&self, [a, b]: [&str; 2], script: &str, options: &[&str]) -> Result<Said, Failed> {
        let mut args = vec!["compare", a, b, "--site", "site.toml"];
        if !options.contains(&"--device") {
            args.extend(["--device", "hip:0"]);
        }
        args.extend(options);
        self.coax(script, &args)
    }

    fn coax(&self, script: &str, args: &[&str]) -> Result<Said, Failed> {
        let env = self.environment(script);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        coax(&self.work, args, &env)
    }

    fn environment(&self, script: &str) -> Vec<(&'static str, String)> {
        let folder = self.work.path.display().to_string();
        let script = format!("{script},bus={}", self.bus);
        let own = [("COAX_HIP", self.hip.clone()), ("FAKE_HIP", script), ("TMPDIR", folder)];
        own.into_iter().chain(self.env.iter().cloned()).collect()
    }
}

/// The exit code, the verdict as last line, and exactly these errors.
fn ends(said: &Said, exit: i32, verdict: &str, errors: &[&str]) -> Result<(), Failed> {
    let last = said.stdout.lines().last().unwrap_or_default();
    let found: Vec<&str> = said.stderr.lines().collect();
    let expected: Vec<String> = errors.iter().map(|error| format!("error: {error}")).collect();
    match said.exit == exit && last == format!("RESULT: {verdict}") && found == expected {
        true => Ok(()),
        false => {
            Err(format!("expected exit {exit}, {verdict}, {expected:#?}; found exit {}, {last}, {found:#?}", said.exit)
                .into())
        }
    }
}

fn compares() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let said = desk.compare("", &[])?;
    ends(&said, 0, "BIT-IDENTICAL", &[])?;
    assert!(said.stdout.starts_with("Device: Fake GPU 0 (304 CUs), hip:0\n"), "{}", said.stdout);
    // Timed, each launch goes with its events.
    let timed = ["--benchmark", "--iters", "20", "--blocks", "2", "--warmup", "2", "--budget", "1"];
    let said = desk.compare("", &timed)?;
    ends(&said, 0, "BIT-IDENTICAL", &[])?;
    assert!(said.stdout.contains(" timed launches checked,"), "{}", said.stdout);
    let said = desk.compare("hipExtModuleLaunchKernel=701", &timed)?;
    assert_eq!(said.exit, 2, "{}", said.stdout);
    let told = format!("{}{}", said.stdout, said.stderr);
    assert!(told.contains("launch of 4x1x1 work-groups") && told.contains("hipErrorLaunchOutOfResources"), "{told}");
    // The second device.
    let said = desk.compare("devices=2", &["--device", "hip:1"])?;
    ends(&said, 0, "BIT-IDENTICAL", &[])?;
    assert!(said.stdout.starts_with("Device: Fake GPU 1 (304 CUs), hip:1\n"), "{}", said.stdout);
    Ok(())
}

/// More LDS than the reference's, and nobody asked for it: faster or not, it is no edit of the same kernel.
fn declares_more() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let mut object = fs::read(desk.work.path.join("test.co"))?;
    let key = b".group_segment_fixed_size";
    let at = object.windows(key.len()).position(|window| window == key).ok_or("no such key")? + key.len();
    assert_eq!(object[at], 0, "MessagePack's 0");
    object[at] = 64;
    fs::write(desk.work.path.join("test.co"), object)?;
    let said = desk.compare("", &[])?;
    ends(&said, 1, "FAIL", &[])?;
    let reason = "reason: the metadata differs: .group_segment_fixed_size is 0 in the reference, 64 in the test\n";
    assert!(said.stdout.contains(reason), "{}", said.stdout);
    let said = desk.compare("", &["--allow-metadata"])?;
    ends(&said, 0, "BIT-IDENTICAL", &[])?;
    assert!(said.stdout.contains("note: the metadata differs"), "{}", said.stdout);
    Ok(())
}

/// What the hardware reads is in the descriptor, whatever the metadata says.
fn declares_otherwise() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let reference = fs::read(desk.work.path.join("ref.co"))?;
    let object = CodeObject::parse(&reference).map_err(|error| error.to_string())?;
    let descriptor = object.kernels[0].descriptor.as_ref()?.file_range.start;
    let test = |at: usize, byte: u8, options: &[&str]| {
        let mut test = reference.clone();
        assert_ne!(test[at], byte);
        test[at] = byte;
        fs::write(desk.work.path.join("test.co"), test)?;
        desk.compare("", options)
    };
    // Offsets and bits are those of LLVM's AMDGPUUsage.
    for (at, byte, reason) in [
        (1, 0x80, "group_segment_fixed_size is 0 in the reference, 32768 in the test"),
        (5, 1, "private_segment_fixed_size is 0 in the reference, 256 in the test"),
        (49, 0x30, "float_round_mode_32 is 0 in the reference, 3 in the test"),
    ] {
        let said = test(descriptor + at, byte, &[])?;
        ends(&said, 1, "FAIL", &[])?;
        assert!(said.stdout.contains(&format!("reason: the descriptor differs: {reason}\n")), "{}", said.stdout);
        ends(&test(descriptor + at, byte, &["--allow-metadata"])?, 0, "BIT-IDENTICAL", &[])?;
    }
    let said = test(descriptor + 1, 0x80, &[])?;
    let reason = "reason: the test contradicts itself: `.group_segment_fixed_size` is 0 in the metadata and 32768 in the descriptor\n";
    assert!(said.stdout.contains(reason), "{}", said.stdout);
    // Another number of registers is what edits are about.
    ends(&test(descriptor + 48, reference[descriptor + 48] + 1, &[])?, 0, "BIT-IDENTICAL", &[])
}

/// A launch that fits the reference alone is made for neither, whatever is allowed.
fn cannot_be_launched_alike() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let reference = fs::read(desk.work.path.join("ref.co"))?;
    let find = |what: &[u8]| reference.windows(what.len()).position(|window| window == what).ok_or("not there");
    // The scalar stands at byte 24, and a work-group may have 256 work-items: MessagePack's 0xcd 0x01 0x00.
    let offset = find(b".offset\x18")? + 7;
    let size = b".max_flat_workgroup_size";
    let most = find(size)? + size.len();
    assert_eq!(reference[most..most + 3], [0xcd, 1, 0]);
    for (at, bytes, error) in [
        (
            offset,
            &[28][..],
            "test.co: `n` stands at byte 28 of the arguments, in the reference at 24: one launch cannot fit both",
        ),
        (most + 1, &[0, 64], "test.co: block has 256 work-items; .max_flat_workgroup_size is 64"),
    ] {
        let mut test = reference.clone();
        test[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(desk.work.path.join("test.co"), test)?;
        for options in [&[][..], &["--allow-metadata"]] {
            ends(&desk.compare("", options)?, 2, "NOT ESTABLISHED", &[error])?;
        }
    }
    Ok(())
}

fn failures() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let driver = format!("driver library HIP 60443484 ({})", desk.hip);
    let launch = "launch of 4x1x1 work-groups of 256x1x1, 0 bytes of dynamic LDS, 48 bytes of arguments";
    let not_available = [
        ("devices=0", format!("HIP finds no device (hipErrorNoDevice); {driver}")),
        ("hipInit=100", format!("HIP finds no device (hipErrorNoDevice); {driver}")),
        ("hipGetDeviceCount=100", format!("HIP finds no device (hipErrorNoDevice); {driver}")),
        ("hipInit=999", format!("HIP does not start (hipErrorUnknown); {driver}")),
        ("hipSetDevice=101", "selecting the device: hipErrorInvalidDevice".into()),
        // Nothing is known of the fake device's target; so it is the driver who says that the image is for another.
        ("hipModuleLoadData=209", "ref.co: Fake GPU 0 cannot load the image: hipErrorNoBinaryForGpu".into()),
        ("hipModuleLoadData=200", "ref.co: Fake GPU 0 cannot load the image: hipErrorInvalidImage".into()),
    ];
    for (script, error) in not_available {
        ends(&desk.compare(script, &[])?, 3, "NOT AVAILABLE", &[&error]).map_err(|why| of(script, &why))?;
    }
    let not_established = [
        (
            "hipModuleLoadData@2=209",
            "test.co: Fake GPU 0 cannot load the image: hipErrorNoBinaryForGpu; the reference loads, so the edit broke it",
        ),
        ("hipModuleGetFunction=500", "ref.co: no kernel `vector_add`"),
        ("hipModuleGetFunction@2=500", "test.co: no kernel `vector_add`"),
        // Three buffers of 1000 f32, each between two guard zones of 64 KiB.
        ("free=405215", "the site's buffers take 405216 bytes of device memory, 405215 are free"),
        ("hipMemcpyDtoH=719", "copy from the device failed: hipErrorLaunchFailure"),
        ("hipMemcpyHtoD=719", "copy to the device failed: hipErrorLaunchFailure"),
    ];
    for (script, error) in not_established {
        ends(&desk.compare(script, &[])?, 2, "NOT ESTABLISHED", &[error]).map_err(|why| of(script, &why))?;
    }
    // How much is asked for first is random: it moves the buffers.
    let said = desk.compare("hipMalloc=2", &[])?;
    let error = said.stderr.trim_start_matches("error: ").trim_end();
    ends(&said, 2, "NOT ESTABLISHED", &[error])?;
    let (bytes, rest) = error.split_once(' ').unwrap_or_default();
    let is_told = rest == "bytes of device memory asked for, 268435456 free: hipErrorOutOfMemory";
    assert!(is_told && bytes.parse::<u64>().is_ok(), "{error}");
    // The reference runs first: what is refused there is no fault of the edit.
    for (script, error) in [
        (
            "hipModuleLaunchKernel=701",
            format!("{launch}: hipErrorLaunchOutOfResources; site.toml may not fit the kernel or the device"),
        ),
        ("late=700", "what was queued failed: hipErrorIllegalAddress".into()),
    ] {
        let error = format!("reference: {error}");
        ends(&desk.compare(script, &[])?, 2, "NOT ESTABLISHED", &[&error]).map_err(|why| of(script, &why))?;
    }
    // A variable of the user's may be why.
    let mut hidden = Desk::fake()?;
    hidden.env = vec![("ROCR_VISIBLE_DEVICES", "7".into()), ("HIP_VISIBLE_DEVICES", String::new())];
    let why = "HIP_VISIBLE_DEVICES= may hide it; ROCR_VISIBLE_DEVICES=7 may hide it";
    let error = format!("HIP finds no device (hipErrorNoDevice); {driver}; {why}");
    ends(&hidden.compare("devices=0", &[])?, 3, "NOT AVAILABLE", &[&error])?;
    let other = desk.compare("devices=2", &["--device", "hip:2"])?;
    ends(&other, 3, "NOT AVAILABLE", &["hip:2: the last device is hip:1 (HIP_VISIBLE_DEVICES counts)"])?;
    // The metadata knows the kernels before the driver is asked.
    fs::write(desk.work.path.join("site.toml"), SITE.replace("vector_add", "vector_sub"))?;
    let error = "ref.co: no kernel `vector_sub`; there are `vector_add`";
    ends(&desk.compare("", &[])?, 2, "NOT ESTABLISHED", &[error])?;
    // Without the two pointers at its end.
    fs::write(desk.work.path.join("site.toml"), SITE)?;
    let missing =
        [4, 5].map(|n| format!("the kernel takes argument {n} (global_buffer, 8 bytes), which the site does not give"));
    ends(&desk.compare("", &[])?, 2, "NOT ESTABLISHED", &missing.each_ref().map(String::as_str))?;
    Ok(())
}

fn of(script: &str, why: &Failed) -> Failed {
    format!("{script}: {}", why.message().unwrap_or_default()).into()
}

fn ends_badly() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let died = "the process that runs the kernels died";
    let said = desk.compare("hipInit=crash", &[])?;
    let error = format!("{died} while starting the driver: signal: 6 (SIGABRT): fake_hip: hipInit crashes");
    ends(&said, 2, "NOT ESTABLISHED", &[&error.replace("(SIGABRT)", core(&said))])?;
    let said = desk.compare("hipModuleLaunchKernel=crash", &[])?;
    assert_eq!(said.exit, 2, "{}", said.stderr);
    assert!(said.stderr.starts_with(&format!("error: {died} during a launch (")), "{}", said.stderr);
    let said = desk.compare("hipModuleLaunchKernel=hang", &["--launch-timeout", "1"])?;
    // Which of the two runs first is drawn; a reference that hangs says nothing of the test.
    let (whose, exit, verdict) = match said.stderr.contains("of the test") {
        true => ("test", 1, "HUNG"),
        false => ("reference", 2, "NOT ESTABLISHED"),
    };
    let late = "did not come back within 1 s (--launch-timeout)";
    let error = format!("launch 1 of the {whose} {late}: the device answers again");
    ends(&said, exit, verdict, &[&error])
}

fn hangs_elsewhere() -> Result<(), Failed> {
    let mut desk = Desk::fake()?;
    // Another image than the reference's, so that it is known whose it is. A test that cannot be loaded is the test's fault.
    let object = fs::read(desk.work.path.join("test.co"))?;
    fs::write(desk.work.path.join("test.co"), [&object[..], &[0]].concat())?;
    desk.env = vec![("COAX_DRIVER_TIMEOUT", "1".into())];
    for (script, exit, verdict, what) in [
        ("hipModuleLoadData=hang", 2, "NOT ESTABLISHED", "loading the reference"),
        ("hipModuleLoadData@2=hang", 1, "HUNG", "loading the test"),
        ("hipModuleUnload=hang", 2, "NOT ESTABLISHED", "unloading an image"),
        // The probe afterwards reads once. A buffer lies between two guard zones of 64 KiB.
        ("hipMemcpyDtoH@2=hang", 2, "NOT ESTABLISHED", "copying 65536 bytes from the device"),
    ] {
        let late = "did not come back within 1 s ($COAX_DRIVER_TIMEOUT): the device answers again";
        ends(&desk.compare(script, &[])?, exit, verdict, &[&format!("{what} {late}")])
            .map_err(|why| of(script, &why))?;
    }
    let died = "the process that runs the kernels died while loading the test: signal: 6";
    let said = desk.compare("hipModuleLoadData@2=crash", &[])?;
    let is_told = said.stderr.starts_with(&format!("error: {died}")) && said.stderr.lines().count() == 1;
    assert!(said.exit == 2 && is_told, "{}", said.stderr);
    desk.env = vec![("COAX_DRIVER_TIMEOUT", "soon".into())];
    let error = "the device's process: $COAX_DRIVER_TIMEOUT: `soon` is no number of seconds";
    ends(&desk.compare("", &[])?, 2, "NOT ESTABLISHED", &[error])
}

/// The line with which a run ends well, printed by a kernel that faults.
fn forges() -> Result<(), Failed> {
    let mut desk = Desk::fake()?;
    ends(&desk.compare("", &["--json", "honest.json"])?, 0, "BIT-IDENTICAL", &[])?;
    let honest: serde_json::Value = serde_json::from_slice(&fs::read(desk.work.path.join("honest.json"))?)?;
    assert_eq!(honest["comparison"]["verdict"], "BIT-IDENTICAL");
    let forged = serde_json::json!({ "Compared": honest["comparison"] });
    desk.prints(format!("\n{forged}\n\"Returned\"\n").as_bytes())?;
    let said = desk.compare("prints=1,late=700", &[])?;
    assert!(said.stderr.contains("hipErrorIllegalAddress"), "{}", said.stderr);
    ends(&said, 2, "NOT ESTABLISHED", &[said.stderr.trim_end().trim_start_matches("error: ")])?;
    // Nor does printing harm a run, with bytes that are no text in the middle of a line.
    desk.prints(b"half a line \xff")?;
    let said = desk.compare("prints=1", &[])?;
    ends(&said, 0, "BIT-IDENTICAL", &[])
}

/// Each was a run without an end: more lines than can be read, one line, no text, an event of ours.
fn spams() -> Result<(), Failed> {
    let mut desk = Desk::fake()?;
    for (text, last) in [
        (b"still here\n".as_slice(), "still here / still here / still here".to_owned()),
        (b"x", "x".repeat(300)),
        (b"\xff\n", "\u{fffd} / \u{fffd} / \u{fffd}".to_owned()),
        (b"\n\"Returned\"\n", "\"Returned\" / \"Returned\" / \"Returned\"".to_owned()),
    ] {
        desk.env.clear();
        desk.prints(text)?;
        let started = Instant::now();
        let said = desk.compare("hipModuleLaunchKernel=spam", &["--launch-timeout", "1"])?;
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        let error = said.stderr.trim_end().trim_start_matches("error: ");
        let is_told = error
            .contains("did not come back within 1 s (--launch-timeout): the device answers again; it printed last: ");
        assert!(is_told && error.contains(&last), "{error}");
        let (exit, verdict) = if error.contains("of the test") { (1, "HUNG") } else { (2, "NOT ESTABLISHED") };
        ends(&said, exit, verdict, &[error])?;
    }
    Ok(())
}

fn interrupted() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let before = fs::read_dir(&desk.work.path)?.count();
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut coax = process::coax(&desk.work.path)?;
        coax.args(["compare", "ref.co", "test.co", "--site", "site.toml", "--device", "hip:0"]);
        coax.envs(desk.environment("hipModuleLaunchKernel=hang"));
        let child = coax.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // The worker is at work when it has the lock; whoever holds it has written its number there.
        let started = Instant::now();
        while fs::read_to_string(desk.lock(0)).unwrap_or_default().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(60), "no lock");
            std::thread::sleep(Duration::from_millis(10));
        }
        let worker = fs::read_to_string(desk.lock(0))?.trim_start_matches("process ").to_owned();
        Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status()?;
        let output = child.wait_with_output()?;
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
        assert!(!Path::new("/proc").join(worker).exists(), "the worker is gone");
        assert_eq!(fs::read_dir(&desk.work.path)?.count(), before, "nothing is left in $TMPDIR");
        fs::remove_file(desk.lock(0))?;
    }
    Ok(())
}

/// Some machines keep a core file, and the status says so.
fn core(said: &Said) -> &'static str {
    if said.stderr.contains("(core dumped)") { "(SIGABRT) (core dumped)" } else { "(SIGABRT)" }
}

fn one_at_a_time() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    // Whatever $TMPDIR says.
    let lock = desk.lock(0);
    fs::write(&lock, "process 1")?;
    // Until its input is closed.
    let mut holder = Command::new("flock").arg(&lock).arg("cat").stdin(Stdio::piped()).spawn()?;
    // Wait until it holds it.
    for _ in 0..200 {
        let free = Command::new("flock").arg("-n").arg(&lock).arg("true").status()?.success();
        if !free {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = desk.compare("", &[]);
    drop(holder.stdin.take());
    holder.wait()?;
    let error = format!("hip:0 is in use by process 1 ({}); --wait SECONDS waits for it", lock.display());
    ends(&said?, 3, "NOT AVAILABLE", &[&error])
}

fn no_library() -> Result<(), Failed> {
    let desk = Desk::new(Path::new("/nowhere/libamdhip64.so"))?;
    let said = desk.compare("", &[])?;
    let loader = "/nowhere/libamdhip64.so: cannot open shared object file: No such file or directory";
    let way_out = "install ROCm's HIP runtime (Debian, Ubuntu: apt install libamdhip64-5), or name it with $COAX_HIP";
    ends(&said, 3, "NOT AVAILABLE", &[&format!("HIP is not available: {loader}; {way_out}")])?;
    // A library that is something else.
    let desk = Desk::new(Path::new("libm.so.6"))?;
    let error = "libm.so.6 has no hipInit: is it a driver library of another age?";
    ends(&desk.compare("", &[])?, 3, "NOT AVAILABLE", &[error])
}

fn debian() -> Result<(), Failed> {
    let mut desk = Desk::new(Path::new(""))?;
    desk.hip = "libamdhip64.so.5".into();
    let said = desk.compare("", &[])?;
    let line = said.stderr.trim_end();
    let is_told = line.starts_with("error: HIP finds no device (hipError") && line.contains("/libamdhip64.so.5");
    assert!(is_told && line.lines().count() == 1, "{line}");
    ends(&said, 3, "NOT AVAILABLE", &[line.trim_start_matches("error: ")])
}

fn over_nothing() -> Result<(), Failed> {
    let desk = Desk::new(&library("hip_over_cuda")?)?;
    let error = format!("HIP finds no device (hipErrorNoDevice); driver library HIP of unknown version ({})", desk.hip);
    ends(&desk.compare("", &[])?, 3, "NOT AVAILABLE", &[&error])
}

fn over_cuda() -> Result<(), Failed> {
    let desk = Desk::new(&library("hip_over_cuda")?)?;
    fs::write(desk.work.path.join("site.toml"), SITE)?;
    let ptx = include_str!("../hip_over_cuda/vector_add.ptx");
    fs::write(desk.work.path.join("ref.ptx"), ptx)?;
    let wrong = ptx.replace("add.rn.f32", "sub.rn.f32");
    assert_ne!(wrong, ptx);
    fs::write(desk.work.path.join("wrong.ptx"), wrong)?;
    let timed = ["--benchmark", "--iters", "40", "--blocks", "4", "--budget", "5"];
    let said = desk.compare_images(["ref.ptx", "ref.ptx"], "", &timed)?;
    ends(&said, 0, "BIT-IDENTICAL", &[])?;
    let said = desk.compare_images(["ref.ptx", "wrong.ptx"], "", &[])?;
    ends(&said, 1, "FAIL", &[])?;
    let said = desk.compare("", &[])?;
    assert_eq!(said.exit, 3, "a code object of AMD's: {}", said.stderr);
    Ok(())
}

fn doctor() -> Result<(), Failed> {
    let desk = Desk::fake()?;
    let said = desk.coax("devices=2", &["doctor"])?;
    for line in [
        format!("HIP       HIP 60443484 ({})", desk.hip),
        "hip:0     Fake GPU 0, of unknown target, 304 CUs".into(),
        "hip:1     Fake GPU 1, of unknown target, 304 CUs".into(),
    ] {
        assert!(said.stdout.lines().any(|found| found == line), "{line}\n{}", said.stdout);
    }
    assert!(!said.stdout.contains("disables compare"), "{}", said.stdout);
    let said = desk.coax("hipInit=crash", &["doctor"])?;
    assert!(said.stdout.contains("HIP       none: the driver crashed: signal: 6"), "{}", said.stdout);
    let said = desk.coax("devices=0", &["doctor"])?;
    assert!(
        said.stdout.contains("HIP       none: HIP finds no device (hipErrorNoDevice); driver library HIP 60443484")
    );
    Ok(())
}

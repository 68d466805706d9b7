//! One comparison from images to report: find the kernel, hold site and metadata together, observe, judge, time.

use std::time::Duration;

use codeobj::metadata::KernelMetadata;
use codeobj::{CodeObject, Detail};
use gpu::{Device, ErrorKind, KernelLimits};

use crate::correctness;
use crate::judge;
use crate::lds::Filler;
use crate::pack::{self, Layout};
use crate::report::{ImageSummary, Report, Timing};
use crate::requirement::Requirement;
use crate::rig::Subject;
use crate::site::{DeviceFacts, Site};
use crate::timing::Settings;
use crate::timing::measure::{Timed, measure};
use crate::timing::roofline::Peaks;
use crate::watch::Watch;

/// One of the two.
#[derive(Clone, Debug)]
pub struct Image {
    /// As the user named it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The one that is right by definition.
    pub reference: Image,
    /// The one that is judged.
    pub test: Image,
    /// What outputs must fulfil where the site does not say; bits when nobody does.
    pub requirement: Requirement,
    /// Of the inputs.
    pub seed: u64,
    /// Whether the kernels may declare different things (LDS, scratch, work-group size).
    pub allow_metadata: bool,
    /// How to time; none for correctness alone.
    pub timing: Option<Settings>,
    /// The device's peak, as the user knows it.
    pub peak_flops: Option<f64>,
    /// The image that fills LDS ([`crate::lds`]); else why there is none, which the report says.
    pub lds_filler: Result<Vec<u8>, String>,
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The inputs do not fit together; every problem.
    BadInput(Vec<String>),
    /// One of the images has none of the kernels that the site is for.
    NoKernel(String),
    /// This machine cannot do it: no driver, no device, an image for another target.
    NotAvailable(String),
    /// The device failed before anything could be judged.
    NotEstablished(String),
}

impl From<gpu::Error> for Failure {
    fn from(error: gpu::Error) -> Failure {
        match error.kind() {
            ErrorKind::NoDriver | ErrorKind::NoDevice | ErrorKind::Unsupported => {
                Failure::NotAvailable(error.to_string())
            }
            _ => Failure::NotEstablished(error.to_string()),
        }
    }
}

/// Facts of a device for expressions.
pub fn facts(device: &dyn Device) -> DeviceFacts {
    let info = device.info();
    DeviceFacts { compute_units: info.compute_units, wave_size: info.wave_size }
}

/// Compares.
///
/// # Errors
/// See [`Failure`]; a wrong or broken test is no failure, but a report.
pub fn run(device: &dyn Device, site: &Site, request: &Request, watch: &mut dyn Watch) -> Result<Report, Failure> {
    let objects = [&request.reference, &request.test].map(Object::read);
    let [reference, test] = match objects {
        [Ok(reference), Ok(test)] => [reference, test],
        [Err(why), _] | [_, Err(why)] => return Err(Failure::BadInput(vec![why])),
    };
    let info = device.info();
    for object in [&reference, &test] {
        object.refuse_other_target(&info.target).map_err(Failure::NotAvailable)?;
    }
    let kernel = find_kernel(site, &reference, &test)?;
    let (kernel, [declared, declared_by_test]) = loadable_kernel(device, request, &kernel)?;
    let (mut findings, mut problems) = (Vec::new(), Vec::new());
    let (static_lds_bytes, layout) = match (reference.kernel(&kernel), test.kernel(&kernel)) {
        (Some(a), Some(b)) => {
            findings.extend(metadata_differences(a, b));
            (a.group_segment_fixed_size.value().unwrap_or_default(), Layout::from_metadata(site, a))
        }
        _ => {
            findings.extend(declared.differences(&declared_by_test));
            (declared.limits.static_lds_bytes.into(), Layout::from_site(site))
        }
    };
    problems.extend(pack::lds_problem(site, static_lds_bytes, info.max_lds_bytes));
    let layout = layout.map_err(|why| Failure::BadInput([why, problems.clone()].concat()))?;
    problems.extend(declared.parameters.iter().flat_map(|parameters| layout.differences(site, parameters)));
    if !problems.is_empty() {
        return Err(Failure::BadInput(problems));
    }
    if !request.allow_metadata && !findings.is_empty() {
        findings.push("--allow-metadata accepts that the kernels declare different things".into());
    }
    let differs = if request.allow_metadata { Vec::new() } else { findings.clone() };
    refuse_too_large(device, site)?;
    let mut report = Report::new(device, site, &kernel, [summary(&request.reference), summary(&request.test)]);
    if request.allow_metadata {
        report.notes.extend(findings);
    }
    let (reference, test) = (&request.reference.bytes, &request.test.bytes);
    let filler = load_filler(device, &request.lds_filler);
    if let Err(why) = &filler {
        report.notes.push(format!("LDS kept what earlier kernels left there; a read of it may go unnoticed: {why}"));
    }
    let filler = filler.ok();
    let subject = Subject { device, site, layout: &layout, reference, test, kernel: &kernel, filler };
    let mut observed = correctness::observe(&subject, request.seed, watch)?;
    if let Some(filler) = filler {
        filler.unload(device)?;
    }
    report.fill_in(&observed);
    judge::judge(&mut report, site, &observed, &request.requirement, differs);
    if let Some(settings) = &request.timing {
        // Timing asks the reference again; what the rounds kept would only take memory.
        let inputs = std::mem::take(&mut observed.inputs);
        drop(observed);
        match time(subject, &inputs, settings, request, watch) {
            Ok(timing) => judge::judge_timing(&mut report, timing),
            Err(error) => judge::judge_untimed(&mut report, &error),
        }
    }
    Ok(report)
}

fn load_filler(device: &dyn Device, image: &Result<Vec<u8>, String>) -> Result<Filler, String> {
    Filler::load(device, image.as_ref()?).map_err(|error| error.to_string())
}

/// Before the host's memory is taken for buffers that the device cannot hold.
fn refuse_too_large(device: &dyn Device, site: &Site) -> Result<(), Failure> {
    let needed: u64 = site.buffers().map(|(_, buffer)| buffer.bytes + 2 * crate::buffers::GUARD_BYTES).sum();
    let free = device.memory()?.free;
    match needed > free {
        true => Err(Failure::NotEstablished(format!(
            "the site's buffers take {needed} bytes of device memory, {free} are free"
        ))),
        false => Ok(()),
    }
}

fn time(
    subject: Subject<'_>,
    inputs: &[Vec<u8>],
    settings: &Settings,
    request: &Request,
    watch: &mut dyn Watch,
) -> gpu::Result<Timing> {
    let timed = Timed { subject, inputs, requirement: &request.requirement };
    let info = subject.device.info();
    let before = subject.device.telemetry();
    let measured = measure(&timed, settings, watch)?;
    let after = subject.device.telemetry();
    let peaks = Peaks { flops: request.peak_flops, bytes_per_second: info.peak_bytes_per_second };
    Ok(Timing::new(subject.site, settings, measured, peaks, info.last_level_cache_bytes, [before, after]))
}

fn summary(image: &Image) -> ImageSummary {
    ImageSummary::of(&image.name, &image.bytes)
}

/// An image, and what is known of it without a device.
struct Object<'i> {
    image: &'i Image,
    /// None for formats that only a driver reads: cubins, PTX.
    code_object: Option<CodeObject>,
}

impl<'i> Object<'i> {
    fn read(image: &'i Image) -> Result<Object<'i>, String> {
        let code_object = match codeobj::container::sniff(&image.bytes) == Some(codeobj::container::Kind::CodeObject) {
            true => {
                Some(CodeObject::parse_with(&image.bytes, Detail::Full).map_err(|e| format!("{}: {e}", image.name))?)
            }
            false => None,
        };
        Ok(Object { image, code_object })
    }

    fn kernel(&self, name: &str) -> Option<&KernelMetadata> {
        let kernels = &self.code_object.as_ref()?.kernels;
        kernels.iter().find(|kernel| kernel.name == name).map(|kernel| &kernel.metadata)
    }

    /// A device whose target is not known is left to say for itself.
    fn refuse_other_target(&self, target: &str) -> Result<(), String> {
        let Some(object) = &self.code_object else { return Ok(()) };
        let processor = object.target.processor.as_deref().unwrap_or("?");
        match target.starts_with("gfx") && target != processor && !processor.ends_with("-generic") {
            true => Err(format!("{}: is for {processor}, the device is {target}", self.image.name)),
            false => Ok(()),
        }
    }
}

/// Candidates for the kernel's name: those that the metadata of both images has, or all where a driver has to say.
fn find_kernel(site: &Site, reference: &Object<'_>, test: &Object<'_>) -> Result<Vec<String>, Failure> {
    let mut candidates = site.kernels.clone();
    for object in [reference, test] {
        let Some(code_object) = &object.code_object else { continue };
        candidates.retain(|name| object.kernel(name).is_some());
        if candidates.is_empty() {
            let known: Vec<&str> = code_object.kernels.iter().map(|kernel| kernel.name.as_str()).take(8).collect();
            return Err(Failure::NoKernel(format!(
                "{}: no kernel `{}`; there are {}",
                object.image.name,
                site.kernels.join("`, `"),
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
    }
    Ok(candidates)
}

/// The first candidate that the driver finds in both images, and what it says of it in each. A test that does not load
/// where the reference does was broken by its edit.
fn loadable_kernel(
    device: &dyn Device,
    request: &Request,
    candidates: &[String],
) -> Result<(String, [Declared; 2]), Failure> {
    let load = |image: &Image| device.load(&image.bytes);
    let reference = load(&request.reference).map_err(|error| match error.kind() {
        ErrorKind::BadImage => Failure::NotAvailable(format!("{}: {error}", request.reference.name)),
        _ => error.of(&request.reference.name).into(),
    })?;
    let test = load(&request.test).map_err(|error| match error.kind() {
        ErrorKind::BadImage => Failure::BadInput(vec![format!(
            "{}: {error}; the reference loads, so the edit broke it",
            request.test.name
        )]),
        _ => error.of(&request.test.name).into(),
    })?;
    let mut missing_in = &request.reference;
    for name in candidates {
        let mut declared = Vec::new();
        for (module, image) in [(reference, &request.reference), (test, &request.test)] {
            match device.kernel(module, name) {
                Ok(kernel) => declared.push(Declared::of(device, kernel)?),
                Err(error) if error.kind() == ErrorKind::NoKernel => {
                    missing_in = image;
                    break;
                }
                Err(error) => return Err(error.of(&image.name).into()),
            }
        }
        if let Ok(declared) = declared.try_into() {
            device.unload(reference)?;
            device.unload(test)?;
            return Ok((name.clone(), declared));
        }
    }
    Err(Failure::NoKernel(format!("{}: no kernel `{}`", missing_in.name, candidates.join("`, `"))))
}

/// What a driver says of a kernel.
struct Declared {
    parameters: Option<Vec<(u64, u64)>>,
    limits: KernelLimits,
}

impl Declared {
    fn of(device: &dyn Device, kernel: gpu::Kernel) -> gpu::Result<Declared> {
        Ok(Declared { parameters: device.parameters(kernel)?, limits: device.limits(kernel)? })
    }

    /// As [`metadata_differences`], for images without metadata.
    fn differences(&self, test: &Declared) -> Vec<String> {
        let mut found = Vec::new();
        if self.parameters != test.parameters {
            found.push("the kernels take different arguments, says the driver".to_owned());
        }
        for (what, a, b) in [
            ("static LDS", self.limits.static_lds_bytes, test.limits.static_lds_bytes),
            ("scratch", self.limits.scratch_bytes, test.limits.scratch_bytes),
        ] {
            if a != b {
                found.push(format!("{what} is {a} bytes in the reference, {b} in the test, says the driver"));
            }
        }
        found
    }
}

/// What the kernels declare differently. A faster kernel that takes more LDS or other arguments is another kernel.
fn metadata_differences(a: &KernelMetadata, b: &KernelMetadata) -> Vec<String> {
    let counts = [
        (".group_segment_fixed_size", &a.group_segment_fixed_size, &b.group_segment_fixed_size),
        (".private_segment_fixed_size", &a.private_segment_fixed_size, &b.private_segment_fixed_size),
        (".kernarg_segment_size", &a.kernarg_segment_size, &b.kernarg_segment_size),
        (".max_flat_workgroup_size", &a.max_flat_workgroup_size, &b.max_flat_workgroup_size),
        (".wavefront_size", &a.wavefront_size, &b.wavefront_size),
    ];
    let show =
        |count: &codeobj::metadata::Count| count.value().map_or_else(|| "none".into(), |value| value.to_string());
    let mut found: Vec<String> = counts
        .iter()
        .filter(|(_, a, b)| a != b)
        .map(|(key, a, b)| {
            format!("the metadata differs: {key} is {} in the reference, {} in the test", show(a), show(b))
        })
        .collect();
    if a.reqd_workgroup_size != b.reqd_workgroup_size {
        found.push("the metadata differs: .reqd_workgroup_size".into());
    }
    let place = |arg: &codeobj::metadata::Arg| (arg.offset.clone(), arg.size.clone(), arg.value_kind.clone());
    if a.args.len() != b.args.len() || a.args.iter().zip(&b.args).any(|(a, b)| place(a) != place(b)) {
        found.push(format!(
            "the metadata differs: {} arguments in the reference, {} in the test, or others",
            a.args.len(),
            b.args.len()
        ));
    }
    found
}

/// A launch that takes longer than this hangs, unless the user says otherwise.
pub const LAUNCH_TIMEOUT: Duration = Duration::from_secs(30);

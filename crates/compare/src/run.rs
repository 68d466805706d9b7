//! One comparison from images to report: find the kernel, hold site and metadata together, observe, judge, time.

use std::time::Duration;

use codeobj::{CodeObject, Detail, Kernel};
use gpu::{Device, ErrorKind};

use crate::correctness;
use crate::declared::{self, Declared};
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
    /// What all outputs must fulfil, beside what the site says of each; bits when nobody says anything.
    pub requirement: Option<Requirement>,
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
    let candidates = find_kernel(site, &reference, &test)?;
    let (kernel, declared) = loadable_kernel(device, request, &candidates)?;
    let kernels = [reference.kernel(&kernel), test.kernel(&kernel)];
    let layout = common_layout(site, request, kernels, &declared, info.max_lds_bytes).map_err(Failure::BadInput)?;
    let mut findings = match kernels {
        [Some(a), Some(b)] => declared::differences(reference.processor(), a, b),
        _ => declared[0].differences(&declared[1]),
    };
    if !request.allow_metadata && !findings.is_empty() {
        findings.push("--allow-metadata accepts that the kernels declare different things".into());
    }
    let differs = if request.allow_metadata { Vec::new() } else { findings.clone() };
    refuse_too_large(device, site)?;
    watch.begun(info, &kernel);
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
    report.fill_in(&observed);
    judge::judge(&mut report, site, &observed, request.requirement.as_ref(), differs);
    if let Some(settings) = &request.timing {
        // Timing asks the reference again; what the rounds kept would only take memory.
        let inputs = std::mem::take(&mut observed.inputs);
        drop(observed);
        match time(subject, &inputs, settings, request, watch) {
            Ok(timing) => judge::judge_timing(&mut report, timing),
            Err(error) => judge::judge_untimed(&mut report, &error),
        }
    }
    if let Some(filler) = filler {
        // The verdict stands; a device that failed says so again.
        let _ = filler.unload(device);
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
    let timed = Timed { subject, inputs, requirement: request.requirement.as_ref() };
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
pub(crate) struct Object<'i> {
    pub(crate) image: &'i Image,
    /// None for formats that only a driver reads: cubins, PTX.
    code_object: Option<CodeObject>,
}

impl<'i> Object<'i> {
    pub(crate) fn read(image: &'i Image) -> Result<Object<'i>, String> {
        if image.bytes.is_empty() {
            return Err(format!("{}: the file is empty", image.name));
        }
        let code_object = match codeobj::container::sniff(&image.bytes) == Some(codeobj::container::Kind::CodeObject) {
            true => {
                Some(CodeObject::parse_with(&image.bytes, Detail::Full).map_err(|e| format!("{}: {e}", image.name))?)
            }
            false => None,
        };
        Ok(Object { image, code_object })
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        let kernels = &self.code_object.as_ref()?.kernels;
        kernels.iter().find(|kernel| kernel.name == name)
    }

    pub(crate) fn processor(&self) -> Option<&str> {
        self.code_object.as_ref()?.target.processor.as_deref()
    }

    /// Whether it has one of these kernels; what only a driver reads may have it.
    fn may_have_one_of(&self, names: &[String]) -> bool {
        self.code_object.is_none() || names.iter().any(|name| self.kernel(name).is_some())
    }

    fn without_kernel(&self, names: &[String]) -> String {
        let kernels = self.code_object.iter().flat_map(|object| &object.kernels);
        no_kernel(&self.image.name, names, Some(kernels.map(|kernel| kernel.name.clone()).collect()))
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
pub(crate) fn find_kernel(site: &Site, reference: &Object<'_>, test: &Object<'_>) -> Result<Vec<String>, Failure> {
    let lacking = |object: &&Object<'_>| !object.may_have_one_of(&site.kernels);
    let lacking: Vec<&Object<'_>> = [reference, test].into_iter().filter(lacking).collect();
    refuse_lacking(lacking.iter().map(|object| object.without_kernel(&site.kernels)).collect())?;
    let mut candidates = site.kernels.clone();
    candidates.retain(|name| [reference, test].iter().all(|object| object.may_have_one_of(std::slice::from_ref(name))));
    match candidates.is_empty() {
        true => Err(no_common(site.kernels.as_slice())),
        false => Ok(candidates),
    }
}

/// Images that both lack what a site is for have nothing to do with it; one that alone lacks it has lost it.
fn refuse_lacking(mut lacking: Vec<String>) -> Result<(), Failure> {
    match lacking.len() {
        0 => Ok(()),
        1 => Err(Failure::BadInput(lacking)),
        _ => Err(Failure::NoKernel(lacking.swap_remove(0))),
    }
}

fn no_common(names: &[String]) -> Failure {
    Failure::BadInput(vec![format!("none of {} is in both images", quoted(names))])
}

/// Names of kernels have commas in them.
fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn no_kernel(image: &str, names: &[String], known: Option<Vec<String>>) -> String {
    const SHOWN: usize = 8;
    let there_are = match known {
        None => String::new(),
        Some(known) if known.is_empty() => "; there are none".into(),
        Some(known) if known.len() > SHOWN => {
            format!("; there are {}, … ({} in all)", quoted(&known[..SHOWN]), known.len())
        }
        Some(known) => format!("; there are {}", quoted(&known)),
    };
    format!("{image}: no kernel {}{there_are}", quoted(names))
}

/// The first candidate that the driver finds in both images, and what it says of it in each. A test that does not load
/// where the reference does was broken by its edit.
fn loadable_kernel(
    device: &dyn Device,
    request: &Request,
    candidates: &[String],
) -> Result<(String, [Declared; 2]), Failure> {
    let images = [&request.reference, &request.test];
    let (mut lacking, mut found) = (Vec::new(), Vec::new());
    for (image, is_test) in images.into_iter().zip([false, true]) {
        let module = device.load(&image.bytes).map_err(|error| unloadable(error, image, is_test))?;
        let declared = declared_in(device, module, candidates).map_err(|error| error.of(&image.name))?;
        if declared.iter().all(Option::is_none) {
            lacking.push(no_kernel(&image.name, candidates, device.kernels(module)?));
        }
        device.unload(module)?;
        found.push(declared);
    }
    refuse_lacking(lacking)?;
    let tests = found.pop().unwrap_or_default();
    let pairs = found.pop().unwrap_or_default().into_iter().zip(tests);
    let first = candidates.iter().zip(pairs).find_map(|(name, (a, b))| Some((name.clone(), [a?, b?])));
    first.ok_or_else(|| no_common(candidates))
}

/// What the driver says of each candidate; nothing of those that are not there.
fn declared_in(device: &dyn Device, module: gpu::Module, candidates: &[String]) -> gpu::Result<Vec<Option<Declared>>> {
    let declared = candidates.iter().map(|name| match device.kernel(module, name) {
        Ok(kernel) => Declared::of(device, kernel).map(Some),
        Err(error) if error.kind() == ErrorKind::NoKernel => Ok(None),
        Err(error) => Err(error),
    });
    declared.collect()
}

fn unloadable(error: gpu::Error, image: &Image, is_test: bool) -> Failure {
    let name = &image.name;
    match error.kind() {
        ErrorKind::NoImage => Failure::BadInput(vec![format!("{name}: {error}")]),
        ErrorKind::BadImage if is_test => {
            Failure::BadInput(vec![format!("{name}: {error}; the reference loads, so the edit broke it")])
        }
        ErrorKind::BadImage => Failure::NotAvailable(format!("{name}: {error}")),
        _ => error.of(name).into(),
    }
}

/// Where the arguments stand, the same in both: both are launched with the same ones.
fn common_layout(
    site: &Site,
    request: &Request,
    [reference, test]: [Option<&Kernel>; 2],
    declared: &[Declared; 2],
    max_lds_bytes: u32,
) -> Result<Layout, Vec<String>> {
    let own = layout_of(site, reference, &declared[0], max_lds_bytes);
    let tests = layout_of(site, test, &declared[1], max_lds_bytes);
    let name = &request.test.name;
    match (own, tests) {
        (Ok(own), Ok(tests)) => {
            let moved = tests.moved_from(site, &own);
            let moved: Vec<String> = moved.iter().map(|why| format!("{name}: {why}")).collect();
            if moved.is_empty() { Ok(own) } else { Err(moved) }
        }
        // What is wrong with both is wrong with the site.
        (Err(problems), _) => Err(problems),
        (Ok(_), Err(problems)) => Err(problems.iter().map(|why| format!("{name}: {why}")).collect()),
    }
}

fn layout_of(
    site: &Site,
    kernel: Option<&Kernel>,
    declared: &Declared,
    max_lds_bytes: u32,
) -> Result<Layout, Vec<String>> {
    let (static_lds_bytes, layout) = match kernel {
        Some(kernel) => (declared::static_lds_bytes(kernel), Layout::from_metadata(site, &kernel.metadata)),
        None => (declared.limits.static_lds_bytes.into(), Layout::from_site(site)),
    };
    let mut problems: Vec<String> = pack::lds_problem(site, static_lds_bytes, max_lds_bytes).into_iter().collect();
    let layout = layout.map_err(|why| [why, problems.clone()].concat())?;
    problems.extend(declared.parameters.iter().flat_map(|parameters| layout.differences(site, parameters)));
    if problems.is_empty() { Ok(layout) } else { Err(problems) }
}

/// A launch that takes longer than this hangs, unless the user says otherwise.
pub const LAUNCH_TIMEOUT: Duration = Duration::from_secs(30);

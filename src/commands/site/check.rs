//! `coax site check`: whether a launch can be made of a site and code objects, said without a GPU.

use std::path::PathBuf;
use std::process::ExitCode;

use codeobj::{CodeObject, TargetId};
use compare::buffers::GUARD_BYTES;
use compare::check::Checked;
use compare::fill::Fill;
use compare::pack::lds_problem;
use compare::report::page::wrapped;
use compare::run::{Failure, Image};
use compare::site::file::Role;
use compare::site::{Argument, ArgumentValue, DeviceFacts, Site};
use isa::occupancy::Limits;
use resources::printable;
use rewrite::Error;

use crate::commands::compare::read_image;
use crate::commands::compare::resolve::resolve;
use crate::commands::compare::worker::SiteSource;
use crate::commands::edited::finish;

/// Say whether `coax compare` can launch a kernel as a site says, and how: no GPU is needed
///
/// Everything that `coax compare` looks at before a launch: the kernel's name, each argument against the metadata, the
/// work-group, LDS, and what TEST declares otherwise than REF. The launch is printed as it was resolved. Exit 0, or 2 with
/// every problem on stderr. Of cubins and PTX only a driver knows names and arguments.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax site check site.toml ref.mock test.mock
  coax site check gemm.toml ref.co edit.co --cu 304
  coax site check gate_up_fwd ref.co")]
pub struct Check {
    /// A site file, or a built-in site
    #[arg(value_name = "SITE")]
    site: PathBuf,
    /// The one that is right by definition
    #[arg(value_name = "REF")]
    reference: PathBuf,
    /// The one that will be judged
    test: Option<PathBuf>,
    /// `cu_count` of expressions [default: that of a product with the code object's processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cu: Option<u32>,
    /// Accept that the kernels declare different LDS, scratch, work-group sizes or arguments
    #[arg(long)]
    allow_metadata: bool,
}

/// Compute units of one product with each processor, by AMD's data sheets.
const PRODUCTS: [(&str, u32, &str); 5] = [
    ("gfx906", 60, "MI50"),
    ("gfx908", 120, "MI100"),
    ("gfx90a", 104, "MI210"),
    ("gfx942", 304, "MI300X"),
    ("gfx950", 256, "MI355X"),
];
/// Where nothing is known of the processor.
const ASSUMED_CU: u32 = 256;

impl Check {
    /// Runs the command.
    pub fn run(&self) -> Result<ExitCode, Error> {
        let reference = read_image(&self.reference).map_err(Error::input)?;
        let test = self.test.as_deref().map(read_image).transpose().map_err(Error::input)?;
        let target = CodeObject::parse(&reference.bytes).ok().map(|object| object.target);
        let (facts, said) = self.facts(target.as_ref(), &reference);
        let source = SiteSource::named(&self.site);
        let (site, checked) = resolve(&source, facts, &reference, test.as_ref()).map_err(as_error)?;
        let limit =
            target.as_ref().and_then(|target| Limits::of(target.processor.as_deref()?)).map(Limits::max_lds_bytes);
        let mut problems: Vec<String> =
            lds_problem(&site, checked.static_lds_bytes.unwrap_or_default(), limit.unwrap_or_default())
                .into_iter()
                .collect();
        if !self.allow_metadata {
            problems.extend(checked.differences.clone());
        }
        let known = Known { site: &site, checked: &checked, target: target.as_ref(), limit, facts: &said };
        let page = known.page();
        if problems.is_empty() {
            return finish(&page, 0);
        }
        finish(&page, 0)?;
        Err(as_error(Failure::BadInput(problems)))
    }

    /// What expressions are told of the device, and where that is from.
    fn facts(&self, target: Option<&TargetId>, image: &Image) -> (DeviceFacts, String) {
        let processor = target.and_then(|target| target.processor.as_deref()).unwrap_or_default();
        let product = PRODUCTS.iter().find(|(name, ..)| *name == processor);
        let (compute_units, from) = match (self.cu, product) {
            (Some(units), _) => (units, "--cu".to_owned()),
            (None, Some((_, units, product))) => (*units, format!("{product}; --cu N says another")),
            (None, None) => (ASSUMED_CU, "assumed; --cu N says another".to_owned()),
        };
        let known = wave_size(image);
        let (wave_size, assumed) = (known.unwrap_or(32), if known.is_none() { " (assumed)" } else { "" });
        (
            DeviceFacts { compute_units, wave_size },
            format!("cu_count {compute_units} ({from}), wave_size {wave_size}{assumed}"),
        )
    }
}

/// By the first kernel: a device has one wave size for all.
fn wave_size(image: &Image) -> Option<u32> {
    let object = CodeObject::parse(&image.bytes).ok()?;
    u32::try_from(object.kernels.first()?.metadata.wavefront_size.value()?).ok()
}

/// Every message of a failure.
pub fn as_error(failure: Failure) -> Error {
    let messages = match failure {
        Failure::BadInput(messages) => messages,
        Failure::NoKernel(why) | Failure::NotAvailable(why) | Failure::NotEstablished(why) => vec![why],
    };
    let mut error = Error::input(String::new());
    error.messages = messages.into_iter().map(rewrite::Message::new).collect();
    error
}

/// Everything that is known of a launch.
struct Known<'k> {
    site: &'k Site,
    checked: &'k Checked,
    target: Option<&'k TargetId>,
    /// LDS of a work-group at most, bytes.
    limit: Option<u32>,
    facts: &'k str,
}

impl Known<'_> {
    fn page(&self) -> String {
        let Known { site, checked, .. } = self;
        let target = self.target.map_or_else(|| "for a driver to read".to_owned(), ToString::to_string);
        let mut page =
            wrapped(&format!("site {}, kernel {}", printable(&site.name), printable(&checked.kernels.join(" or "))));
        page.push_str(&wrapped(&format!("  target    {target}")));
        page.push_str(&wrapped(&format!("  device    {}", self.facts)));
        let dims: Vec<String> = site.dims.iter().map(|(name, value)| format!("{name} = {}", value.as_f64())).collect();
        if !dims.is_empty() {
            page.push_str(&wrapped(&format!("  dims      {}", printable(&dims.join(", ")))));
        }
        let extent = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        page.push_str(&format!("  launch    {} work-groups of {}\n", extent(site.grid), extent(site.block)));
        page.push_str(&wrapped(&format!("  LDS       {}", self.lds())));
        let rates: Vec<String> = [("flop", site.flop), ("bytes", site.bytes)]
            .iter()
            .filter_map(|(name, amount)| Some(format!("{name} {:e}", (*amount)?)))
            .collect();
        if !rates.is_empty() {
            page.push_str(&format!("  rates     {} a launch\n", rates.join(", ")));
        }
        page.push_str(&self.arguments());
        page
    }

    fn lds(&self) -> String {
        let dynamic = self.site.dynamic_lds_bytes;
        let limit = self.limit.map_or_else(String::new, |limit| format!("; a work-group has at most {limit}"));
        match self.checked.static_lds_bytes {
            Some(fixed) => format!("{fixed} bytes static, {dynamic} dynamic{limit}"),
            None => format!("{dynamic} bytes dynamic; the static part is for a driver to say{limit}"),
        }
    }

    fn arguments(&self) -> String {
        let from = if self.checked.has_metadata { "the metadata" } else { "the site alone: no metadata" };
        let mut text = format!("\narguments, by {from}\n  offset  bytes\n");
        for (argument, offset) in self.site.arguments.iter().zip(&self.checked.layout.offsets) {
            let size = argument.value.size();
            text.push_str(&wrapped(&format!("  {offset:>6} {size:>6}  {}", described(argument))));
        }
        let buffers = || self.site.buffers().map(|(_, buffer)| buffer.bytes);
        let total: u64 = buffers().map(|bytes| bytes.saturating_add(2 * GUARD_BYTES)).fold(0, u64::saturating_add);
        let count = buffers().count();
        text.push_str(&wrapped(&format!(
            "{} bytes of arguments; {count} buffers with their guard zones take {total} bytes of device memory, timing with \
             --cache cold more",
            self.checked.layout.bytes
        )));
        if !self.site.buffers().any(|(_, buffer)| buffer.is_compared()) {
            text.push_str("note: no output: nothing will be compared, and compare says NOT ESTABLISHED\n");
        }
        text
    }
}

/// An argument without its place.
fn described(argument: &Argument) -> String {
    let name = printable(&argument.name);
    match &argument.value {
        ArgumentValue::Null => format!("{name}: null"),
        ArgumentValue::Bytes(bytes) => format!("{name}: {}", value(bytes)),
        ArgumentValue::Buffer(buffer) => {
            let shape: Vec<String> = buffer.shape.iter().map(u64::to_string).collect();
            let (role, dtype, bytes) = (role(buffer.role), buffer.dtype, buffer.bytes);
            let fill = buffer.fill.as_ref().map(|fill| format!(", {}", filled(fill))).unwrap_or_default();
            format!("{name}: {role} {dtype} {} ({bytes} bytes){fill}", shape.join("x"))
        }
    }
}

/// A scalar's bytes, as they are passed and as a whole number.
fn value(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > 16 { "…" } else { "" };
    let mut word = [0; 8];
    match word.get_mut(..bytes.len()) {
        Some(low) => {
            low.copy_from_slice(bytes);
            format!("0x{:x} ({})", u64::from_le_bytes(word), u64::from_le_bytes(word))
        }
        None => format!("bytes {hex}{more}"),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::In => "in",
        Role::Out => "out",
        Role::InOut => "inout",
        Role::Scratch => "scratch",
    }
}

fn filled(fill: &Fill) -> String {
    match fill {
        Fill::Bits => "random bits".into(),
        Fill::Uniform { low, high } => format!("uniform in [{low}, {high})"),
        Fill::Normal { mean, deviation } => format!("normal, mean {mean}, deviation {deviation}"),
        Fill::MaskedBytes { mask } => format!("random bytes & 0x{mask:02x}"),
        Fill::Range { start, step } => format!("{start}, {}, …", start + step),
        Fill::Constant(value) => format!("all {value}"),
        Fill::OneHot { index, value } => format!("0, at {index} {value}"),
        Fill::File(path) => format!("from {}", printable(&path.display().to_string())),
        Fill::Special { fill, rate } => format!("{}, special values at a rate of {rate}", filled(fill)),
    }
}

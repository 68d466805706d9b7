//! The argument buffer of a launch: where each argument stands, held against the kernel's metadata where there is any.
//!
//! A launch with eight arguments of a kernel that has nine succeeds on hardware and computes nonsense; so whatever the
//! metadata knows is checked before. Hidden arguments (`hidden_*`) are not the site's: the HIP runtime fills them.

use std::collections::HashMap;

use codeobj::metadata::{Arg, Count, KernelMetadata};

use crate::site::{Argument, ArgumentValue, Site};

/// The largest argument buffer that is made.
const MAX_BYTES: u64 = 64 << 10;
/// The largest alignment of a parameter, vector types of CUDA and HIP included.
const MAX_ALIGNMENT: u64 = 16;
/// So many bytes behind the last argument of a kernel without `.args` could be one that is missing. Sizes are rounded up to 4
/// by compilers, and to 8 where a pointer is among the arguments.
const SMALLEST_LEFT_OUT: u64 = 8;

/// Where the arguments stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of each argument, by position.
    pub offsets: Vec<u64>,
    /// Bytes up to the end of the last one.
    pub bytes: u64,
}

impl Layout {
    /// From the metadata, which says every offset and size.
    ///
    /// # Errors
    /// Everything in which site and metadata differ.
    pub fn from_metadata(site: &Site, metadata: &KernelMetadata) -> Result<Layout, Vec<String>> {
        let mut problems = work_group_problems(site, metadata);
        if metadata.args.is_empty() && metadata.kernarg_segment_size != Count::Value(0) {
            return Layout::without_args(site, metadata, problems);
        }
        let explicit: Vec<&Arg> = metadata.args.iter().filter(|arg| !is_hidden(arg)).collect();
        let names = Names::of(site, &explicit);
        let mut offsets = vec![None; site.arguments.len()];
        for (position, arg) in explicit.iter().enumerate() {
            let described = describe(arg, position);
            let Some((index, argument)) = names.find(site, arg, position) else {
                problems.push(format!("the kernel takes {described}, which the site does not give"));
                continue;
            };
            let (Some(offset), Some(size)) = (arg.offset.value(), arg.size.value()) else {
                problems.push(format!("the metadata does not say where {described} stands"));
                offsets[index].get_or_insert(0); // one problem is enough
                continue;
            };
            problems.extend(problem_of(argument, arg, size).map(|why| format!("{described}: {why}")));
            if let Some(own) = argument.offset.filter(|own| *own != offset) {
                problems.push(format!("{described}: the site says offset {own}, the metadata {offset}"));
            }
            if offsets[index].replace(offset).is_some() {
                problems.push(format!("{described}: the site's argument `{}` is taken already", argument.name));
            }
        }
        for (argument, _) in site.arguments.iter().zip(&offsets).filter(|(_, offset)| offset.is_none()) {
            let count = explicit.len();
            problems.push(format!("the kernel takes {count} arguments and has none for `{}`", argument.name));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // `.kernarg_segment_size` is not held against the end: hand-written kernels list padding behind it.
        Layout::of(site, offsets.into_iter().flatten().collect())
    }

    /// Hand-written metadata may leave the arguments out (`.args` is optional) and still says how long they are together.
    fn without_args(site: &Site, metadata: &KernelMetadata, mut problems: Vec<String>) -> Result<Layout, Vec<String>> {
        let layout = Layout::from_site(site).map_err(|why| [problems.clone(), why].concat())?;
        let size = metadata.kernarg_segment_size.value();
        // What is left may be padding, but no argument.
        let fits = size.is_some_and(|size| layout.bytes <= size && size - layout.bytes < SMALLEST_LEFT_OUT);
        if !fits {
            let size = size.map_or_else(|| "not there".into(), |size| size.to_string());
            problems.push(format!(
                "the metadata lists no arguments; those of the site end at byte {}, and .kernarg_segment_size is {size}",
                layout.bytes
            ));
        }
        if problems.is_empty() { Ok(layout) } else { Err(problems) }
    }

    /// From the site alone: its offsets, else one after the other, each aligned to its size up to 16 bytes, as C lays out
    /// the parameters of a kernel.
    ///
    /// # Errors
    /// Two arguments share bytes; a structure's place depends on an alignment that nobody gives.
    pub fn from_site(site: &Site) -> Result<Layout, Vec<String>> {
        let mut end = 0;
        let (mut offsets, mut problems) = (Vec::new(), Vec::new());
        for argument in &site.arguments {
            let size = argument.value.size();
            let alignment =
                if argument.is_structure { MAX_ALIGNMENT } else { size.next_power_of_two().min(MAX_ALIGNMENT) };
            if argument.is_structure && argument.offset.is_none() && end % MAX_ALIGNMENT != 0 {
                problems.push(format!(
                    "`{}`: bytes do not say how a structure is aligned behind byte {end}; give its offset",
                    argument.name
                ));
            }
            let offset = argument.offset.unwrap_or_else(|| u64::next_multiple_of(end, alignment));
            end = offset.saturating_add(size);
            offsets.push(offset);
        }
        if problems.is_empty() { Layout::of(site, offsets) } else { Err(problems) }
    }

    /// What differs from the parameters (offset and size, bytes, by position) that a driver knows of a kernel without
    /// metadata.
    pub fn differences(&self, site: &Site, parameters: &[(u64, u64)]) -> Vec<String> {
        if parameters.len() != site.arguments.len() {
            let (takes, gives) = (parameters.len(), site.arguments.len());
            return vec![format!("the kernel takes {takes} arguments, the site gives {gives}")];
        }
        let own = site.arguments.iter().zip(&self.offsets);
        let differing = own
            .zip(parameters)
            .filter(|((argument, own), (offset, size))| (**own, argument.value.size()) != (*offset, *size));
        let tell = |((argument, own), (offset, size)): ((&Argument, &u64), &(u64, u64))| {
            let (name, bytes) = (&argument.name, argument.value.size());
            format!("the site's `{name}` has {bytes} bytes at offset {own}; the kernel takes {size} at {offset}")
        };
        differing.map(tell).collect()
    }

    /// Arguments that stand elsewhere than in another kernel's layout.
    pub fn moved_from(&self, site: &Site, other: &Layout) -> Vec<String> {
        let pairs = site.arguments.iter().zip(self.offsets.iter().zip(&other.offsets));
        pairs
            .filter(|(_, (own, other))| own != other)
            .map(|(argument, (own, other))| {
                let name = &argument.name;
                format!("`{name}` stands at byte {own} of the arguments, in the reference at {other}: one launch cannot fit both")
            })
            .collect()
    }

    fn of(site: &Site, offsets: Vec<u64>) -> Result<Layout, Vec<String>> {
        let mut spans: Vec<(u64, u64, &str)> = site
            .arguments
            .iter()
            .zip(&offsets)
            .map(|(argument, offset)| (*offset, offset.saturating_add(argument.value.size()), argument.name.as_str()))
            .collect();
        spans.sort_unstable();
        let shared = spans.windows(2).filter(|pair| pair[0].1 > pair[1].0);
        let mut problems: Vec<String> = shared
            .map(|pair| {
                let [(a, a_end, first), (b, b_end, second)] = [pair[0], pair[1]];
                format!("arguments `{first}` (bytes {a} to {a_end}) and `{second}` ({b} to {b_end}) overlap")
            })
            .collect();
        let bytes = spans.iter().map(|span| span.1).max().unwrap_or_default();
        if bytes > MAX_BYTES {
            problems.push(format!("the arguments end at byte {bytes}; at most {MAX_BYTES} are passed"));
        }
        if problems.is_empty() { Ok(Layout { offsets, bytes }) } else { Err(problems) }
    }

    /// The buffer; `addresses` are those of the site's buffers, in order.
    pub fn pack(&self, site: &Site, addresses: &[u64]) -> Vec<u8> {
        let mut packed = vec![0; self.bytes as usize];
        let mut addresses = addresses.iter();
        for (argument, offset) in site.arguments.iter().zip(&self.offsets) {
            let pointer;
            let bytes: &[u8] = match &argument.value {
                ArgumentValue::Buffer(_) => {
                    pointer = addresses.next().copied().unwrap_or_default().to_le_bytes();
                    &pointer
                }
                ArgumentValue::Null => &[0; 8],
                ArgumentValue::Bytes(bytes) => bytes,
            };
            let start = *offset as usize;
            packed[start..start + bytes.len()].copy_from_slice(bytes);
        }
        packed
    }
}

/// Filled in by the runtime.
pub fn is_hidden(arg: &Arg) -> bool {
    arg.value_kind.as_deref().is_some_and(|kind| kind.starts_with("hidden_"))
}

/// Which argument of the site is which of the kernel's: by name where both have it once, else by position. Hand-written
/// kernels call dozens of their arguments `pad`.
struct Names<'a> {
    /// How often the kernel has a name.
    of_kernel: HashMap<&'a str, usize>,
    /// Where the site has it.
    of_site: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(site: &'a Site, explicit: &[&'a Arg]) -> Names<'a> {
        let mut of_kernel = HashMap::new();
        for name in explicit.iter().filter_map(|arg| arg.name.as_deref()) {
            *of_kernel.entry(name).or_default() += 1;
        }
        let named = site.arguments.iter().enumerate().filter(|(_, argument)| argument.is_named);
        Names { of_kernel, of_site: named.map(|(index, argument)| (argument.name.as_str(), index)).collect() }
    }

    fn is_unique(&self, name: &str) -> bool {
        self.of_kernel.get(name) == Some(&1)
    }

    fn find<'s>(&self, site: &'s Site, arg: &Arg, position: usize) -> Option<(usize, &'s Argument)> {
        let name = arg.name.as_deref().filter(|name| self.is_unique(name));
        let index = name.and_then(|name| self.of_site.get(name)).copied().or_else(|| {
            // One that is named after another argument of the kernel is that one, wherever it stands.
            let there = site.arguments.get(position)?;
            (!there.is_named || !self.is_unique(&there.name)).then_some(position)
        })?;
        Some((index, site.arguments.get(index)?))
    }
}

/// Whether a kind of argument can be put into a buffer. The others (`queue`, `image`, `dynamic_shared_pointer`, …) are made by
/// a runtime of OpenCL.
pub fn is_passable(kind: &str) -> bool {
    matches!(kind, "by_value" | "global_buffer" | "?")
}

fn describe(arg: &Arg, position: usize) -> String {
    let kind = arg.value_kind.as_deref().unwrap_or("?");
    let size = arg.size.value().map_or_else(|| "?".into(), |size| size.to_string());
    let name = arg.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    format!("argument {position}{name} ({kind}, {size} bytes)")
}

fn problem_of(argument: &Argument, arg: &Arg, size: u64) -> Option<String> {
    let name = &argument.name;
    let is_pointer = match arg.value_kind.as_deref() {
        Some("by_value") => false,
        Some("global_buffer") => true,
        Some(other) => return Some(format!("arguments of kind {other} cannot be passed")),
        None => return Some("the metadata does not say what kind it is".into()),
    };
    let own = argument.value.size();
    match (&argument.value, is_pointer) {
        (ArgumentValue::Bytes(_), true) => Some(format!("the site gives `{name}` by value; it is a pointer")),
        (ArgumentValue::Buffer(_), false) if size != 8 => {
            Some(format!("the site gives the buffer `{name}`; it is a value"))
        }
        _ if own != size => Some(format!("the site's `{name}` has {own} bytes")),
        _ => None,
    }
}

fn work_group_problems(site: &Site, metadata: &KernelMetadata) -> Vec<String> {
    let mut problems = Vec::new();
    let work_items: u64 = site.block.iter().map(|n| u64::from(*n)).product();
    if let Some(most) = metadata.max_flat_workgroup_size.value().filter(|most| work_items > *most) {
        problems.push(format!("block has {work_items} work-items; .max_flat_workgroup_size is {most}"));
    }
    if let Some(required) = metadata.reqd_workgroup_size
        && required != site.block.map(u64::from)
    {
        problems.push(format!("block is {:?}; .reqd_workgroup_size is {required:?}", site.block));
    }
    problems
}

/// LDS that the launch needs and the device does not have.
pub fn lds_problem(site: &Site, static_lds_bytes: u64, max_lds_bytes: u32) -> Option<String> {
    let needed = static_lds_bytes.saturating_add(site.dynamic_lds_bytes.into());
    (max_lds_bytes > 0 && needed > max_lds_bytes.into()).then(|| {
        let dynamic = site.dynamic_lds_bytes;
        format!(
            "{static_lds_bytes} bytes of static and {dynamic} of dynamic LDS; a work-group has at most {max_lds_bytes}"
        )
    })
}

//! The argument buffer of a launch: where each argument stands, held against the kernel's metadata where there is any.
//!
//! A launch with eight arguments of a kernel that has nine succeeds on hardware and computes nonsense; so whatever the
//! metadata knows is checked before. Hidden arguments (`hidden_*`) are not the site's: the HIP runtime fills them.

use codeobj::metadata::{Arg, KernelMetadata};

use crate::site::{Argument, ArgumentValue, Site};

/// The largest argument buffer that is made.
const MAX_BYTES: u64 = 64 << 10;

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
        let explicit: Vec<&Arg> = metadata.args.iter().filter(|arg| !is_hidden(arg)).collect();
        let mut problems = work_group_problems(site, metadata);
        let mut offsets = vec![None; site.arguments.len()];
        for (position, arg) in explicit.iter().enumerate() {
            let described = describe(arg, position);
            let Some((index, argument)) = find(site, arg, position) else {
                problems.push(format!("the kernel takes {described}, which the site does not give"));
                continue;
            };
            let (Some(offset), Some(size)) = (arg.offset.value(), arg.size.value()) else {
                problems.push(format!("the metadata does not say where {described} stands"));
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
        Layout::of(site, offsets.into_iter().flatten().collect())
    }

    /// From the site alone: its offsets, else one after the other, each aligned to its size up to 16 bytes, as C lays out
    /// the parameters of a kernel.
    ///
    /// # Errors
    /// Two arguments share bytes.
    pub fn from_site(site: &Site) -> Result<Layout, Vec<String>> {
        let mut end = 0;
        let offsets = site.arguments.iter().map(|argument| {
            let size = argument.value.size();
            let alignment = size.next_power_of_two().clamp(1, 16);
            let offset = argument.offset.unwrap_or_else(|| u64::next_multiple_of(end, alignment));
            end = offset.saturating_add(size);
            offset
        });
        Layout::of(site, offsets.collect())
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

/// By name where the site has that name, else by position.
fn find<'s>(site: &'s Site, arg: &Arg, position: usize) -> Option<(usize, &'s Argument)> {
    let named = |argument: &Argument| argument.is_named && Some(argument.name.as_str()) == arg.name.as_deref();
    let by_name = site.arguments.iter().enumerate().find(|(_, argument)| named(argument));
    by_name.or_else(|| site.arguments.iter().enumerate().nth(position))
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

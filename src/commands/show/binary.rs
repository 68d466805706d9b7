//! Containers and code objects.

use codeobj::code_object::{Kernel, ObjectKind};
use codeobj::container::{self, Kind, Member};
use codeobj::descriptor::Family;
use codeobj::metadata::{Arg, Count, KernelMetadata};
use codeobj::{CodeObject, Descriptor, Detail};

use super::{Opts, Page};

/// Shows what is at `member` of the file (everything when empty).
pub fn show(bytes: &[u8], file: &str, member: &str, opts: &Opts, page: &mut Page) {
    let members = if member.is_empty() { list(bytes, file, page) } else { select(bytes, file, member, page) };
    for member in &members {
        code_object(member, file, opts, page);
    }
}

/// The paths of the code objects there, a line each.
pub fn paths(bytes: &[u8], file: &str, member: &str, page: &mut Page) {
    let mut contents = Page::default();
    let members =
        if member.is_empty() { list(bytes, file, &mut contents) } else { select(bytes, file, member, &mut contents) };
    page.problems.extend(contents.problems);
    members.iter().for_each(|member| page.line(path(member, file)));
}

/// What a command takes for this code object.
fn path(member: &Member<'_>, file: &str) -> String {
    if member.path.is_empty() { file.to_owned() } else { format!("{file}{}{}", container::STEP, member.path) }
}

fn select<'a>(bytes: &'a [u8], file: &str, member: &str, page: &mut Page) -> Vec<Member<'a>> {
    container::select(bytes, member).unwrap_or_else(|error| {
        page.problems.push(format!("{file}: {error}"));
        Vec::new()
    })
}

/// The container's table of contents; gives the code objects in it.
fn list<'a>(bytes: &'a [u8], file: &str, page: &mut Page) -> Vec<Member<'a>> {
    let contents = match container::open(bytes) {
        Ok(contents) => contents,
        Err(error) => {
            page.problems.push(format!("{file}: {error}"));
            return Vec::new();
        }
    };
    page.problems.extend(contents.problems.iter().map(|p| format!("{file}: {p}")));
    let kind = container::sniff(bytes);
    page.line(format!("{file}: {}, {} bytes", kind.map_or("file", Kind::name), bytes.len()));
    let mut members = Vec::new();
    let mut skipped = contents.skipped;
    for entry in &contents.entries {
        match entry.load() {
            Ok(loaded) => {
                page.problems.extend(loaded.problems.iter().map(|p| format!("{file}: {p}")));
                skipped.extend(loaded.skipped);
                members.extend(loaded.entries);
            }
            Err(error) => page.problems.push(format!("{file}: {error}")),
        }
    }
    if kind != Some(Kind::CodeObject) {
        members.iter().for_each(|m| page.line(format!("  {:<50} code object, {} bytes", m.path, m.bytes.len())));
        skipped.iter().for_each(|s| page.line(format!("  {:<50} skipped: {}", s.path, s.reason)));
    }
    members
}

fn code_object(member: &Member<'_>, file: &str, opts: &Opts, page: &mut Page) {
    let name = path(member, file);
    page.problems.extend(member.problems.iter().map(|p| format!("{name}: {p}")));
    let object = match CodeObject::parse_with(&member.bytes, Detail::Full) {
        Ok(object) => object,
        Err(error) => {
            page.problems.push(format!("{name}: {error}"));
            return;
        }
    };
    page.problems.extend(object.problems.iter().map(|p| format!("{name}: {p}")));
    page.line(format!("\ncode object {name}"));
    page.field(2, "target", &object.target);
    page.field(2, "e_flags", format!("{:#x}", object.e_flags));
    page.field(2, "EI_ABIVERSION", format!("{} ({})", object.abi_version, code_object_version(object.abi_version)));
    page.field(
        2,
        "type",
        match object.kind {
            ObjectKind::Relocatable => "relocatable (not linked)",
            ObjectKind::Dynamic => "shared object (loadable)",
        },
    );
    match &object.metadata {
        None => page.problems.push(format!("{name}: no AMDGPU metadata")),
        Some(metadata) => {
            page.problems.extend(metadata.problems.iter().map(|p| format!("{name}: metadata: {p}")));
            let version = metadata.version.map_or("not recorded".into(), |(major, minor)| format!("{major}.{minor}"));
            page.field(2, "amdhsa.version", version);
            page.field(2, "amdhsa.target", metadata.target.as_deref().unwrap_or("not recorded"));
        }
    }
    for function in object.functions.iter().filter(|f| Page::wants(opts, &f.name)) {
        let bytes = function.code.file_range.len();
        page.field(2, "device function", format!("{} at {:#x}, {bytes} bytes", function.name, function.code.address));
    }
    for kernel in object.kernels.iter().filter(|k| Page::wants(opts, &k.name)) {
        page.problems.extend(kernel.problems.iter().map(|p| format!("{name}: {}: {p}", kernel.name)));
        show_kernel(kernel, &object, opts, page);
    }
}

fn show_kernel(kernel: &Kernel, object: &CodeObject, opts: &Opts, page: &mut Page) {
    page.shown += 1;
    page.line(format!("\n  kernel {}", resources::printable(&kernel.name)));
    match &kernel.code {
        Ok(code) => page.field(
            4,
            "code",
            format!("{:#x}, {} bytes at file offset {:#x}", code.address, code.file_range.len(), code.file_range.start),
        ),
        Err(why) => page.field(4, "code", format!("? {why}")),
    }
    kernel_metadata(&kernel.metadata, page);
    match &kernel.descriptor {
        Err(why) => page.field(4, "descriptor", format!("? {why}")),
        Ok(placed) => {
            page.field(
                4,
                "descriptor",
                format!("{:#x}, 64 bytes at file offset {:#x}", placed.address, placed.file_range.start),
            );
            let family = object.target.processor.as_deref().and_then(Family::of);
            match family {
                Some(family) => descriptor(&placed.descriptor, family, opts, page),
                None => page.line("      its fields are not known for this processor"),
            }
        }
    }
    arguments(&kernel.metadata.args, page);
}

/// The counts and sizes of an entry.
pub fn kernel_metadata(metadata: &KernelMetadata, page: &mut Page) {
    let counts = [
        (".vgpr_count", &metadata.vgpr_count),
        (".agpr_count", &metadata.agpr_count),
        (".sgpr_count", &metadata.sgpr_count),
        (".vgpr_spill_count", &metadata.vgpr_spill_count),
        (".sgpr_spill_count", &metadata.sgpr_spill_count),
        (".private_segment_fixed_size", &metadata.private_segment_fixed_size),
        (".group_segment_fixed_size", &metadata.group_segment_fixed_size),
        (".kernarg_segment_size", &metadata.kernarg_segment_size),
        (".kernarg_segment_align", &metadata.kernarg_segment_align),
        (".max_flat_workgroup_size", &metadata.max_flat_workgroup_size),
        (".wavefront_size", &metadata.wavefront_size),
    ];
    counts.iter().for_each(|(key, count)| page.field(4, key, show_count(count)));
    if let Some([x, y, z]) = metadata.reqd_workgroup_size {
        page.field(4, ".reqd_workgroup_size", format!("{x} {y} {z}"));
    }
    if let Some(dynamic) = metadata.uses_dynamic_stack {
        page.field(4, ".uses_dynamic_stack", dynamic);
    }
}

fn show_count(count: &Count) -> String {
    match count {
        Count::Value(value) => value.to_string(),
        Count::Absent => "not recorded".into(),
        Count::Negative(value) => format!("? {value} is negative"),
        Count::Bad(why) => format!("? {why}"),
    }
}

fn descriptor(descriptor: &Descriptor, family: Family, opts: &Opts, page: &mut Page) {
    for (field, value) in descriptor.fields(family) {
        if value != 0 || opts.all_fields {
            page.field(6, field.name, value);
        }
    }
    let wave32 = family.has_wave32() && descriptor.wavefront_size32();
    page.field(6, "= VGPRs allocated", descriptor.allocated_vgprs(family, wave32));
    if let Some(sgprs) = descriptor.allocated_sgprs(family) {
        page.field(6, "= SGPRs allocated", sgprs);
    }
    if let Some(offset) = descriptor.accum_offset(family) {
        page.field(6, "= first AGPR at", offset);
    }
}

/// The kernarg layout.
pub fn arguments(args: &[Arg], page: &mut Page) {
    if args.is_empty() {
        page.field(4, "arguments", "none recorded");
        return;
    }
    page.line("    arguments");
    page.line(format!("      {:>6} {:>5}  {:<26} {}", "offset", "size", "kind", "name, type, address space"));
    for arg in args {
        let extra = [&arg.name, &arg.type_name, &arg.address_space, &arg.access];
        let extra: Vec<&str> = extra.iter().filter_map(|text| text.as_deref()).collect();
        let kind = arg.value_kind.as_deref().unwrap_or("not recorded");
        page.line(format!(
            "      {:>6} {:>5}  {kind:<26} {}",
            show_count(&arg.offset),
            show_count(&arg.size),
            extra.join(" ")
        ));
    }
}

/// LLVM's AMDGPUUsage, "ELF Header": code object versions by `EI_ABIVERSION`.
fn code_object_version(abi_version: u8) -> &'static str {
    match abi_version {
        0 => "code object v2",
        1 => "code object v3",
        2 => "code object v4",
        3 => "code object v5",
        4 => "code object v6",
        _ => "unknown code object version",
    }
}

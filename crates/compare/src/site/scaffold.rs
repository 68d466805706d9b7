//! A first site file from a code object's metadata, so that only shapes and values are left to fill in.

use std::collections::{HashMap, HashSet};

use codeobj::metadata::{Arg, KernelMetadata};

use crate::pack::{is_hidden, is_passable};

/// The text for one kernel. What the metadata does not know is a sensible number with a comment that says so.
pub fn site_text(kernel: &str, metadata: &KernelMetadata) -> String {
    let block = match (metadata.reqd_workgroup_size, metadata.max_flat_workgroup_size.value()) {
        (Some([x, y, z]), _) => format!("block = [{x}, {y}, {z}]          # .reqd_workgroup_size"),
        (None, Some(most)) => {
            format!("block = [{}, 1, 1]          # at most {most}: .max_flat_workgroup_size", most.min(256))
        }
        (None, None) => "block = [256, 1, 1]".to_owned(),
    };
    let lds = metadata.group_segment_fixed_size.value().unwrap_or_default();
    let mut text = format!(
        "kernel = {}\n\
         grid = [\"ceil_div(N, 256)\", 1, 1]   # work-groups; expressions know dims, cu_count, wave_size\n\
         {block}\n\
         dynamic-lds = 0             # bytes, beside {lds} of static LDS\n\
         # flop = \"2*N\"              # of one launch, for the rate\n\
         # bytes = \"8*N\"             # that one launch must move\n\
         # require = \"bits\"          # or cos=0.999,norm=1e-3, max_abs=, max_rel=, ulp=\n\
         \n[dims]\nN = 1024\n",
        quoted(kernel)
    );
    let hidden = metadata.args.iter().filter(|arg| is_hidden(arg)).count();
    let explicit: Vec<&Arg> = metadata.args.iter().filter(|arg| !is_hidden(arg)).collect();
    for (position, (arg, name)) in explicit.iter().zip(unique_names(&explicit)).enumerate() {
        text.push_str(&argument_text(arg, &name, position));
    }
    if hidden > 0 {
        text.push_str(&format!("\n# {hidden} hidden arguments follow; the runtime fills them.\n"));
    }
    text
}

/// A site names each argument once. Those of the kernel that it has once keep their name, by which they are found; hand-written
/// kernels call dozens of them `pad`, compilers may give none.
fn unique_names(explicit: &[&Arg]) -> Vec<String> {
    let name_of = |arg: &Arg| arg.name.clone().filter(|name| !name.is_empty());
    let mut count: HashMap<String, usize> = HashMap::new();
    for name in explicit.iter().filter_map(|arg| name_of(arg)) {
        *count.entry(name).or_default() += 1;
    }
    let mut taken: HashSet<String> = count.keys().cloned().collect();
    let mut names = Vec::new();
    for (position, arg) in explicit.iter().enumerate() {
        let name = name_of(arg).unwrap_or_else(|| "arg".into());
        if count.get(&name) == Some(&1) {
            names.push(name);
            continue;
        }
        let mut own = format!("{name}_{position}");
        while !taken.insert(own.clone()) {
            own.push('_');
        }
        names.push(own);
    }
    names
}

fn argument_text(arg: &Arg, name: &str, position: usize) -> String {
    let type_name = arg.type_name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let size = arg.size.value().unwrap_or(8);
    let offset = arg.offset.value().map(|offset| format!(", offset {offset}")).unwrap_or_default();
    let kind = arg.value_kind.as_deref().unwrap_or("?");
    let note: String = format!("{kind}{type_name}, {size} bytes{offset}").chars().filter(|c| !c.is_control()).collect();
    let what = match (kind, size) {
        ("by_value", _) if is_padding(arg) => format!("bytes = \"{}\"", "00".repeat(size.min(4096) as usize)),
        ("by_value", 1) => "type = \"i8\"\nvalue = 0".to_owned(),
        ("by_value", 2) => "type = \"i16\"\nvalue = 0".to_owned(),
        ("by_value", 4) => "type = \"i32\"               # or u32, f32\nvalue = \"N\"".to_owned(),
        ("by_value", 8) => "type = \"i64\"               # or u64, f64\nvalue = \"N\"".to_owned(),
        ("by_value", _) => format!("bytes = \"{}\"", "00".repeat(size.min(4096) as usize)),
        (other, _) if !is_passable(other) => {
            "null = true                # `coax compare` cannot pass arguments of this kind".to_owned()
        }
        _ if position == 0 => "role = \"out\"                # in, out, inout, scratch; null = true for none\n\
                               dtype = \"f32\"\nshape = [\"N\"]"
            .to_owned(),
        _ => "role = \"in\"                 # in, out, inout, scratch; null = true for none\n\
              dtype = \"f32\"\nshape = [\"N\"]\nfill = { kind = \"uniform\", low = -1.0, high = 1.0 }"
            .to_owned(),
    };
    format!("\n# {note}\n[[arg]]\nname = {}\n{what}\n", quoted(name))
}

/// What hand-written kernels have between their arguments, so that each has 16 bytes.
fn is_padding(arg: &Arg) -> bool {
    arg.name.as_deref().is_some_and(|name| name.starts_with("pad") || name.starts_with("_pad"))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

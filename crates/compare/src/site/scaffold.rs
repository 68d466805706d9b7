//! A first site file from a code object's metadata. What nobody wrote down is guessed and marked so; what cannot be guessed is
//! left as `"?"`, which no run accepts ([`super::todo`]).

mod types;

use std::collections::{HashMap, HashSet};

use codeobj::metadata::{Arg, KernelMetadata};

use super::todo::MARK;
use crate::pack::{is_hidden, is_passable};

/// What a compiler wrote beside the code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The file, for comments.
    pub file: String,
    /// Work-items of a work-group.
    pub block: Option<u64>,
    /// Dynamic LDS, bytes.
    pub dynamic_lds_bytes: Option<u64>,
    /// Pointers that the compiler appends to the arguments: what they are, and the bytes that a work-group needs there.
    pub appended: Vec<(&'static str, u64)>,
}

/// The text for one kernel.
///
/// # Errors
/// Arguments that `coax compare` cannot pass.
pub fn site_text(kernel: &str, metadata: &KernelMetadata, beside: &Beside) -> Result<String, Vec<String>> {
    let explicit: Vec<&Arg> = metadata.args.iter().filter(|arg| !is_hidden(arg)).collect();
    let names = unique_names(&explicit);
    let problems: Vec<String> = explicit
        .iter()
        .zip(&names)
        .enumerate()
        .filter_map(|(position, (arg, name))| problem(arg, name, position))
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let roles = roles(&explicit, beside);
    let mut text = head(kernel, metadata, beside, &roles);
    for ((arg, name), role) in explicit.iter().zip(&names).zip(&roles) {
        text.push_str(&argument_text(arg, name, role));
    }
    let hidden = metadata.args.len() - explicit.len();
    if hidden > 0 {
        text.push_str(&format!("\n# {hidden} hidden arguments follow; the runtime fills them.\n"));
    }
    Ok(text)
}

/// Whether the text has an output; without one nothing is compared.
pub fn has_output(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("role = \"out\"") || line.starts_with("role = \"inout\""))
}

fn problem(arg: &Arg, name: &str, position: usize) -> Option<String> {
    let kind = arg.value_kind.as_deref().filter(|kind| !is_passable(kind))?;
    Some(format!("argument {position} `{name}` is of kind {kind}, which `coax compare` cannot pass"))
}

fn head(kernel: &str, metadata: &KernelMetadata, beside: &Beside, roles: &[Role]) -> String {
    let most = metadata.max_flat_workgroup_size.value();
    let block = match (metadata.reqd_workgroup_size, beside.block, most) {
        (Some([x, y, z]), ..) => format!("block = [{x}, {y}, {z}]  # .reqd_workgroup_size"),
        (None, Some(threads), _) => format!("block = [{threads}, 1, 1]  # {}", beside.file),
        (None, None, Some(most)) => {
            format!("block = [{}, 1, 1]  # guessed; at most {most}: .max_flat_workgroup_size", most.min(256))
        }
        (None, None, None) => "block = [256, 1, 1]  # guessed".to_owned(),
    };
    let fixed = metadata.group_segment_fixed_size.value().unwrap_or_default();
    let lds = match beside.dynamic_lds_bytes {
        // What a code object has as static LDS is not asked for once more.
        Some(bytes) if fixed == 0 => format!("dynamic-lds = {bytes}  # bytes; {}", beside.file),
        _ => format!("dynamic-lds = 0  # bytes; guessed, beside {fixed} of static LDS"),
    };
    let without_output = match roles.iter().any(|role| matches!(role, Role::Pointer { role: "out" | "inout", .. })) {
        true => "",
        false => "# No argument is written, by the metadata: without an output nothing can be compared.\n",
    };
    format!(
        "# Fill in what is \"?\", look at what is guessed, then: coax site check\n\
         # All keys: docs/sites.md\n{without_output}\
         kernel = {}\n\
         grid = [\"ceil_div(N, 256)\", 1, 1]  # work-groups; guessed\n\
         {block}\n\
         {lds}\n\
         # flop = \"2*N\"     # of one launch, for the rate\n\
         # bytes = \"8*N\"    # that one launch must move\n\
         # require = \"bits\" # or cos=0.999,norm=1e-3, max_abs=, max_rel=, ulp=\n\
         \n[dims]\nN = {MARK}\n",
        quoted(kernel)
    )
}

/// What an argument is taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// By value.
    Value,
    /// A buffer, and where its role is from.
    Pointer { role: &'static str, from: String },
    /// Appended by the compiler, and the bytes that a work-group needs there.
    Appended(&'static str, u64),
}

/// The metadata's word where there is one; else a guess, with at least one output.
fn roles(explicit: &[&Arg], beside: &Beside) -> Vec<Role> {
    let first_appended = explicit.len().saturating_sub(beside.appended.len());
    let is_appended = explicit[first_appended..].iter().all(|arg| !is_value(arg));
    let mut roles: Vec<Role> = explicit.iter().map(|arg| role(arg)).collect();
    if is_appended && beside.appended.len() <= explicit.len() {
        for (role, (what, bytes)) in roles[first_appended..].iter_mut().zip(&beside.appended) {
            *role = Role::Appended(what, *bytes);
        }
    }
    let is_out = |role: &Role| matches!(role, Role::Pointer { role: "out" | "inout", .. });
    let is_guess = |role: &&mut Role| matches!(role, Role::Pointer { from, .. } if from == GUESSED);
    if !roles.iter().any(is_out) {
        // Triton's kernels have their results last, hand-written ones first.
        let mut guesses = roles.iter_mut().filter(is_guess);
        let chosen = if beside.appended.is_empty() { guesses.next() } else { guesses.last() };
        if let Some(Role::Pointer { role, .. }) = chosen {
            *role = "out";
        }
    }
    roles
}

/// Where a role is from when nobody says it.
const GUESSED: &str = "guessed";
/// Names of arguments that kernels write.
const OUTPUTS: [&str; 10] = ["out", "output", "dst", "dest", "result", "res", "c", "d", "y", "o"];

fn role(arg: &Arg) -> Role {
    if is_value(arg) {
        return Role::Value;
    }
    for (key, access) in [(".actual_access", &arg.actual_access), (".access", &arg.access)] {
        let role = match access.as_deref() {
            Some("read_only") => "in",
            Some("write_only") => "out",
            Some("read_write") => "inout",
            _ => continue,
        };
        return Role::Pointer { role, from: key.to_owned() };
    }
    let is_const = arg.is_const == Some(true) || arg.type_name.as_deref().is_some_and(|name| name.contains("const"));
    if is_const {
        return Role::Pointer { role: "in", from: "const".to_owned() };
    }
    let name = arg.name.as_deref().unwrap_or_default().to_lowercase();
    let name = name.trim_start_matches("p_").trim_start_matches("ptr_").trim_end_matches("_ptr").trim_matches('_');
    let is_named_so = OUTPUTS
        .iter()
        .any(|known| name == *known || (known.len() > 2 && (name.starts_with(known) || name.ends_with(known))));
    Role::Pointer { role: if is_named_so { "out" } else { "in" }, from: GUESSED.to_owned() }
}

fn is_value(arg: &Arg) -> bool {
    arg.value_kind.as_deref() == Some("by_value")
}

fn argument_text(arg: &Arg, name: &str, role: &Role) -> String {
    let type_name = arg.type_name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let size = arg.size.value().unwrap_or(8);
    let offset = arg.offset.value().map(|offset| format!(", offset {offset}")).unwrap_or_default();
    let kind = arg.value_kind.as_deref().unwrap_or("?");
    let note: String = format!("{kind}{type_name}, {size} bytes{offset}").chars().filter(|c| !c.is_control()).collect();
    let what = match role {
        Role::Value => value_text(arg, size),
        Role::Pointer { role, from } => pointer_text(arg, role, from),
        Role::Appended(what, 0) => format!("null = true  # Triton's {what}, of which this kernel needs none"),
        Role::Appended(what, bytes) => format!(
            "role = \"scratch\"  # Triton's {what}\ndtype = \"u8\"\nshape = [{MARK}]  # {bytes} bytes for each work-group"
        ),
    };
    format!("\n# {note}\n[[arg]]\nname = {}\n{what}\n", quoted(name))
}

fn value_text(arg: &Arg, size: u64) -> String {
    if is_padding(arg) {
        return format!("bytes = \"{}\"", "00".repeat(size.min(4096) as usize));
    }
    let by_size = match size {
        1 => Some(("i8", " or u8")),
        2 => Some(("i16", " or u16, f16, bf16")),
        4 => Some(("i32", " or u32, f32")),
        8 => Some(("i64", " or u64, f64; a pointer has dtype and shape")),
        _ => None,
    };
    // A vector of floats has the name of one and the size of several.
    let is_scalar =
        |name: &str| super::scalar_bytes(name, super::expr::Value::Int(0)).is_ok_and(|b| b.len() as u64 == size);
    match (types::of(arg).filter(|(_, scalar)| is_scalar(scalar)), by_size) {
        (Some((_, scalar)), _) => format!("type = \"{scalar}\"\nvalue = {MARK}"),
        (None, Some((scalar, others))) => format!("type = \"{scalar}\"  # guessed:{others}\nvalue = {MARK}"),
        (None, None) => format!("bytes = {MARK}  # {size} bytes as hexadecimal digits"),
    }
}

fn pointer_text(arg: &Arg, role: &str, from: &str) -> String {
    let (dtype, said) = match types::of(arg) {
        Some((dtype, _)) => (dtype, ""),
        None => ("f32", "  # guessed"),
    };
    let fill = match dtype {
        _ if role == "out" => "",
        "i8" | "u8" | "i16" | "i32" | "i64" => {
            "\nfill = { kind = \"uniform\", low = 0, high = 100 }  # guessed: are they indices?"
        }
        _ => "\nfill = { kind = \"uniform\", low = -1.0, high = 1.0 }  # guessed",
    };
    let choices = if from == GUESSED { ": in, out, inout, scratch; or null = true alone" } else { "" };
    format!("role = \"{role}\"  # {from}{choices}\ndtype = \"{dtype}\"{said}\nshape = [\"N\"]  # guessed{fill}")
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

/// What hand-written kernels have between their arguments, so that each has 16 bytes.
fn is_padding(arg: &Arg) -> bool {
    arg.name.as_deref().is_some_and(|name| name.starts_with("pad") || name.starts_with("_pad"))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

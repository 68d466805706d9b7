//! One entry of `amdhsa.kernels`.

use super::{Detail, Node, node};

/// A number that decides something, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// The key is not there.
    #[default]
    Absent,
    /// The number.
    Value(u64),
    /// A number below zero.
    Negative(i128),
    /// Something else: the reason, as `"0x30" is not a decimal integer`.
    Bad(String),
}

impl Count {
    /// The number, when there is a usable one.
    pub fn value(&self) -> Option<u64> {
        if let Count::Value(value) = self { Some(*value) } else { None }
    }

    fn from_node(node: &Node<'_>) -> Count {
        match node {
            Node::Int(n) if *n < 0 => Count::Negative(*n),
            Node::Int(n) => {
                u64::try_from(*n).map_or_else(|_| Count::Bad(format!("{n} needs more than 64 bits")), Count::Value)
            }
            // Without quotes it would be a number.
            Node::Str(text) if node::is_decimal_integer(text) && text.parse::<i128>().is_ok() => {
                Count::Bad(format!("\"{text}\" is a quoted text, not a number"))
            }
            Node::Str(text) if node::is_decimal_integer(text) => {
                Count::Bad(format!("a number of {} digits needs more than 64 bits", text.trim_start_matches('-').len()))
            }
            Node::Str(text) => Count::Bad(format!("\"{}\" is not a decimal integer", shortened(text))),
            other => Count::Bad(format!("{} is not a decimal integer", other.kind())),
        }
    }
}

/// Long texts are cut for messages.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// What the metadata says about one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelMetadata {
    /// `.name`
    pub name: Option<String>,
    /// `.symbol`, the kernel descriptor's: `<name>.kd`.
    pub symbol: Option<String>,
    /// `.vgpr_count`; includes AGPRs where both share one file (gfx90a and later).
    pub vgpr_count: Count,
    /// `.agpr_count`
    pub agpr_count: Count,
    /// `.sgpr_count`; includes VCC, FLAT_SCRATCH and XNACK.
    pub sgpr_count: Count,
    /// `.vgpr_spill_count`
    pub vgpr_spill_count: Count,
    /// `.sgpr_spill_count`
    pub sgpr_spill_count: Count,
    /// `.private_segment_fixed_size`, bytes of scratch per work-item.
    pub private_segment_fixed_size: Count,
    /// `.group_segment_fixed_size`, bytes of LDS per work-group.
    pub group_segment_fixed_size: Count,
    /// `.kernarg_segment_size`, bytes.
    pub kernarg_segment_size: Count,
    /// `.kernarg_segment_align`, bytes.
    pub kernarg_segment_align: Count,
    /// `.max_flat_workgroup_size`, work-items.
    pub max_flat_workgroup_size: Count,
    /// `.wavefront_size`, lanes.
    pub wavefront_size: Count,
    /// `.reqd_workgroup_size`, work-items in x, y, z.
    pub reqd_workgroup_size: Option<[u64; 3]>,
    /// `.uses_dynamic_stack`: the private segment size is only a part of the scratch in use.
    pub uses_dynamic_stack: Option<bool>,
    /// `.args`, under [`Detail::Full`] only.
    pub args: Vec<Arg>,
    /// Repeated keys, and values of a wrong type.
    pub problems: Vec<String>,
}

/// One entry of a kernel's `.args`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arg {
    /// `.name`
    pub name: Option<String>,
    /// `.offset`, bytes from the start of the kernarg segment.
    pub offset: Count,
    /// `.size`, bytes.
    pub size: Count,
    /// `.value_kind`: `by_value`, `global_buffer`, `hidden_block_count_x`, …
    pub value_kind: Option<String>,
    /// `.address_space`
    pub address_space: Option<String>,
    /// `.access`, of the language: `read_only`, `write_only`, `read_write`.
    pub access: Option<String>,
    /// `.actual_access`, of the code, with the same words.
    pub actual_access: Option<String>,
    /// `.is_const`: the argument points to `const`.
    pub is_const: Option<bool>,
    /// `.value_type`, which older compilers wrote: `f32`, `i64`, `struct`, …
    pub value_type: Option<String>,
    /// `.type_name`, as in the source language.
    pub type_name: Option<String>,
}

impl KernelMetadata {
    pub(super) fn from_pairs(pairs: &[(Node<'_>, Node<'_>)], detail: Detail) -> KernelMetadata {
        let mut kernel = KernelMetadata { problems: node::repeated_keys(pairs), ..KernelMetadata::default() };
        // Backwards, so that of a repeated key the first value stays.
        for (key, value) in pairs.iter().rev() {
            match key.as_str() {
                Some(key) => kernel.set(key, value, detail),
                None => kernel.problems.push(format!("a key of the entry is {}, expected a text", key.kind())),
            }
        }
        kernel
    }

    fn set(&mut self, key: &str, value: &Node<'_>, detail: Detail) {
        let count = match key {
            ".vgpr_count" => &mut self.vgpr_count,
            ".agpr_count" => &mut self.agpr_count,
            ".sgpr_count" => &mut self.sgpr_count,
            ".vgpr_spill_count" => &mut self.vgpr_spill_count,
            ".sgpr_spill_count" => &mut self.sgpr_spill_count,
            ".private_segment_fixed_size" => &mut self.private_segment_fixed_size,
            ".group_segment_fixed_size" => &mut self.group_segment_fixed_size,
            ".kernarg_segment_size" => &mut self.kernarg_segment_size,
            ".kernarg_segment_align" => &mut self.kernarg_segment_align,
            ".max_flat_workgroup_size" => &mut self.max_flat_workgroup_size,
            ".wavefront_size" => &mut self.wavefront_size,
            _ => return self.set_other(key, value, detail),
        };
        *count = Count::from_node(value);
    }

    fn set_other(&mut self, key: &str, value: &Node<'_>, detail: Detail) {
        let understood = match key {
            ".name" => {
                self.name = text_of(value);
                self.name.is_some()
            }
            ".symbol" => {
                self.symbol = text_of(value);
                self.symbol.is_some()
            }
            ".reqd_workgroup_size" => {
                self.reqd_workgroup_size = value.as_u64s();
                self.reqd_workgroup_size.is_some()
            }
            ".uses_dynamic_stack" => {
                self.uses_dynamic_stack = flag_of(value);
                self.uses_dynamic_stack.is_some()
            }
            ".args" if detail == Detail::Full => self.read_args(value),
            _ => true,
        };
        if !understood {
            self.problems.push(format!("`{key}` is {}, which is not what it should be", value.kind()));
        }
    }

    fn read_args(&mut self, value: &Node<'_>) -> bool {
        let Node::List(entries) = value else { return false };
        self.args.clear();
        for (index, entry) in entries.iter().enumerate() {
            match entry {
                Node::Map(pairs) => self.args.push(Arg::from_pairs(pairs)),
                other => self.problems.push(format!("entry {index} of `.args` is {}, expected a map", other.kind())),
            }
        }
        true
    }
}

impl Arg {
    fn from_pairs(pairs: &[(Node<'_>, Node<'_>)]) -> Arg {
        let mut arg = Arg::default();
        for (key, value) in pairs.iter().rev() {
            match key.as_str() {
                Some(".name") => arg.name = text_of(value),
                Some(".offset") => arg.offset = Count::from_node(value),
                Some(".size") => arg.size = Count::from_node(value),
                Some(".value_kind") => arg.value_kind = text_of(value),
                Some(".address_space") => arg.address_space = text_of(value),
                Some(".access") => arg.access = text_of(value),
                Some(".actual_access") => arg.actual_access = text_of(value),
                Some(".is_const") => arg.is_const = flag_of(value),
                Some(".value_type") => arg.value_type = text_of(value),
                Some(".type_name") => arg.type_name = text_of(value),
                _ => {}
            }
        }
        arg
    }
}

/// A name. YAML reads a kernel called `123` or `true` as something else than a text: it is a name all the same.
fn text_of(value: &Node<'_>) -> Option<String> {
    match value {
        Node::Str(text) => Some(text.to_string()),
        Node::Int(number) => Some(number.to_string()),
        Node::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// `.uses_dynamic_stack`: MessagePack writers use a truth value, some a number.
fn flag_of(value: &Node<'_>) -> Option<bool> {
    match value {
        Node::Bool(flag) => Some(*flag),
        Node::Int(number @ (0 | 1)) => Some(*number == 1),
        _ => None,
    }
}

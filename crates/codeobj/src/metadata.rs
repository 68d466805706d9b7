//! Kernel metadata: one typed view of what the YAML text and the MessagePack note say.
//!
//! Both encodings become a neutral [`Node`] tree; this file gives it meaning. Keys and value kinds are those of "Code
//! Object V3–V6 Metadata" in LLVM's AMDGPUUsage. What is odd but readable is kept and named in `problems`.

mod kernel;
mod msgpack;
mod node;
mod regular;
mod yaml;

pub use kernel::{Arg, Count, KernelMetadata};
pub use node::Node;

use crate::error::Result;

/// How much of the metadata a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything but the kernels' arguments, which are most of the text.
    Counts,
    /// Arguments too.
    Full,
}

/// The metadata of one code object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// `amdhsa.target` as spelled; often absent in hand-written code objects.
    pub target: Option<String>,
    /// `amdhsa.version`: major, minor. It does not follow the ELF header's ABI version.
    pub version: Option<(u64, u64)>,
    /// One per entry of `amdhsa.kernels`, in order, nameless and repeated ones included.
    pub kernels: Vec<KernelMetadata>,
    /// Whether the key `amdhsa.kernels` is there at all.
    pub kernels_listed: bool,
    /// What contradicts the format outside the kernels' entries.
    pub problems: Vec<String>,
}

impl Metadata {
    /// Reads the text between `.amdgpu_metadata` and `.end_amdgpu_metadata`.
    ///
    /// # Errors
    /// `Malformed` with line and column within `text` when it is not one YAML document; `Unsupported` for anchors,
    /// aliases and tags; `Limit` for deeper nesting than metadata ever has. Wrong *content* is no error: see
    /// [`problems`](Self::problems).
    pub fn from_yaml(text: &str, detail: Detail) -> Result<Metadata> {
        match regular::parse(text, detail) {
            Some(root) => Ok(Metadata::from_node(&root, detail)),
            None => Metadata::from_yaml_by_the_book(text, detail),
        }
    }

    /// [`from_yaml`](Self::from_yaml) without its fast path; tests hold that the two agree.
    pub fn from_yaml_by_the_book(text: &str, detail: Detail) -> Result<Metadata> {
        Ok(Metadata::from_node(&yaml::parse(text)?, detail))
    }

    /// Reads the descriptor of an `NT_AMDGPU_METADATA` note.
    ///
    /// # Errors
    /// `Malformed` with the offset within `bytes`; `Limit` as for YAML.
    pub fn from_msgpack(bytes: &[u8], detail: Detail) -> Result<Metadata> {
        Ok(Metadata::from_node(&msgpack::parse(bytes)?, detail))
    }

    /// The tree behind the descriptor of an `NT_AMDGPU_METADATA` note, every key of it.
    ///
    /// # Errors
    /// As [`from_msgpack`](Self::from_msgpack).
    pub fn tree(bytes: &[u8]) -> Result<Node<'_>> {
        msgpack::parse(bytes)
    }

    /// Gives meaning to a tree. Never fails: what is wrong goes to `problems`.
    pub fn from_node(root: &Node<'_>, detail: Detail) -> Metadata {
        let mut metadata = Metadata::default();
        let Node::Map(pairs) = root else {
            metadata.problems.push(format!("metadata is {}, expected a map", root.kind()));
            return metadata;
        };
        metadata.problems.extend(node::repeated_keys(pairs));
        let get = |key: &str| pairs.iter().find(|(k, _)| k.is_str(key)).map(|(_, v)| v);
        if let Some(target) = get("amdhsa.target") {
            match target.as_str() {
                Some(text) => metadata.target = Some(text.to_string()),
                None => metadata.problems.push(format!("amdhsa.target is {}, expected a text", target.kind())),
            }
        }
        if let Some(version) = get("amdhsa.version") {
            metadata.version = version.as_u64s().map(|[major, minor]| (major, minor));
            if metadata.version.is_none() {
                metadata.problems.push("amdhsa.version is not a list of two numbers".to_string());
            }
        }
        if let Some(kernels) = get("amdhsa.kernels") {
            metadata.kernels_listed = true;
            metadata.read_kernels(kernels, detail);
        }
        metadata
    }

    fn read_kernels(&mut self, kernels: &Node<'_>, detail: Detail) {
        let Node::List(entries) = kernels else {
            self.problems.push(format!("amdhsa.kernels is {}, expected a list", kernels.kind()));
            return;
        };
        self.kernels.reserve(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            match entry {
                Node::Map(pairs) => self.kernels.push(KernelMetadata::from_pairs(pairs, detail)),
                other => {
                    self.problems.push(format!("entry {index} of amdhsa.kernels is {}, expected a map", other.kind()));
                }
            }
        }
    }
}

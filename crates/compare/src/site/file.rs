//! A site file as it is written: TOML with expressions still as text. [`super::Site`] is what it means.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SiteFile {
    /// What the site is called; the file's name else.
    pub name: Option<String>,
    /// The kernel, or several names of which the images have one.
    pub kernel: OneOrMore<String>,
    /// Named sizes, each a number or an expression over those that stand in front of it in the alphabet or not: any order.
    #[serde(default)]
    pub dims: BTreeMap<String, Spanned<Number>>,
    /// Work-groups.
    pub grid: Spanned<Vec<Number>>,
    /// Work-items of a work-group.
    pub block: Spanned<Vec<Number>>,
    /// Bytes of dynamic LDS.
    pub dynamic_lds: Option<Spanned<Number>>,
    /// Floating-point operations of one launch, for the rate.
    pub flop: Option<Spanned<Number>>,
    /// Bytes that one launch must move at least, for the rate.
    pub bytes: Option<Spanned<Number>>,
    /// What outputs must fulfil that do not say it themselves.
    pub require: Option<String>,
    /// Whether it is meant that no input has other values in other rounds.
    #[serde(default)]
    pub fixed_inputs: bool,
    /// The arguments, in the order of the kernel's.
    #[serde(default)]
    pub arg: Vec<Spanned<ArgEntry>>,
}

/// One value or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// One.
    One(T),
    /// Several.
    More(Vec<T>),
}

impl<T: Clone> OneOrMore<T> {
    /// As a list.
    pub fn to_vec(&self) -> Vec<T> {
        match self {
            OneOrMore::One(value) => vec![value.clone()],
            OneOrMore::More(values) => values.clone(),
        }
    }
}

/// A number, or an expression.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// An expression over the dimensions.
    Text(String),
}

/// One argument.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArgEntry {
    /// Its name in the metadata; where there is none, a name for messages.
    pub name: Option<String>,
    /// Its place among the explicit arguments, from 0; the entry's own place else.
    pub position: Option<usize>,
    /// Its offset in the argument buffer, for images without metadata; else after the argument before, aligned.
    pub offset: Option<u64>,
    /// Element type of a buffer.
    pub dtype: Option<String>,
    /// Elements of a buffer in each dimension.
    pub shape: Option<Vec<Number>>,
    /// `in`, `out`, `inout`; `scratch`: written by the kernel and not compared.
    pub role: Option<Role>,
    /// What stands in a buffer before the launch.
    pub fill: Option<FillEntry>,
    /// What this output must fulfil.
    pub require: Option<String>,
    /// `allowed`: the kernel need not write all of this output.
    pub unwritten: Option<Unwritten>,
    /// Type of a scalar: `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, `i8`, `u8`, `i16`, `u16`, `f16`, `bf16`.
    #[serde(rename = "type")]
    pub scalar_type: Option<String>,
    /// Value of a scalar.
    pub value: Option<Number>,
    /// A pointer to nothing.
    pub null: Option<bool>,
    /// The bytes of an argument that is passed by value and is no scalar, as hexadecimal digits.
    pub bytes: Option<String>,
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads it; it must be the same afterwards.
    In,
    /// Writes it.
    Out,
    /// Reads and writes it.
    InOut,
    /// Writes it; what stands there afterwards is nobody's business.
    Scratch,
}

/// What the site says of elements that a kernel does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unwritten {
    /// They are meant.
    Allowed,
}

/// A fill. Which members belong to which kind is checked where it is made.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FillEntry {
    /// `bits`, `uniform`, `normal`, `bytes`, `range`, `constant`, `one-hot`, `file`.
    pub kind: String,
    /// Least value of `uniform`.
    pub low: Option<Number>,
    /// Value above those of `uniform`.
    pub high: Option<Number>,
    /// Mean of `normal`.
    pub mean: Option<Number>,
    /// Standard deviation of `normal`.
    pub deviation: Option<Number>,
    /// Which bits `bytes` keeps of each draw of `std::mt19937`, one for each byte over all buffers.
    pub mask: Option<Number>,
    /// First value of `range`.
    pub start: Option<Number>,
    /// Step of `range`.
    pub step: Option<Number>,
    /// Value of `constant` and `one-hot`.
    pub value: Option<Number>,
    /// Index of `one-hot`.
    pub index: Option<Number>,
    /// Path of `file` (`.npy`), relative to the site file.
    pub path: Option<PathBuf>,
    /// Share of elements that are special values: ±0, denormals, ±Inf, NaN.
    pub special_rate: Option<f64>,
}

//! How a kernel is launched: which arguments, how many work-groups, what is compared. A site file ([`mod@file`]) says it for any
//! kernel; [`builtin`] holds the six of the original program; [`scaffold`] writes a first one from a code object.

pub mod builtin;
pub mod expr;
pub mod file;
pub mod fingerprint;
pub mod scaffold;
pub mod todo;

use std::collections::BTreeSet;
use std::path::Path;

use expr::{Names, Value};
use file::{ArgEntry, FillEntry, Number, OneOrMore, Role, SiteFile, Unwritten};
use toml::Spanned;

use crate::dtype::Dtype;
use crate::fill::Fill;
use crate::requirement::Requirement;

/// A site file is small; a larger one is none.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The largest buffer that an argument may have.
const MAX_BUFFER_BYTES: u64 = 1 << 40;

/// What expressions know of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `cu_count`.
    pub compute_units: u32,
    /// `wave_size`.
    pub wave_size: u32,
}

/// A site with all expressions evaluated for one device.
#[derive(Clone, Debug)]
pub struct Site {
    /// What it is called.
    pub name: String,
    /// Where it is from, for messages: its file's path, or its name.
    pub origin: String,
    /// The kernel's name, or several of which the images have one.
    pub kernels: Vec<String>,
    /// Named sizes, for the report.
    pub dims: Names,
    /// Work-groups.
    pub grid: [u32; 3],
    /// Work-items of a work-group.
    pub block: [u32; 3],
    /// Dynamic LDS.
    pub dynamic_lds_bytes: u32,
    /// Floating-point operations of one launch.
    pub flop: Option<f64>,
    /// Bytes that one launch must move at least.
    pub bytes: Option<f64>,
    /// Whether it is meant that no input has other values in other rounds.
    pub has_fixed_inputs: bool,
    /// The arguments, by position.
    pub arguments: Vec<Argument>,
}

/// One explicit argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// For the metadata and for messages.
    pub name: String,
    /// Whether the site gives it, or it was made from the position.
    pub is_named: bool,
    /// Where it stands in the argument buffer, when the site says so.
    pub offset: Option<u64>,
    /// Whether it is given as bytes, of whose alignment nothing is known.
    pub is_structure: bool,
    /// What is passed.
    pub value: ArgumentValue,
}

/// What an argument passes.
#[derive(Clone, Debug)]
pub enum ArgumentValue {
    /// The address of a buffer.
    Buffer(Buffer),
    /// A pointer to nothing.
    Null,
    /// These bytes: a scalar in the device's byte order, or a structure.
    Bytes(Vec<u8>),
}

impl ArgumentValue {
    /// Its size in the argument buffer.
    pub fn size(&self) -> u64 {
        match self {
            ArgumentValue::Buffer(_) | ArgumentValue::Null => 8,
            ArgumentValue::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// A buffer of the device.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Element type.
    pub dtype: Dtype,
    /// Elements in each dimension.
    pub shape: Vec<u64>,
    /// Elements.
    pub elements: u64,
    /// Bytes.
    pub bytes: u64,
    /// What the kernel does with it.
    pub role: Role,
    /// What stands in it before the launch; outputs are filled with poison.
    pub fill: Option<Fill>,
    /// What it must fulfil, when the site says so.
    pub requirement: Option<Requirement>,
    /// Whether it is meant that kernels do not write all of it.
    pub may_stay_unwritten: bool,
}

impl Buffer {
    /// Whether its content afterwards is compared.
    pub fn is_compared(&self) -> bool {
        matches!(self.role, Role::Out | Role::InOut)
    }
}

impl Site {
    /// Reads a site file. The error has file, line and column where they are known.
    pub fn read(path: &Path, device: DeviceFacts) -> Result<Site, String> {
        let shown = path.display();
        let size = std::fs::metadata(path).map_err(|e| format!("{shown}: {e}"))?.len();
        if size > MAX_FILE_BYTES {
            return Err(format!("{shown}: {size} bytes; a site file has at most {MAX_FILE_BYTES}"));
        }
        let text = std::fs::read_to_string(path).map_err(|e| format!("{shown}: {e}"))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new(""));
        let site = Site::parse(&text, &name, folder, device).map_err(|why| format!("{shown}:{why}"))?;
        Ok(Site { origin: shown.to_string(), ..site })
    }

    /// Reads the text of a site file; relative paths in it are below `folder`. The error begins with the line, and the column
    /// where it is known, or with a space.
    pub fn parse(text: &str, name: &str, folder: &Path, device: DeviceFacts) -> Result<Site, String> {
        let file: SiteFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let column =
                text.get(..start).and_then(|before| before.rsplit('\n').next()).map_or(0, |row| row.chars().count());
            format!("{}:{}: {}", line_of(text, start), column + 1, error.message())
        })?;
        todo::refuse(text)?;
        Resolver::new(&file, folder, device).and_then(|resolver| resolver.site(name)).map_err(|problem| {
            let line = problem.at.map_or_else(String::new, |at| line_of(text, at).to_string());
            format!("{line}{} {}", if line.is_empty() { "" } else { ":" }, problem.why)
        })
    }

    /// The buffers with their argument's name, in order.
    pub fn buffers(&self) -> impl Iterator<Item = (&str, &Buffer)> {
        self.arguments.iter().filter_map(|argument| match &argument.value {
            ArgumentValue::Buffer(buffer) => Some((argument.name.as_str(), buffer)),
            _ => None,
        })
    }
}

/// Lines are counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// What is wrong with a site, and at which byte of its file.
struct Problem {
    at: Option<usize>,
    why: String,
}

impl From<String> for Problem {
    fn from(why: String) -> Problem {
        Problem { at: None, why }
    }
}

/// Says where it is.
fn at<T, U>(place: &Spanned<T>) -> impl Fn(U) -> Problem
where
    U: Into<String>,
{
    let start = place.span().start;
    move |why| Problem { at: Some(start), why: why.into() }
}

struct Resolver<'f> {
    file: &'f SiteFile,
    folder: &'f Path,
    names: Names,
    dims: Names,
}

impl<'f> Resolver<'f> {
    fn new(file: &'f SiteFile, folder: &'f Path, device: DeviceFacts) -> Result<Self, Problem> {
        let known = [("cu_count", device.compute_units), ("wave_size", device.wave_size)];
        let mut names: Names =
            known.iter().map(|(name, value)| ((*name).to_owned(), Value::Int((*value).into()))).collect();
        for (name, _) in known {
            if let Some(own) = file.dims.get(name) {
                return Err(at(own)(format!("dims.{name}: the device says what {name} is")));
            }
        }
        // Dimensions may use each other in any order: those whose names are known come first, until none is left.
        let mut left: Vec<(&String, &Spanned<Number>)> = file.dims.iter().collect();
        while !left.is_empty() {
            let before = left.len();
            let mut failure = None;
            left.retain(|(name, number)| match dimension(number.get_ref(), &names) {
                Ok(value) => {
                    names.insert((*name).clone(), value);
                    false
                }
                Err(why) => {
                    failure = Some(at(number)(format!("dims.{name}: {why}")));
                    true
                }
            });
            if let Some(failure) = failure.filter(|_| left.len() == before) {
                return Err(failure);
            }
        }
        let dims = names.iter().filter(|(name, _)| file.dims.contains_key(*name));
        let dims = dims.map(|(name, value)| (name.clone(), *value)).collect();
        Ok(Resolver { file, folder, names, dims })
    }

    fn site(&self, name: &str) -> Result<Site, Problem> {
        let file = self.file;
        let kernels = file.kernel.to_vec();
        if kernels.is_empty() || kernels.iter().any(String::is_empty) {
            return Err("kernel: expected a name".to_owned().into());
        }
        let lds = file
            .dynamic_lds
            .as_ref()
            .map(|number| self.whole(number.get_ref(), "dynamic-lds", 0, u32::MAX.into()).map_err(at(number)));
        let name = file.name.clone().unwrap_or_else(|| name.to_owned());
        Ok(Site {
            origin: name.clone(),
            name,
            kernels,
            dims: self.dims.clone(),
            grid: self.extent(file.grid.get_ref(), "grid").map_err(at(&file.grid))?,
            block: self.extent(file.block.get_ref(), "block").map_err(at(&file.block))?,
            dynamic_lds_bytes: lds.transpose()?.unwrap_or_default() as u32,
            flop: self.rate(file.flop.as_ref(), "flop")?,
            bytes: self.rate(file.bytes.as_ref(), "bytes")?,
            has_fixed_inputs: file.fixed_inputs,
            arguments: self.arguments()?,
        })
    }

    /// An amount above 0.
    fn rate(&self, number: Option<&Spanned<Number>>, member: &str) -> Result<Option<f64>, Problem> {
        let Some(placed) = number else { return Ok(None) };
        let number = placed.get_ref();
        let value = evaluate(number, &self.names).map_err(|why| at(placed)(format!("{member}: {why}")))?.as_f64();
        match value > 0.0 && value.is_finite() {
            true => Ok(Some(value)),
            false => Err(at(placed)(format!("{member}: {} is not above 0", self.shown(number, value)))),
        }
    }

    /// Three numbers above 0; those that are missing are 1.
    fn extent(&self, numbers: &[Number], member: &str) -> Result<[u32; 3], String> {
        if numbers.is_empty() || numbers.len() > 3 {
            return Err(format!("{member}: {} numbers, expected 1 to 3", numbers.len()));
        }
        let mut extent = [1; 3];
        for (place, number) in extent.iter_mut().zip(numbers) {
            *place = self.whole(number, member, 1, u32::MAX.into())? as u32;
        }
        Ok(extent)
    }

    /// A whole number from `least` to `most`.
    fn whole(&self, number: &Number, member: &str, least: u64, most: u64) -> Result<u64, String> {
        match evaluate(number, &self.names).map_err(|why| format!("{member}: {why}"))? {
            Value::Int(value) => match u64::try_from(value) {
                Ok(value) if (least..=most).contains(&value) => Ok(value),
                _ => Err(format!("{member}: {} is not between {least} and {most}", self.shown(number, value))),
            },
            Value::Float(value) => Err(format!("{member}: {} is no whole number", self.shown(number, value))),
        }
    }

    /// A value, and what it comes from: `ceil_div(N, 256)` = 0 (N = -5).
    fn shown(&self, number: &Number, value: impl std::fmt::Display) -> String {
        match number {
            Number::Text(name) if self.names.contains_key(name.trim()) => format!("`{name}` = {value}"),
            Number::Text(text) => format!("`{text}` = {value}{}", self.values_in(&[number])),
            _ => value.to_string(),
        }
    }

    /// The values of the names in expressions, in brackets; nothing without names.
    fn values_in(&self, numbers: &[&Number]) -> String {
        let texts = numbers.iter().filter_map(|number| if let Number::Text(text) = number { Some(text) } else { None });
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words = texts.flat_map(|text| text.split(move |character| !is_part(character)));
        let used: BTreeSet<&str> = words.filter(|word| self.names.contains_key(*word)).collect();
        let values: Vec<String> =
            used.into_iter().filter_map(|name| self.names.get(name).map(|value| format!("{name} = {value}"))).collect();
        if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) }
    }

    /// By position, each exactly once.
    fn arguments(&self) -> Result<Vec<Argument>, Problem> {
        let count = self.file.arg.len();
        let mut places: Vec<Option<Argument>> = vec![None; count];
        for (index, placed) in self.file.arg.iter().enumerate() {
            let entry = placed.get_ref();
            let position = entry.position.unwrap_or(index);
            let name = entry.name.clone().unwrap_or_else(|| format!("argument {position}"));
            let wrong = |why: String| at(placed)(format!("arg `{name}`: {why}"));
            let is_there = places.iter().flatten().any(|other| other.name == name);
            match places.get_mut(position) {
                None => return Err(wrong(format!("position {position} of {count} arguments; positions start at 0"))),
                Some(Some(_)) => return Err(wrong(format!("position {position} is taken by another"))),
                Some(_) if is_there => return Err(wrong("the name is there twice".into())),
                Some(place) => *place = Some(self.argument(entry, name.clone()).map_err(at(placed))?),
            }
        }
        Ok(places.into_iter().flatten().collect())
    }

    fn argument(&self, entry: &ArgEntry, name: String) -> Result<Argument, String> {
        let wrong = |why: &str| format!("arg `{name}`: {why}");
        let kinds = [
            (entry.dtype.is_some() || entry.shape.is_some(), "dtype and shape (a buffer)"),
            (entry.scalar_type.is_some() || entry.value.is_some(), "type and value (a scalar)"),
            (entry.null == Some(true), "null (a pointer to nothing)"),
            (entry.bytes.is_some(), "bytes (a structure)"),
        ];
        let given: Vec<&str> = kinds.iter().filter(|(given, _)| *given).map(|(_, kind)| *kind).collect();
        if given.len() != 1 {
            let all: Vec<&str> = kinds.iter().map(|(_, kind)| *kind).collect();
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            return Err(wrong(&format!("expected one of {}; found {found}", all.join(", "))));
        }
        let is_buffer = entry.dtype.is_some() || entry.shape.is_some();
        let of_buffers =
            entry.role.is_some() || entry.fill.is_some() || entry.require.is_some() || entry.unwritten.is_some();
        if !is_buffer && of_buffers {
            return Err(wrong("role, fill, require and unwritten belong to buffers"));
        }
        let value = if is_buffer {
            ArgumentValue::Buffer(self.buffer(entry).map_err(|why| wrong(&why))?)
        } else if let Some(digits) = &entry.bytes {
            ArgumentValue::Bytes(hex_bytes(digits).ok_or_else(|| wrong("bytes: expected pairs of hexadecimal digits"))?)
        } else if entry.null == Some(true) {
            ArgumentValue::Null
        } else {
            let (Some(scalar), Some(number)) = (&entry.scalar_type, &entry.value) else {
                return Err(wrong("a scalar needs both type and value"));
            };
            let value = evaluate(number, &self.names).map_err(|why| wrong(&why))?;
            ArgumentValue::Bytes(scalar_bytes(scalar, value).map_err(|why| wrong(&why))?)
        };
        Ok(Argument {
            is_named: entry.name.is_some(),
            name,
            offset: entry.offset,
            is_structure: entry.bytes.is_some(),
            value,
        })
    }

    fn buffer(&self, entry: &ArgEntry) -> Result<Buffer, String> {
        let (Some(dtype), Some(shape)) = (&entry.dtype, &entry.shape) else {
            return Err("a buffer needs both dtype and shape".into());
        };
        let dtype: Dtype = dtype.parse().map_err(|e: crate::Error| e.to_string())?;
        let values = self.values_in(&shape.iter().collect::<Vec<_>>());
        let shape: Vec<u64> =
            shape.iter().map(|number| self.whole(number, "shape", 0, MAX_BUFFER_BYTES)).collect::<Result<_, _>>()?;
        let elements = shape.iter().try_fold(1u64, |product, n| product.checked_mul(*n));
        let bytes = elements.and_then(|elements| dtype.bytes_for(elements)).filter(|bytes| *bytes <= MAX_BUFFER_BYTES);
        let (Some(elements), Some(bytes)) = (elements, bytes) else {
            return Err(format!("shape {shape:?} of {}{values} is larger than {MAX_BUFFER_BYTES} bytes", dtype.name()));
        };
        if elements == 0 {
            return Err(format!("shape {shape:?}{values} has no elements"));
        }
        let role = entry.role.unwrap_or(if entry.fill.is_some() { Role::In } else { Role::Out });
        if matches!(role, Role::In | Role::InOut) && entry.fill.is_none() {
            return Err("an input needs a fill".into());
        }
        if role == Role::Out && entry.fill.is_some() {
            return Err("an output has no fill: it is filled with a pattern that shows what was not written".into());
        }
        let compared = matches!(role, Role::Out | Role::InOut);
        if !compared && entry.require.is_some() {
            return Err("require belongs to outputs".into());
        }
        if !compared && entry.unwritten.is_some() {
            return Err("unwritten belongs to outputs".into());
        }
        let require = entry.require.as_ref().or(self.file.require.as_ref()).filter(|_| compared);
        Ok(Buffer {
            dtype,
            shape,
            elements,
            bytes,
            role,
            fill: entry.fill.as_ref().map(|fill| self.fill(fill)).transpose()?,
            requirement: require.map(|text| text.parse::<Requirement>()).transpose().map_err(|e| e.to_string())?,
            may_stay_unwritten: entry.unwritten == Some(Unwritten::Allowed),
        })
    }

    fn fill(&self, entry: &FillEntry) -> Result<Fill, String> {
        let mut members = Members { entry, used: vec!["kind", "special-rate"] };
        let mut number = |member: &'static str, otherwise: Option<f64>| -> Result<f64, String> {
            let found = members.number(member);
            match (found, otherwise) {
                (Some(number), _) => {
                    evaluate(number, &self.names).map(Value::as_f64).map_err(|why| format!("fill.{member}: {why}"))
                }
                (None, Some(value)) => Ok(value),
                (None, None) => Err(format!("fill `{}` needs `{member}`", entry.kind)),
            }
        };
        let fill = match entry.kind.as_str() {
            "bits" => Fill::Bits,
            "uniform" => Fill::Uniform { low: number("low", Some(0.0))?, high: number("high", Some(1.0))? },
            "normal" => Fill::Normal { mean: number("mean", Some(0.0))?, deviation: number("deviation", Some(1.0))? },
            "bytes" => {
                let mask = number("mask", Some(255.0))?;
                let is_byte = mask.fract() == 0.0 && (0.0..=255.0).contains(&mask);
                Fill::MaskedBytes {
                    mask: if is_byte { mask as u8 } else { return Err(format!("fill.mask: {mask} is no byte")) },
                }
            }
            "range" => Fill::Range { start: number("start", Some(0.0))?, step: number("step", Some(1.0))? },
            "constant" => Fill::Constant(number("value", None)?),
            "one-hot" => {
                let index = number("index", None)?;
                let is_index = index.fract() == 0.0 && (0.0..=MAX_BUFFER_BYTES as f64).contains(&index);
                if !is_index {
                    return Err(format!("fill.index: {index} is no index"));
                }
                Fill::OneHot { index: index as u64, value: number("value", Some(1.0))? }
            }
            "file" => {
                members.used.push("path");
                Fill::File(self.folder.join(entry.path.as_ref().ok_or("fill `file` needs `path`")?))
            }
            other => {
                return Err(format!(
                    "`{other}` is no fill; there are bits, uniform, normal, bytes, range, constant, one-hot, file"
                ));
            }
        };
        members.refuse_unused()?;
        Ok(match entry.special_rate {
            Some(rate) => Fill::Special { fill: Box::new(fill), rate },
            None => fill,
        })
    }
}

/// The members of a fill; one that its kind does not use is a mistake.
struct Members<'e> {
    entry: &'e FillEntry,
    used: Vec<&'static str>,
}

impl<'e> Members<'e> {
    fn all(&self) -> [(&'static str, Option<&'e Number>); 9] {
        let e = self.entry;
        [
            ("low", e.low.as_ref()),
            ("high", e.high.as_ref()),
            ("mean", e.mean.as_ref()),
            ("deviation", e.deviation.as_ref()),
            ("mask", e.mask.as_ref()),
            ("start", e.start.as_ref()),
            ("step", e.step.as_ref()),
            ("value", e.value.as_ref()),
            ("index", e.index.as_ref()),
        ]
    }

    fn number(&mut self, member: &'static str) -> Option<&'e Number> {
        self.used.push(member);
        self.all().into_iter().find(|(name, _)| *name == member)?.1
    }

    fn refuse_unused(&self) -> Result<(), String> {
        let path = self.entry.path.is_some().then_some("path");
        let given = self.all().into_iter().filter(|(_, number)| number.is_some()).map(|(name, _)| name).chain(path);
        match given.into_iter().find(|name| !self.used.contains(name)) {
            Some(name) => Err(format!("fill `{}` has no `{name}`", self.entry.kind)),
            None => Ok(()),
        }
    }
}

/// A dimension: what is computed with it must not be lost in infinity.
fn dimension(number: &Number, names: &Names) -> Result<Value, String> {
    match evaluate(number, names)? {
        Value::Float(value) if !value.is_finite() => Err(format!("{value} is no finite number")),
        value => Ok(value),
    }
}

fn evaluate(number: &Number, names: &Names) -> Result<Value, String> {
    match number {
        Number::Int(value) => Ok(Value::Int((*value).into())),
        Number::Float(value) => Ok(Value::Float(*value)),
        Number::Text(text) => expr::evaluate(text, names),
    }
}

/// A scalar as it stands in the argument buffer: little-endian.
pub(crate) fn scalar_bytes(scalar: &str, value: Value) -> Result<Vec<u8>, String> {
    let out_of_range = |value: i128| format!("{value} does not fit into {scalar}");
    macro_rules! integer {
        ($type:ty) => {
            match value {
                Value::Int(value) => {
                    let value = <$type>::try_from(value).map_err(|_| out_of_range(value))?;
                    Ok(value.to_le_bytes().to_vec())
                }
                Value::Float(value) => Err(format!("{value} is no whole number, and the type is {scalar}")),
            }
        };
    }
    match scalar {
        "i8" => integer!(i8),
        "u8" => integer!(u8),
        "i16" => integer!(i16),
        "u16" => integer!(u16),
        "i32" => integer!(i32),
        "u32" => integer!(u32),
        "i64" => integer!(i64),
        "u64" => integer!(u64),
        "f32" => Ok((value.as_f64() as f32).to_le_bytes().to_vec()),
        "f64" => Ok(value.as_f64().to_le_bytes().to_vec()),
        "f16" | "bf16" => {
            let dtype: Dtype = scalar.parse().map_err(|e: crate::Error| e.to_string())?;
            let bits = dtype.encode(value.as_f64()).ok_or_else(|| format!("{} is no {scalar}", value.as_f64()))?;
            Ok(bits.to_le_bytes()[..2].to_vec())
        }
        _ => Err(format!(
            "`{scalar}` is no type of a scalar; there are i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64"
        )),
    }
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'_').collect();
    let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    (digits.len().is_multiple_of(2) && !digits.is_empty()).then(|| pairs.collect()).flatten()
}

/// For callers that have one name or several.
impl From<&str> for OneOrMore<String> {
    fn from(name: &str) -> Self {
        OneOrMore::One(name.to_owned())
    }
}

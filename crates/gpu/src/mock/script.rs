//! The mock's images: TOML that says what a kernel computes, how long it takes, and how it cheats.
//!
//! ```toml
//! mock = 1
//! [[kernel]]
//! name = "scale"          # out[i] = factor · in[i], 32-bit floats
//! input = 0               # where in the argument buffer: pointer
//! output = 8              # pointer
//! count = 16              # 32-bit number of elements
//! factor = 2.0
//! time_ns = 210000.0
//! cheat = "constant"      # see Cheat
//! after = 40              # launches before it begins to cheat
//! ```
//!
//! [`FILL_LDS`] has another kind of kernel: `fills-lds = true` puts the first word of its arguments into all LDS.

use serde::Deserialize;

use crate::{Error, ErrorKind, Result};

/// What images are for.
pub const TARGET: &str = "mock";

/// The image that fills LDS, for whoever runs kernels on this device.
pub const FILL_LDS: &str = "mock = 1\n[[kernel]]\nname = \"coax_fill_lds\"\nfills-lds = true\ntime_ns = 1000.0\n";

/// An image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The version of this form: 1.
    pub mock: u32,
    /// What it was compiled for.
    #[serde(default = "default_target")]
    pub target: String,
    /// Its kernels.
    #[serde(default)]
    pub kernel: Vec<KernelScript>,
}

/// A kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelScript {
    /// Its name.
    pub name: String,
    /// Offset of the input's pointer in the arguments.
    #[serde(default)]
    pub input: usize,
    /// Offset of the output's pointer.
    #[serde(default)]
    pub output: usize,
    /// Offset of the number of elements.
    #[serde(default)]
    pub count: usize,
    /// What the input is multiplied with.
    #[serde(default = "one")]
    pub factor: f32,
    /// Fills LDS, and does nothing else.
    #[serde(default, rename = "fills-lds")]
    pub fills_lds: bool,
    /// Offset and size of each parameter, for a driver that tells them.
    #[serde(default)]
    pub parameters: Option<Vec<(u64, u64)>>,
    /// How long it takes.
    pub time_ns: f64,
    /// How it deceives.
    #[serde(default)]
    pub cheat: Cheat,
    /// Launches that are honest before it does.
    #[serde(default)]
    pub after: u64,
}

/// What a dishonest or broken kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cheat {
    /// Nothing.
    #[default]
    None,
    /// Writes nothing: what is there from before may look right.
    NoWrite,
    /// Writes nothing and takes a tenth of the time.
    EarlyExit,
    /// Writes what it computed when it first saw this input pointer.
    CacheByPointer,
    /// Writes what it computed when it first saw an input that begins like this.
    CacheByFingerprint,
    /// One element is wrong.
    WrongElement,
    /// Zeroes its input before it computes.
    ZeroInputs,
    /// Writes NaN everywhere.
    Nan,
    /// Lets what lies behind its input into the result.
    ReadOutside,
    /// Works only where its output is filled with poison, and else is fast.
    LookForPoison,
    /// Makes other kernels slow until a module is unloaded.
    SlowOthers,
    /// Writes the same number everywhere, and makes other kernels do so until a module is unloaded.
    PatchOthers,
    /// Lets what it finds in LDS into the result.
    ReadLds,
    /// Writes one element behind its output.
    WriteOutside,
    /// Writes one element in front of its output.
    WriteBefore,
    /// Writes the same number everywhere.
    Constant,
    /// Computes with bf16.
    LowPrecision,
    /// Another last bit with each launch.
    Nondeterministic,
    /// Only the first half.
    Half,
    /// Makes the kernels of other loaded images multiply with its own factor.
    Patch,
    /// Never ends.
    Hang,
    /// A memory fault.
    Fault,
    /// The process dies.
    Abort,
}

fn default_target() -> String {
    TARGET.into()
}

fn one() -> f32 {
    1.0
}

impl Script {
    /// Reads an image.
    ///
    /// # Errors
    /// `NoImage` with what is wrong with the text, `BadImage` for another target.
    pub fn parse(image: &[u8]) -> Result<Script> {
        let no_image = |why: String| Error::new(ErrorKind::NoImage, format!("not an image of the mock device{why}"));
        let text = std::str::from_utf8(image).map_err(|_| no_image(String::new()))?;
        let script: Script = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            no_image(format!(": line {line}: {}", error.message().lines().next().unwrap_or_default()))
        })?;
        if script.mock != 1 {
            return Err(no_image(format!(": `mock` is {}, expected 1", script.mock)));
        }
        if script.target != TARGET {
            let message = format!("the image is for {}, the device is {TARGET}", script.target);
            return Err(Error::new(ErrorKind::BadImage, message));
        }
        Ok(script)
    }
}

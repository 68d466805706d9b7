//! From the name of a device to the device.

use std::fmt;
use std::str::FromStr;

use crate::driver::{self, Driver};
use crate::mock::Mock;
use crate::{Device, DeviceInfo, Error, ErrorKind, Result};

/// More than any machine has.
const MOST_DEVICES: usize = 256;

/// `hip:0`, `cuda:1`, `mock`. The number counts what the driver's own environment variables leave visible
/// (`HIP_VISIBLE_DEVICES`, `CUDA_VISIBLE_DEVICES`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// A device of HIP.
    Hip(u32),
    /// A device of CUDA.
    Cuda(u32),
    /// The scripted one.
    Mock,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<DeviceName, String> {
        let (kind, number) = text.split_once(':').unwrap_or((text, "0"));
        let unknown = || format!("`{text}` is no device; expected hip:N, cuda:N or mock");
        let number = number.parse().map_err(|_| unknown())?;
        match kind {
            "hip" => Ok(DeviceName::Hip(number)),
            "cuda" => Ok(DeviceName::Cuda(number)),
            "mock" if number == 0 => Ok(DeviceName::Mock),
            "emu" => Err("`emu`: there is no emulator yet; expected hip:N, cuda:N or mock".into()),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Hip(number) => write!(f, "hip:{number}"),
            DeviceName::Cuda(number) => write!(f, "cuda:{number}"),
            DeviceName::Mock => f.write_str("mock"),
        }
    }
}

/// Opens a device.
///
/// # Errors
/// [`ErrorKind::NoDriver`] and [`ErrorKind::NoDevice`], each one line that says what was looked for.
pub fn open(name: DeviceName) -> Result<Box<dyn Device>> {
    match name {
        DeviceName::Hip(number) => Ok(Box::new(Driver::open(&driver::HIP, number)?)),
        DeviceName::Cuda(number) => Ok(Box::new(Driver::open(&driver::CUDA, number)?)),
        DeviceName::Mock => Ok(Box::new(Mock::new())),
    }
}

/// All devices of one driver, `name` being the first.
///
/// # Errors
/// As [`open`]: there is no driver, or it has no device.
pub fn list(name: fn(u32) -> DeviceName) -> Result<Vec<DeviceInfo>> {
    let mut found = vec![open(name(0))?.info().clone()];
    while let Ok(device) = open(name(found.len() as u32))
        && found.len() < MOST_DEVICES
    {
        found.push(device.info().clone());
    }
    Ok(found)
}

/// The first device that there is: HIP's, else CUDA's.
///
/// # Errors
/// What each driver said, in one line.
pub fn first() -> Result<DeviceName> {
    let mut failures = Vec::new();
    for name in [DeviceName::Hip(0), DeviceName::Cuda(0)] {
        match open(name) {
            Ok(_) => return Ok(name),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Err(Error::new(ErrorKind::NoDevice, format!("no GPU here: {}", failures.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for (text, name) in [("hip:3", DeviceName::Hip(3)), ("cuda:0", DeviceName::Cuda(0)), ("mock", DeviceName::Mock)]
        {
            assert_eq!(text.parse(), Ok(name));
            assert_eq!(name.to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceName::Cuda(0)));
        for text in ["", "hip:", "hip:-1", "rocm:0", "mock:1", "emu"] {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
    }
}

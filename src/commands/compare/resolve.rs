//! What can be found wrong with a site and two images before a device is opened, and without one.

use compare::check::{self, Checked};
use compare::run::{Failure, Image};
use compare::site::builtin::{BUILTIN, Builtin};
use compare::site::{DeviceFacts, Site};

use super::worker::{Failed, SiteSource};

/// Devices that have little in common. What is wrong on both of them in the same words is wrong without a device.
const EXTREMES: [DeviceFacts; 2] =
    [DeviceFacts { compute_units: 1, wave_size: 32 }, DeviceFacts { compute_units: 1 << 16, wave_size: 64 }];

impl SiteSource {
    /// What `--site` names: a file, or a built-in site of which there is no file.
    pub fn named(path: &std::path::Path) -> SiteSource {
        match path.to_str().and_then(Builtin::find) {
            Some(builtin) if !path.exists() => SiteSource::Builtin(builtin.name.to_owned()),
            _ => SiteSource::File(path.to_owned()),
        }
    }

    /// The site on a device.
    ///
    /// # Errors
    /// File, line and column where they are known; names of the built-in sites when there is no such file.
    pub fn site(&self, facts: DeviceFacts) -> Result<Site, String> {
        match self {
            SiteSource::File(path) => Site::read(path, facts).map_err(|why| match path.exists() {
                true => why,
                false => format!("{why}; built-in sites are {}", BUILTIN.map(|site| site.name).join(", ")),
            }),
            SiteSource::Builtin(name) => match Builtin::find(name) {
                Some(builtin) => builtin.site(facts),
                None => Err(format!("`{name}` is no built-in site")),
            },
        }
    }
}

/// Whether a launch can be made of site and images, as far as that does not depend on the device.
///
/// # Errors
/// What is wrong on every device.
pub fn before_device(source: &SiteSource, reference: &Image, test: &Image) -> Result<(), Failed> {
    let [a, b] = EXTREMES.map(|facts| resolve(source, facts, reference, Some(test)).err());
    match (a, b) {
        (Some(Failure::BadInput(a)), Some(Failure::BadInput(b))) => {
            let everywhere: Vec<String> = a.into_iter().filter(|why| b.contains(why)).collect();
            if everywhere.is_empty() { Ok(()) } else { Err(Failed::BadInput(everywhere)) }
        }
        (Some(a), Some(b)) if a == b => Err(a.into()),
        _ => Ok(()),
    }
}

/// The site on one device, and what is known of the launch.
pub fn resolve(
    source: &SiteSource,
    facts: DeviceFacts,
    reference: &Image,
    test: Option<&Image>,
) -> Result<(Site, Checked), Failure> {
    let site = source.site(facts).map_err(|why| Failure::BadInput(vec![why]))?;
    let checked = check::check(&site, reference, test)?;
    Ok((site, checked))
}

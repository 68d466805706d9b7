//! Site and images held together without a device: everything that can be said before a launch.

use codeobj::code_object::Kernel;

use crate::declared;
use crate::fill::{Fill, npy};
use crate::pack::Layout;
use crate::run::{Failure, Image, Object, find_kernel};
use crate::site::Site;

/// What is known of a launch without a device.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Kernels of the site that all images have; where a driver has to say, all of the site's.
    pub kernels: Vec<String>,
    /// Where the arguments stand.
    pub layout: Layout,
    /// Whether the metadata says so; else the site's own rules do.
    pub has_metadata: bool,
    /// Static LDS of the kernel, bytes; none without metadata.
    pub static_lds_bytes: Option<u64>,
    /// What the kernels declare differently.
    pub differences: Vec<String>,
}

/// Holds a site and one image or two together.
///
/// # Errors
/// [`Failure::BadInput`] with every problem; [`Failure::NoKernel`].
pub fn check(site: &Site, reference: &Image, test: Option<&Image>) -> Result<Checked, Failure> {
    let bad = |why: String| Failure::BadInput(vec![why]);
    let other = Object::read(test.unwrap_or(reference)).map_err(bad)?;
    let object = Object::read(reference).map_err(bad)?;
    let kernels = find_kernel(site, &object, &other)?;
    let mut problems: Vec<String> =
        site.buffers().filter_map(|(name, buffer)| file_problem(name, &buffer.fill)).collect();
    problems.extend(target_problem(&object, &other));
    let [own, tests] = [&object, &other].map(|object| object.kernel(kernels.first()?));
    match layout(site, own, tests, &other.image.name) {
        Ok(layout) if problems.is_empty() => Ok(Checked {
            kernels,
            layout,
            has_metadata: own.is_some(),
            static_lds_bytes: own.map(declared::static_lds_bytes),
            differences: own
                .zip(tests)
                .map(|(a, b)| declared::differences(object.processor(), a, b))
                .unwrap_or_default(),
        }),
        Ok(_) => Err(Failure::BadInput(problems)),
        Err(why) => Err(Failure::BadInput([why, problems].concat())),
    }
}

/// Where the arguments stand, the same in both: both are launched with the same ones. Problems of the test alone name it.
fn layout(site: &Site, own: Option<&Kernel>, tests: Option<&Kernel>, test: &str) -> Result<Layout, Vec<String>> {
    let of = |kernel: Option<&Kernel>| match kernel {
        Some(kernel) => Layout::from_metadata(site, &kernel.metadata),
        None => Layout::from_site(site),
    };
    let own = of(own)?;
    let name_it = |problems: Vec<String>| problems.iter().map(|why| format!("{test}: {why}")).collect::<Vec<_>>();
    let moved = name_it(of(tests).map_err(name_it)?.moved_from(site, &own));
    if moved.is_empty() { Ok(own) } else { Err(moved) }
}

/// Two code objects of different processors never run on one device.
fn target_problem(reference: &Object<'_>, test: &Object<'_>) -> Option<String> {
    let (a, b) = (reference.processor()?, test.processor()?);
    (a != b).then(|| format!("{}: is for {b}, the reference is for {a}", test.image.name))
}

/// A `.npy` file that cannot be opened, or is none; its content is read when it is used.
fn file_problem(name: &str, fill: &Option<Fill>) -> Option<String> {
    let mut fill = fill.as_ref()?;
    while let Fill::Special { fill: inner, .. } = fill {
        fill = inner;
    }
    let Fill::File(path) = fill else { return None };
    let mut magic = [0; npy::MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    match read {
        Ok(()) if magic == *npy::MAGIC => None,
        Ok(()) => Some(format!("fill of `{name}`: {}: is no .npy file", path.display())),
        Err(error) => Some(format!("fill of `{name}`: {}: {error}", path.display())),
    }
}

//! The image that fills LDS before a launch ([`compare::lds`]), for whatever the images are made for.

use codeobj::CodeObject;
use codeobj::target::TargetId;
use gpu::mock::script::FILL_LDS;
use isa::target::{RegisterFile, Target};
use rewrite::{Source, build};

/// For AMD, assembled by the LLVM of this machine.
const AMD: &str = include_str!("lds/fill.s");
/// For NVIDIA, compiled by its driver.
const PTX: &str = include_str!("lds/fill.ptx");

/// The image for the device that runs `image`; the error says why there is none.
pub fn filler(device: Option<&str>, image: &[u8]) -> Result<Vec<u8>, String> {
    if device == Some("mock") {
        return Ok(FILL_LDS.into());
    }
    if codeobj::container::sniff(image) != Some(codeobj::container::Kind::CodeObject) {
        return Ok(PTX.into());
    }
    // A damaged image is an error of its own, and told by who uses it.
    let object = CodeObject::parse(image).map_err(|error| error.to_string())?;
    let text = source(&object.target).ok_or_else(|| format!("nothing fills LDS of {}", object.target))?;
    assemble(&llvm::Options { cache: llvm::cache_folder(), ..llvm::Options::default() }, &text)
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn assemble(options: &llvm::Options, text: &str) -> Result<Vec<u8>, rewrite::Error> {
    build::code_object(&llvm::open(options)?, options.path.as_deref(), &Source::read(text))
}

/// The text for a target; none for processors older than gfx9, which no HIP runtime of today runs.
fn source(target: &TargetId) -> Option<String> {
    let generation = target.generation().filter(|generation| *generation >= 9)?;
    let facts = Target::new(target.processor.as_deref()?, generation);
    let wait = if generation >= 12 { "s_wait_kmcnt 0" } else { "s_waitcnt lgkmcnt(0)" };
    let accum_offset = match facts.register_file {
        RegisterFile::Unified => ".amdhsa_accum_offset 4",
        RegisterFile::ArchOnly | RegisterFile::Split => "",
    };
    let wave_size = if generation >= 10 { "32" } else { "64" };
    Some(
        AMD.replace("TARGET", &target.short())
            .replace("WAIT_FOR_ARGUMENTS", wait)
            .replace("ACCUM_OFFSET", accum_offset)
            .replace("WAVE_SIZE", wave_size),
    )
}

#[cfg(test)]
mod tests {
    use codeobj::Detail;
    use codeobj::target::mach::PROCESSORS;

    use super::*;

    #[test]
    fn every_processor_that_llvm_knows_has_a_filler() {
        let options = llvm::Options { isolation: llvm::Isolation::InProcess, ..llvm::Options::default() };
        if let Err(error) = llvm::open(&options) {
            assert!(std::env::var("REQUIRE").map_or(true, |needed| !needed.contains("llvm")), "{error}");
            eprintln!("skipped: {error}");
            return;
        }
        let mut made = Vec::new();
        for (_, processor) in PROCESSORS {
            let target = TargetId::parse(processor).expect("a processor's name");
            let Some(text) = source(&target) else { continue };
            let image = match assemble(&options, &text) {
                Ok(image) => image,
                Err(error) if error.to_string().contains("does not know") => continue,
                Err(error) => panic!("{processor}: {error}"),
            };
            let object = CodeObject::parse_with(&image, Detail::Full).expect("a code object");
            let [kernel] = &object.kernels[..] else { panic!("{processor}: one kernel") };
            assert_eq!(kernel.name, compare::lds::KERNEL);
            let places = kernel.metadata.args.iter().map(|arg| (arg.offset.value(), arg.size.value()));
            assert_eq!(places.collect::<Vec<_>>(), [(Some(0), Some(4)), (Some(4), Some(4))], "{processor}");
            made.push(*processor);
        }
        for processor in ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"]
        {
            assert!(made.contains(&processor), "{processor} has none: {made:?}");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_said() {
        assert_eq!(source(&TargetId::parse("gfx803").expect("a processor's name")), None);
    }
}

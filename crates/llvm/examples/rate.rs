//! How fast code decodes: `cargo run --release -p llvm --example rate -- PROCESSOR CODE_OBJECT...`
//!
//! Cold is the first pass (LLVM decodes each distinct encoding once), warm the best of a hundred more (a walk of the
//! cache), on one thread.

use std::error::Error;
use std::time::{Duration, Instant};

use llvm::{Decoder, Isolation, Options, Target};
use object::{Object, ObjectSection};

fn main() -> Result<(), Box<dyn Error>> {
    llvm::worker::main_if_requested();
    let mut arguments = std::env::args().skip(1);
    let target = Target::from_id(&arguments.next().ok_or("usage: rate PROCESSOR CODE_OBJECT...")?)?;
    let mut texts = Vec::new();
    for path in arguments {
        let bytes = std::fs::read(path)?;
        let file = object::File::parse(&*bytes)?;
        texts.push(file.section_by_name(".text").ok_or("no .text")?.data()?.to_vec());
    }
    for isolation in [Isolation::InProcess, Isolation::Worker] {
        let start = Instant::now();
        let decoder = llvm::open(&Options { isolation, ..Options::default() })?;
        decoder.describe_for(&target)?;
        let opened = start.elapsed();
        let (instructions, distinct, cold) = pass(&decoder, &target, &texts)?;
        let mut warm = Duration::MAX;
        for _ in 0..100 {
            warm = warm.min(pass(&decoder, &target, &texts)?.2);
        }
        println!(
            "{isolation:?}: ready in {:.1} ms; cold {distinct} encodings in {:.1} ms = {:.0} k/s; \
             warm {instructions} instructions in {:.2} ms = {:.1} M/s",
            opened.as_secs_f64() * 1e3,
            cold.as_secs_f64() * 1e3,
            distinct as f64 / cold.as_secs_f64() / 1e3,
            warm.as_secs_f64() * 1e3,
            instructions as f64 / warm.as_secs_f64() / 1e6,
        );
    }
    Ok(())
}

/// Decodes everything once: how many instructions, how many distinct encodings so far, how long.
fn pass(decoder: &dyn Decoder, target: &Target, texts: &[Vec<u8>]) -> Result<(usize, u32, Duration), llvm::Error> {
    let start = Instant::now();
    let (mut instructions, mut distinct) = (0, 0);
    for text in texts {
        let listing = decoder.decode(target, text)?;
        instructions += listing.instructions().len();
        distinct = distinct.max(listing.instructions().iter().map(|i| i.encoding.0).max().unwrap_or(0));
    }
    Ok((instructions, distinct, start.elapsed()))
}

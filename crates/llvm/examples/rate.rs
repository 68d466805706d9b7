//! How fast code decodes and encodes: `cargo run --release -p llvm --example rate -- PROCESSOR CODE_OBJECT...`
//!
//! Decoding: cold is the first pass (LLVM decodes each distinct encoding once), warm the best of a hundred more (a walk
//! of the cache), on one thread. Encoding: every distinct encoding's text is assembled once and compared.

use std::error::Error;
use std::time::{Duration, Instant};

use llvm::{Decoder, Encoder, Isolation, Listing, Options, RoundTrip, Target, Toolchain};
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
        measure(isolation, &target, &texts)?;
    }
    Ok(())
}

fn measure(isolation: Isolation, target: &Target, texts: &[Vec<u8>]) -> Result<(), llvm::Error> {
    let start = Instant::now();
    let toolchain = llvm::open(&Options { isolation, ..Options::default() })?;
    toolchain.describe_for(target)?;
    let opened = start.elapsed();
    let (listings, cold) = decode(&toolchain, target, texts)?;
    let mut warm = Duration::MAX;
    for _ in 0..100 {
        warm = warm.min(decode(&toolchain, target, texts)?.1);
    }
    let start = Instant::now();
    let pieces: Vec<(&[u8], &Listing)> = texts.iter().map(Vec::as_slice).zip(&listings).collect();
    let trips = toolchain.round_trips(target, &pieces)?;
    let encode = start.elapsed();

    let instructions = || listings.iter().flat_map(Listing::instructions);
    let distinct = instructions().map(|instruction| instruction.encoding.0).max().unwrap_or(0);
    let same = instructions().filter(|i| trips.get(i.encoding) == Some(&RoundTrip::Same)).count();
    let (milliseconds, count) = (|time: Duration| time.as_secs_f64() * 1e3, instructions().count());
    println!(
        "{isolation:?}: ready in {:.1} ms; cold {distinct} encodings in {:.1} ms = {:.0} k/s; \
         warm {count} instructions in {:.2} ms = {:.1} M/s; encoded in {:.1} ms = {:.0} k/s, {same} instructions the same",
        milliseconds(opened),
        milliseconds(cold),
        f64::from(distinct) / milliseconds(cold),
        milliseconds(warm),
        count as f64 / milliseconds(warm) / 1e3,
        milliseconds(encode),
        f64::from(distinct) / milliseconds(encode),
    );
    Ok(())
}

/// Decodes everything once, and how long that takes.
fn decode(toolchain: &Toolchain, target: &Target, texts: &[Vec<u8>]) -> Result<(Vec<Listing>, Duration), llvm::Error> {
    let start = Instant::now();
    let listings = texts.iter().map(|text| toolchain.decode(target, text)).collect::<Result<_, _>>()?;
    Ok((listings, start.elapsed()))
}

//! How fast outputs are compared and buffers filled: GB/s per core (one thread) and on all cores.
//!
//!     cargo run --release -p compare --example speed -- [MEGABYTES of each output, 256 unless told] [WORD: only what has it]
//!
//! A figure for outputs counts the bytes of both. Best of five runs; for one core of the time that the thread ran, where
//! the system tells (Linux), so that other load on the machine counts little.

use compare::dtype::Dtype;
use compare::fill::{Fill, Source};
use compare::mismatch::Mismatches;
use compare::stats::Stats;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(256_usize);
    let (bytes, word) = (megabytes << 20, std::env::args().nth(2).unwrap_or_default());
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads start");
    println!("{:28} {:>8} {:>8}", "GB/s", "1 core", rayon::current_num_threads());
    let report = |what: String, bytes: usize, work: &mut (dyn FnMut() + Send)| {
        if !what.contains(&word) {
            return;
        }
        let alone = one.install(|| best(bytes, work, thread_seconds));
        println!("{what:28} {alone:8.2} {:8.2}", best(bytes, work, || None));
    };
    let (mut a, mut b) = (vec![0; bytes], vec![0; bytes]);
    for dtype in
        [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64, Dtype::I32, Dtype::Fp8E4m3, Dtype::Fp6E2m3, Dtype::Fp4E2m1]
    {
        let elements = bytes as u64 * 8 / u64::from(dtype.bits());
        let size = dtype.bytes_for(elements).expect("small") as usize;
        let (a, b) = (&mut a[..size], &mut b[..size]);
        Source::new(1).fill(&Fill::Normal { mean: 0.0, deviation: 1.0 }, dtype, &[elements], a).expect("it fits");
        b.copy_from_slice(a);
        let compare = |a: &[u8], b: &[u8]| {
            black_box(Stats::of(dtype, elements, a, b).expect("sizes fit"));
        };
        report(format!("compare {dtype} identical"), 2 * size, &mut || compare(a, b));
        (0..size).step_by(1000).for_each(|index| b[index] ^= 1);
        report(format!("compare {dtype} 1 byte in 1000"), 2 * size, &mut || compare(a, b));
        Source::new(2).fill(&Fill::Normal { mean: 0.0, deviation: 1.0 }, dtype, &[elements], b).expect("it fits");
        report(format!("compare {dtype} different"), 2 * size, &mut || compare(a, b));
        if dtype == Dtype::Bf16 {
            let shape = [elements / 4096, 4096];
            report("map bf16 different".to_owned(), 2 * size, &mut || {
                black_box(Mismatches::of(dtype, &shape, 8, a, b).expect("sizes fit"));
            });
        }
    }
    for (fill, dtype) in [
        (Fill::Bits, Dtype::F64),
        (Fill::Bits, Dtype::U8),
        (Fill::MaskedBytes { mask: 0x3f }, Dtype::Fp8E4m3),
        (Fill::Uniform { low: -1.0, high: 1.0 }, Dtype::Fp8E4m3),
        (Fill::Uniform { low: -1.0, high: 1.0 }, Dtype::Bf16),
        (Fill::Uniform { low: -1.0, high: 1.0 }, Dtype::F32),
        (Fill::Normal { mean: 0.0, deviation: 1.0 }, Dtype::Bf16),
    ] {
        let shape = [bytes as u64 * 8 / u64::from(dtype.bits())];
        let mut source = Source::new(42);
        report(format!("fill {dtype} {fill:?}").chars().take(28).collect(), bytes, &mut || {
            source.fill(&fill, dtype, &shape, &mut a).expect("it fits");
        });
    }
}

/// Bytes per nanosecond of the fastest of five runs, by the given clock or else by the wall's.
fn best(bytes: usize, work: &mut dyn FnMut(), clock: impl Fn() -> Option<f64>) -> f64 {
    let runs = (0..5).map(|_| {
        let (start, ran) = (Instant::now(), clock());
        work();
        clock().zip(ran).map_or(start.elapsed().as_secs_f64(), |(now, before)| now - before)
    });
    bytes as f64 / 1e9 / runs.fold(f64::INFINITY, f64::min)
}

/// How long this thread has run on a processor.
fn thread_seconds() -> Option<f64> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(schedstat.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

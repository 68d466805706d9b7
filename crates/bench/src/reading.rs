//! How fast the files can be read at all: the bound for everything that looks at each byte.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Reads all files below `paths` with `threads`, once to warm the page cache and then five times; prints the median.
pub fn report(paths: &[PathBuf], threads: usize) -> io::Result<()> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    let mut times_s = Vec::new();
    let mut bytes = 0;
    for _ in 0..6 {
        let start = Instant::now();
        bytes = read_all(&files, threads)?;
        times_s.push(start.elapsed().as_secs_f64());
    }
    times_s.remove(0);
    times_s.sort_by(f64::total_cmp);
    let time_s = times_s[times_s.len() / 2];
    let label = format!("reading the files, {threads} threads");
    println!("{label:<44}{time_s:8.3} s {:9.1} MB/s", bytes as f64 / 1e6 / time_s);
    Ok(())
}

/// All files below a directory, or the file itself.
pub fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in path.read_dir()? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_owned());
    }
    Ok(())
}

fn read_all(files: &[PathBuf], threads: usize) -> io::Result<u64> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut file = File::open(path)?;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => bytes += count as u64,
                }
            }
        }
        Ok(bytes)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().map_err(|_| io::Error::other("a reader failed"))?).sum()
    })
}

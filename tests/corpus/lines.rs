//! Counts instructions of an assembly text by its lines and nothing else.

/// Column and count between the label of `kernel` and the next `.Lfunc_end`; none without both.
pub fn count(text: &str, kernel: &str) -> Option<[(&'static str, u64); 5]> {
    let labels = [format!("{kernel}:"), format!("\"{kernel}\":")];
    let mut lines = text.lines().map(str::trim_end);
    lines.find(|line| labels.iter().any(|label| line.starts_with(label.as_str())))?;
    let mut counts = [("lds_read", 0), ("lds_write", 0), ("scratch_store", 0), ("scratch_load", 0), ("matrix_ops", 0)];
    for line in lines {
        if line.starts_with(".Lfunc_end") {
            return Some(counts);
        }
        let code = line.split(';').next().unwrap_or_default();
        let mnemonic = code.split_whitespace().next().unwrap_or_default();
        if let Some(at) = column(mnemonic) {
            counts[at].1 += 1;
        }
    }
    None
}

fn column(mnemonic: &str) -> Option<usize> {
    const STARTS: [&[&str]; 5] = [
        &["ds_read_", "ds_read2", "ds_load_", "ds_load2"],
        &["ds_write_", "ds_write2", "ds_store_", "ds_store2"],
        &["scratch_store"],
        &["scratch_load"],
        &["v_mfma", "v_wmma", "v_smfmac", "v_swmmac"],
    ];
    STARTS.iter().position(|starts| starts.iter().any(|start| mnemonic.starts_with(start)))
}

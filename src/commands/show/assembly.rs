//! Assembly text with its metadata.

use codeobj::Detail;
use resources::text;

use super::binary::{arguments, kernel_metadata};
use super::{Opts, Page};

/// Shows the kernels that the text's metadata lists, with the descriptor directives as they are written.
pub fn show(bytes: &[u8], name: &str, opts: &Opts, page: &mut Page) {
    let outline = text::outline(bytes, name, Detail::Full);
    page.problems.extend(outline.problems);
    page.line(format!("{name}: assembly, {} bytes", bytes.len()));
    page.field(2, "target", outline.target.as_deref().unwrap_or("not recorded"));
    for entry in &outline.kernels {
        let kernel = entry.name.as_deref().or(entry.symbol.as_deref()).unwrap_or("?");
        if !Page::wants(opts, kernel) {
            continue;
        }
        page.shown += 1;
        page.line(format!("\n  kernel {}", resources::printable(kernel)));
        page.problems.extend(entry.problems.iter().map(|p| format!("{name}: {kernel}: {p}")));
        kernel_metadata(entry, page);
        match outline.descriptors.iter().find(|(owner, _)| owner == kernel) {
            None => page.field(4, "descriptor", "no .amdhsa_kernel"),
            Some((_, fields)) => {
                page.line("    descriptor");
                for (field, value) in fields.iter().filter(|(_, value)| value != "0" || opts.all_fields) {
                    page.field(6, field.trim_start_matches(".amdhsa_"), value);
                }
            }
        }
        arguments(&entry.args, page);
    }
}

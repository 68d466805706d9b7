//! What makes two sites the same launch: sizes, arguments and inputs as they were resolved, not the text that says so.

use std::fmt::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Argument, ArgumentValue, Buffer, Site};
use crate::fill::Fill;

impl Site {
    /// SHA-256 over everything that decides what a launch does: dimensions, grid, block, dynamic LDS, and each argument with
    /// its shape and fill, files of fills by their content. Names of the site and of its file do not count, nor does what
    /// outputs must fulfil.
    pub fn fingerprint(&self) -> String {
        let mut text = format!("dims {:?}\ngrid {:?}\nblock {:?}\n", self.dims, self.grid, self.block);
        let _ = writeln!(text, "lds {}", self.dynamic_lds_bytes);
        for argument in &self.arguments {
            describe(argument, &mut text);
        }
        hex(&Sha256::digest(text))
    }
}

fn describe(argument: &Argument, text: &mut String) {
    let _ = write!(text, "arg {:?} {:?} ", argument.name, argument.offset);
    let _ = match &argument.value {
        ArgumentValue::Null => writeln!(text, "null"),
        ArgumentValue::Bytes(bytes) => writeln!(text, "{}", hex(bytes)),
        ArgumentValue::Buffer(Buffer { dtype, shape, role, fill, .. }) => {
            writeln!(text, "{dtype} {shape:?} {role:?} {}", fill.as_ref().map_or_else(|| "none".into(), fill_text))
        }
    };
}

/// A fill; that of a file is what stands in it.
fn fill_text(fill: &Fill) -> String {
    match fill {
        Fill::File(path) => format!("file {}", file_hash(path)),
        Fill::Special { fill, rate } => format!("special {rate} {}", fill_text(fill)),
        other => format!("{other:?}"),
    }
}

/// A file that cannot be read stops the run elsewhere.
fn file_hash(path: &Path) -> String {
    std::fs::read(path).map_or_else(|_| "unreadable".into(), |bytes| hex(&Sha256::digest(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::DeviceFacts;
    use super::*;

    const SITE: &str = "kernel = \"k\"\ngrid = [4]\nblock = [64]\n[dims]\nN = 100\n[[arg]]\nname = \"x\"\n\
                        dtype = \"f32\"\nshape = [\"N\"]\nfill = { kind = \"uniform\" }\n[[arg]]\nname = \"n\"\n\
                        type = \"i32\"\nvalue = \"N\"\n";

    fn fingerprint(text: &str, folder: &Path) -> String {
        let facts = DeviceFacts { compute_units: 8, wave_size: 64 };
        Site::parse(text, "site", folder, facts).expect("a site").fingerprint()
    }

    #[test]
    fn another_launch_is_another_site() {
        let here = Path::new("");
        let own = fingerprint(SITE, here);
        assert_eq!(own.len(), 64);
        // The same numbers, said otherwise.
        assert_eq!(own, fingerprint(&SITE.replace("[4]", "[\"2*2\"]"), here));
        assert_eq!(own, fingerprint(&format!("name = \"other\"\n{SITE}"), here));
        for (from, to) in [
            ("[4]", "[5]"),
            ("[64]", "[32]"),
            ("N = 100", "N = 101"),
            ("uniform\"", "normal\""),
            ("f32", "f16"),
            ("\"N\"\n", "7\n"),
        ] {
            assert_ne!(own, fingerprint(&SITE.replace(from, to), here), "{from} -> {to}");
        }
    }

    #[test]
    fn files_count_by_their_content() {
        let text = SITE.replace("kind = \"uniform\"", "kind = \"file\", path = \"x.npy\"");
        let [a, b] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let write = |folder: &tempfile::TempDir, bytes: &[u8]| std::fs::write(folder.path().join("x.npy"), bytes);
        write(&a, b"one").expect("written");
        write(&b, b"one").expect("written");
        assert_eq!(fingerprint(&text, a.path()), fingerprint(&text, b.path()));
        write(&b, b"two").expect("written");
        assert_ne!(fingerprint(&text, a.path()), fingerprint(&text, b.path()));
    }
}

//! An ELF string table as LLVM builds it: each string once, the end of a longer one where there is such.

use std::collections::HashMap;

/// See the module.
pub(crate) struct StringTable<'a> {
    pub bytes: Vec<u8>,
    places: HashMap<&'a [u8], u32>,
}

impl<'a> StringTable<'a> {
    /// The table of `names`, in LLVM's order: by the reversed string, highest first, so that each stands behind the
    /// longer ones that end in it.
    pub fn new(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut names: Vec<&[u8]> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.sort_by(|a, b| b.iter().rev().cmp(a.iter().rev()));
        names.dedup();
        let (mut bytes, mut places) = (vec![0], HashMap::new());
        let mut before: &[u8] = &[];
        for name in names {
            if before.ends_with(name) {
                places.insert(name, (bytes.len() - name.len() - 1) as u32);
                continue;
            }
            places.insert(name, bytes.len() as u32);
            bytes.extend(name);
            bytes.push(0);
            before = name;
        }
        StringTable { bytes, places }
    }

    /// Where `name` is; 0 for the empty one and for what is not in the table.
    pub fn place(&self, name: &[u8]) -> u32 {
        self.places.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_ends_another_is_not_stored_again() {
        let names: [&[u8]; 4] = [b".text", b".rela.text", b"", b"axt"];
        let table = StringTable::new(names);
        assert_eq!(table.bytes, b"\0.rela.text\0axt\0");
        assert_eq!(names.map(|name| table.place(name)), [6, 1, 0, 12]);
    }
}

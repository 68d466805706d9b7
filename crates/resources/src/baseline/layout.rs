//! How a baseline is laid out as JSON: one figure a line, so that a review of a changed baseline shows one line for each
//! figure that moved. The content is that of any snapshot.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use crate::snapshot::Snapshot;

/// Writes the baseline's JSON.
///
/// # Errors
/// Those of `out`.
pub fn write(snapshot: &Snapshot, mut out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout { pretty: PrettyFormatter::new(), depth: 0 };
    snapshot.serialize(&mut Serializer::with_formatter(&mut out, layout))?;
    out.write_all(b"\n")
}

/// How deep objects and arrays are laid out on lines of their own: the snapshot, its kernels, a kernel, its metrics.
const LINES: usize = 4;

/// Indents down to a depth, and sets what is deeper on one line.
struct Layout {
    pretty: PrettyFormatter<'static>,
    depth: usize,
}

impl Layout {
    fn is_flat(&self) -> bool {
        self.depth > LINES
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_flat() { out.write_all(b"[") } else { self.pretty.begin_array(out) }
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let flat = self.is_flat();
        self.depth -= 1;
        if flat { out.write_all(b"]") } else { self.pretty.end_array(out) }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        match (self.is_flat(), first) {
            (false, _) => self.pretty.begin_array_value(out, first),
            (true, true) => Ok(()),
            (true, false) => out.write_all(b", "),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.is_flat() { Ok(()) } else { self.pretty.end_array_value(out) }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_flat() { out.write_all(b"{") } else { self.pretty.begin_object(out) }
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let flat = self.is_flat();
        self.depth -= 1;
        if flat { out.write_all(b"}") } else { self.pretty.end_object(out) }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        match (self.is_flat(), first) {
            (false, _) => self.pretty.begin_object_key(out, first),
            (true, true) => Ok(()),
            (true, false) => out.write_all(b", "),
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.is_flat() { Ok(()) } else { self.pretty.end_object_value(out) }
    }
}

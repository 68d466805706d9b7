//! Inputs that no launch has seen. Before each sample one element in each set of buffers gets another value, so a result that
//! is remembered by pointer, or by a look at some of the input, is wrong; and who looks at all of the input always finds
//! something new.

use gpu::Device;

use crate::random::Random;
use crate::rig::BufferSet;
use crate::site::Site;
use crate::site::file::Role;

/// Draws before an input whose elements are all the same is given up.
const DRAWS: usize = 16;

/// The inputs as they are, and where they may be others.
pub struct Inputs<'s> {
    /// Content of each buffer with a fill, by number; empty for the others.
    content: &'s [Vec<u8>],
    places: Vec<Place>,
}

/// A buffer whose elements may change.
struct Place {
    number: usize,
    /// Bytes that are changed at once.
    unit: usize,
}

/// One element that is another.
#[derive(Clone, Debug)]
pub struct Patch {
    number: usize,
    offset: usize,
    bytes: Vec<u8>,
}

impl<'s> Inputs<'s> {
    /// Of a site.
    pub fn of(site: &Site, content: &'s [Vec<u8>]) -> Inputs<'s> {
        let numbered = site.buffers().enumerate().zip(content);
        let places = numbered.filter_map(|((number, (_, buffer)), content)| {
            let varies = buffer.fill.as_ref().is_some_and(|fill| fill.may_vary(buffer.dtype));
            let unit = buffer.dtype.unit_bytes();
            (varies && matches!(buffer.role, Role::In | Role::InOut) && content.len() >= 2 * unit)
                .then_some(Place { number, unit })
        });
        Inputs { content, places: places.collect() }
    }

    /// Content by number of the buffer.
    pub fn content(&self) -> &'s [Vec<u8>] {
        self.content
    }

    /// A change of one element to the value of another; none where nothing may change.
    pub fn draw(&self, random: &mut Random) -> Option<Patch> {
        if self.places.is_empty() {
            return None;
        }
        (0..DRAWS).find_map(|_| {
            let Place { number, unit } = self.places[random.below(self.places.len() as u64) as usize];
            let content = &self.content[number];
            let mut draw = || random.below((content.len() / unit) as u64) as usize * unit;
            let (offset, other) = (draw(), draw());
            let [old, new] = [offset, other].map(|at| &content[at..at + unit]);
            (old != new).then(|| Patch { number, offset, bytes: new.to_vec() })
        })
    }

    /// Takes one change back and makes another.
    pub fn exchange(
        &self,
        device: &dyn Device,
        set: &BufferSet,
        old: Option<&Patch>,
        new: Option<&Patch>,
    ) -> gpu::Result<()> {
        if let Some(Patch { number, offset, bytes }) = old {
            set.write_at(device, *number, *offset, &self.content[*number][*offset..*offset + bytes.len()])?;
        }
        match new {
            Some(Patch { number, offset, bytes }) => set.write_at(device, *number, *offset, bytes),
            None => Ok(()),
        }
    }

    /// Names of the inputs in `set` that are not what was put there.
    pub fn changed(
        &self,
        device: &dyn Device,
        site: &Site,
        set: &BufferSet,
        patch: Option<&Patch>,
    ) -> gpu::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (number, name, _, _) in set.each(site).filter(|(_, _, buffer, _)| buffer.role == Role::In) {
            let Some(content) = self.content.get(number) else { continue };
            let patch = patch.filter(|patch| patch.number == number);
            let same = set.every_chunk(device, number, |start, found| {
                let expected = content.get(start..start + found.len());
                expected.is_some_and(|expected| is_patched(expected, found, start, patch))
            })?;
            if !same {
                changed.push(name.to_owned());
            }
        }
        Ok(changed)
    }
}

/// Whether `found`, at byte `start` of its buffer, is `expected` but for the patch.
fn is_patched(expected: &[u8], found: &[u8], start: usize, patch: Option<&Patch>) -> bool {
    let inside = patch.and_then(|patch| {
        let from = patch.offset.checked_sub(start)?;
        Some((from, from + patch.bytes.len(), &patch.bytes)).filter(|(_, to, _)| *to <= found.len())
    });
    match inside {
        Some((from, to, bytes)) => {
            expected[..from] == found[..from] && found[from..to] == bytes[..] && expected[to..] == found[to..]
        }
        None => expected == found,
    }
}

//! What parent and worker say to each other: frames of a 4-byte little-endian length, a tag byte and fields. Both ends
//! are the same program, so there is no version; a worker's frames are still checked, because LLVM may have damaged it.
//!
//! The worker speaks first (`Ready` or `Refused`). Then each [`Request`] is answered by any number of replies of its
//! own kinds, and one `Done` or `Refused`.

use std::io::{self, Read, Write};

use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::{Diagnostic, Encoded, ErrorKind, Refusal, Severity, Target};

/// More than any frame has: a batch is 64 KiB of code, its answer at most 1 KiB of text for each of its words; a source
/// text has at most [`MAX_SOURCE_BYTES`], its object fewer.
const MAX_FRAME_BYTES: usize = 256 << 20;
/// The longest source text that a worker is given; a kernel of 100,000 instructions has 10 MiB.
pub(super) const MAX_SOURCE_BYTES: usize = 128 << 20;

/// What the parent asks for.
pub(super) enum Request<'a> {
    /// Answered by `Trying` and `Learnt`.
    Decode(Stretch<'a>),
    /// Answered by an `Encoded` for each of the texts, in their order.
    Encode { target: &'a Target, texts: &'a [&'a str] },
    /// Answered by any number of `Diagnosed`, and an `Object` if there is one.
    Assemble { target: &'a Target, source: &'a str },
    /// Answered by an `Object`.
    Link { object: &'a [u8] },
}

/// Code in which the worker decodes what is new to it.
pub(super) struct Stretch<'a> {
    pub target: &'a Target,
    /// Announce each word before LLVM sees it, and answer at once: finds the word that kills.
    pub careful: bool,
    /// Only instructions that start before this offset; what lies behind is there to be looked at.
    pub until: usize,
    /// Windows known to kill LLVM: not to be tried.
    pub crashed: &'a [Window],
    pub code: &'a [u8],
}

/// A request as the worker receives it.
pub(super) enum OwnedRequest {
    Decode(OwnedStretch),
    Encode { target: Target, texts: Vec<String> },
    Assemble { target: Target, source: String },
    Link { object: Vec<u8> },
}

pub(super) struct OwnedStretch {
    pub target: Target,
    pub careful: bool,
    pub until: usize,
    pub crashed: Vec<Window>,
    pub code: Vec<u8>,
}

/// What the worker says.
pub(super) enum Reply<'a> {
    /// The library is loaded; its description.
    Ready(&'a str),
    /// It cannot be done, and the worker lives on.
    Refused(ErrorKind, &'a str),
    /// LLVM is about to see the word at this offset.
    Trying(usize),
    /// The instruction at this offset is new.
    Learnt(usize, Outcome<'a>),
    /// The next text is this instruction.
    Encoded(Encoded),
    /// What LLVM says of a source text.
    Diagnosed(Diagnostic),
    /// What a source text has become.
    Object(&'a [u8]),
    /// The request is answered.
    Done,
}

impl Request<'_> {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut body = Vec::new();
        match self {
            Request::Decode(stretch) => {
                body.push(b'd');
                put_target(&mut body, stretch.target);
                body.push(u8::from(stretch.careful));
                put_u32(&mut body, stretch.until);
                put_u32(&mut body, stretch.crashed.len());
                stretch.crashed.iter().for_each(|window| body.extend(window.bytes()));
                put_bytes(&mut body, stretch.code);
            }
            Request::Encode { target, texts } => {
                body.push(b'e');
                put_target(&mut body, target);
                put_u32(&mut body, texts.len());
                texts.iter().for_each(|text| put_bytes(&mut body, text.as_bytes()));
            }
            Request::Assemble { target, source } => {
                body.push(b'a');
                put_target(&mut body, target);
                put_bytes(&mut body, source.as_bytes());
            }
            Request::Link { object } => {
                body.push(b'l');
                put_bytes(&mut body, object);
            }
        }
        write_frame(out, &body)
    }
}

impl OwnedRequest {
    /// Waits for the next request; an error of kind `UnexpectedEof` is the end of the parent.
    pub fn read(input: &mut impl Read) -> io::Result<Self> {
        let frame = read_frame(input)?;
        let mut fields = Fields(&frame);
        let tag = fields.u8()?;
        if tag == b'l' {
            return Ok(OwnedRequest::Link { object: fields.bytes()?.to_vec() });
        }
        let target = fields.target()?;
        Ok(match tag {
            b'd' => {
                let (careful, until) = (fields.u8()? != 0, fields.u32()?);
                let crashed = (0..fields.u32()?).map(|_| Ok(Window::at(fields.take(MAX_INSTRUCTION_BYTES)?, 0)));
                let crashed = crashed.collect::<io::Result<_>>()?;
                OwnedRequest::Decode(OwnedStretch { target, careful, until, crashed, code: fields.bytes()?.to_vec() })
            }
            b'e' => {
                let texts = (0..fields.u32()?).map(|_| Ok(fields.str()?.to_owned())).collect::<io::Result<_>>()?;
                OwnedRequest::Encode { target, texts }
            }
            b'a' => OwnedRequest::Assemble { target, source: fields.str()?.to_owned() },
            _ => return Err(malformed()),
        })
    }
}

impl<'a> Reply<'a> {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut body = Vec::new();
        match self {
            Reply::Ready(description) => {
                body.push(b'R');
                put_bytes(&mut body, description.as_bytes());
            }
            Reply::Refused(kind, message) => {
                body.extend([b'N', *kind as u8]);
                put_bytes(&mut body, message.as_bytes());
            }
            Reply::Trying(offset) => {
                body.push(b'T');
                put_u32(&mut body, *offset);
            }
            Reply::Learnt(offset, outcome) => {
                let (words, text) = match outcome {
                    Outcome::Decoded { words, text } => (*words, *text),
                    Outcome::Undecodable | Outcome::Crashed => (0, ""),
                };
                body.extend([b'L', words]);
                put_u32(&mut body, *offset);
                put_bytes(&mut body, text.as_bytes());
            }
            Reply::Encoded(Ok(bytes)) => {
                body.push(b'E');
                put_bytes(&mut body, bytes);
            }
            Reply::Encoded(Err(refusal)) => {
                body.push(b'F');
                put_u32(&mut body, refusal.column as usize);
                put_bytes(&mut body, refusal.message.as_bytes());
            }
            Reply::Diagnosed(diagnostic) => {
                body.extend([b'M', diagnostic.severity as u8]);
                put_u32(&mut body, diagnostic.line as usize);
                put_u32(&mut body, diagnostic.column as usize);
                put_bytes(&mut body, diagnostic.message.as_bytes());
            }
            Reply::Object(bytes) => {
                body.push(b'O');
                put_bytes(&mut body, bytes);
            }
            Reply::Done => body.push(b'D'),
        }
        write_frame(out, &body)
    }

    /// Reads a frame that [`read_frame_into`] read.
    pub fn parse(frame: &'a [u8]) -> io::Result<Self> {
        let mut fields = Fields(frame);
        Ok(match fields.u8()? {
            b'R' => Reply::Ready(fields.str()?),
            b'N' => {
                let kind = *ErrorKind::ALL.get(usize::from(fields.u8()?)).ok_or_else(malformed)?;
                Reply::Refused(kind, fields.str()?)
            }
            b'T' => Reply::Trying(fields.u32()?),
            b'L' => {
                let words = fields.u8()?;
                let offset = fields.u32()?;
                let text = fields.str()?;
                match usize::from(words) {
                    0 => Reply::Learnt(offset, Outcome::Undecodable),
                    n if 4 * n <= MAX_INSTRUCTION_BYTES => Reply::Learnt(offset, Outcome::Decoded { words, text }),
                    _ => return Err(malformed()),
                }
            }
            b'E' => Reply::Encoded(Ok(fields.bytes()?.into())),
            b'F' => Reply::Encoded(Err(Refusal { column: fields.u32()? as u32, message: fields.str()?.to_owned() })),
            b'M' => {
                let severity = *Severity::ALL.get(usize::from(fields.u8()?)).ok_or_else(malformed)?;
                let (line, column) = (fields.u32()? as u32, fields.u32()? as u32);
                Reply::Diagnosed(Diagnostic { severity, line, column, message: fields.str()?.to_owned() })
            }
            b'O' => Reply::Object(fields.bytes()?),
            b'D' => Reply::Done,
            _ => return Err(malformed()),
        })
    }
}

fn write_frame(out: &mut impl Write, body: &[u8]) -> io::Result<()> {
    out.write_all(&(body.len() as u32).to_le_bytes())?;
    out.write_all(body)
}

/// Reads one frame's tag and fields.
fn read_frame(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    read_frame_into(input, &mut body)?;
    Ok(body)
}

/// Reads one frame's tag and fields in place of what `body` held.
pub(super) fn read_frame_into(input: &mut impl Read, body: &mut Vec<u8>) -> io::Result<()> {
    let mut len = [0; 4];
    input.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > MAX_FRAME_BYTES {
        return Err(malformed());
    }
    body.clear();
    body.resize(len, 0);
    input.read_exact(body)
}

fn put_target(body: &mut Vec<u8>, target: &Target) {
    body.push(u8::from(target.wave64()));
    put_bytes(body, target.to_string().as_bytes());
}

fn put_u32(body: &mut Vec<u8>, number: usize) {
    body.extend((number as u32).to_le_bytes());
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(body, bytes.len());
    body.extend(bytes);
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed frame")
}

/// The fields of a frame that are not yet read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(field)
    }

    fn u8(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> io::Result<usize> {
        let field = self.take(4)?;
        Ok(u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize)
    }

    fn target(&mut self) -> io::Result<Target> {
        let wave64 = self.u8()? != 0;
        Ok(Target::from_id(self.str()?).map_err(io::Error::other)?.with_wave64(wave64))
    }

    fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let len = self.u32()?;
        self.take(len)
    }

    fn str(&mut self) -> io::Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| malformed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() -> io::Result<()> {
        let target = Target::from_id("gfx1100:xnack-").map_err(io::Error::other)?.with_wave64(true);
        let crashed = [Window([1, 2, 3, 4, 5])];
        let mut wire = Vec::new();
        let stretch = Stretch { target: &target, careful: true, until: 3, crashed: &crashed, code: b"12345" };
        Request::Decode(stretch).write(&mut wire)?;
        let OwnedRequest::Decode(request) = OwnedRequest::read(&mut wire.as_slice())? else {
            return Err(malformed());
        };
        assert_eq!((request.target, request.careful, request.until), (target, true, 3));
        assert_eq!((request.crashed.as_slice(), request.code.as_slice()), (&crashed[..], &b"12345"[..]));
        Ok(())
    }

    #[test]
    fn texts_and_what_they_become_arrive_as_they_were_sent() -> io::Result<()> {
        let (target, mut wire) = (Target::new("gfx942"), Vec::new());
        Request::Encode { target: &target, texts: &["s_nop 0", ""] }.write(&mut wire)?;
        let OwnedRequest::Encode { texts, .. } = OwnedRequest::read(&mut wire.as_slice())? else {
            return Err(malformed());
        };
        assert_eq!(texts, ["s_nop 0", ""]);

        let refusal = Refusal { column: 7, message: "no".into() };
        let mut wire = Vec::new();
        Request::Link { object: b"12" }.write(&mut wire)?;
        assert!(matches!(OwnedRequest::read(&mut wire.as_slice())?, OwnedRequest::Link { object } if object == b"12"));

        let diagnostic = Diagnostic { severity: Severity::Warning, line: 1, column: 2, message: "hey".into() };
        let mut wire = Vec::new();
        Reply::Encoded(Err(refusal.clone())).write(&mut wire)?;
        Reply::Diagnosed(diagnostic.clone()).write(&mut wire)?;
        let mut wire = wire.as_slice();
        assert!(matches!(Reply::parse(&read_frame(&mut wire)?)?, Reply::Encoded(Err(found)) if found == refusal));
        assert!(matches!(Reply::parse(&read_frame(&mut wire)?)?, Reply::Diagnosed(found) if found == diagnostic));
        Ok(())
    }

    #[test]
    fn a_damaged_reply_is_an_error() -> io::Result<()> {
        let mut wire = Vec::new();
        Reply::Learnt(8, Outcome::Decoded { words: 2, text: "s_nop 0" }).write(&mut wire)?;
        let frame = read_frame(&mut wire.as_slice())?;
        assert!(matches!(Reply::parse(&frame)?, Reply::Learnt(8, Outcome::Decoded { words: 2, text: "s_nop 0" })));
        for cut in 0..frame.len() {
            assert!(Reply::parse(&frame[..cut]).is_err(), "cut at {cut}");
        }
        let mut long = frame;
        long[1] = 6;
        assert!(Reply::parse(&long).is_err(), "no instruction has 6 words");
        Ok(())
    }
}

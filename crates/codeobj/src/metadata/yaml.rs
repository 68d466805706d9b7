//! YAML to [`Node`], by a real YAML parser.
//!
//! The assembler's own reader decides types by the key, so scalars are typed here as narrowly as counts need it:
//! unquoted decimal integers and truth values; everything else is text.

use super::Node;
use crate::error::{Error, ErrorKind, Place, Result};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// Nesting that is refused. Metadata nests five deep.
const DEPTH_LIMIT: usize = 32;

/// Reads exactly one document.
pub(super) fn parse(text: &str) -> Result<Node<'_>> {
    let mut reader = Reader { events: Parser::new_from_str(text) };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, span) => {
                return Err(Error::new(ErrorKind::Malformed, place(span), "metadata holds no YAML document"));
            }
            (event, span) => {
                let root = reader.node(event, span, 0)?;
                return reader.expect_end().map(|()| root);
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span)> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let marker = error.marker();
                let place = Place::Text { line: marker.line(), column: marker.col() + 1 };
                Err(Error::new(ErrorKind::Malformed, place, format!("metadata is not YAML: {}", error.info())))
            }
            None => Err(Error::new(ErrorKind::Malformed, Place::Whole, "metadata ends in the middle of a YAML value")),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node<'a>> {
        if depth > DEPTH_LIMIT {
            return Err(Error::limit(place(span), format!("metadata nests deeper than {DEPTH_LIMIT} levels")));
        }
        let (anchor, tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            Event::Alias(anchor) => (*anchor, false),
            _ => (0, false),
        };
        if anchor != 0 || tagged {
            return Err(Error::unsupported(place(span), "YAML anchors, aliases and tags are not used in metadata"));
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => Ok(Node::from_plain(text)),
            Event::Scalar(text, ..) => Ok(Node::Str(text)),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Node::List(items)),
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut pairs = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => return Ok(Node::Map(pairs)),
                        (event, span) => self.node(event, span, depth + 1)?,
                    };
                    let (event, span) = self.next()?;
                    pairs.push((key, self.node(event, span, depth + 1)?));
                }
            }
            other => {
                let message = format!("metadata is not YAML: unexpected {other:?}");
                Err(Error::new(ErrorKind::Malformed, place(span), message))
            }
        }
    }

    fn expect_end(&mut self) -> Result<()> {
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, span) => {
                    let message = "a second YAML document follows the metadata, expected its end";
                    return Err(Error::new(ErrorKind::Malformed, place(span), message));
                }
            }
        }
    }
}

fn place(span: Span) -> Place {
    Place::Text { line: span.start.line(), column: span.start.col() + 1 }
}

//! MessagePack to [`Node`]: the encoding of `NT_AMDGPU_METADATA`.
//!
//! `rmpv` reads the bytes borrowed, and pushes elements one by one, so that a claimed length costs nothing.

use super::Node;
use crate::error::{Error, ErrorKind, Place, Result};
use rmpv::ValueRef;
use std::borrow::Cow;

/// Levels that `rmpv` may descend. Metadata nests five deep, and `rmpv` counts about three per level.
const DEPTH_LIMIT: usize = 64;

/// Reads exactly one value.
pub(super) fn parse(bytes: &[u8]) -> Result<Node<'_>> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut rest, DEPTH_LIMIT);
    let offset = (bytes.len() - rest.len()) as u64;
    let value = value.map_err(|error| match error {
        rmpv::decode::Error::DepthLimitExceeded => {
            Error::limit(Place::File(offset), "MessagePack metadata nests too deep")
        }
        other => Error::malformed(offset, format!("MessagePack metadata is damaged or cut short ({other})")),
    })?;
    if !rest.is_empty() {
        let message = format!("{} bytes follow the MessagePack metadata, expected its end", rest.len());
        return Err(Error::new(ErrorKind::Malformed, Place::File(offset), message));
    }
    convert(value).map_err(|message| Error::new(ErrorKind::Malformed, Place::Whole, message))
}

fn convert(value: ValueRef<'_>) -> std::result::Result<Node<'_>, String> {
    Ok(match value {
        ValueRef::Nil => Node::Nil,
        ValueRef::Boolean(truth) => Node::Bool(truth),
        ValueRef::Integer(number) => match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => Node::Int(n.into()),
            (None, Some(n)) => Node::Int(n.into()),
            (None, None) => return Err("MessagePack metadata holds an integer beyond 64 bits".to_string()),
        },
        ValueRef::F32(number) => Node::Float(number.into()),
        ValueRef::F64(number) => Node::Float(number),
        ValueRef::String(text) => match text.into_str() {
            Some(text) => Node::Str(Cow::Borrowed(text)),
            None => return Err("MessagePack metadata holds a text that is not UTF-8".to_string()),
        },
        ValueRef::Array(items) => Node::List(items.into_iter().map(convert).collect::<std::result::Result<_, _>>()?),
        ValueRef::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| Ok((convert(key)?, convert(value)?)));
            Node::Map(pairs.collect::<std::result::Result<_, String>>()?)
        }
        ValueRef::Binary(_) | ValueRef::Ext(..) => {
            return Err("MessagePack metadata holds binary data, expected texts and numbers".to_string());
        }
    })
}

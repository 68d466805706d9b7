//! The neutral tree that both metadata encodings become.
//!
//! It keeps what a hash map would lose: the order of pairs, and repeated keys. Texts borrow from the input.

use std::borrow::Cow;

/// One value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    /// Pairs in source order, repeats included.
    Map(Vec<(Node<'a>, Node<'a>)>),
    /// Values in order.
    List(Vec<Node<'a>>),
    /// An integer. YAML: only decimal digits with an optional minus; larger ones stay [`Node::Str`].
    Int(i128),
    /// Any other YAML scalar (`0x30` and `30.0` too), or a MessagePack string.
    Str(Cow<'a, str>),
    /// `true` or `false`.
    Bool(bool),
    /// A MessagePack float; YAML's stay [`Node::Str`].
    Float(f64),
    /// MessagePack nil.
    Nil,
}

impl<'a> Node<'a> {
    /// The meaning of an unquoted YAML scalar.
    pub(crate) fn from_plain(text: Cow<'a, str>) -> Node<'a> {
        match text.as_ref() {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            t if is_decimal_integer(t) => t.parse().map_or(Node::Str(text), Node::Int),
            _ => Node::Str(text),
        }
    }

    /// What this is, with an article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::Map(_) => "a map",
            Node::List(_) => "a list",
            Node::Int(_) => "a number",
            Node::Str(_) => "a text",
            Node::Bool(_) => "a truth value",
            Node::Float(_) => "a floating-point number",
            Node::Nil => "nil",
        }
    }

    /// The text, when this is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Node::Str(text) = self { Some(text) } else { None }
    }

    /// Whether this is the text `expected`.
    pub(crate) fn is_str(&self, expected: &str) -> bool {
        matches!(self, Node::Str(text) if text == expected)
    }

    /// A list of exactly `N` unsigned numbers.
    pub(crate) fn as_u64s<const N: usize>(&self) -> Option<[u64; N]> {
        let Node::List(items) = self else { return None };
        let items: &[Node<'_>; N] = items.as_slice().try_into().ok()?;
        let mut numbers = [0; N];
        for (number, item) in numbers.iter_mut().zip(items) {
            let Node::Int(value) = item else { return None };
            *number = u64::try_from(*value).ok()?;
        }
        Some(numbers)
    }
}

/// `-?[0-9]+`
pub(crate) fn is_decimal_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// One sentence per text key that occurs again in the same map.
///
/// Producers write keys in ascending order, which proves them unique in one pass.
pub(crate) fn repeated_keys(pairs: &[(Node<'_>, Node<'_>)]) -> Vec<String> {
    let keys = || pairs.iter().filter_map(|(key, _)| key.as_str());
    if keys().zip(keys().skip(1)).all(|(a, b)| a < b) {
        return Vec::new();
    }
    let mut sorted: Vec<&str> = keys().collect();
    sorted.sort_unstable();
    let mut repeated: Vec<&str> = sorted.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    repeated.dedup();
    repeated.into_iter().map(|key| format!("key `{key}` is given more than once; the first value is used")).collect()
}

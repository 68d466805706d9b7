//! Descriptors and metadata as text.

/// Descriptors and metadata of one code object, written down.
pub struct Facts {
    text: String,
}

impl Facts {
    /// Appends them.
    pub fn write(&self, text: &mut String) {
        text.push_str(&self.text);
    }
}

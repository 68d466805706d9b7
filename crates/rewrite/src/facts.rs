//! Descriptors and metadata as text.

/// Descriptors and metadata of one code object, written down.
pub struct Facts {
    text: String,
}

impl Facts {
    /// Those of `object`.
    pub fn of(_toolchain: &llvm::Toolchain, _object: &crate::Object<'_>) -> crate::Result<Facts> {
        Ok(Facts { text: String::new() })
    }

    /// Appends them.
    pub fn write(&self, text: &mut String) {
        text.push_str(&self.text);
    }
}

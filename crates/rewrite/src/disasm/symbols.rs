//! Symbols as directives and labels.

use std::borrow::Cow;

use codeobj::code_object::{Binding, NamedSymbol, SymbolKind, Visibility};

/// A name as it is written: quoted where a bare one would be read as something else.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let is_bare = name.bytes().all(|byte| byte.is_ascii() && byte != b'@' && asm::symbol::is_name_byte(byte))
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty();
    match is_bare {
        true => name.into(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")).into(),
    }
}

/// The directives that give a symbol its binding, visibility and type; they stand before its label.
pub fn directives(symbol: &NamedSymbol) -> String {
    let name = quoted(&symbol.name);
    let mut text = String::new();
    match symbol.binding {
        Binding::Local => {}
        Binding::Global => text += &format!("\t.globl {name}\n"),
        Binding::Weak => text += &format!("\t.weak {name}\n"),
    }
    match symbol.visibility {
        Visibility::Default => {}
        Visibility::Hidden => text += &format!("\t.hidden {name}\n"),
        Visibility::Protected => text += &format!("\t.protected {name}\n"),
    }
    match symbol.kind {
        SymbolKind::Function => text += &format!("\t.type {name},@function\n"),
        SymbolKind::Object => text += &format!("\t.type {name},@object\n"),
        SymbolKind::Label | SymbolKind::Other => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_quotes_get_them() {
        assert_eq!(quoted("_Z4axpyPf.kd$0"), "_Z4axpyPf.kd$0");
        assert_eq!(quoted("k<float, 4>"), "\"k<float, 4>\"");
        assert_eq!(quoted("a\"b\\"), r#""a\"b\\""#);
        assert_eq!(quoted("0x"), "\"0x\"");
    }
}

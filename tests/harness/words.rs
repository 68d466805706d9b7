//! Splits a command line into arguments: spaces separate, quotes group, nothing is expanded.

/// The words of `line`. Inside `'…'` every character stands for itself; inside `"…"` a backslash takes the next
/// character literally.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' => words.extend(word.take()),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some(end) if end == quote => break,
                        Some('\\') if quote == '"' => word.extend(rest.next()),
                        Some(inner) => word.push(inner),
                        None => return Err(format!("a quote is not closed: {line}")),
                    }
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

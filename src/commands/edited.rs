//! What the commands that take code objects apart have in common: how errors are said and what they exit with.

use std::process::ExitCode;

use rewrite::{Error, ErrorKind};

use crate::output;

/// Says every message of an error on stderr; `text` is the name and content of the assembly text that lines refer to.
pub fn say_error(error: &Error, text: Option<(&str, &str)>) {
    for message in &error.messages {
        output::stderr(&format!("error: {}", shown(message, text)));
    }
}

/// A message with its line below it, as the house does it.
pub fn shown(message: &rewrite::Message, text: Option<(&str, &str)>) -> String {
    let mut shown = message.text.clone();
    let mut margin = 0;
    if let (line @ 1.., Some((name, text))) = (message.line, text) {
        margin = line.to_string().len();
        shown += &format!("\n{:margin$}--> {name}:{line}", "");
        if message.column > 0 {
            shown += &format!(":{}", message.column);
        }
        if let Some(source) = text.lines().nth(line as usize - 1) {
            let source = source.replace('\t', " ");
            shown += &format!("\n{:margin$} |\n{line} | {}\n{:margin$} |", "", source.trim_end(), "");
            if message.column > 0 {
                shown += &format!(" {:1$}^", "", message.column as usize - 1);
            }
        }
    }
    if let Some(help) = &message.help {
        shown += &format!("\n{:margin$} = {help}", "");
    }
    shown
}

/// The exit code that belongs to an error.
pub fn exit_of(error: &Error) -> ExitCode {
    ExitCode::from(match error.kind {
        ErrorKind::Larger => 1,
        ErrorKind::Input => 2,
        ErrorKind::Unavailable => 3,
    })
}

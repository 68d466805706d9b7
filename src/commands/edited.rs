//! What the commands that take code objects apart have in common: their inputs, their errors, their exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PathBufValueParser, TypedValueParser};
use codeobj::container;
use resources::collect::FileBytes;
use rewrite::{Error, ErrorKind, Message};

use crate::output;

/// One code object that was named.
pub struct Input {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it was in; none when it is the file itself.
    pub container: Option<Container>,
}

/// A file with code objects in it.
pub struct Container {
    /// Its bytes.
    pub bytes: FileBytes,
    /// Its name.
    pub file: String,
    /// Where in it the code object is.
    pub member: String,
}

impl Input {
    /// Reads the code object at `path`, which may lead into a container.
    pub fn read(path: &Path) -> Result<Input, Error> {
        let name = path.display().to_string();
        let (file, member) = if path.exists() { (&*name, "") } else { container::split_path(&name) };
        if Path::new(file).is_dir() {
            let message = Message::new(format!("{file}: is a directory; this command takes one code object"));
            return Err(message.help("`coax roundtrip` and `coax summarize` read directories").into());
        }
        let bytes = FileBytes::read(file.as_ref()).map_err(|error| Error::input(format!("{file}: {error}")))?;
        let mut found = container::select(&bytes, member).map_err(|error| Error::input(format!("{name}: {error}")))?;
        match (found.pop(), found.len()) {
            (Some(only), 0) => {
                let (member, own) = (only.path, only.bytes.into_owned());
                let is_file = member.is_empty();
                let container = || Container { file: file.to_owned(), member, bytes };
                Ok(Input { bytes: own, container: (!is_file).then(container) })
            }
            (None, _) => Err(Error::input(format!("{name}: no code object in it"))),
            (Some(_), others) => {
                let message = format!("{name}: {} code objects in it, name one", others + 1);
                Err(Message::new(message).help(format!("`coax show {name}` lists them with their paths")).into())
            }
        }
    }
}

/// The value of an argument that names a file to be read; `-` is stdin.
pub fn file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| if path == Path::new("-") { PathBuf::from("/dev/stdin") } else { path })
}

/// A text from outside; bytes that are no UTF-8 are replaced, which LLVM would refuse but in comments.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = FileBytes::read(path).map_err(|error| Error::input(format!("{}: {error}", path.display())))?;
    if container::sniff(&bytes).is_some() {
        return Err(Error::input(format!("{}: this is a binary file, expected assembly text", path.display())));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `output` may be an input only when the user said so.
pub fn refuse_overwriting(output: &Path, inputs: &[&Path], in_place: bool) -> Result<(), Error> {
    let same = |input: &&&Path| {
        let container = input.display().to_string();
        let file = if input.exists() { input } else { Path::new(container::split_path(&container).0) };
        matches!((file.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    match inputs.iter().find(same) {
        Some(_) if !in_place => Err(Message::new(format!("{} is an input", output.display()))
            .help("name another output, or say --in-place")
            .into()),
        _ => Ok(()),
    }
}

/// Runs a command: its errors are said and become its exit code.
pub fn guarded(run: impl FnOnce() -> Result<ExitCode, Error>) -> ExitCode {
    run().unwrap_or_else(|error| {
        say_error(&error, None);
        exit_of(&error)
    })
}

/// Writes a page to stdout and ends with `exit`.
pub fn finish(page: &str, exit: u8) -> Result<ExitCode, Error> {
    output::stdout(page).map_err(|error| Error::input(format!("stdout: {error}")))?;
    Ok(ExitCode::from(exit))
}

/// Says every message of an error on stderr; `text` is the name and content of the assembly text that lines refer to.
pub fn say_error(error: &Error, text: Option<(&Path, &str)>) {
    let messages: Vec<String> = error.messages.iter().map(|message| shown(message, text)).collect();
    output::list("error", &messages);
}

/// A message with the line that it is about below it.
pub fn shown(message: &Message, text: Option<(&Path, &str)>) -> String {
    let mut shown = message.text.clone();
    let mut margin = 0;
    if let (line @ 1.., Some((name, text))) = (message.line, text) {
        margin = line.to_string().len();
        shown += &format!("\n{:margin$}--> {}:{line}", "", name.display());
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
        ErrorKind::Larger | ErrorKind::NoRoom => 1,
        ErrorKind::Input | ErrorKind::Unsupported | ErrorKind::NotFound | ErrorKind::Moved | ErrorKind::CheckFailed => {
            2
        }
        ErrorKind::Unavailable => 3,
    })
}

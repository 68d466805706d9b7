//! Annotations of a pull request, as GitHub's workflow commands (`::error file=…,title=…::message`; GitHub Docs, "Workflow
//! commands for GitHub Actions"). GitHub shows ten of a level for each step, so the worst come first and the tenth
//! sums up the rest.

use super::words::{Level, counted, plain};
use super::{Kernel, Report, Sort};

/// How many annotations of one level GitHub shows for a step (GitHub Docs, "Limits": 10 each of errors and warnings).
const SHOWN: usize = 10;

/// A line for each annotation. No line can be mistaken for a verdict: each begins with `::`.
pub fn annotations(report: &Report) -> String {
    let mut errors: Vec<Annotation> = Vec::new();
    for problem in &report.input_problems {
        errors.push(Annotation {
            file: None,
            title: format!("{}: not trustworthy", report.command),
            text: problem.clone(),
        });
    }
    if let Some(text) = report.unexplained() {
        errors.push(Annotation { file: None, title: report.command.into(), text: text.into() });
    }
    let kernels = report.sorted(Sort::Worst);
    let at = |level: Level| kernels.iter().filter(move |kernel| kernel.level() == level);
    errors.extend(at(Level::Error).map(|kernel| annotation(kernel, "not trustworthy")));
    errors.extend(at(Level::Failure).map(|kernel| annotation(kernel, "regression")));
    let warnings = at(Level::Warning).map(|kernel| annotation(kernel, "accepted"));
    let mut out = String::new();
    print(&mut out, "error", errors);
    print(&mut out, "warning", warnings.collect());
    let helped = at(Level::Note).count();
    if helped > 0 {
        let text = format!("{} improved", counted(helped, "kernel"));
        let helped = Annotation { file: None, title: format!("coax {}", report.command), text };
        print(&mut out, "notice", vec![helped]);
    }
    out
}

struct Annotation {
    file: Option<String>,
    title: String,
    text: String,
}

fn annotation(kernel: &Kernel, what: &str) -> Annotation {
    Annotation {
        file: Some(kernel.source.clone()).filter(|source| !source.is_empty()),
        title: format!("{}: {what}", kernel.key),
        text: format!("{}: {}", plain(&kernel.key), kernel.summary()),
    }
}

fn print(out: &mut String, level: &str, annotations: Vec<Annotation>) {
    let listed = if annotations.len() > SHOWN { SHOWN - 1 } else { SHOWN };
    for annotation in annotations.iter().take(listed) {
        let text = annotation.text.lines().map(plain).collect::<Vec<_>>().join("\n");
        out.push_str(&format!("::{level} "));
        if let Some(file) = &annotation.file {
            out.push_str(&format!("file={},", property(file)));
        }
        out.push_str(&format!("title={}::{}\n", property(&annotation.title), message(&text)));
    }
    if annotations.len() > listed {
        let rest = counted(annotations.len() - listed, &format!("more {level}"));
        out.push_str(&format!("::{level} title=coax::{rest}; GitHub shows {SHOWN} for each step\n"));
    }
}

/// The escapes of a message, as GitHub's own toolkit makes them: `%` first, since the others bring some.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Those of a property, where `,` and `:` would end it.
fn property(text: &str) -> String {
    message(&plain(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_neither_end_a_property_nor_begin_a_command() {
        // Expectations: escapeProperty and escapeData of GitHub's actions/toolkit, packages/core/src/command.ts.
        assert_eq!(message("100%\r\n::error::x"), "100%25%0D%0A::error::x");
        assert_eq!(property("a,b:c%"), "a%2Cb%3Ac%25");
    }
}

//! JUnit's XML, in the form that Jenkins, GitLab and GitHub actions read (`junit-10.xsd` of Jenkins' xUnit plugin): a test
//! case for each kernel. A regression is a failure; what is not trustworthy is an error.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::words::{Level, plain};
use super::{Kernel, Report};

/// Writes the report.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let of_inputs = report.input_problems.iter().map(String::as_str).chain(report.unexplained());
    let of_inputs: Vec<&str> = of_inputs.collect();
    let count = |level| report.kernels.iter().filter(|kernel| kernel.level() == level).count();
    let regressed_as_a_whole = report.unexplained().is_some() && report.verdict == crate::Verdict::Regression;
    let errors = count(Level::Error) + usize::from(!of_inputs.is_empty() && !regressed_as_a_whole);
    let failures = count(Level::Failure) + usize::from(regressed_as_a_whole);
    let name = format!("coax {}", report.command);
    let tests = report.kernels.len() + usize::from(!of_inputs.is_empty());
    let sums = [("tests", tests), ("failures", failures), ("errors", errors)].map(|(k, v)| (k, v.to_string()));

    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let of = |tag: &'static str| {
        let mut start = BytesStart::new(tag);
        start.push_attribute(("name", name.as_str()));
        sums.iter().for_each(|(key, value)| start.push_attribute((*key, value.as_str())));
        start
    };
    xml.write_event(Event::Start(of("testsuites")))?;
    xml.write_event(Event::Start(of("testsuite")))?;
    if !of_inputs.is_empty() {
        let tag = if regressed_as_a_whole { "failure" } else { "error" };
        case(&mut xml, &name, "inputs", Some((tag, of_inputs[0], of_inputs.join("\n"))))?;
    }
    for kernel in &report.kernels {
        let (summary, details) = (kernel.summary(), details(kernel));
        let result = match kernel.level() {
            Level::Error => Some(("error", summary.as_str(), details)),
            Level::Failure => Some(("failure", summary.as_str(), details)),
            Level::None | Level::Note | Level::Warning => None,
        };
        case(&mut xml, &name, &kernel.key, result)?;
    }
    xml.write_event(Event::End(BytesEnd::new("testsuite")))?;
    xml.write_event(Event::End(BytesEnd::new("testsuites")))?;
    xml.get_mut().write_all(b"\n")
}

type Result<'r> = Option<(&'static str, &'r str, String)>;

fn case(xml: &mut Writer<&mut dyn Write>, suite: &str, name: &str, result: Result<'_>) -> io::Result<()> {
    let mut start = BytesStart::new("testcase");
    start.push_attribute(("classname", suite));
    start.push_attribute(("name", plain(name).as_str()));
    let Some((tag, message, text)) = result else { return xml.write_event(Event::Empty(start)) };
    xml.write_event(Event::Start(start))?;
    let mut problem = BytesStart::new(tag);
    problem.push_attribute(("message", plain(message).as_str()));
    problem.push_attribute(("type", if tag == "failure" { "regression" } else { "not trustworthy" }));
    xml.write_event(Event::Start(problem))?;
    let lines: Vec<String> = text.lines().map(plain).collect();
    xml.write_event(Event::Text(BytesText::new(&lines.join("\n"))))?;
    xml.write_event(Event::End(BytesEnd::new(tag)))?;
    xml.write_event(Event::End(BytesEnd::new("testcase")))
}

/// The file, the problems, and every figure that moved.
fn details(kernel: &Kernel) -> String {
    let mut lines = vec![format!("file: {}", plain(&kernel.source))];
    lines.extend(kernel.problems.iter().map(|problem| plain(problem)));
    let moved = kernel.compared_figures().filter(|figure| figure.delta().is_some_and(|delta| delta != 0));
    let moved = moved.chain(kernel.moved_waves());
    lines.extend(moved.map(|figure| format!("{} {}", figure.column.name(), figure.change())));
    lines.join("\n")
}

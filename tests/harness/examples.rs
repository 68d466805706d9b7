//! Finds the examples in documents and help texts, and what each of them claims.

/// One `$ coax …` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The command line without `$ coax `.
    pub command: String,
    /// The exit code that the text states or implies.
    pub exit: i32,
    /// Why it cannot run in a test, from a comment `# needs …`.
    pub needs: Option<String>,
    /// The lines of output that the text shows; `…` stands for any number of lines.
    pub output: Vec<String>,
}

/// The examples of all blocks marked ```` ```console ````.
pub fn in_markdown(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in text.lines() {
        match &mut block {
            None if line.trim() == "```console" => block = Some(Vec::new()),
            None => {}
            Some(lines) if line.trim() == "```" => {
                examples.extend(in_console(lines));
                block = None;
            }
            Some(lines) => lines.push(line),
        }
    }
    examples
}

/// The examples of the section `Examples:` of a help text; lines without `$ ` are not to be run.
pub fn in_help(text: &str) -> Vec<Example> {
    let lines: Vec<&str> = section_of_help(text).filter(|line| line.starts_with("$ ")).collect();
    in_console(&lines)
}

/// The command lines under `Examples:` in a help text.
pub fn section_of_help(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .skip_while(|line| line.trim_end() != "Examples:")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .map(str::trim)
        .filter(|line| line.trim_start_matches("$ ").starts_with("coax "))
}

/// The names that the list under `Commands:` of a help text gives.
pub fn commands_in_help(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| line.trim_end() != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // Descriptions that continue on a next line are indented further.
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn in_console(lines: &[&str]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    // Output of other programs than coax is not ours to check.
    let mut within = false;
    let mut asks_for_code = false;
    for line in lines {
        if let Some(command) = line.strip_prefix("$ coax ") {
            examples.push(read_command(command));
            within = true;
        } else if line.trim() == "$ echo $?" {
            asks_for_code = true;
        } else if line.starts_with("$ ") {
            within = false;
        } else if let Some(example) = examples.last_mut().filter(|_| within) {
            if std::mem::take(&mut asks_for_code) {
                example.exit = line.trim().parse().unwrap_or(-1);
            } else {
                example.exit = verdict_code(line).unwrap_or(example.exit);
                example.output.push((*line).to_owned());
            }
        }
    }
    examples
}

fn read_command(text: &str) -> Example {
    let (command, comment) = text.split_once(" #").unwrap_or((text, ""));
    let comment = comment.trim();
    let exit = comment.split_once("exit ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    Example {
        command: command.trim().to_owned(),
        exit: exit.unwrap_or(0),
        needs: comment.starts_with("needs ").then(|| comment.to_owned()),
        output: Vec::new(),
    }
}

fn verdict_code(line: &str) -> Option<i32> {
    match line.strip_prefix("RESULT: ")?.trim() {
        "OK" => Some(0),
        "REGRESSION" => Some(1),
        "NOT TRUSTWORTHY" => Some(2),
        _ => None,
    }
}

/// Whether `actual` is what the text shows, where `…` skips lines, or the rest of the line that it ends.
pub fn shows(expected: &[String], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line.trim() == "…" => (0..=actual.len()).any(|skipped| shows(rest, &actual[skipped..])),
        Some((line, rest)) => {
            let is_shown = |actual: &&str| match line.trim_end().strip_suffix('…') {
                Some(start) => actual.starts_with(start.trim_end()),
                None => *actual == line.trim_end(),
            };
            actual.first().is_some_and(is_shown) && shows(rest, &actual[1..])
        }
    }
}

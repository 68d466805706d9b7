//! What `coax site new` could not know stands in its file as `"?"`, and nobody is to run such a file by accident.

/// What stands for a value that somebody has to fill in.
pub const MARK: &str = "\"?\"";

/// Refuses the text of a site file in which something is still to be filled in. The error begins with line and column of the
/// first and names the lines of all.
pub fn refuse(text: &str) -> Result<(), String> {
    let places: Vec<(usize, usize)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let content = line.split('#').next().unwrap_or_default();
            content.find(MARK).map(|at| (index + 1, content[..at].chars().count() + 1))
        })
        .collect();
    let Some((line, column)) = places.first() else { return Ok(()) };
    let lines: Vec<String> = places.iter().map(|(line, _)| line.to_string()).collect();
    Err(match &lines[..] {
        [_] => format!("{line}:{column}: {MARK} is still to be filled in"),
        [first @ .., last] => {
            format!("{line}:{column}: {MARK} is still to be filled in on lines {} and {last}", first.join(", "))
        }
        [] => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::refuse;

    #[test]
    fn what_is_left_to_fill_in_is_told_with_its_lines() {
        assert_eq!(refuse("a = 1\n# b = \"?\"\nc = \"x\" # \"?\" for none\n"), Ok(()));
        assert_eq!(refuse("a = 1\nN = \"?\"\n"), Err("2:5: \"?\" is still to be filled in".into()));
        let three = refuse("N = \"?\"\nM = \"?\"\n\nK = \"?\"\n");
        assert_eq!(three, Err("1:5: \"?\" is still to be filled in on lines 1, 2 and 4".into()));
    }
}

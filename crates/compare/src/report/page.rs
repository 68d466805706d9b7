//! How lines of a report fit a page of 80 columns.

/// Columns of a terminal that nobody made wider.
const WIDTH: usize = 80;

/// A line, broken at spaces so that no part is wider than a page; parts behind the first are indented by two more.
pub fn wrapped(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut text = " ".repeat(indent);
    let mut column = indent;
    let mut is_first = true;
    for word in line.trim_start_matches(' ').split(' ') {
        let width = word.chars().count();
        if !is_first && column + 1 + width > WIDTH {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&" ".repeat(indent + 2));
            column = indent + 2;
        } else if !is_first {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
        is_first = false;
    }
    text.push('\n');
    text
}

/// Messages of which several differ only in their numbers are told once, with how many there are.
pub fn collapsed(messages: &[String]) -> Vec<String> {
    let shape = |message: &str| message.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let mut kinds: Vec<(String, &String, usize)> = Vec::new();
    for message in messages {
        let own = shape(message);
        match kinds.iter_mut().find(|(known, ..)| *known == own) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((own, message, 1)),
        }
    }
    let told = kinds.into_iter().map(|(_, message, count)| match count {
        1 => message.clone(),
        _ => format!("{message} (and {} more like it)", count - 1),
    });
    told.collect()
}

/// `1 launch`, `2 launches`.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_line_is_wider_than_a_page() {
        let text = wrapped(&format!("  {}", "word ".repeat(40).trim_end()));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.lines().next().map(|line| line.starts_with("  word")), Some(true));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(wrapped("a  b"), "a  b\n");
        let long = "x".repeat(100);
        assert_eq!(wrapped(&format!("a {long}")), format!("a\n  {long}\n"));
    }

    #[test]
    fn messages_that_differ_in_numbers_are_counted() {
        let messages = ["a 1 b", "a 2 b", "c", "a 33 b"].map(str::to_owned);
        assert_eq!(collapsed(&messages), ["a 1 b (and 2 more like it)", "c"]);
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!(counted(1, "launch", "launches"), "1 launch");
        assert_eq!(counted(0, "launch", "launches"), "0 launches");
    }
}

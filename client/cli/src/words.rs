//! A line as a shell splits it: words, quotes, backslashes. Nothing is expanded.

/// What ends a command where no quote stands before it.
const ENDS: [char; 6] = ['|', '>', '<', '&', ';', '#'];

/// A line in words.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// The words.
    pub words: Vec<String>,
    /// What ended the command before the line did: there is more that only a shell understands. A comment is not that.
    pub end: Option<char>,
}

/// Splits a line; an error where a quote is not closed.
pub fn split(line: &str) -> Result<Words, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => quoted(&mut letters, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut letters, '"', word.get_or_insert_default())?,
            '\\' => match letters.next() {
                // A line that goes on below.
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            '#' if word.is_some() => word.get_or_insert_default().push(letter),
            end if ENDS.contains(&end) => {
                words.extend(word.take());
                return Ok(Words { words, end: Some(end).filter(|end| *end != '#') });
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(Words { words, end: None })
}

fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), String> {
    loop {
        match letters.next() {
            None => return Err(format!("a quote {quote} is not closed")),
            Some(end) if end == quote => return Ok(()),
            Some('\\') if quote == '"' => match letters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => return Err("a quote \" is not closed".into()),
            },
            Some(letter) => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).unwrap_or_else(|error| panic!("{line}: {error}")).words
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words(r#"put k '{"a": "b c"}' --ttl  30s # said"#), ["put", "k", r#"{"a": "b c"}"#, "--ttl", "30s"]);
        assert_eq!(words(r#"a "b \"c\" \n" d\ e '' f#g"#), ["a", r#"b "c" \n"#, "d e", "", "f#g"]);
        assert_eq!(split("get k | jq ."), Ok(Words { words: vec!["get".into(), "k".into()], end: Some('|') }));
        assert_eq!(words("get \\\n  k"), ["get", "k"]);
        assert!(split("put k 'x").is_err() && split("put k \"x\\").is_err());
    }
}

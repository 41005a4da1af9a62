//! Entity tags as RFC 9110 writes them: `*`, or a list of tags in quotes.
//!
//! Owns the syntax of `If-Match` and `If-None-Match`. Never knows what a tag stands for: that is `conditions`'.

use quorate_machine::limits::EXPECT_TOKENS_MAX;

/// What a condition names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags<'a> {
    /// `*`
    Star,
    /// At least one tag, at most [`EXPECT_TOKENS_MAX`].
    List(Vec<Tag<'a>>),
}

/// One tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    /// `W/"…"`
    pub weak: bool,
    /// What stands between the quotes.
    pub opaque: &'a [u8],
}

/// Why something is neither `*` nor a list of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Only blanks and commas.
    #[error("holds no tag; give `*`, or the ETag of an answer as it is")]
    Empty,
    /// `*` beside something.
    #[error("`*` stands alone, not in a list")]
    StarInList,
    /// No quote where a tag starts.
    #[error("a tag stands in double quotes, like \"42\" (in a shell: '\"42\"')")]
    Unquoted,
    /// A quote without its partner.
    #[error("a tag has no closing quote")]
    Unclosed,
    /// A blank or control character in a tag.
    #[error("a tag holds a character that no tag can have")]
    Character,
    /// Something between a tag and the next comma.
    #[error("tags are separated by commas")]
    NoComma,
    /// A long list.
    #[error("more than {EXPECT_TOKENS_MAX} tags")]
    TooMany,
}

/// Reads the lines of one header, which are one list however many they are. Empty elements of a list are passed over.
pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Tags<'a>, Malformed> {
    let (mut star, mut list) = (false, Vec::new());
    for line in lines {
        let mut rest = line;
        loop {
            rest = trim(rest);
            match rest {
                [] => break,
                [b',', after @ ..] => rest = after,
                _ if star => return Err(Malformed::StarInList),
                [b'*', after @ ..] => {
                    star = true;
                    rest = separated(after)?;
                }
                _ if list.len() == EXPECT_TOKENS_MAX => return Err(Malformed::TooMany),
                _ => {
                    let (tag, after) = tag(rest)?;
                    list.push(tag);
                    rest = separated(after)?;
                }
            }
        }
    }
    match (star, list.is_empty()) {
        (true, true) => Ok(Tags::Star),
        (true, false) => Err(Malformed::StarInList),
        (false, false) => Ok(Tags::List(list)),
        (false, true) => Err(Malformed::Empty),
    }
}

/// The tag that `text` starts with, and what follows.
fn tag(text: &[u8]) -> Result<(Tag<'_>, &[u8]), Malformed> {
    let (weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let inner = quoted.strip_prefix(b"\"").ok_or(Malformed::Unquoted)?;
    let end = inner.iter().position(|byte| *byte == b'"').ok_or(Malformed::Unclosed)?;
    let (opaque, after) = (&inner[..end], &inner[end + 1..]);
    // Commas and backslashes are characters like others here.
    if opaque.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(Malformed::Character);
    }
    Ok((Tag { weak, opaque }, after))
}

/// What follows an element: nothing, or a comma and more.
fn separated(text: &[u8]) -> Result<&[u8], Malformed> {
    match trim(text) {
        [] => Ok(&[]),
        [b',', after @ ..] => Ok(after),
        _ => Err(Malformed::NoComma),
    }
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', after @ ..] = text {
        text = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Result<Tags<'_>, Malformed> {
        parse([text.as_bytes()])
    }

    fn strong(opaque: &str) -> Tag<'_> {
        Tag { weak: false, opaque: opaque.as_bytes() }
    }

    #[test]
    fn a_list_is_read_as_the_grammar_has_it() {
        assert_eq!(one(" * "), Ok(Tags::Star));
        assert_eq!(one("\"1\""), Ok(Tags::List(vec![strong("1")])));
        assert_eq!(one("\"a,b\",\"\\\" ,\t\"\""), Ok(Tags::List(vec![strong("a,b"), strong("\\"), strong("")])));
        assert_eq!(one(",, \"1\",,"), Ok(Tags::List(vec![strong("1")])));
        assert_eq!(one("W/\"1\""), Ok(Tags::List(vec![Tag { weak: true, opaque: b"1" }])));
        assert_eq!(parse([b"\"1\"".as_slice(), b"", b"\"2\""]), Ok(Tags::List(vec![strong("1"), strong("2")])));
    }

    #[test]
    fn what_the_grammar_does_not_have_is_refused_by_its_reason() {
        for (text, why) in [
            ("", Malformed::Empty),
            (" ,\t,", Malformed::Empty),
            ("*,*", Malformed::StarInList),
            ("*, \"1\"", Malformed::StarInList),
            ("\"1\", *", Malformed::StarInList),
            ("**", Malformed::NoComma),
            ("1", Malformed::Unquoted),
            ("w/\"1\"", Malformed::Unquoted),
            ("W/1", Malformed::Unquoted),
            ("W/ \"1\"", Malformed::Unquoted),
            ("'1'", Malformed::Unquoted),
            ("\"1", Malformed::Unclosed),
            ("\"1\", \"", Malformed::Unclosed),
            ("\"1 2\"", Malformed::Character),
            ("\"1\" \"2\"", Malformed::NoComma),
            ("\"1\"2", Malformed::NoComma),
        ] {
            assert_eq!(one(text), Err(why), "{text}");
        }
        assert_eq!(parse([b"*".as_slice(), b"*"]), Err(Malformed::StarInList));
        let most = vec!["\"1\""; EXPECT_TOKENS_MAX].join(",");
        assert!(one(&most).is_ok());
        assert_eq!(one(&format!("{most},\"1\"")), Err(Malformed::TooMany));
    }

    fn tags() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
        let character = prop_oneof![Just(0x21u8), 0x23..=0x7eu8, 0x80..=0xffu8];
        let opaque = prop::collection::vec(character, 0..12);
        prop::collection::vec((any::<bool>(), opaque), 1..=EXPECT_TOKENS_MAX)
    }

    proptest! {
        #[test]
        fn a_written_list_is_read_back(tags in tags(), line_ends in any::<u16>(), blanks in any::<u16>()) {
            let mut lines = vec![Vec::new()];
            for (number, (weak, opaque)) in tags.iter().enumerate() {
                let line = lines.last_mut().expect("there is always a line");
                line.extend_from_slice(if *weak { b"W/\"" } else { b"\"" });
                line.extend_from_slice(opaque);
                line.extend_from_slice(if blanks >> number & 1 == 1 { b"\" \t" } else { b"\"" });
                match line_ends >> number & 1 {
                    1 => lines.push(Vec::new()),
                    _ => line.push(b','),
                }
            }
            let expected = tags.iter().map(|(weak, opaque)| Tag { weak: *weak, opaque }).collect();
            prop_assert_eq!(parse(lines.iter().map(Vec::as_slice)), Ok(Tags::List(expected)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4)) {
            let _either = parse(lines.iter().map(Vec::as_slice));
        }

        #[test]
        fn bytes_of_the_grammar_are_read_or_refused(text in "[*W/\", \t1,]{0,40}") {
            if let Ok(Tags::List(tags)) = parse([text.as_bytes()]) {
                prop_assert!((1..=EXPECT_TOKENS_MAX).contains(&tags.len()));
            }
        }
    }
}

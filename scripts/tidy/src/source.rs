//! The references in a file of Rust: its modules, its imports, and the paths that it writes out.
//!
//! Owns the reading, which knows words and brackets alone. Leaves out tests within a file. Never knows where a path leads.

use std::collections::{BTreeMap, BTreeSet};

/// Segments, such as `["crate", "app", "App"]`.
pub type Path = Vec<String>;

/// Words before the name of an item.
const ITEMS: [&str; 9] = ["mod", "struct", "enum", "union", "trait", "type", "const", "static", "fn"];

/// The attribute of tests.
const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// The references and items of a file.
#[derive(Debug, Default)]
pub struct Source {
    /// Modules that are files of their own.
    pub modules: Vec<String>,
    /// Names of what it defines. A module within it counts as its own.
    pub items: BTreeSet<String>,
    /// Paths of what it imports, by the names that they have here.
    pub imports: BTreeMap<String, Path>,
    /// Paths of what it imports everything of.
    pub globs: Vec<Path>,
    /// All paths, imported or written out.
    pub paths: BTreeSet<Path>,
}

impl Source {
    /// Reads a file.
    pub fn read(text: &str) -> Self {
        let tokens = without_tests(&tokens(text));
        let mut source = Self::default();
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let follows_path = at > 0 && tokens[at - 1] == "::";
            match tokens[at] {
                "mod" if word(&tokens, at + 2) == ";" => source.modules.push(word(&tokens, at + 1).to_owned()),
                "use" if word(&tokens, at + 1) != "<" => {
                    at = source.read_import(&tokens, at + 1, &[], depth == 0);
                    continue;
                }
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "macro_rules" => _ = source.items.insert(word(&tokens, at + 2).to_owned()),
                token if depth == 0 && ITEMS.contains(&token) => {
                    source.items.insert(word(&tokens, at + 1).to_owned());
                }
                token if is_name(token) && word(&tokens, at + 1) == "::" && !follows_path => {
                    at = source.read_path(&tokens, at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        source
    }

    /// Reads an import from `at` on, below the path `prefix`, and returns where it ends. Names are known in the whole file where the import
    /// does not stand within a function.
    fn read_import(&mut self, tokens: &[&str], mut at: usize, prefix: &[&str], is_of_file: bool) -> usize {
        let mut path = prefix.to_vec();
        loop {
            match word(tokens, at) {
                "::" => at += 1,
                "{" => {
                    at += 1;
                    while !matches!(word(tokens, at), "}" | "") {
                        at = self.read_import(tokens, at, &path, is_of_file);
                        if word(tokens, at) == "," {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "*" => {
                    if is_of_file {
                        self.globs.push(owned(&path));
                    }
                    self.paths.insert(owned(&path));
                    return at + 1;
                }
                "as" => {
                    self.import(&path, Some(word(tokens, at + 1)), is_of_file);
                    return at + 2;
                }
                "," | "}" | ";" | "" => {
                    self.import(&path, None, is_of_file);
                    return at;
                }
                segment => {
                    path.push(segment);
                    at += 1;
                }
            }
        }
    }

    /// Takes note of one import.
    fn import(&mut self, path: &[&str], name: Option<&str>, is_of_file: bool) {
        // `a::{self}` imports `a`.
        let path = match path {
            [before @ .., "self"] if !before.is_empty() => before,
            all => all,
        };
        if let (true, Some(name)) = (is_of_file, name.or_else(|| path.last().copied())) {
            self.imports.insert(name.to_owned(), owned(path));
        }
        self.paths.insert(owned(path));
    }

    /// Reads a path that is written out, and returns where it ends.
    fn read_path(&mut self, tokens: &[&str], mut at: usize) -> usize {
        let mut path = vec![word(tokens, at)];
        at += 1;
        while word(tokens, at) == "::" && is_name(word(tokens, at + 1)) {
            path.push(word(tokens, at + 1));
            at += 2;
        }
        self.paths.insert(owned(&path));
        at
    }
}

fn owned(path: &[&str]) -> Path {
    path.iter().map(|segment| (*segment).to_owned()).collect()
}

/// The token at a place, empty behind the last one.
fn word<'t>(tokens: &[&'t str], at: usize) -> &'t str {
    tokens.get(at).copied().unwrap_or_default()
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Words, `::`, and all other characters each by itself; no comments, no texts and no lifetimes.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let passed_over = passed_over(rest);
        if passed_over > 0 {
            rest = &rest[passed_over..];
            continue;
        }
        let length = if is_of_name(first) {
            rest.find(|character: char| !is_of_name(character)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// Bytes of the comment, text or lifetime that `rest` begins with; 0 where it begins with none.
fn passed_over(rest: &str) -> usize {
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        comment(rest)
    } else if rest.starts_with('"') {
        string(rest)
    } else if rest.starts_with('\'') {
        character_or_lifetime(rest)
    } else {
        raw_string(rest).unwrap_or(0)
    }
}

/// Comments may hold comments.
fn comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(first) = rest[at..].chars().next() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += first.len_utf8();
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let quoted = marks.trim_start_matches('#');
    let content = quoted.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks.len() - quoted.len()));
    let length = content.find(&end)?;
    Some(rest.len() - content.len() + length + end.len())
}

fn character_or_lifetime(rest: &str) -> usize {
    let content = &rest[1..];
    if let Some(escape) = content.strip_prefix('\\') {
        // The escaped character may be the quote itself.
        let first = escape.chars().next().map_or(0, char::len_utf8);
        return escape[first..].find('\'').map_or(rest.len(), |end| 2 + first + end + 1);
    }
    let first = content.chars().next().map_or(0, char::len_utf8);
    if content[first..].starts_with('\'') {
        return 1 + first + 1;
    }
    1 + content.find(|character: char| !is_of_name(character)).unwrap_or(content.len())
}

/// All but the items that only tests have.
fn without_tests<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let (mut left, mut at) = (Vec::with_capacity(tokens.len()), 0);
    while at < tokens.len() {
        if tokens[at..].starts_with(&TEST) {
            at = end_of_item(tokens, at + TEST.len());
        } else {
            left.push(tokens[at]);
            at += 1;
        }
    }
    left
}

/// The place behind the item that begins at `at`, further attributes included.
fn end_of_item(tokens: &[&str], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < tokens.len() {
        match tokens[at] {
            "(" | "[" | "{" => depth += 1,
            // The end of what the item stands in.
            ")" | "]" | "}" if depth == 0 => return at,
            "}" if depth == 1 => return at + 1,
            ")" | "]" | "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<String> {
        paths.into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn imports_are_known_by_the_names_that_they_have_here() {
        let source = Source::read("use a::{self, b as c, d::{e, *},};\npub(super) use super::f;\nfn g() { use h::i; }");
        let named: Vec<String> =
            source.imports.iter().map(|(name, path)| format!("{name} = {}", path.join("::"))).collect();
        assert_eq!(named, ["a = a", "c = a::b", "e = a::d::e", "f = super::f"]);
        assert_eq!(shown(&source.globs), ["a::d"]);
        assert_eq!(shown(&source.paths), ["a", "a::b", "a::d", "a::d::e", "h::i", "super::f"]);
    }

    #[test]
    fn paths_are_read_where_they_are_written_out() {
        let source = Source::read("impl a::B for C { fn d(&self) -> e::F { self.g::<Vec<_>>(h::i::<u8>()) } }");
        assert_eq!(shown(&source.paths), ["a::B", "e::F", "g", "h::i"]);
    }

    #[test]
    fn comments_texts_and_tests_say_nothing() {
        let text = r##"
            // use a::b;
            /* use a::b; /* use a::c; */ use a::d; */
            const TEXT: &'static str = "use a::b; \" use a::c;";
            const RAW: &str = r#"use a::b;" use a::c;"#;
            const MARKS: [char; 4] = ['"', '\'', '{', '\u{7b}'];
            #[cfg(test)]
            use a::b;
            #[cfg(test)]
            #[allow(dead_code)]
            mod tests {
                fn f() -> [u8; 2] { a::b::c() }
            }
            mod file;
            mod within {
                pub struct Inner;
            }
            fn f<'a>(text: &'a str) -> &'a str { crate::real(text) }
        "##;
        let source = Source::read(text);
        assert_eq!(shown(&source.paths), ["crate::real"]);
        assert_eq!(source.modules, ["file"]);
        let items: Vec<&str> = source.items.iter().map(String::as_str).collect();
        assert_eq!(items, ["MARKS", "RAW", "TEXT", "f", "within"]);
    }
}

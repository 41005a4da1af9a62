//! Trees in columns: one row for each of several, one for each field of a single one.
//!
//! Owns which columns there are, and that later rows of the same list stand under the same heading.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_client::api::Name;

use crate::tree::Node;

/// Columns are no wider than this, but for the last one.
const WIDTH_MAX: usize = 48;
/// Fields that say of all rows the same as the heading of an answer would.
const LEFT_OUT: [&str; 2] = ["revision", "index"];
/// Fields that hold the name of an entry, or what such names begin with.
const NAMES: [&str; 2] = ["key", "prefix"];

/// The columns of a list whose rows come one after the other.
#[derive(Default)]
pub struct Columns {
    /// Name and width.
    columns: Vec<(String, usize)>,
}

impl Columns {
    /// The lines for these rows, with a heading before the first.
    pub fn lines(&mut self, rows: &[Node]) -> Vec<String> {
        let rows: Vec<_> = rows.iter().map(named).collect();
        let rows = rows.as_slice();
        let mut lines = Vec::new();
        if self.columns.is_empty() && !rows.is_empty() {
            self.choose(rows);
            let names = self.columns.iter().map(|(name, _)| name.to_uppercase()).collect();
            lines.push(self.line(names));
        }
        lines.extend(rows.iter().map(|row| self.line(self.cells(row))));
        lines
    }

    fn choose(&mut self, rows: &[Node]) {
        for row in rows {
            let names: Vec<&str> = match row {
                Node::Fields(fields) => fields.iter().map(|(name, _)| name.as_str()).collect(),
                _ => vec!["value"],
            };
            for name in names {
                if !LEFT_OUT.contains(&name) && !self.columns.iter().any(|(known, _)| known == name) {
                    self.columns.push((name.to_owned(), 0));
                }
            }
        }
        let rows: Vec<_> = rows.iter().map(|row| self.cells(row)).collect();
        for (at, (name, width)) in self.columns.iter_mut().enumerate() {
            let widths = rows.iter().map(|row| length(&row[at])).chain([length(name)]);
            *width = widths.max().unwrap_or(0).min(WIDTH_MAX);
        }
    }

    fn cells(&self, row: &Node) -> Vec<String> {
        let cell = |name: &str| match row {
            Node::Fields(fields) => {
                fields.iter().find(|(known, _)| known == name).map_or_else(|| "-".to_owned(), |(_, value)| value.line())
            }
            other => other.line(),
        };
        self.columns.iter().map(|(name, _)| cell(name)).collect()
    }

    fn line(&self, cells: Vec<String>) -> String {
        let cells = cells.iter().zip(&self.columns).map(|(cell, (_, width))| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

/// A row with its name in one column, whatever name it is: as lists show it, so that no two rows look alike.
fn named(row: &Node) -> Node {
    let Node::Fields(fields) = row else { return row.clone() };
    let named = fields.iter().map(|(field, value)| {
        let name = NAMES.iter().find_map(|name| match (field.strip_prefix(name)?, value) {
            ("", Node::Text(text)) => Some((*name, Name::from(text))),
            ("_base64", Node::Text(text)) => Some((*name, STANDARD.decode(text).ok()?.into())),
            _ => None,
        });
        match name {
            Some((field, name)) => (field.to_owned(), Node::Text(name.to_string())),
            None => (field.clone(), value.clone()),
        }
    });
    Node::Fields(named.collect())
}

/// The rows of an answer: those of its list, where it is mainly that.
pub fn rows(node: &Node) -> Option<&[Node]> {
    match node {
        Node::List(list) => Some(list),
        // An answer begins with its list; an entry, say, begins with its key.
        Node::Fields(fields) => match &fields.first()?.1 {
            Node::List(list) => Some(list),
            _ => None,
        },
        _ => None,
    }
}

/// A single thing, a field a line.
pub fn fields(node: &Node) -> Vec<String> {
    let Node::Fields(fields) = node else { return vec![node.line()] };
    let width = fields.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    fields.iter().map(|(name, value)| format!("{:<width$}  {}", name.to_uppercase(), value.line())).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Node {
        Node::of(&serde_json::value::RawValue::from_string(json.to_owned()).expect("JSON")).expect("JSON")
    }

    #[test]
    fn rows_stand_under_one_heading_also_those_of_a_later_page() {
        let page = node(r#"{"items":[{"key":"a","value":{"n":1},"revision":5},{"key":"longer","cas":"7"}],"count":2}"#);
        let mut columns = Columns::default();
        let lines = columns.lines(rows(&page).expect("a list"));
        assert_eq!(lines, ["KEY     VALUE    CAS", "a       {\"n\":1}  -", "longer  -        7"]);
        assert_eq!(columns.lines(&[node(r#"{"key":"b","value":2}"#)]), ["b       2        -"]);
    }

    #[test]
    fn names_that_are_no_text_stand_in_the_column_of_the_others() {
        let page = node(r#"[{"key_base64":"YS/+","cas":"1"},{"key_base64":"YS//","cas":"2"},{"key":"a","cas":"3"}]"#);
        let lines = Columns::default().lines(rows(&page).expect("a list"));
        assert_eq!(lines, ["KEY     CAS", r"a/\xfe  1", r"a/\xff  2", "a       3"]);
    }

    #[test]
    fn a_single_thing_has_a_line_for_each_field() {
        let entry = node(r#"{"key":"a","value":1,"list":[1]}"#);
        assert_eq!(rows(&entry), None);
        assert_eq!(fields(&entry), ["KEY    a", "VALUE  1", "LIST   [1]"]);
    }
}

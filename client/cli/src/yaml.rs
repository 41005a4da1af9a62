//! A tree as YAML: blocks of two spaces, and strings in quotes wherever a reader could take them for something else.

use crate::tree::Node;

/// Words that are more than strings to some readers.
const RESERVED: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];

/// A document, with a line break at its end.
pub fn document(node: &Node) -> String {
    let mut out = String::new();
    match node {
        Node::List(list) if !list.is_empty() => list_block(list, 0, &mut out),
        Node::Fields(fields) if !fields.is_empty() => fields_block(fields, 0, &mut out),
        other => {
            out.push_str(&flow(other));
            out.push('\n');
        }
    }
    out
}

fn list_block(list: &[Node], depth: usize, out: &mut String) {
    for item in list {
        indent(depth, out);
        out.push_str("- ");
        match item {
            // Its first field stands behind the dash, the others below that.
            Node::Fields(fields) if !fields.is_empty() => {
                let at = out.len();
                fields_block(fields, depth + 1, out);
                out.replace_range(at..at + 2 * (depth + 1), "");
            }
            Node::List(inner) if !inner.is_empty() => {
                let at = out.len();
                list_block(inner, depth + 1, out);
                out.replace_range(at..at + 2 * (depth + 1), "");
            }
            other => {
                out.push_str(&flow(other));
                out.push('\n');
            }
        }
    }
}

fn fields_block(fields: &[(String, Node)], depth: usize, out: &mut String) {
    for (name, value) in fields {
        indent(depth, out);
        out.push_str(&text(name));
        out.push(':');
        match value {
            Node::Fields(fields) if !fields.is_empty() => {
                out.push('\n');
                fields_block(fields, depth + 1, out);
            }
            Node::List(list) if !list.is_empty() => {
                out.push('\n');
                list_block(list, depth, out);
            }
            other => {
                out.push(' ');
                out.push_str(&flow(other));
                out.push('\n');
            }
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// What needs no block.
fn flow(node: &Node) -> String {
    match node {
        Node::Text(string) => text(string),
        Node::Word(word) => word.clone(),
        Node::List(_) => "[]".to_owned(),
        Node::Fields(_) => "{}".to_owned(),
    }
}

/// A string, in the quotes of JSON unless it is plainly one.
fn text(text: &str) -> String {
    let mut letters = text.chars();
    let is_plain = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == '/')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "_-./$".contains(letter))
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(json: &str) -> String {
        let value: &serde_json::value::RawValue = serde_json::from_str(json).expect("JSON");
        document(&Node::of(&value).expect("has JSON"))
    }

    #[test]
    fn a_tree_is_written_in_blocks() {
        let json = r#"{"key":"orders/o1","n":1.50,"t":"2026-01-01","no":"yes","e":[],"list":[{"a":1,"b":[2,[3]]},"x y"],"m":{"q":{}}}"#;
        let expected = "key: orders/o1\n\"n\": 1.50\nt: \"2026-01-01\"\n\"no\": \"yes\"\ne: []\nlist:\n- a: 1\n  b:\n  - 2\n  - - 3\n- \"x y\"\nm:\n  q: {}\n";
        assert_eq!(yaml(json), expected);
        assert_eq!(yaml("\"12\""), "\"12\"\n");
        assert_eq!(yaml("[null,\"\",\"~\",\"a: b\"]"), "- null\n- \"\"\n- \"~\"\n- \"a: b\"\n");
    }

    #[test]
    fn another_reader_reads_the_same() {
        for json in [
            r#"{"a":{"b":[{"c":"d","e":{"f":[1,2]}},[],{}]},"g":"multi\nline \"quoted\" \u0007 ü"}"#,
            r#"[["0x10","1e3",".5","-","?","a","null","NO","012","1_000","=","<<"],{"on":"off","y":"n","1":"1"}]"#,
        ] {
            let expected: serde_json::Value = serde_json::from_str(json).expect("JSON");
            let read: serde_json::Value = serde_saphyr::from_str(&yaml(json)).expect("YAML");
            assert_eq!(read, expected, "{}", yaml(json));
        }
    }
}

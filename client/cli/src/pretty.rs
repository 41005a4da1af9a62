//! Values as people edit and compare them, and how two texts differ.

use serde_json::value::RawValue;

use crate::tree::Node;

/// Longest texts, in lines multiplied, that are compared line by line.
const COMPARED_MAX: usize = 4_000_000;
/// Lines that are shown around what differs.
const AROUND: usize = 3;

/// JSON over several lines, with numbers and the order of fields as they are. What is no JSON stays as it is.
pub fn pretty(json: &str) -> String {
    let node = serde_json::from_str::<&RawValue>(json).and_then(|raw| Node::of(&raw));
    match node {
        Ok(node) => {
            let mut out = String::new();
            block(&node, 0, &mut out);
            out.push('\n');
            out
        }
        Err(_) => json.to_owned(),
    }
}

/// JSON in one line: that of many lines, as an editor leaves it, without its layout, any other as it is.
pub fn compact(json: &str) -> String {
    if !json.contains('\n') {
        return json.to_owned();
    }
    let node = serde_json::from_str::<&RawValue>(json).and_then(|raw| Node::of(&raw));
    node.map_or_else(|_| json.to_owned(), |node| node.json())
}

fn block(node: &Node, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    match node {
        Node::List(list) if !list.is_empty() => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(depth + 1, out);
                block(item, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Node::Fields(fields) if !fields.is_empty() => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(depth + 1, out);
                out.push_str(&Node::Text(name.clone()).json());
                out.push_str(": ");
                block(value, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        plain => out.push_str(&plain.json()),
    }
}

/// The lines in which two texts differ, with `-` and `+` before them, and some of those around.
pub fn differences(from: &str, to: &str) -> Vec<String> {
    let lines = marked(&from.lines().collect::<Vec<_>>(), &to.lines().collect::<Vec<_>>());
    let near = |at: usize| {
        let around = at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len());
        lines[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut shown = Vec::new();
    let mut skipped = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        if near(at) {
            if std::mem::take(&mut skipped) && !shown.is_empty() {
                shown.push("  …".to_owned());
            }
            shown.push(format!("{mark} {line}"));
        } else {
            skipped = true;
        }
    }
    shown
}

/// All lines of both, by the longest common subsequence.
fn marked<'t>(from: &[&'t str], to: &[&'t str]) -> Vec<(char, &'t str)> {
    if from.len().saturating_mul(to.len()) > COMPARED_MAX {
        let removed = from.iter().map(|line| ('-', *line));
        return removed.chain(to.iter().map(|line| ('+', *line))).collect();
    }
    let width = to.len() + 1;
    // How many lines are common from here on.
    let mut common = vec![0_u32; (from.len() + 1) * width];
    for (at, old) in from.iter().enumerate().rev() {
        for (by, new) in to.iter().enumerate().rev() {
            let (below, beside) = (common[(at + 1) * width + by], common[at * width + by + 1]);
            let both = common[(at + 1) * width + by + 1] + 1;
            common[at * width + by] = if old == new { both } else { below.max(beside) };
        }
    }
    let (mut at, mut by, mut lines) = (0, 0, Vec::new());
    while at < from.len() || by < to.len() {
        if at < from.len() && by < to.len() && from[at] == to[by] {
            lines.push((' ', from[at]));
            (at, by) = (at + 1, by + 1);
        } else if by == to.len() || (at < from.len() && common[(at + 1) * width + by] >= common[at * width + by + 1]) {
            lines.push(('-', from[at]));
            at += 1;
        } else {
            lines.push(('+', to[by]));
            by += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_and_keeps_its_numbers() {
        let text = pretty(r#"{"b":1.50,"a":[1,{"x":[]}],"s":"\u00fc\n"}"#);
        assert_eq!(
            text,
            "{\n  \"b\": 1.50,\n  \"a\": [\n    1,\n    {\n      \"x\": []\n    }\n  ],\n  \"s\": \"ü\\n\"\n}\n"
        );
        assert_eq!(pretty("no json"), "no json");
        assert_eq!(compact(&text), r#"{"b":1.50,"a":[1,{"x":[]}],"s":"ü\n"}"#);
        assert_eq!(compact(r#"{"a": 1}"#), r#"{"a": 1}"#);
    }

    #[test]
    fn what_differs_is_marked_and_what_is_far_is_left_out() {
        let from: String = (0..20).map(|n| format!("{n}\n")).collect();
        let to = from.replace("\n10\n", "\nten\nmore\n").replace("19\n", "");
        let shown = differences(&from, &to);
        let expected = [
            "  7", "  8", "  9", "- 10", "+ ten", "+ more", "  11", "  12", "  13", "  …", "  16", "  17", "  18",
            "- 19",
        ];
        assert_eq!(shown, expected);
        assert!(differences(&from, &from).is_empty());
    }
}

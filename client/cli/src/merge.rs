//! Two changes of one document, put together field by field.
//!
//! Owns what a conflict is: a field that both changed, to different values. Then ours stands, and the field is named.

use crate::tree::Node;

/// What both made of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    /// Together.
    pub node: Node,
    /// Paths of fields that both changed, where ours stands.
    pub conflicts: Vec<String>,
}

/// Puts two changes of `base` together.
pub fn merge(base: &Node, ours: &Node, theirs: &Node) -> Merged {
    let mut conflicts = Vec::new();
    let node = both(base, ours, theirs, "", &mut conflicts);
    Merged { node, conflicts }
}

fn both(base: &Node, ours: &Node, theirs: &Node, path: &str, conflicts: &mut Vec<String>) -> Node {
    if ours == theirs || theirs == base {
        return ours.clone();
    }
    if ours == base {
        return theirs.clone();
    }
    match (base, ours, theirs) {
        (Node::Fields(base), Node::Fields(ours), Node::Fields(theirs)) => fields(base, ours, theirs, path, conflicts),
        _ => {
            conflicts.push(if path.is_empty() { "the whole value".to_owned() } else { path.to_owned() });
            ours.clone()
        }
    }
}

type Fields = [(String, Node)];

fn fields(base: &Fields, ours: &Fields, theirs: &Fields, path: &str, conflicts: &mut Vec<String>) -> Node {
    let of =
        |fields: &Fields, name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    // In the order in which they stand in theirs, and then what is only in ours.
    let mut names: Vec<&String> = theirs.iter().map(|(name, _)| name).collect();
    names.extend(ours.iter().map(|(name, _)| name).filter(|name| !theirs.iter().any(|(known, _)| known == *name)));
    let mut merged = Vec::new();
    for name in names {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (was, mine, other) = (of(base, name), of(ours, name), of(theirs, name));
        let value = match (&was, &mine, &other) {
            (Some(was), Some(mine), Some(other)) => Some(both(was, mine, other, &at, conflicts)),
            _ if mine == other || other == was => mine,
            _ if mine == was => other,
            _ => {
                conflicts.push(at);
                mine
            }
        };
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    Node::Fields(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Node {
        Node::of(&serde_json::value::RawValue::from_string(json.to_owned()).expect("JSON")).expect("JSON")
    }

    fn merged(base: &str, ours: &str, theirs: &str) -> (String, Vec<String>) {
        let Merged { node, conflicts } = merge(&node(base), &node(ours), &node(theirs));
        (node.json(), conflicts)
    }

    #[test]
    fn changes_of_different_fields_are_put_together() {
        let base = r#"{"a":1,"b":{"c":1,"d":2},"e":5}"#;
        let (both, conflicts) =
            merged(base, r#"{"a":2,"b":{"c":1,"d":2},"n":1}"#, r#"{"a":1,"b":{"c":3,"d":2},"e":5,"m":2}"#);
        assert_eq!((both.as_str(), conflicts), (r#"{"a":2,"b":{"c":3,"d":2},"m":2,"n":1}"#, vec![]));
    }

    #[test]
    fn what_both_changed_is_named_and_ours_stands() {
        let base = r#"{"a":1,"b":{"c":1},"l":[1],"x":1}"#;
        let (both, conflicts) =
            merged(base, r#"{"a":2,"b":{"c":2},"l":[1,2]}"#, r#"{"a":3,"b":{"c":3},"l":[1,3],"x":2}"#);
        assert_eq!(both, r#"{"a":2,"b":{"c":2},"l":[1,2]}"#);
        assert_eq!(conflicts, ["a", "b.c", "l", "x"]);
        assert_eq!(merged("1", "2", "3"), ("2".into(), vec!["the whole value".into()]));
        assert_eq!(merged("1", "2", "2"), ("2".into(), vec![]));
    }
}

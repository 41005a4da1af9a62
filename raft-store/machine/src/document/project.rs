//! Projections: the parts of a document that somebody wants to see.
//!
//! Owns what is left of a document when only some of its fields are shown. Never changes what it shows.

use std::borrow::Cow;

use super::json::{Json, Object};
use super::path::{Path, array_index};

/// Paths of which the values are shown, each at its place in the document.
///
/// Members stay in the order of the document. Of an array the elements named are left, in their order and without gaps.
/// What is not there is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// Sorted, so that those with a common start are neighbours.
    paths: Vec<Path>,
}

impl Projection {
    /// Shows these.
    pub fn new(mut paths: Vec<Path>) -> Self {
        paths.sort_unstable();
        Self { paths }
    }

    /// What it shows of a document; `None` of a scalar, which has no parts.
    pub fn of<'j>(&self, document: &'j Json<'_>) -> Option<Json<'j>> {
        let names: Vec<_> = self.paths.iter().map(Path::names).collect();
        match (project(document, &names), document) {
            (Some(shown), _) => Some(shown),
            (None, Json::Object(_)) => Some(Json::Object(Object::default())),
            (None, Json::Array(_)) => Some(Json::Array(Vec::new())),
            (None, _) => None,
        }
    }
}

/// The part of a value that `paths`, which are sorted, lead to; `None` where they lead to nothing. As deep as a document at
/// most.
fn project<'j>(value: &'j Json<'_>, paths: &[&[String]]) -> Option<Json<'j>> {
    // The shortest comes first.
    if paths.first()?.is_empty() {
        return Some(value.borrowed());
    }
    match value {
        Json::Object(object) => {
            let shown = |(name, value): (&'j str, &'j Json<'_>)| {
                Some((Cow::Borrowed(name), project(value, &below(paths, name))?))
            };
            let members: Vec<_> = object.iter().filter_map(shown).collect();
            (!members.is_empty()).then_some(Json::Object(Object { members }))
        }
        Json::Array(items) => {
            let mut places: Vec<_> =
                paths.iter().filter_map(|path| Some((array_index(&path[0])?, path[0].as_str()))).collect();
            places.sort_unstable();
            places.dedup();
            let shown = |(at, name): (usize, &str)| project(items.get(at)?, &below(paths, name));
            let items: Vec<_> = places.into_iter().filter_map(shown).collect();
            (!items.is_empty()).then_some(Json::Array(items))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

/// What is left of the paths that begin with `name`; none of `paths` is empty.
fn below<'p>(paths: &[&'p [String]], name: &str) -> Vec<&'p [String]> {
    let start = paths.partition_point(|path| path[0].as_str() < name);
    paths[start..].iter().take_while(|path| path[0] == name).map(|path| &path[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(document: &str, paths: &[&str]) -> Option<String> {
        let paths = paths.iter().map(|path| Path::parse(path).expect("a path")).collect();
        let document = Json::parse(document.as_bytes()).expect("JSON");
        Projection::new(paths).of(&document).map(|shown| shown.to_text())
    }

    #[test]
    fn members_stay_where_they_are_and_as_they_were_written() {
        let document = r#"{"b":{"y":1.0,"x":[1,2],"z":null},"a":"t","c":3}"#;
        assert_eq!(shown(document, &["c", "b.z", "b.y"]).as_deref(), Some(r#"{"b":{"y":1.0,"z":null},"c":3}"#));
        assert_eq!(shown(document, &["b.x", "b"]).as_deref(), Some(r#"{"b":{"y":1.0,"x":[1,2],"z":null}}"#));
        assert_eq!(shown(document, &["a.q", "b.x.y", "nothing"]).as_deref(), Some("{}"));
    }

    #[test]
    fn elements_stand_in_their_order_without_gaps() {
        let document = r#"{"l":[{"n":0},{"n":1},{"n":2}],"o":{"10":"x","2":"y"}}"#;
        assert_eq!(shown(document, &["l.2.n", "l.0"]).as_deref(), Some(r#"{"l":[{"n":0},{"n":2}]}"#));
        assert_eq!(shown(document, &["l.01", "l.3", "l.-"]).as_deref(), Some("{}"));
        assert_eq!(shown(document, &["o.2"]).as_deref(), Some(r#"{"o":{"2":"y"}}"#));
        assert_eq!(shown("[[1,2],[3]]", &["/10", "/0/1", "/1"]).as_deref(), Some("[[2],[3]]"));
        assert_eq!(shown("[1]", &["a"]).as_deref(), Some("[]"));
    }

    #[test]
    fn a_scalar_has_no_parts() {
        assert_eq!(shown("5", &["a"]), None);
        assert_eq!(shown("\"text\"", &["0"]), None);
    }
}

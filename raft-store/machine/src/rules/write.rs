//! Rules as JSON, as answers show them.
//!
//! Owns the one way in which each is written; reading it gives the same rules.

use std::borrow::Cow;

use super::Rules;
use super::field::{FieldKind, FieldRule};
use super::index::IndexRule;
use crate::document::path::Path;
use crate::document::{Json, Number, Object};

impl Rules {
    /// The written form: what is as it would be without it is left out.
    pub fn to_json(&self) -> Json<'_> {
        let fields = self.fields.iter().map(|(path, rule)| (Cow::Owned(field_text(path)), field_json(rule)));
        let mut members = Vec::new();
        if !self.fields.is_empty() {
            members.push(("fields", Json::Object(fields.collect())));
        }
        if !self.required.is_empty() {
            members.push(("required", paths_json(&self.required)));
        }
        if !self.indexes.is_empty() {
            members.push(("indexes", Json::Array(self.indexes.iter().map(index_json).collect())));
        }
        members.extend(self.ttl_ms.map(|ttl_ms| ("ttl_ms", Json::Number(Number::from(ttl_ms)))));
        if self.precondition_required {
            members.push(("precondition_required", Json::Bool(true)));
        }
        object(members)
    }
}

fn field_json(rule: &FieldRule) -> Json<'_> {
    let mut members = Vec::new();
    if rule.kind != FieldKind::Any {
        members.push(("type", text(rule.kind.name())));
    }
    members.extend(rule.max.map(|max| ("max", Json::Number(Number::from(max)))));
    members.extend(rule.default.as_ref().map(|default| ("default", default.borrowed())));
    members.extend(rule.sequence.as_ref().map(|sequence| ("sequence", text(sequence.as_str()))));
    if rule.auto_update {
        members.push(("auto_update", Json::Bool(true)));
    }
    object(members)
}

fn index_json(index: &IndexRule) -> Json<'_> {
    let fields = paths_json(index.fields());
    if index.is_unique() { object(vec![("fields", fields), ("unique", Json::Bool(true))]) } else { fields }
}

fn paths_json<'a>(paths: &[Path]) -> Json<'a> {
    Json::Array(paths.iter().map(|path| Json::String(Cow::Owned(field_text(path)))).collect())
}

fn text(text: &str) -> Json<'_> {
    Json::String(Cow::Borrowed(text))
}

fn object<'a>(members: Vec<(&'static str, Json<'a>)>) -> Json<'a> {
    let members = members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    Json::Object(members.collect::<Object<'a>>())
}

/// A path as people write it: dotted where that can say it, else as JSON pointer.
pub fn field_text(path: &Path) -> String {
    let names = path.names();
    let is_dotted =
        names.iter().all(|name| !name.is_empty()) && names.first().is_some_and(|first| !first.starts_with(['$', '/']));
    if !is_dotted {
        return path.to_string();
    }
    let escaped: Vec<_> = names.iter().map(|name| name.replace('\\', "\\\\").replace('.', "\\.")).collect();
    escaped.join(".")
}

//! The entries of a mirror, and how they are found by their fields.
//!
//! Pure: is told what changed, and knows neither where that comes from nor how fresh it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::api::{EntryView, Name};

/// The entries and their indexes.
#[derive(Debug, Default)]
pub(super) struct Entries {
    entries: BTreeMap<Name, Arc<EntryView>>,
    indexes: Vec<Index>,
}

#[derive(Debug)]
struct Index {
    field: String,
    path: Vec<String>,
    /// Keys by the text of the value.
    keys: BTreeMap<String, BTreeSet<Name>>,
}

impl Entries {
    /// These entries, indexed by these fields.
    pub fn of(fields: &[String], entries: Vec<EntryView>) -> Self {
        let indexes =
            fields.iter().map(|field| Index { field: field.clone(), path: path(field), keys: BTreeMap::new() });
        let mut of = Self { entries: BTreeMap::new(), indexes: indexes.collect() };
        for entry in entries {
            let key = entry.key.clone();
            of.set(&key, Some(Arc::new(entry)));
        }
        of
    }

    /// The entry is so now, or gone; returns it as it was.
    pub fn set(&mut self, key: &Name, entry: Option<Arc<EntryView>>) -> Option<Arc<EntryView>> {
        let before = match &entry {
            Some(entry) => self.entries.insert(key.clone(), Arc::clone(entry)),
            None => self.entries.remove(key),
        };
        if !self.indexes.is_empty() {
            let (old, new) = (before.as_deref().and_then(document), entry.as_deref().and_then(document));
            for index in &mut self.indexes {
                index.take(key, old.as_ref());
                index.put(key, new.as_ref());
            }
        }
        before
    }

    pub fn get(&self, key: &[u8]) -> Option<&Arc<EntryView>> {
        self.entries.get(key)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Those whose keys begin so, by key.
    pub fn list(&self, prefix: &[u8]) -> Vec<Arc<EntryView>> {
        let from = self.entries.range::<[u8], _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.take_while(|(key, _)| key.as_bytes().starts_with(prefix)).map(|(_, entry)| Arc::clone(entry)).collect()
    }

    /// Those whose field has this value, by key; `None` where the field has no index.
    pub fn find(&self, field: &str, value: &Value) -> Option<Vec<Arc<EntryView>>> {
        let index = self.indexes.iter().find(|index| index.field == field)?;
        let keys = index.keys.get(&text(value)).into_iter().flatten();
        Some(keys.filter_map(|key| self.entries.get(key).cloned()).collect())
    }
}

impl Index {
    fn put(&mut self, key: &Name, document: Option<&Value>) {
        for text in self.texts(document) {
            self.keys.entry(text).or_default().insert(key.clone());
        }
    }

    fn take(&mut self, key: &Name, document: Option<&Value>) {
        for text in self.texts(document) {
            if let Some(keys) = self.keys.get_mut(&text) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&text);
                }
            }
        }
    }

    /// What the field of this document is found by: its value, and if that is an array each element too.
    fn texts(&self, document: Option<&Value>) -> Vec<String> {
        let Some(value) = document.and_then(|document| at(document, &self.path)) else { return Vec::new() };
        let elements = value.as_array().into_iter().flatten();
        std::iter::once(value).chain(elements).map(text).collect()
    }
}

fn document(entry: &EntryView) -> Option<Value> {
    serde_json::from_str(entry.value.as_ref()?.0.get()).ok()
}

/// The steps of a dotted path or a JSON pointer.
fn path(field: &str) -> Vec<String> {
    match field.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect(),
        None => field.split('.').map(str::to_owned).collect(),
    }
}

fn at<'v>(document: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The same for what is equal: numbers are by value, and objects have no order.
fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Beyond it not every whole number is one of these, and the text of an integer says more.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let fields: Vec<_> = sorted.into_iter().map(|(name, value)| format!("{name:?}:{}", text(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(key: &str, value: &Value) -> EntryView {
        let text = json!({"key": key, "value": value, "content_type": "json", "cas": "1", "create_revision": 1,
            "mod_revision": 1, "version": 1});
        serde_json::from_value(text).expect("an entry")
    }

    fn keys(found: Option<Vec<Arc<EntryView>>>) -> Vec<Name> {
        found.expect("it is indexed").iter().map(|entry| entry.key.clone()).collect()
    }

    #[test]
    fn entries_are_found_by_what_their_fields_are_and_not_by_what_they_were() {
        let fields = ["email".to_owned(), "address.zip".to_owned(), "/tags".to_owned()];
        let ann = entry("u/ann", &json!({"email": "a@x", "address": {"zip": 8}, "tags": ["red", "blue"]}));
        let ben = entry("u/ben", &json!({"email": "b@x", "address": {"zip": 8.0}}));
        let mut entries = Entries::of(&fields, vec![ben, ann]);
        assert_eq!(keys(entries.find("email", &json!("b@x"))), ["u/ben"]);
        assert_eq!(keys(entries.find("address.zip", &json!(8))), ["u/ann", "u/ben"]);
        assert_eq!(keys(entries.find("/tags", &json!("blue"))), ["u/ann"]);
        assert_eq!(keys(entries.find("/tags", &json!(["red", "blue"]))), ["u/ann"]);
        assert!(entries.find("name", &json!(1)).is_none(), "nobody asked for it");

        let before = entries.set(&"u/ann".into(), Some(Arc::new(entry("u/ann", &json!({"email": "b@x"})))));
        assert_eq!(before.map(|entry| entry.key.clone()), Some("u/ann".into()));
        assert_eq!(keys(entries.find("email", &json!("b@x"))), ["u/ann", "u/ben"]);
        assert!(
            keys(entries.find("email", &json!("a@x"))).is_empty()
                && keys(entries.find("/tags", &json!("red"))).is_empty()
        );

        entries.set(&"u/ben".into(), None);
        assert_eq!((keys(entries.find("email", &json!("b@x"))), entries.len()), (vec!["u/ann".into()], 1));
        entries.set(&"u/ann".into(), None);
        assert!(entries.indexes.iter().all(|index| index.keys.is_empty()), "{entries:?}");
    }

    #[test]
    fn entries_whose_keys_are_no_text_are_all_kept() {
        let all = [&b"a/\xFE"[..], b"a/\xFF", "a/\u{FFFD}".as_bytes()].map(Name::from);
        let of = |name: &Name| EntryView { key: name.clone(), ..entry("", &json!({"n": 1})) };
        let mut entries = Entries::of(&["n".to_owned()], all.iter().map(of).collect());
        assert_eq!(keys(entries.find("n", &json!(1))), [all[2].clone(), all[0].clone(), all[1].clone()]);
        assert_eq!(entries.list(b"a/\xFF").len(), 1);
        entries.set(&all[0], None);
        let left = all.each_ref().map(|name| entries.get(name.as_bytes()).is_some());
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn a_list_is_of_what_begins_so() {
        let all = ["a", "a/1", "a/2", "b"].map(|key| entry(key, &json!(1)));
        let entries = Entries::of(&[], all.into());
        let keys =
            |prefix: &str| entries.list(prefix.as_bytes()).iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
        assert_eq!((keys("a/"), keys("").len(), keys("c")), (vec!["a/1".into(), "a/2".into()], 4, vec![]));
        assert_eq!((entries.get(b"a").is_some(), entries.get(b"c").is_some()), (true, false));
    }
}

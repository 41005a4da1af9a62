//! The handful of names that everything happens to.
//!
//! Owns them, and the texts of values, patches, criteria and rules that commands are made of. Few, so that what is done to one
//! of them meets what was done before.

use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch};
use quorate_machine::rules::Rules;
use quorate_machine::types::{ContentKind, Key, LockName, LockSpace, Name, QueueName, RoleName, UserName, Value};

/// Eight keys; five of them can belong to collections.
pub const KEYS: [&str; 8] = ["a", "a\0", "b", "c/1", "c/1\0", "c/2", "c/2/x", "d/1"];

/// Names of collections; one stands within another.
pub const COLLECTIONS: [&str; 5] = ["c", "c", "c", "d", "c/2"];

/// Prefixes that entries are looked for under.
pub const PREFIXES: [&str; 5] = ["", "c/", "c/1", "d/", "e/"];

/// Ids of tasks.
pub const TASKS: [&str; 5] = ["t1", "t2", "t3", "t4", "t5"];

/// Documents and what is none.
pub const VALUES: [&str; 11] = [
    r#"{}"#,
    r#"{"a":1}"#,
    r#"{"a":2,"b":"x"}"#,
    r#"{"a":2,"b":"y"}"#,
    r#"{"a":"2"}"#,
    r#"{"a":null,"b":"x"}"#,
    r#"{"b":[1]}"#,
    r#"{"n":7,"a":3}"#,
    r#"[1]"#,
    BRINK,
    r#"{"u":"20260418153012"}"#,
];

const PATCHES: [&str; 6] = [
    r#"{"a":5}"#,
    r#"{"b":"z","a":null}"#,
    r#"[{"op":"inc","path":"a","value":1}]"#,
    r#"{"n":null}"#,
    r#"[{"op":"test","path":"/a","value":1},{"op":"replace","path":"/a","value":2}]"#,
    r#"[{"op":"set","path":"b","value":"a longer text than there was before"}]"#,
];

const CRITERIA: [&str; 11] = [
    "[]",
    r#"[{"field":"a","op":"eq","value":2}]"#,
    r#"[{"field":"a","op":"gte","value":"2"}]"#,
    r#"[{"field":"b","op":"in","value":["x","z"]}]"#,
    r#"[{"field":"b","op":"starts","value":"x"},{"field":"a","op":"between","value":[1,3]}]"#,
    r#"[{"field":"a","op":"nexists"}]"#,
    r#"[{"field":"$version","op":"lte","value":2}]"#,
    r#"[{"field":"$locked","op":"eq","value":true}]"#,
    r#"[{"field":"$exists","op":"eq","value":true}]"#,
    r#"[{"field":"$expires_at","op":"gt","value":{"now":true}}]"#,
    r#"[{"any":[{"field":"$expires_at","op":"nexists"},{"field":"u","op":"gte","value":"20260418153012"}]}]"#,
];

const RULES: [&str; 9] = [
    r#"{"indexes":[{"fields":["a"],"unique":true}]}"#,
    r#"{"indexes":[["a"]]}"#,
    r#"{"indexes":[["a"],{"fields":["b"],"unique":true}]}"#,
    r#"{"indexes":[["b","a"]],"fields":{"a":{"type":"long","default":1}}}"#,
    r#"{"indexes":[{"fields":["a","b"],"unique":true}],"fields":{"n":{"type":"long","sequence":"s"}},"ttl_ms":800}"#,
    r#"{"required":["a"],"precondition_required":true}"#,
    r#"{"indexes":[["a"],["b"]],"ttl_ms":300}"#,
    r#"{"fields":{"u":{"type":"datetime","auto_update":true}},"indexes":[["u"]]}"#,
    r#"{}"#,
];

/// A number that is finite for one reader of JSON and not for another.
const BRINK: &str = r#"{"a":1.79769313486231581e308}"#;

/// What commands are made of, read once.
pub struct Texts {
    /// Patches that may fit a document.
    pub patches: Vec<Patch>,
    /// Criteria that may hold; the first holds always.
    pub criteria: Vec<Criteria>,
    /// Rules of collections.
    pub rules: Vec<Rules>,
    /// Orders of what is found.
    pub orders: Vec<Order>,
}

impl Texts {
    /// Reads them.
    #[expect(clippy::new_without_default, reason = "reading them is work")]
    pub fn new() -> Self {
        let json = |text: &'static str| Json::parse(text.as_bytes()).expect("it is JSON");
        let criteria = |text| Criteria::read(&json(text), "/if").expect("these are criteria");
        let rules = |text| Rules::read(&json(text), "").expect("these are rules");
        let field = |(name, descending): (&'static str, bool)| OrderField {
            field: Field::parse(name).expect("it is a field"),
            descending,
        };
        let order = |fields: &[(&'static str, bool)]| Order::new(fields.iter().copied().map(field).collect());
        let orders: [&[(&'static str, bool)]; 5] =
            [&[], &[("a", false)], &[("a", true)], &[("b", false), ("a", false)], &[("$key", true)]];
        Self {
            patches: PATCHES.into_iter().map(patch).collect(),
            criteria: CRITERIA.into_iter().map(criteria).collect(),
            rules: RULES.into_iter().map(rules).collect(),
            orders: orders.into_iter().map(order).collect(),
        }
    }
}

/// A key.
pub fn key(text: &str) -> Key {
    Key::new(text).expect("it is short")
}

/// All keys.
pub fn keys() -> Vec<Key> {
    KEYS.into_iter().map(key).collect()
}

/// A name of coordination.
pub fn name(text: &str) -> Name {
    Name::new(text).expect("it is a name")
}

/// Three locks or three elections.
pub fn lock(space: LockSpace, nth: u64) -> LockName {
    LockName { space, name: name(["x", "y", "z"][nth as usize % 3]) }
}

/// The queue.
pub fn queue() -> QueueName {
    QueueName::new("q").expect("it is a name")
}

/// A user.
pub fn user(nth: u64) -> UserName {
    UserName::new(["ann", "bob"][nth as usize % 2]).expect("it is a name")
}

/// A role.
pub fn role(nth: u64) -> RoleName {
    RoleName::new(["r", "s"][nth as usize % 2]).expect("it is a name")
}

/// A patch.
pub fn patch(text: &str) -> Patch {
    let json = Json::parse(text.as_bytes()).expect("it is JSON");
    Patch::read(&json, "/patch").expect("it is a patch")
}

/// A value of JSON.
pub fn json(text: &str) -> Value {
    Value { kind: ContentKind::Json, data: text.into() }
}

//! Conditions on fields, as they are written in a request.
//!
//! Owns the names of operators in Rust. What a predicate means, and whether it is one, is for the nodes to say.

use serde::Serialize;
use serde_json::{Value, json};

/// A condition on an entry: a comparison of one field, or a group of conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Predicate(Value);

/// A field to be compared.
#[derive(Debug, Clone)]
pub struct Field(String);

/// A field by its dotted path (`lines.0.sku`), its JSON pointer (`/lines/0/sku`), or the name of metadata (`$version`).
pub fn field(path: impl Into<String>) -> Field {
    Field(path.into())
}

/// Holds where one of them does.
pub fn any(predicates: impl IntoIterator<Item = Predicate>) -> Predicate {
    Predicate(json!({ "any": predicates.into_iter().collect::<Vec<_>>() }))
}

/// Holds where each of them does. A list of conditions means this by itself; for alternatives of several parts.
pub fn all(predicates: impl IntoIterator<Item = Predicate>) -> Predicate {
    Predicate(json!({ "all": predicates.into_iter().collect::<Vec<_>>() }))
}

/// Holds where it does not.
pub fn not(predicate: Predicate) -> Predicate {
    Predicate(json!({ "not": predicate }))
}

/// The wall clock of the write or search, to compare a time with.
pub fn now() -> Value {
    json!({ "now": true })
}

impl Field {
    fn with(self, operator: &str, value: impl Into<Value>) -> Predicate {
        let value: Value = value.into();
        Predicate(json!({ "field": self.0, "op": operator, "value": value }))
    }

    fn alone(self, operator: &str) -> Predicate {
        Predicate(json!({ "field": self.0, "op": operator }))
    }

    fn with_list<T: Into<Value>>(self, operator: &str, values: impl IntoIterator<Item = T>) -> Predicate {
        self.with(operator, values.into_iter().map(Into::into).collect::<Vec<Value>>())
    }

    /// Is this value; numbers by their worth, objects in any order.
    pub fn eq(self, value: impl Into<Value>) -> Predicate {
        self.with("eq", value)
    }

    /// Is another value, or missing.
    pub fn neq(self, value: impl Into<Value>) -> Predicate {
        self.with("neq", value)
    }

    /// Is less: a number than a number, a string than a string.
    pub fn lt(self, value: impl Into<Value>) -> Predicate {
        self.with("lt", value)
    }

    /// Is less or equal.
    pub fn lte(self, value: impl Into<Value>) -> Predicate {
        self.with("lte", value)
    }

    /// Is greater.
    pub fn gt(self, value: impl Into<Value>) -> Predicate {
        self.with("gt", value)
    }

    /// Is greater or equal.
    pub fn gte(self, value: impl Into<Value>) -> Predicate {
        self.with("gte", value)
    }

    /// Is one of these.
    pub fn one_of<T: Into<Value>>(self, values: impl IntoIterator<Item = T>) -> Predicate {
        self.with_list("in", values)
    }

    /// Is none of these, or missing.
    pub fn none_of<T: Into<Value>>(self, values: impl IntoIterator<Item = T>) -> Predicate {
        self.with_list("nin", values)
    }

    /// Is not before the first nor behind the second.
    pub fn between(self, first: impl Into<Value>, last: impl Into<Value>) -> Predicate {
        self.with_list::<Value>("between", [first.into(), last.into()])
    }

    /// Is there, `null` included.
    pub fn exists(self) -> Predicate {
        self.alone("exists")
    }

    /// Is not there.
    pub fn is_missing(self) -> Predicate {
        self.alone("nexists")
    }

    /// Is a string with this in it, or an array with this element.
    pub fn contains(self, value: impl Into<Value>) -> Predicate {
        self.with("contains", value)
    }

    /// Is nothing that contains it.
    pub fn lacks(self, value: impl Into<Value>) -> Predicate {
        self.with("ncontains", value)
    }

    /// Is a string that starts so.
    pub fn starts_with(self, text: impl Into<String>) -> Predicate {
        self.with("starts", text.into())
    }

    /// Is a string that ends so.
    pub fn ends_with(self, text: impl Into<String>) -> Predicate {
        self.with("ends", text.into())
    }

    /// Is a string of this pattern: `%` stands for any characters, `_` for one.
    pub fn like(self, pattern: impl Into<String>) -> Predicate {
        self.with("like", pattern.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_are_written_as_nodes_read_them() {
        let text = |predicate: Predicate| serde_json::to_string(&predicate).expect("JSON");
        for (predicate, written) in [
            (field("status").eq("new"), r#"{"field":"status","op":"eq","value":"new"}"#),
            (field("$version").lte(3), r#"{"field":"$version","op":"lte","value":3}"#),
            (field("due").lt(now()), r#"{"field":"due","op":"lt","value":{"now":true}}"#),
            (field("n").one_of([1, 2]), r#"{"field":"n","op":"in","value":[1,2]}"#),
            (field("n").between(1, 2.5), r#"{"field":"n","op":"between","value":[1,2.5]}"#),
            (field("owner").is_missing(), r#"{"field":"owner","op":"nexists"}"#),
            (
                any([not(field("a").exists()), all([field("b").like("x%")])]),
                r#"{"any":[{"not":{"field":"a","op":"exists"}},{"all":[{"field":"b","op":"like","value":"x%"}]}]}"#,
            ),
        ] {
            let written: Value = serde_json::from_str(written).expect("JSON");
            assert_eq!(serde_json::from_str::<Value>(&text(predicate)).expect("JSON"), written);
        }
    }
}

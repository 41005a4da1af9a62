//! The variables of a file, and values with their names in them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, Value>);

impl Variables {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The value with its variables filled in, in keys, too.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Object(fields) => self.fill_fields(fields),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    pub fn fill_fields(&self, fields: &Map<String, Value>) -> Result<Value, String> {
        let filled = fields.iter().map(|(name, value)| Ok((shown(&self.fill_text(name)?), self.fill(value)?)));
        filled.collect::<Result<Map<_, _>, String>>().map(Value::Object)
    }

    /// Text that is nothing but a variable has its type.
    fn fill_text(&self, text: &str) -> Result<Value, String> {
        let whole = text.strip_prefix('{').and_then(name_at);
        if let Some(name) = whole.filter(|name| name.len() + 2 == text.len()) {
            return self.value(name).cloned();
        }
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            rest = after;
            match name_at(after) {
                Some(name) => {
                    out.push_str(&shown(self.value(name)?));
                    rest = &after[name.len() + 1..];
                }
                None => out.push('{'),
            }
        }
        Ok(Value::String(out + rest))
    }

    fn value(&self, name: &str) -> Result<&Value, String> {
        self.0.get(name).ok_or_else(|| format!("there is no variable {{{name}}}"))
    }
}

/// The name that stands before the next brace, where one can be meant.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('}')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    (begins && name.bytes().all(is_name)).then_some(name)
}

/// As it stands in a text.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_filled_in_and_keep_their_types() {
        let mut variables = Variables::default();
        variables.set("p", json!("x"));
        variables.set("n", json!(7));
        let filled = variables.fill(&json!({"{p}/k": ["{n}", "{p}-{n}", 1, "a {", "{\"a\":{}}", "{p}{p}"]}));
        assert_eq!(filled, Ok(json!({"x/k": [7, "x-7", 1, "a {", "{\"a\":{}}", "xx"]})));
    }

    #[test]
    fn a_name_that_is_no_variable_is_an_error() {
        for text in ["{missing}", "a {missing}"] {
            let why = Variables::default().fill(&json!(text)).expect_err(text);
            assert!(why.contains("{missing}"), "{why}");
        }
    }
}

//! Criteria as people type them: `FIELD OP VALUE`, or JSON.
//!
//! Owns the short form and its errors. What criteria mean is for the nodes to say.

use serde_json::value::RawValue;

use super::{Name, Operator};

/// What was typed, as JSON as the API takes it: one criterion or several.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedCriteria(pub Vec<String>);

/// JSON where it begins like it, else `FIELD OP VALUE`, such as `status eq pending`.
pub fn typed_criteria(text: &str) -> Result<TypedCriteria, String> {
    let text = text.trim();
    let not_json = |error: serde_json::Error| format!("begins like JSON and is none: {error}");
    match text.bytes().next() {
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
            Ok(TypedCriteria(list.into_iter().map(|item| item.get().to_owned()).collect()))
        }
        Some(b'{') => {
            let one: &RawValue = serde_json::from_str(text).map_err(not_json)?;
            Ok(TypedCriteria(vec![one.get().to_owned()]))
        }
        _ => short(text).map(|one| TypedCriteria(vec![one])),
    }
}

/// `FIELD OP VALUE` as JSON.
fn short(text: &str) -> Result<String, String> {
    let (field, rest) = word(text).ok_or("empty; expected FIELD OP VALUE, like `status eq pending`")?;
    let names = || Operator::NAMES.map(|(name, _)| name).join(" ");
    let (name, rest) = word(rest)
        .ok_or_else(|| format!("`{field}` alone says nothing; expected FIELD OP VALUE, like `{field} eq 1`"))?;
    let operator = Operator::parse(name).ok_or_else(|| format!("`{name}` is no operator; there are: {}", names()))?;
    let is_key = field == KEY_FIELD;
    let field = serde_json::Value::from(field);
    match (operator.takes_no_value(), rest.is_empty()) {
        (true, true) => Ok(format!(r#"{{"field":{field},"op":"{name}"}}"#)),
        (true, false) => Err(format!("`{name}` takes no value, here is `{rest}`")),
        (false, true) => Err(format!("`{name}` takes a value; `\"\"` is the empty string")),
        (false, false) => {
            Ok(format!(r#"{{"field":{field},"op":"{name}","value":{}}}"#, value(operator, rest, is_key)?))
        }
    }
}

/// The first word, and what follows.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

/// The field that stands for the key of an entry.
const KEY_FIELD: &str = "$key";

/// A value as JSON: JSON as it is, a word as a string; of a key, a word is what the key is shown as.
fn value(operator: Operator, text: &str, is_key: bool) -> Result<String, String> {
    let wants_list = matches!(operator, Operator::In | Operator::Nin | Operator::Between);
    if wants_list && !text.starts_with('[') {
        return Err(format!("takes a list, like `[\"a\",\"b\"]` or `[1,2]`; `{text}` is none"));
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(json) => Ok(json.get().to_owned()),
        Err(error) if text.starts_with(['"', '[', '{']) => {
            Err(format!("the value `{text}` begins like JSON and is none: {error}"))
        }
        Err(_) if text.contains(char::is_whitespace) => {
            Err(format!("the value `{text}` is several words and no JSON; write a text in quotes: `\"{text}\"`"))
        }
        Err(_) if is_key => Ok(shown_key(text)),
        Err(_) => Ok(serde_json::Value::from(text).to_string()),
    }
}

fn shown_key(shown: &str) -> String {
    let name = Name::from_shown(shown);
    match name.text() {
        Some(text) => serde_json::Value::from(text).to_string(),
        None => serde_json::json!({ "base64": name.base64() }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Criterion;

    use super::*;

    /// What the API is sent is what its types say.
    fn parsed(text: &str) -> Vec<Criterion> {
        let TypedCriteria(list) = typed_criteria(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        list.iter().map(|one| serde_json::from_str(one).expect("a criterion")).collect()
    }

    #[test]
    fn the_short_form_takes_json_or_a_word() {
        let one = |field: &str, op, value: serde_json::Value| vec![Criterion::new(field, op, value)];
        assert_eq!(parsed("status eq pending"), one("status", Operator::Eq, "pending".into()));
        assert_eq!(parsed("$key eq ll/a"), one("$key", Operator::Eq, "ll/a".into()));
        assert_eq!(parsed(r"$key eq ll/\xff"), one("$key", Operator::Eq, serde_json::json!({"base64": "bGwv/w=="})));
        assert_eq!(parsed(r"$key eq ll/\x5cxff"), one("$key", Operator::Eq, r"ll/\xff".into()));
        assert_eq!(parsed(r"path eq ll/\xff"), one("path", Operator::Eq, r"ll/\xff".into()));
        assert_eq!(parsed(" status  eq \"two words\" "), one("status", Operator::Eq, "two words".into()));
        assert_eq!(parsed("a.b gte 1.5"), one("a.b", Operator::Gte, serde_json::json!(1.5)));
        assert_eq!(parsed("a eq true"), one("a", Operator::Eq, true.into()));
        assert_eq!(parsed("a eq \"true\""), one("a", Operator::Eq, "true".into()));
        assert_eq!(parsed("a in [1, 2]"), one("a", Operator::In, serde_json::json!([1, 2])));
        assert_eq!(parsed("due lt {\"now\":true}"), one("due", Operator::Lt, serde_json::json!({"now": true})));
        assert_eq!(parsed("owner nexists"), vec![Criterion::exists("owner", false)]);
        assert_eq!(parsed("$cas eq \"7\""), one("$cas", Operator::Eq, "7".into()));
    }

    #[test]
    fn json_may_be_one_criterion_or_a_list() {
        let plain = Criterion::new("a", Operator::Eq, 1);
        assert_eq!(parsed(r#"{"field":"a","op":"eq","value":1}"#), vec![plain.clone()]);
        let list = parsed(r#"[{"field":"a","op":"eq","value":1},{"not":{"any":[{"field":"b","op":"exists"}]}}]"#);
        assert_eq!(list, [plain, !Criterion::any([Criterion::exists("b", true)])]);
        // Numbers go as they are written.
        assert_eq!(
            typed_criteria("a eq 1e2"),
            Ok(TypedCriteria(vec![r#"{"field":"a","op":"eq","value":1e2}"#.into()]))
        );
    }

    #[test]
    fn what_is_wrong_with_the_short_form_is_said() {
        for (text, said) in [
            ("", "expected FIELD OP VALUE"),
            ("status", "`status` alone says nothing"),
            ("status = pending", "`=` is no operator; there are: eq neq"),
            ("status eq", "`eq` takes a value"),
            ("status exists yes", "`exists` takes no value"),
            ("status eq two words", "write a text in quotes: `\"two words\"`"),
            ("status eq \"open", "begins like JSON and is none"),
            ("status in a,b", "takes a list"),
            ("[{]", "begins like JSON and is none"),
            ("{\"a\"", "begins like JSON and is none"),
        ] {
            let error = typed_criteria(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}

//! Criteria as they are typed: in queries and on command lines.
//!
//! Owns the short form, `FIELD OP VALUE`, and its errors. What criteria mean is for the nodes to say.

use serde_json::value::RawValue;

use super::Operator;

/// The criteria in a text, each as JSON as the API takes it: one or a list in JSON where it begins like that, else `FIELD OP VALUE`. The
/// value is JSON, or a word, which is a string.
pub fn typed_criteria(text: &str) -> Result<Vec<String>, String> {
    let text = text.trim();
    let not_json = |error: serde_json::Error| format!("begins like JSON and is none: {error}");
    match text.bytes().next() {
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
            Ok(list.into_iter().map(|item| item.get().to_owned()).collect())
        }
        Some(b'{') => {
            let one: &RawValue = serde_json::from_str(text).map_err(not_json)?;
            Ok(vec![one.get().to_owned()])
        }
        _ => short(text).map(|one| vec![one]),
    }
}

/// `FIELD OP VALUE` as JSON.
fn short(text: &str) -> Result<String, String> {
    let (field, rest) = word(text).ok_or("empty; expected FIELD OP VALUE, like `status eq pending`")?;
    let names = || Operator::NAMES.map(|(name, _)| name).join(" ");
    let (name, rest) = word(rest)
        .ok_or_else(|| format!("`{field}` alone says nothing; expected FIELD OP VALUE, like `{field} eq 1`"))?;
    let operator = Operator::parse(name).ok_or_else(|| format!("`{name}` is no operator; there are: {}", names()))?;
    let field = serde_json::Value::from(field);
    match (operator.takes_no_value(), rest.is_empty()) {
        (true, true) => Ok(format!(r#"{{"field":{field},"op":"{name}"}}"#)),
        (true, false) => Err(format!("`{name}` takes no value, here is `{rest}`")),
        (false, true) => Err(format!("`{name}` takes a value; `\"\"` is the empty string")),
        (false, false) => Ok(format!(r#"{{"field":{field},"op":"{name}","value":{}}}"#, value(operator, rest)?)),
    }
}

/// The first word, and what follows.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

/// A value as JSON: JSON as it is, a word as a string.
fn value(operator: Operator, text: &str) -> Result<String, String> {
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
        Err(_) => Ok(serde_json::Value::from(text).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_and_json_are_taken() {
        for (text, wanted) in [
            ("status eq pending", r#"{"field":"status","op":"eq","value":"pending"}"#),
            (" a.b  gte 1.50 ", r#"{"field":"a.b","op":"gte","value":1.50}"#),
            ("owner nexists", r#"{"field":"owner","op":"nexists"}"#),
            ("a in [1,2]", r#"{"field":"a","op":"in","value":[1,2]}"#),
            (r#"{"not":{"field":"a","op":"exists"}}"#, r#"{"not":{"field":"a","op":"exists"}}"#),
        ] {
            assert_eq!(typed_criteria(text), Ok(vec![wanted.to_owned()]), "{text}");
        }
        assert_eq!(typed_criteria("[{},{}]").map(|list| list.len()), Ok(2));
        for bad in ["", "status", "status = pending", "status eq", "a exists 1", "a eq two words", "a in 1", "[{]"] {
            assert!(typed_criteria(bad).is_err(), "{bad}");
        }
    }
}

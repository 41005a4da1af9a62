//! Whether an answer is as a file expects it.

use serde_json::{Map, Number, Value};

/// Says where the value is not as expected. Objects are partial, lists are whole; `null` is also met by what is absent.
pub fn matches(expected: &Value, value: &Value, at: &str) -> Result<(), String> {
    let is_met = match (expected, value) {
        (Value::Object(expected), Value::Object(fields)) => return matches_fields(expected, fields, at),
        (Value::Array(expected), Value::Array(items)) if expected.len() == items.len() => {
            let mut pairs = expected.iter().zip(items).enumerate();
            return pairs.try_for_each(|(n, (expected, item))| matches(expected, item, &format!("{at}.{n}")));
        }
        (Value::Number(expected), Value::Number(number)) => is_same(expected, number),
        _ => expected == value,
    };
    if is_met { Ok(()) } else { Err(format!("{at} is {value}, not {expected}")) }
}

fn matches_fields(expected: &Map<String, Value>, fields: &Map<String, Value>, at: &str) -> Result<(), String> {
    let mut each = expected.iter();
    each.try_for_each(|(name, expected)| {
        matches(expected, fields.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"))
    })
}

/// Whole numbers are compared with all their digits.
fn is_same(one: &Number, other: &Number) -> bool {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

/// Says which field of the value is not greater than this, as whole numbers.
pub fn is_greater(value: &Value, path: &str, floor: &Value) -> Result<(), String> {
    let have = field(value, path)?;
    match (whole(have), whole(floor)) {
        (Some(number), Some(floor)) if number > floor => Ok(()),
        _ => Err(format!("{path} is {have}, not greater than {floor}")),
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i128(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Goes into objects and lists: `a.0.b`.
pub fn field<'v>(value: &'v Value, path: &str) -> Result<&'v Value, String> {
    let inner = path.split('.').try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => step.parse::<usize>().ok().and_then(|n| items.get(n)),
        _ => None,
    });
    inner.ok_or_else(|| format!("the answer has no field {path}: {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_partial_and_lists_are_whole() {
        for (expected, value, fits) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": 1}), json!({"a": "1"}), false),
            (json!({"a": "1"}), json!({"a": 1}), false),
            (json!({"a": null}), json!({}), true),
            (json!({"a": null}), json!({"a": 0}), false),
            (json!({"a": false}), json!({}), false),
            (json!({"a": {}}), json!({"a": []}), false),
            (json!([1, {"a": 1}]), json!([1, {"a": 1, "b": 2}]), true),
            (json!([1]), json!([1, 2]), false),
            (json!([]), json!(null), false),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), false),
            (json!(1), json!(1.0), true),
        ] {
            let found = matches(&expected, &value, "answer");
            assert_eq!(found.is_ok(), fits, "{value} beside {expected}: {found:?}");
        }
        let why = matches(&json!({"a": [{"b": 1}]}), &json!({"a": [{"b": 2}]}), "answer").expect_err("differs");
        assert_eq!(why, "answer.a.0.b is 2, not 1");
    }

    #[test]
    fn fields_are_found_in_objects_and_lists() {
        let value = json!({"a": [{"b": "9"}]});
        assert_eq!(field(&value, "a.0.b"), Ok(&json!("9")));
        for bad in ["a.1", "a.x", "b", "a.0.b.c"] {
            assert!(field(&value, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn digits_are_greater_as_numbers_are() {
        let value = json!({"a": "9"});
        assert!(is_greater(&value, "a", &json!("8")).is_ok() && is_greater(&value, "a", &json!(8)).is_ok());
        for floor in [json!("10"), json!("9"), json!("x")] {
            assert!(is_greater(&value, "a", &floor).is_err(), "{floor}");
        }
    }
}

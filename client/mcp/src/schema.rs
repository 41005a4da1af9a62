//! The JSON schemas of arguments.
//!
//! Owns that they are short, since each agent reads all of them: no titles, no `null` beside a type, nothing by reference.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of a tool's arguments.
pub fn of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    shorten(&mut schema);
    match schema {
        Value::Object(mut object) => {
            object.remove("description");
            object.insert("additionalProperties".into(), false.into());
            Arc::new(object)
        }
        other => unreachable!("the schema of a struct is an object, not {other}"),
    }
}

/// An argument that is not in the schema: a slip that would change what a call means, if it were passed over.
pub fn unknown<'a>(schema: &JsonObject, arguments: &'a JsonObject) -> Option<&'a str> {
    let known = schema.get("properties").and_then(Value::as_object);
    arguments.keys().find(|name| known.is_none_or(|known| !known.contains_key(*name))).map(String::as_str)
}

/// Leaves out what says nothing to who calls.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // A property may have these names, and is no schema but an object of them.
            for name in ["title", "format", "default"] {
                if object.get(name).is_some_and(|value| !value.is_object()) {
                    object.remove(name);
                }
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            object.values_mut().for_each(shorten);
        }
        Value::Array(list) => list.iter_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Arguments {
        /// Which.
        key: String,
        /// At most.
        limit: Option<u32>,
    }

    #[test]
    fn schemas_say_what_is_needed_and_no_more() {
        let expected = json!({
            "type": "object",
            "properties": {
                "key": {"description": "Which.", "type": "string"},
                "limit": {"description": "At most.", "type": "integer", "minimum": 0},
            },
            "required": ["key"],
            "additionalProperties": false,
        });
        let schema = of::<Arguments>();
        assert_eq!(Value::Object((*schema).clone()), expected);
        let arguments = |text| serde_json::from_str::<JsonObject>(text).expect("an object");
        assert_eq!(unknown(&schema, &arguments(r#"{"key":"a","limits":1}"#)), Some("limits"));
        assert_eq!(unknown(&schema, &arguments(r#"{"key":"a"}"#)), None);
    }
}

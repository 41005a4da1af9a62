//! What the OpenAPI document says beyond what is derived from types and handlers.
//!
//! Owns the bounds of values by the name of their parameter or field, and the headers of every response. Never knows a single
//! operation: whatever is in the document gets the same treatment, so that a new one is described as exactly.

use quorate_machine::limits::{
    EXPECT_TOKENS_MAX, KEY_BYTES_MAX, REQUEST_ID_BYTES_MAX, SEQUENCE_NAME_BYTES_MAX, TTL_MS_MAX,
};
use quorate_node_core::limits;
use serde_json::{Map, Value, json};

/// A token as it stands in JSON and in queries.
const CAS: &str = "(0|[1-9][0-9]{0,19})";

/// What a field refers to that is a name: any bytes, most often a text.
const NAME: &str = "#/components/schemas/Name";

/// Completes a document.
pub fn complete(document: &mut Value) {
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.remove("Name");
    }
    walk(document, &mut |node| {
        say_names(node);
        say_unsigned(node);
        say_bytes(node);
        say_any_of(node);
        leave_out_examples(node);
        describe_fields(node);
    });
    for operation in children(document.get_mut("paths")).flat_map(|item| children(Some(item))) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            say_parameter(parameter);
        }
        let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { continue };
        for (status, response) in responses.iter_mut() {
            add_headers(response, status);
        }
        responses.insert("431".into(), head_too_large());
    }
    document["components"]["headers"] = headers();
}

fn children(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// A name stands in one of two fields: as a string, or in base64 where it is no text.
fn say_names(schema: &mut Map<String, Value>) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let refers = |property: &Value| property.to_string().contains(&format!("\"{NAME}\""));
    let names: Vec<_> = properties.iter().filter(|(_, field)| refers(field)).map(|(name, _)| name.clone()).collect();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for name in &names {
        let property = &mut properties[name];
        let one_of = property.get("oneOf").and_then(Value::as_array).and_then(|options| options.last());
        let description = property.get("description").or_else(|| one_of?.get("description")).cloned();
        *property =
            json!({"type": "string", "description": description.unwrap_or_default(), "maxLength": KEY_BYTES_MAX});
        if name == "key" {
            property["minLength"] = json!(1);
        }
        let detail = format!("`{name}` in base64, where it is no UTF-8: of the two one is given.");
        let bytes_max = 4 * KEY_BYTES_MAX.div_ceil(3);
        let mut encoded = json!({"type": "string", "description": detail, "maxLength": bytes_max});
        if required.iter().any(|field| field == name) {
            // For who makes one field of the two: it is always there.
            encoded["x-instead-of"] = json!(name);
        }
        properties.insert(format!("{name}_base64"), encoded);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| !names.iter().any(|name| field == name));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

/// Visits every object, the inner ones first, but for examples.
fn walk(node: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match node {
        Value::Object(fields) => {
            let inner = fields.iter_mut().filter(|(name, _)| *name != "example" && *name != "examples");
            inner.for_each(|(_, field)| walk(field, visit));
            visit(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

/// `int64` ends where `u64` has only half of its numbers.
fn say_unsigned(node: &mut Map<String, Value>) {
    let is_unsigned = node.get("minimum").and_then(Value::as_f64).is_some_and(|least| least >= 0.0);
    if is_unsigned && node.get("format") == Some(&json!("int64")) {
        node.insert("format".into(), json!("uint64"));
    }
}

/// Bytes in a body are not a list of numbers.
fn say_bytes(node: &mut Map<String, Value>) {
    if let Some(content) = node.get_mut("application/octet-stream") {
        content["schema"] = json!({"type": "string", "format": "binary"});
    }
}

/// Where answers have several shapes, one may fit two of them, which `oneOf` forbids.
fn say_any_of(node: &mut Map<String, Value>) {
    if let Some(options) = node.remove("oneOf") {
        node.insert("anyOf".into(), options);
    }
}

/// Descriptions are taken from documentation whose examples are in Rust.
fn leave_out_examples(node: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = node.get_mut("description")
        && let Some(at) = text.find("# Examples")
    {
        text.truncate(text[..at].trim_end().len());
    }
}

/// Gives each field the bounds of its name. One that may be left out is left out, in requests and answers; it is never null.
fn describe_fields(schema: &mut Map<String, Value>) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    for (name, property) in properties.iter_mut() {
        bound(name, property);
        if is_required(name) {
            continue;
        }
        drop_null(property);
        let Some(property) = property.as_object_mut() else { continue };
        if let Some(Value::Array(options)) = property.get_mut("anyOf") {
            options.retain(|option| option.get("type") != Some(&json!("null")));
            if let [Value::Object(one)] = &options[..] {
                let one = one.clone();
                property.remove("anyOf");
                property.extend(one);
            }
        }
    }
}

/// A parameter is left out, never null; a switch may stand without a value.
fn say_parameter(parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    drop_null(&mut parameter["schema"]);
    bound(&name, &mut parameter["schema"]);
    if parameter["in"] == "query" && parameter["schema"]["type"] == "boolean" {
        parameter["allowEmptyValue"] = json!(true);
    }
}

/// Leaves the other type of a type that may be null.
fn drop_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type")
        && let Some(list) = types.as_array_mut()
    {
        list.retain(|name| name != "null");
        if let [one] = &list[..] {
            *types = one.clone();
        }
    }
}

/// Adds the bounds that go with a name, where the value is of the kind they are for.
fn bound(name: &str, schema: &mut Value) {
    let Some((kind, bounds)) = bounds(name) else { return };
    // Whoever says how much it may be knows better.
    if schema.get("maximum").is_some() || schema.get("maxLength").is_some() {
        return;
    }
    if schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|known| known == kind))
    {
        let (Some(schema), Value::Object(bounds)) = (schema.as_object_mut(), bounds) else { return };
        schema.extend(bounds);
    }
}

/// A star, or a list of tags.
fn tags() -> String {
    const TAG: &str = "(W/)?\"[!#-~]*\"";
    format!("^(\\*|{TAG}(, {TAG}){{0,{}}})$", EXPECT_TOKENS_MAX - 1)
}

/// What holds for every value of this name: its type, and the keywords that say the rest.
fn bounds(name: &str) -> Option<(&'static str, Value)> {
    Some(match name {
        "name" => ("string", json!({"minLength": 1, "maxLength": SEQUENCE_NAME_BYTES_MAX})),
        "key" => ("string", json!({"minLength": 1, "maxLength": KEY_BYTES_MAX})),
        "session" => ("string", json!({"pattern": format!("^{CAS}$")})),
        "cas" | "if_none_match" => ("string", json!({"pattern": format!("^{CAS}$")})),
        "If-Match" | "If-None-Match" => ("string", json!({"pattern": tags()})),
        "request_id" | "id" | "Idempotency-Key" => {
            ("string", json!({"pattern": format!("^[!-~]{{1,{REQUEST_ID_BYTES_MAX}}}$")}))
        }
        "Request-Timeout" => ("integer", json!({"minimum": 1})),
        "ttl_ms" => ("integer", json!({"maximum": TTL_MS_MAX})),
        "wait_ms" => ("integer", json!({"maximum": limits::WAIT_MS_MAX})),
        "heartbeat_ms" => {
            ("integer", json!({"minimum": limits::HEARTBEAT_MS_MIN, "maximum": limits::HEARTBEAT_MS_MAX}))
        }
        "Last-Event-ID" => ("string", json!({"pattern": "^[0-9]{1,19}(\\.[0-9]{1,9})?$"})),
        "limit" => ("integer", json!({"minimum": 1, "maximum": limits::LIST_ENTRIES_MAX})),
        "consistency" => ("string", json!({"enum": ["linearizable", "local"]})),
        _ => return None,
    })
}

/// What is refused before it is a request.
fn head_too_large() -> Value {
    let limit = limits::HEAD_BYTES_MAX / 1024;
    json!({"description": format!("Path and headers take more than {limit} KiB. Not applied; there is no problem document.")})
}

/// Adds the headers of every response with this status to those that its operation declares.
fn add_headers(response: &mut Value, status: &str) {
    let refer = |name: &&str| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    let of_status = match status {
        "201" => &["Location"][..],
        "401" => &["WWW-Authenticate"],
        "405" => &["Allow"],
        "415" => &["Accept", "Accept-Patch", "Accept-Post", "Accept-Encoding"],
        "429" | "503" => &["Retry-After"],
        _ => &[],
    };
    let mut headers: Map<_, _> = OF_ALL.iter().chain(of_status).map(refer).collect();
    if let Value::Object(declared) = response["headers"].take() {
        headers.extend(declared);
    }
    response["headers"] = headers.into();
}

const OF_ALL: [&str; 5] = ["Quorate-Revision", "Quorate-Term", "Quorate-Leader", "Quorate-Cluster", "X-Request-Id"];

/// What `finish` and the problem documents add to responses.
fn headers() -> Value {
    let header =
        |description: &str, schema: Value| json!({"description": description, "required": true, "schema": schema});
    let (number, text) =
        (|| json!({"type": "integer", "format": "uint64", "minimum": 0}), || json!({"type": "string"}));
    let taken = |what: &str| json!({"description": what, "required": false, "schema": {"type": "string"}});
    json!({
        "Quorate-Revision": header("Revision at which it was evaluated; where it was not, the node's own.", number()),
        "Quorate-Term": header("Raft term of the node.", number()),
        "Quorate-Leader": header("Node id of the leader, or `none`.", json!({"type": "string", "pattern": "^(none|[0-9]+)$"})),
        "Quorate-Cluster": {
            "description": "Id of the cluster that the node belongs to; not there while it is in none.",
            "required": false,
            "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        },
        "X-Request-Id": header("That of the request, else one made for it.", text()),
        "Location": header("The path of what was created.", json!({"type": "string", "format": "uri-reference"})),
        "WWW-Authenticate": header("`Bearer`.", text()),
        "Allow": header("The methods there are.", text()),
        "Retry-After": header("Seconds.", number()),
        "Accept": taken("The content types that a PUT takes."),
        "Accept-Patch": taken("The content types that a PATCH takes."),
        "Accept-Post": taken("The content types that a POST takes."),
        "Accept-Encoding": taken("Where the body was compressed: how it may be."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_is_never_null_and_what_must_be_there_may_be() {
        let object = json!({
            "required": ["cas"],
            "properties": {
                "cas": {"type": ["string", "null"]},
                "ttl_ms": {"type": ["integer", "null"], "format": "int64", "minimum": 0},
                "prev": {"oneOf": [{"$ref": "#/entry", "description": "before"}, {"type": "null"}]},
            }
        });
        let mut document = json!({"components": {"schemas": {"Answer": object}}, "paths": {}});
        complete(&mut document);
        let fields = &document["components"]["schemas"]["Answer"]["properties"];
        assert_eq!(fields["cas"], json!({"type": ["string", "null"], "pattern": "^(0|[1-9][0-9]{0,19})$"}));
        assert_eq!(fields["ttl_ms"]["type"], "integer");
        assert_eq!((&fields["ttl_ms"]["format"], &fields["ttl_ms"]["maximum"]), (&json!("uint64"), &json!(TTL_MS_MAX)));
        assert_eq!(fields["prev"], json!({"$ref": "#/entry", "description": "before"}));
    }

    #[test]
    fn a_description_ends_before_its_examples() {
        let described = json!({"description": "An entry.\n\nAt a revision.\n\n# Examples\n\n```\nlet x = 1;\n```"});
        let mut document = json!({"components": {"schemas": {"Entry": described}}, "paths": {}});
        complete(&mut document);
        assert_eq!(document["components"]["schemas"]["Entry"]["description"], "An entry.\n\nAt a revision.");
    }

    #[test]
    fn a_name_bounds_only_values_of_its_kind() {
        let mut number = json!({"type": "integer"});
        bound("id", &mut number);
        assert_eq!(number, json!({"type": "integer"}), "a node id is no request id");
    }
}

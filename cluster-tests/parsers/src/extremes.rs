//! Requests for every route that takes a value, a number or a text, with places where those stand, and what to put there.
//!
//! Owns both lists. Never says what comes of a request: see `api`.

use rand::RngExt;
use rand::rngs::StdRng;

/// A request with places for values (`@V`), numbers (`@N`) and texts (`@S`).
#[derive(Debug, Clone, Copy)]
pub struct Form {
    method: &'static str,
    target: &'static str,
    kind: &'static str,
    body: &'static str,
}

impl Form {
    /// The request, with these in its places. What stands in the target is percent-encoded.
    pub fn with(&self, value: &str, number: &str, text: &str) -> Vec<u8> {
        let quoted = serde_json::to_string(text).expect("a string");
        let body = self.body.replace("@V", value).replace("@N", number).replace("@S", &quoted);
        let encode = |part: &str| part.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let target = self.target.replace("@N", &encode(number)).replace("@S", &encode(text));
        let Self { method, kind, .. } = self;
        let length = body.len();
        format!(
            "{method} {target} HTTP/1.1\r\nHost: t\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

const JSON: &str = "application/json";

/// All of them. The state that they meet is that of `samples`: session 2, collection `c/`, entries `c/1` and `d`.
pub fn requests() -> Vec<Form> {
    let form = |method, target, kind, body| Form { method, target, kind, body };
    let post = |target, body| form("POST", target, JSON, body);
    vec![
        form("PUT", "/v1/kv/d?ttl_ms=@N", JSON, "@V"),
        form("PUT", "/v1/kv/d?session=2", JSON, "@V"),
        form("PUT", "/v1/kv/c/2", JSON, r#"{"n":@N,"v":@V,"at":@S,"a":{"b":@V},"e":@N}"#),
        form("PUT", "/v1/kv/@S", JSON, r#"{"v":@V}"#),
        form("PUT", "/v1/kv/d", "application/octet-stream", "@V"),
        form("PATCH", "/v1/kv/d", "application/merge-patch+json", r#"{"n":@N,"v":@V}"#),
        form("PATCH", "/v1/kv/c/1", "application/merge-patch+json", r#"{"n":@N,"at":@S,"e":@V}"#),
        form(
            "PATCH",
            "/v1/kv/d",
            "application/json-patch+json",
            r#"[{"op":"add","path":"/v","value":@V},{"op":"add","path":"/w","value":@N},{"op":"test","path":"/v","value":@V}]"#,
        ),
        post(
            "/v1/ops",
            r#"{"op":"update","key":"d","patch":[{"op":"inc","path":"a","value":@N},{"op":"max","path":"n","value":@N},{"op":"append","path":"l","value":@V}]}"#,
        ),
        post("/v1/ops", r#"{"op":"upsert","key":"d","value":@V,"ttl_ms":@N}"#),
        post("/v1/ops", r#"{"op":"upsert","key":@S,"value":{"v":@V}}"#),
        post("/v1/ops", r#"{"op":"lock","key":"d","lock_ms":@N}"#),
        post(
            "/v1/ops",
            r#"{"op":"upsert","key":"d","value":1,"if":[{"field":"a","op":"gte","value":@V},{"field":"$version","op":"lt","value":@N}]}"#,
        ),
        post(
            "/v1/bulk",
            r#"{"ops":[{"op":"upsert","key":"d","value":@V},{"op":"insert","key":@S,"value":@N,"ttl_ms":@N}]}"#,
        ),
        form(
            "POST",
            "/v1/bulk",
            "application/x-ndjson",
            "{\"op\":\"upsert\",\"key\":\"d\",\"value\":@V}\n{\"op\":\"touch\",\"key\":\"d\",\"ttl_ms\":@N}\n",
        ),
        form(
            "POST",
            "/v1/ops",
            "application/x-ndjson",
            "{\"n\":1,\"op\":{\"op\":\"upsert\",\"key\":\"d\",\"value\":@V}}\n",
        ),
        post(
            "/v1/txn",
            r#"{"if":[{"key":"d","if":[{"field":"a","op":"neq","value":@V}]}],"then":[{"op":"upsert","key":"d","value":@V},{"op":"upsert","key":"f","value":{"n":@N}}],"else":[{"op":"upsert","key":@S,"value":@N}]}"#,
        ),
        post(
            "/v1/update_where",
            r#"{"prefix":"","where":[{"any":[{"field":"a","op":"neq","value":@V},{"field":"n","op":"gt","value":@N}]}],"patch":{"v":@V}}"#,
        ),
        post(
            "/v1/update_where",
            r#"{"prefix":"","where":[{"not":{"field":"a","op":"in","value":[@V,@N,@S]}}],"patch":[{"op":"inc","path":"z","value":@N}]}"#,
        ),
        post(
            "/v1/delete_where",
            r#"{"prefix":"d","where":[{"field":"a","op":"lt","value":@V},{"field":"$key","op":"like","value":@S}]}"#,
        ),
        post(
            "/v1/claim",
            r#"{"prefix":"","where":[{"field":"a","op":"neq","value":@V}],"patch":{"v":@V,"n":@N},"limit":5,"lock_ms":@N}"#,
        ),
        form(
            "PUT",
            "/v1/collections/d",
            JSON,
            r#"{"fields":{"v":{"type":"double","default":@N},"w":{"type":"varchar","default":@S}},"indexes":[["v","w"]]}"#,
        ),
        form(
            "PUT",
            "/v1/collections/d",
            JSON,
            r#"{"fields":{"a":{"type":"any","default":@V},"t":{"type":"datetime","default":"2024-02-29T12:00:00Z"}},"ttl_ms":@N}"#,
        ),
        post("/v1/sessions", r#"{"ttl_ms":@N,"owner":@S,"labels":{"zone":@S}}"#),
        post("/v1/locks/l/acquire", r#"{"session":"2","slots":@N,"wait_ms":0,"delay_ms":@N}"#),
        post("/v1/locks/@S/acquire", r#"{"session":"2","wait_ms":0}"#),
        post("/v1/elections/e2/campaign", r#"{"session":"2","value":@V,"wait_ms":0}"#),
        post("/v1/elections/e/proclaim", r#"{"term":18,"value":@V}"#),
        post("/v1/barriers/b2/enter", r#"{"session":"2","parties":@N,"wait_ms":0}"#),
        form("PUT", "/v1/latches/l2", JSON, r#"{"count":@N}"#),
        post("/v1/sequences/s", r#"{"count":@N}"#),
        post("/v1/tasks/q", r#"{"payload":@V,"delay_ms":@N}"#),
        post("/v1/tasks/q", r#"{"id":@S,"payload":@V,"max_attempts":@N}"#),
        post("/v1/tasks/q", r#"{"id":"t9","payload":@V,"every_ms":@N}"#),
        post("/v1/tasks/q", r#"{"payload":@V,"execute_at":@S}"#),
        post("/v1/tasks/q", r#"{"execute_at":@N}"#),
        post("/v1/tasks/q", r#"{"payload":1,"cron":@S}"#),
        post("/v1/tasks/q/claim", r#"{"limit":7,"lease_ms":@N,"worker":@S}"#),
        post("/v1/tasks/q/claim", r#"{"limit":@N}"#),
        post("/v1/tasks/q/complete", r#"{"id":"t1","token":@N}"#),
        form("PUT", "/v1/access/roles/r2", JSON, r#"{"grants":[{"permission":"read","prefix":@S}]}"#),
        form("PUT", "/v1/access/users/u2", JSON, r#"{"roles":[@S]}"#),
        post("/v1/access/tokens", r#"{"user":"u","expires_in_ms":@N,"note":@S}"#),
    ]
}

/// Numbers as they may stand in JSON, at the edges of what something keeps them in.
pub const NUMBERS: [&str; 30] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.5",
    "255",
    "1000000",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1.7976931348623157e308",
    "1.79769313486231580e308",
    "1.79769313486231581e308",
    "1.79769313486231599e308",
    "-1.79769313486231581e308",
    "1e309",
    "1e400",
    "5e-324",
    "1e-400",
    "0.1e-999999999",
    "123456789012345678901234567890.123456789012345678901234567890",
    "1E+2",
    "0e999999999999",
];

/// Texts at the edges of what names, keys, times and patterns may be.
pub const TEXTS: [&str; 24] = [
    "",
    "a",
    "a/b",
    "\0",
    "\u{ffff}\u{10ffff}",
    "%_\\",
    "\\",
    "2024-02-30T00:00:00Z",
    "2024-02-29T12:00:00Z",
    "2024-12-31T23:59:60Z",
    "0000-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "+10000-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "*/5 * * * *",
    ", * * * * *",
    "0 0 30 2 *",
    "0 0 29 2 1#5",
    "59 59 23 31 12 *",
    "* * * * * * 2099",
    "@every",
    "NaN",
];

/// A value: a number or a text of the lists, or something deep, wide or long.
pub fn value(dice: &mut StdRng) -> String {
    let number = NUMBERS[dice.random_range(0..NUMBERS.len())];
    let text = || serde_json::to_string(TEXTS[7]).expect("a string");
    match dice.random_range(0..12) {
        0..4 => format!(r#"{{"n":{number},"v":{number},"a":{{"b":{number}}}}}"#),
        4 => number.into(),
        5 => serde_json::to_string(TEXTS[dice.random_range(0..TEXTS.len())]).expect("a string"),
        6 => {
            let depth = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1_000][dice.random_range(0..11)];
            format!("{}{number}{}", "[".repeat(depth), "]".repeat(depth))
        }
        7 => {
            let depth = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1_000][dice.random_range(0..11)];
            format!("{}{number}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
        }
        8 => format!("[{}0]", "0,".repeat(dice.random_range(1..2_000))),
        9 => format!(r#"{{"v":"{}","at":{}}}"#, "x".repeat(dice.random_range(0..5_000)), text()),
        10 => ["null", "true", r#""\ud800""#, r#"{"a":1,"a":2}"#, r#"{"$x":1}"#, r#"{"":{"":0}}"#]
            [dice.random_range(0..6)]
        .into(),
        _ => format!(r#"{{"e":[{number},{},null],"at":{}}}"#, text(), text()),
    }
}

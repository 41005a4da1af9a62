//! A request for each thing that can be asked over the client port.
//!
//! Owns the requests that the samples of all targets begin with. Never sends one.

const CRITERIA: &str = r#"[{"field":"n","op":"gte","value":1},{"any":[{"field":"$version","op":"lt","value":9},
    {"not":{"field":"a.b","op":"like","value":"x%_\\%"}}]},{"field":"at","op":"lte","value":{"now":true}}]"#;

/// A request for each thing that can be asked, in an order in which most of them can be done: the first makes session 2.
pub fn all() -> Vec<Vec<u8>> {
    let json = |method: &str, target: &str, headers: &str, body: &str| {
        let length = body.len();
        format!("{method} {target} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let post = |target: &str, body: &str| json("POST", target, "", body);
    let get = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\nHost: t\r\n{headers}\r\n").into_bytes();
    let document =
        r#"{"n":1,"a":{"b":"xyz"},"at":"2023-01-01T00:00:00Z","big":18446744073709551615,"e":[1.50,null,true]}"#;
    vec![
        post("/v1/sessions", r#"{"ttl_ms":30000,"owner":"w","labels":{"zone":"a"}}"#),
        json(
            "PUT",
            "/v1/collections/c",
            "",
            r#"{"fields":{"n":{"type":"long"},"at":{"type":"datetime"}},"required":["n"],"indexes":[["n","a.b"],{"fields":["at"],"unique":false}]}"#,
        ),
        json("PUT", "/v1/kv/c/1?ttl=90s&session=2", "If-None-Match: *\r\nIdempotency-Key: a-1\r\n", document),
        json(
            "PUT",
            "/v1/kv/a%2Fb%20c?prev=true&guard_lock=l&guard_token=9",
            "If-Match: \"7\", \"8\"\r\n",
            r#"{"k":[]}"#,
        ),
        json(
            "PATCH",
            "/v1/kv/c/1?dry_run=true",
            "If-Match: *\r\n",
            r#"[{"op":"inc","path":"n","value":2},{"op":"now","path":"t","form":"unix_ms"},{"op":"append","path":"/e","value":"z"}]"#,
        ),
        post(
            "/v1/ops",
            &format!(
                r#"{{"op":"update","key":"c/1","patch":[{{"op":"add","path":"/e/-","value":{{"x":1e2}}}},{{"op":"move","from":"/e/0","path":"/f"}}],"if":{CRITERIA}}}"#
            ),
        ),
        post("/v1/ops", r#"{"op":"upsert","key_b64":"AP8=","value_b64":"AAEC/w=="}"#),
        post("/v1/ops", r#"{"op":"upsert","key":"d","value":{"a":1}}"#),
        post("/v1/ops", r#"{"op":"lock","key":"d","lock_ms":5000}"#),
        post("/v1/ops", r#"{"op":"unlock","key":"d","cas":"9"}"#),
        post(
            "/v1/txn",
            &format!(
                r#"{{"if":[{{"key":"c/1","exists":true,"if":{CRITERIA}}}],"then":[{{"op":"update","key":"c/1","patch":{{"n":2}}}},{{"op":"get","key":"d"}}],"else":[{{"op":"txn","then":[{{"op":"insert","key":"e","value":0}}]}}]}}"#
            ),
        ),
        {
            let lines = "{\"op\":\"insert\",\"key\":\"b/1\",\"value\":1}\n{\"op\":\"remove\",\"key\":\"b/2\"}\n";
            format!("POST /v1/bulk HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-ndjson\r\nIdempotency-Key: b\r\nContent-Length: {}\r\n\r\n{lines}", lines.len()).into_bytes()
        },
        post(
            "/v1/find",
            &format!(r#"{{"prefix":"c/","where":{CRITERIA},"order":["-n","$key"],"fields":["n","a.b"],"limit":10}}"#),
        ),
        post("/v1/update_where", &format!(r#"{{"prefix":"c/","where":{CRITERIA},"patch":{{"m":null}},"limit":5}}"#)),
        post("/v1/claim", &format!(r#"{{"prefix":"c/","where":{CRITERIA},"patch":{{"by":"w"}},"limit":1}}"#)),
        post("/v1/locks/l/acquire", r#"{"session":"2","mode":"exclusive","slots":2,"wait_ms":10,"delay_ms":5}"#),
        post("/v1/elections/e/campaign", r#"{"session":"2","value":{"addr":"h:1"},"wait_ms":10}"#),
        post("/v1/barriers/b/enter", r#"{"session":"2","parties":2,"wait_ms":0}"#),
        json("PUT", "/v1/latches/l", "", r#"{"count":3}"#),
        json("POST", "/v1/sequences/s?count=5", "", ""),
        post(
            "/v1/tasks/q",
            r#"{"tasks":[{"id":"t1","delay_ms":5,"payload":{"a":1},"max_attempts":3},{"id":"t2","cron":"*/5 * * * *","tz":"Europe/Berlin"}]}"#,
        ),
        post("/v1/tasks/q/claim", r#"{"limit":2,"lease_ms":1000,"wait_ms":1}"#),
        json("PUT", "/v1/access/roles/r", "", r#"{"grants":[{"permission":"read","prefix":"c/"}]}"#),
        json("PUT", "/v1/access/users/u", "", r#"{"roles":["r"]}"#),
        json("PUT", "/v1/quotas/prefixes/c/", "", r#"{"entries":10,"bytes":100}"#),
        json("PUT", "/v1/quotas/principals/u", "", r#"{"sessions":10,"locks":0}"#),
        post("/v1/access/tokens", r#"{"user":"u","ttl_ms":60000,"note":"ci"}"#),
        get(
            "/v1/kv?prefix=c%2F&limit=5&values=false&consistency=local&min_revision=1&cursor=AA",
            "Accept-Encoding: gzip\r\n",
        ),
        get("/v1/watch?prefix=c/&from=2&filter=put", "Last-Event-ID: 3\r\n"),
        get("/v1/audit?key=c/1&limit=3&reverse=true", "Quorate-Timeout: 5\r\n"),
        get("/v1/kv/c/1?revision=2&wait_revision=3&timeout=1", "If-None-Match: W/\"5\"\r\nPrefer: wait=1\r\n"),
        get("/v1/cluster/members", "Authorization: Bearer qt_1_abc\r\nRange: bytes=0-1\r\n"),
    ]
}

//! What a careless or hostile client sends: each a problem document that names the field, and nothing is written.

use quorate_api::{Applied, ErrorCode, Retry};

use crate::raw::Server;

struct Case<'a> {
    name: &'a str,
    method: &'a str,
    path: String,
    headers: Vec<(&'a str, &'a str)>,
    body: Vec<u8>,
    code: ErrorCode,
    pointer: &'a str,
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn case<'a>(
    name: &'a str,
    (method, path): (&'a str, &str),
    headers: &[(&'a str, &'a str)],
    body: impl Into<Vec<u8>>,
    (code, pointer): (ErrorCode, &'a str),
) -> Case<'a> {
    Case { name, method, path: path.to_owned(), headers: headers.to_vec(), body: body.into(), code, pointer }
}

fn op<'a>(name: &'a str, body: &str, code: ErrorCode, pointer: &'a str) -> Case<'a> {
    case(name, ("POST", "/v1/ops"), &[JSON], body, (code, pointer))
}

fn cases() -> Vec<Case<'static>> {
    use ErrorCode::{InvalidArgument, TooLarge, UnknownField, UnsupportedMediaType};
    let bad = |pointer| (InvalidArgument, pointer);
    let long_key = format!("/v1/kv/{}", "k".repeat(4_097));
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let deeper = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let if_match = |value| vec![JSON, ("If-Match", value)];
    let mut cases = vec![
        case("empty key", ("PUT", "/v1/kv/"), &[JSON], "1", bad("path:key")),
        case("empty key, read", ("GET", "/v1/kv/"), &[], "", bad("path:key")),
        case("oversize key", ("PUT", &long_key), &[JSON], "1", (TooLarge, "path:key")),
        case("broken escape", ("PUT", "/v1/kv/a%2"), &[JSON], "1", bad("path:key")),
        case("oversize value", ("PUT", "/v1/kv/k"), &[JSON], vec![b' '; 1_536 * 1024 + 1], (TooLarge, "")),
        case("oversize body", ("POST", "/v1/ops"), &[JSON], vec![b' '; 3 << 20], (TooLarge, "")),
        case(
            "wrong content type",
            ("PUT", "/v1/kv/k"),
            &[("Content-Type", "text/xml")],
            "<a/>",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case("no content type", ("PUT", "/v1/kv/k"), &[], "1", (UnsupportedMediaType, "header:Content-Type")),
        case(
            "JSON in another charset",
            ("PUT", "/v1/kv/k"),
            &[("Content-Type", "application/json; charset=latin1")],
            "1",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case(
            "a form that is not JSON",
            ("PUT", "/v1/kv/k"),
            &[("Content-Type", "application/x-www-form-urlencoded")],
            "a=1",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case(
            "a patch in bytes",
            ("PATCH", "/v1/kv/k"),
            &[("Content-Type", "application/octet-stream")],
            "{}",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case(
            "compressed body",
            ("PUT", "/v1/kv/k"),
            &[JSON, ("Content-Encoding", "gzip")],
            "1",
            (UnsupportedMediaType, "header:Content-Encoding"),
        ),
        case("unquoted cas", ("PUT", "/v1/kv/k"), &if_match("12"), "1", bad("header:If-Match")),
        case("star in a list", ("PUT", "/v1/kv/k"), &if_match("\"1\", *"), "1", bad("header:If-Match")),
        case("empty list", ("PUT", "/v1/kv/k"), &if_match(" , "), "1", bad("header:If-Match")),
        case("tags without a comma", ("PUT", "/v1/kv/k"), &if_match("\"1\" \"2\""), "1", bad("header:If-Match")),
        case("17 tags", ("PUT", "/v1/kv/k"), &if_match(SEVENTEEN.as_str()), "1", bad("header:If-Match")),
        case(
            "two If-Match, the second without quotes",
            ("PUT", "/v1/kv/k"),
            &[JSON, ("If-Match", "\"1\""), ("If-Match", "2")],
            "1",
            bad("header:If-Match"),
        ),
        case(
            "half a tag, read",
            ("GET", "/v1/kv/k"),
            &[("If-None-Match", "\"1\", \"")],
            "",
            bad("header:If-None-Match"),
        ),
        case("delete with a body", ("DELETE", "/v1/kv/k"), &[JSON], "{}", bad("header:Content-Length")),
        case("300 levels", ("PUT", "/v1/kv/k"), &[JSON], deep, bad(DEEP.as_str())),
        case("100,000 levels", ("PUT", "/v1/kv/k"), &[JSON], deeper, bad(DEEP.as_str())),
        case("duplicate keys", ("PUT", "/v1/kv/k"), &[JSON], r#"{"a":{"b":1,"b":2}}"#, bad("/a/b")),
        case("truncated JSON", ("PUT", "/v1/kv/k"), &[JSON], r#"{"a":"#, bad("/a")),
        case("no body at all", ("PUT", "/v1/kv/k"), &[JSON], "", bad("")),
        case("byte order mark", ("PUT", "/v1/kv/k"), &[JSON], "\u{feff}1", bad("")),
        case("huge number", ("PUT", "/v1/kv/k"), &[JSON], "1e999", bad("")),
        case(
            "a number that only some parsers find finite",
            ("PUT", "/v1/kv/k"),
            &[JSON],
            "1.79769313486231581e308",
            bad(""),
        ),
        case(
            "the same in a payload",
            ("POST", "/v1/tasks/q"),
            &[JSON],
            r#"{"payload":1.79769313486231581e308}"#,
            bad(""),
        ),
        case(
            "an empty part of a cron pattern",
            ("POST", "/v1/tasks/q"),
            &[JSON],
            r#"{"cron":", * * * * *"}"#,
            bad("/cron"),
        ),
        case(
            "a step of a cron pattern that is longer than its field",
            ("POST", "/v1/tasks/q"),
            &[JSON],
            r#"{"cron":"*/70 * * * *"}"#,
            bad("/cron"),
        ),
        case("patch is no object", ("PATCH", "/v1/kv/k"), &[JSON], "[1]", bad("")),
        case("unknown parameter", ("PUT", "/v1/kv/k?expires=1"), &[JSON], "1", (UnknownField, "query:expires")),
        case("parameter twice", ("PUT", "/v1/kv/k?prev&prev"), &[JSON], "1", bad("query:prev")),
        case("ttl is no number", ("PUT", "/v1/kv/k?ttl_ms=-1"), &[JSON], "1", bad("query:ttl_ms")),
        case("ttl kept and given", ("PUT", "/v1/kv/k?ttl_ms=5&ttl=keep"), &[JSON], "1", bad("query:ttl")),
        case("ttl of another rule", ("PUT", "/v1/kv/k?ttl=60s"), &[JSON], "1", bad("query:ttl")),
        case("ttl of ages", ("PUT", "/v1/kv/k?ttl_ms=18446744073709551615"), &[JSON], "1", bad("query:ttl_ms")),
        case("switch is neither", ("PUT", "/v1/kv/k?dry_run=yes"), &[JSON], "1", bad("query:dry_run")),
        case(
            "empty idempotency key",
            ("DELETE", "/v1/kv/k"),
            &[("Idempotency-Key", "")],
            "",
            bad("header:Idempotency-Key"),
        ),
        case(
            "idempotency key with spaces",
            ("DELETE", "/v1/kv/k"),
            &[("Idempotency-Key", "a b")],
            "",
            bad("header:Idempotency-Key"),
        ),
        case(
            "timeout is no number",
            ("DELETE", "/v1/kv/k"),
            &[("Request-Timeout", "1s")],
            "",
            bad("header:Request-Timeout"),
        ),
        case(
            "timeout of nothing",
            ("DELETE", "/v1/kv/k"),
            &[("Request-Timeout", "0")],
            "",
            bad("header:Request-Timeout"),
        ),
        case("future revision", ("GET", "/v1/kv/k?revision=99"), &[], "", bad("query:revision")),
        case("negative revision", ("GET", "/v1/kv/k?revision=-1"), &[], "", bad("query:revision")),
        case("no such consistency", ("GET", "/v1/kv/k?consistency=strong"), &[], "", bad("query:consistency")),
        case("wait without a token", ("GET", "/v1/kv/k?wait_ms=10"), &[], "", bad("query:wait_ms")),
        case("wait for ever", ("GET", "/v1/kv/k?if_none_match=0&wait_ms=60001"), &[], "", bad("query:wait_ms")),
        case("body on a read", ("GET", "/v1/kv/k"), &[JSON], "{}", bad("header:Content-Length")),
        case("page of nothing", ("GET", "/v1/kv?limit=0"), &[], "", bad("query:limit")),
        case("page of everything", ("GET", "/v1/kv?limit=1001"), &[], "", bad("query:limit")),
        case("prefix and start", ("GET", "/v1/kv?prefix=a&start=b"), &[], "", bad("query:prefix")),
        case("broken escape of a prefix", ("GET", "/v1/kv?prefix=%f"), &[], "", bad("query:prefix")),
        case("cursor is not UTF-8", ("GET", "/v1/kv?cursor=%ff"), &[], "", bad("query:cursor")),
        case("forged cursor", ("GET", "/v1/kv?cursor=AAAAAAAAAAAAAAAAAAAA"), &[], "", bad("query:cursor")),
        case("cursor and prefix", ("GET", "/v1/kv?cursor=AAAA&prefix=a"), &[], "", bad("query:cursor")),
        case("request id with a line break", ("GET", "/v1/requests/a%0d%0ab"), &[], "", bad("path:id")),
        case("no such node", ("POST", "/v1/cluster/leader"), &[JSON], r#"{"to":0}"#, bad("/to")),
        case("null for a node", ("POST", "/v1/cluster/leader"), &[JSON], r#"{"to":null}"#, bad("/to")),
        case(
            "unknown field of a transfer",
            ("POST", "/v1/cluster/leader"),
            &[JSON],
            r#"{"node":2}"#,
            (UnknownField, "/node"),
        ),
    ];
    cases.extend([
        op("an op that is no object", "[]", InvalidArgument, ""),
        op("unknown field", r#"{"op":"remove","key":"k","colour":1}"#, UnknownField, "/colour"),
        op("unknown op", r#"{"op":"delete","key":"k"}"#, InvalidArgument, "/op"),
        op("no op", r#"{"key":"k"}"#, InvalidArgument, "/op"),
        op("no key", r#"{"op":"remove"}"#, InvalidArgument, "/key"),
        op("empty key in JSON", r#"{"op":"remove","key":""}"#, InvalidArgument, "/key"),
        op("key of another type", r#"{"op":"remove","key":1}"#, InvalidArgument, "/key"),
        op("cas is a number", r#"{"op":"remove","key":"k","cas":12}"#, InvalidArgument, "/cas"),
        op("cas is null", r#"{"op":"remove","key":"k","cas":null}"#, InvalidArgument, "/cas"),
        op("cas is text", r#"{"op":"remove","key":"k","cas":"x"}"#, InvalidArgument, "/cas"),
        op("cas with insert", r#"{"op":"insert","key":"k","value":1,"cas":"1"}"#, InvalidArgument, "/cas"),
        op("no value", r#"{"op":"upsert","key":"k"}"#, InvalidArgument, "/value"),
        op("two values", r#"{"op":"upsert","key":"k","value":1,"value_base64":""}"#, InvalidArgument, "/value_base64"),
        op("bad base64", r#"{"op":"upsert","key":"k","value_base64":"*"}"#, InvalidArgument, "/value_base64"),
        op("no patch", r#"{"op":"update","key":"k"}"#, InvalidArgument, "/patch"),
        op("touch without ttl", r#"{"op":"touch","key":"k"}"#, InvalidArgument, "/ttl_ms"),
        op("ttl is a fraction", r#"{"op":"touch","key":"k","ttl_ms":1.5}"#, InvalidArgument, "/ttl_ms"),
        op(
            "ttl kept and given",
            r#"{"op":"upsert","key":"k","value":1,"ttl":"keep","ttl_ms":5}"#,
            InvalidArgument,
            "/ttl",
        ),
        op("ttl kept by an insert", r#"{"op":"insert","key":"k","value":1,"ttl":"keep"}"#, InvalidArgument, "/ttl"),
        op("ttl of another rule", r#"{"op":"upsert","key":"k","value":1,"ttl":"double"}"#, InvalidArgument, "/ttl"),
        op("ttl is null", r#"{"op":"upsert","key":"k","value":1,"ttl":null}"#, InvalidArgument, "/ttl"),
        op("get with a request id", r#"{"op":"get","key":"k","request_id":"r"}"#, InvalidArgument, "/request_id"),
        op("field given twice", r#"{"op":"remove","key":"k","key":"l"}"#, InvalidArgument, "/key"),
        case(
            "two request ids",
            ("POST", "/v1/ops"),
            &[JSON, ("Idempotency-Key", "a")],
            r#"{"op":"remove","key":"k","request_id":"b"}"#,
            bad("/request_id"),
        ),
    ]);
    cases.extend(bulks());
    cases.extend(txns());
    cases
}

fn bulks() -> Vec<Case<'static>> {
    use ErrorCode::{InvalidArgument, TooLarge, UnknownField, UnsupportedMediaType};
    let bulk = |name, body: &str, code, pointer| case(name, ("POST", "/v1/bulk"), &[JSON], body, (code, pointer));
    let lines = |name, body: &str, code, pointer| case(name, ("POST", "/v1/bulk"), &[LINES], body, (code, pointer));
    let too_many = vec![r#"{"op":"remove","key":"k"}"#; 10_001];
    let long_key = "k".repeat(4_097);
    vec![
        bulk("a bulk that is no object", "[]", InvalidArgument, ""),
        bulk("a bulk of nothing", r#"{"ops":[]}"#, InvalidArgument, "/ops"),
        bulk("a bulk without operations", "{}", InvalidArgument, "/ops"),
        bulk("operations that are no list", r#"{"ops":{"op":"remove","key":"k"}}"#, InvalidArgument, "/ops"),
        bulk("10,001 operations", &format!(r#"{{"ops":[{}]}}"#, too_many.join(",")), InvalidArgument, "/ops"),
        lines("10,001 lines", &too_many.join("\n"), InvalidArgument, "/ops"),
        lines("no lines", "\n\n", InvalidArgument, "/ops"),
        lines("a line that is no JSON", "{\"op\":\"remove\",\"key\":\"k\"}\n{", InvalidArgument, "/ops/1"),
        bulk("get in a bulk", r#"{"ops":[{"op":"get","key":"k"}]}"#, InvalidArgument, "/ops/0/op"),
        bulk(
            "a request id inside",
            r#"{"ops":[{"op":"remove","key":"k","request_id":"r"}]}"#,
            InvalidArgument,
            "/ops/0/request_id",
        ),
        bulk(
            "a dry run inside",
            r#"{"ops":[{"op":"remove","key":"k","dry_run":true}]}"#,
            InvalidArgument,
            "/ops/0/dry_run",
        ),
        bulk(
            "cas with insert",
            r#"{"ops":[{"op":"insert","key":"k","value":1,"cas":"1"}]}"#,
            InvalidArgument,
            "/ops/0/cas",
        ),
        bulk(
            "negative ttl",
            r#"{"ops":[{"op":"upsert","key":"k","value":1,"ttl_ms":-1}]}"#,
            InvalidArgument,
            "/ops/0/ttl_ms",
        ),
        bulk(
            "unknown field inside",
            r#"{"ops":[{"op":"remove","key":"k","colour":1}]}"#,
            UnknownField,
            "/ops/0/colour",
        ),
        bulk("unknown field of a bulk", r#"{"ops":[{"op":"remove","key":"k"}],"colour":1}"#, UnknownField, "/colour"),
        bulk(
            "oversize key inside",
            &format!(r#"{{"ops":[{{"op":"remove","key":"{long_key}"}}]}}"#),
            TooLarge,
            "/ops/0/key",
        ),
        bulk("field of a bulk twice", r#"{"ops":[],"ops":[]}"#, InvalidArgument, "/ops"),
        bulk(
            "300 levels inside",
            &format!(r#"{{"ops":[{{"op":"upsert","key":"k","value":{}}}]}}"#, "[".repeat(300) + &"]".repeat(300)),
            InvalidArgument,
            DEEP_IN_BULK.as_str(),
        ),
        case(
            "a bulk in bytes",
            ("POST", "/v1/bulk"),
            &[("Content-Type", "application/octet-stream")],
            "{}",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case(
            "a form that is no bulk",
            ("POST", "/v1/bulk"),
            &[("Content-Type", "application/x-www-form-urlencoded")],
            "a=1",
            (UnsupportedMediaType, "header:Content-Type"),
        ),
        case("parameter of a bulk", ("POST", "/v1/bulk?prev"), &[JSON], "{}", (UnknownField, "query:prev")),
        case(
            "two ids of a bulk",
            ("POST", "/v1/bulk"),
            &[JSON, ("Idempotency-Key", "a")],
            r#"{"ops":[{"op":"remove","key":"k"}],"request_id":"b"}"#,
            (InvalidArgument, "/request_id"),
        ),
        case("a bulk over its limit", ("POST", "/v1/bulk"), &[JSON], vec![b' '; (16 << 20) + 1], (TooLarge, "")),
    ]
}

fn txns() -> Vec<Case<'static>> {
    use ErrorCode::{InvalidArgument, TooLarge, UnknownField};
    let txn = |name, body: &str, code, pointer| case(name, ("POST", "/v1/txn"), &[JSON], body, (code, pointer));
    let many = vec![r#"{"op":"get","key":"k"}"#; 1_025];
    let value = "x".repeat(1 << 20);
    vec![
        txn("a transaction that is no object", "7", InvalidArgument, ""),
        txn("truncated transaction", r#"{"then":["#, InvalidArgument, "/then"),
        txn("checks that are no list", r#"{"if":{"key":"k"}}"#, InvalidArgument, "/if"),
        txn("a check of nothing", r#"{"if":[{"key":"k"}]}"#, InvalidArgument, "/if/0"),
        txn("a check without a key", r#"{"if":[{"exists":true}]}"#, InvalidArgument, "/if/0/key"),
        txn(
            "a token of what is not there",
            r#"{"if":[{"key":"k","cas":"1","exists":false}]}"#,
            InvalidArgument,
            "/if/0/exists",
        ),
        txn(
            "unknown operator in a check",
            r#"{"if":[{"key":"k","if":[{"field":"a","op":"is"}]}]}"#,
            InvalidArgument,
            "/if/0/if/0/op",
        ),
        txn(
            "unknown field of a check",
            r#"{"if":[{"key":"k","exists":true,"colour":1}]}"#,
            UnknownField,
            "/if/0/colour",
        ),
        txn("a step without a value", r#"{"else":[{"op":"upsert","key":"k"}]}"#, InvalidArgument, "/else/0/value"),
        txn(
            "a step with a request id",
            r#"{"then":[{"op":"get","key":"k","request_id":"r"}]}"#,
            InvalidArgument,
            "/then/0/request_id",
        ),
        txn("unknown field of a nested one", r#"{"then":[{"op":"txn","key":"k"}]}"#, UnknownField, "/then/0/key"),
        txn(
            "the same key twice",
            r#"{"then":[{"op":"remove","key":"k"},{"op":"txn","then":[{"op":"remove","key":"k"}]}]}"#,
            InvalidArgument,
            "/then/1/then/0",
        ),
        txn("1,025 steps", &format!(r#"{{"then":[{}]}}"#, many.join(",")), InvalidArgument, "/then"),
        txn(
            "five deep",
            r#"{"then":[{"op":"txn","then":[{"op":"txn","then":[{"op":"txn","then":[{"op":"txn"}]}]}]}]}"#,
            InvalidArgument,
            "/then/0/then/0/then/0/then/0",
        ),
        txn(
            "too large for the log",
            &format!(
                r#"{{"then":[{{"op":"upsert","key":"a","value":"{value}"}}],"else":[{{"op":"upsert","key":"b","value":"{}"}}]}}"#,
                &value[..900_000]
            ),
            TooLarge,
            "",
        ),
        case(
            "two ids of a transaction",
            ("POST", "/v1/txn"),
            &[JSON, ("Idempotency-Key", "a")],
            r#"{"request_id":"b"}"#,
            (InvalidArgument, "/request_id"),
        ),
    ]
}

const LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");

/// Where the 65th level of a value in a bulk is.
static DEEP_IN_BULK: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| format!("/ops/0/value{}", "/0".repeat(64)));

/// One tag more than a list may have.
static SEVENTEEN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| ["\"1\""; 17].join(", "));

/// Where the 65th level of `[[[…` is.
static DEEP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "/0".repeat(64));

#[tokio::test]
async fn bad_input_is_told_by_field_and_nothing_is_written() {
    let server = Server::start().await;
    for Case { name, method, path, headers, body, code, pointer } in cases() {
        let response = server.ask(method, &path, &headers, &body).await;
        assert!((400..500).contains(&response.status), "{name}: {response:?}");
        let problem = response.problem();
        assert_eq!(problem.code, code, "{name}: {problem:?}");
        assert_eq!(problem.applied, Applied::No, "{name}");
        // It succeeds once there is that revision.
        let retry = if name == "future revision" { Retry::AfterReading } else { Retry::Never };
        assert_eq!(problem.retry, retry, "{name}");
        let pointers: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert!(pointers.contains(&pointer), "{name}: {pointer} is not among {pointers:?}: {}", problem.detail);
        assert!(problem.errors.iter().all(|fault| fault.detail.len() < 400), "{name}: {problem:?}");
        assert_eq!(server.backend.commands(), [], "{name}");
    }
    assert_eq!(server.get("/livez").await.status, 200, "the node is still up");
}

#[tokio::test]
async fn the_largest_key_and_the_largest_values_are_taken() {
    let server = Server::start().await;
    // Each byte percent-encoded: the longest path there can be.
    let path = format!("/v1/kv/{}", "%6b".repeat(4_096));
    let bytes = [("Content-Type", "application/octet-stream")];
    let value = vec![7u8; 1_536 * 1024];
    assert_eq!(server.ask("PUT", &path, &bytes, &value).await.status / 100, 2);
    assert_eq!(server.ask("GET", &format!("{path}?raw"), &[], b"").await.body, value);
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&value);
    let op = format!(r#"{{"op":"upsert","key":"{}","value_base64":"{text}"}}"#, "k".repeat(4_096));
    assert_eq!(server.ask("POST", "/v1/ops", &[JSON], op.as_bytes()).await.status / 100, 2);
}

#[tokio::test]
async fn strange_keys_come_back_as_they_were_and_reach_no_header() {
    let server = Server::start().await;
    for path in
        ["a%00b", "a%0d%0aX-Evil:%201", "..", "../..%2Fetc%2Fpasswd", "a//b", "%E2%80%AE", "a%22b", "with?", "%"]
    {
        let path = path.replace('?', "%3F").replace("%\u{0}", "%25");
        let path = if path == "%" { "%25".to_owned() } else { path };
        let written = server.put_json(&format!("/v1/kv/{path}"), "1").await;
        assert_eq!(written.status / 100, 2, "{path}: {written:?}");
        assert_eq!(written.header("x-evil"), None);
        let read = server.get(&format!("/v1/kv/{path}")).await;
        let decoded = percent_encoding::percent_decode_str(&path).decode_utf8().expect("UTF-8").into_owned();
        assert_eq!(read.json()["key"], decoded.as_str());
        assert_eq!(server.backend.last_op().key.as_bytes(), decoded.as_bytes());
    }
    let missing = server.get("/v1/kv/none%0d%0aX-Evil:%201").await;
    assert_eq!(missing.status, 404);
    assert!(missing.problem().detail.contains(r"\r\n"), "{missing:?}");
}

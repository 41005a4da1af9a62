//! `quorate export`: what is in the file, what is left out, and that nothing is replaced.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::commands::run;
use crate::fake::{Act, Fake, entry};

fn page(entries: &[Value]) -> Act {
    let page = json!({"entries": entries, "count": entries.len(), "revision": 7, "index": 9});
    Act::Answer(200, page.to_string())
}

#[tokio::test]
async fn what_has_expired_and_what_belongs_to_a_session_is_left_out_and_counted() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let with = |key: &str, field: &str, value: Value| {
        let mut entry = entry(key, &json!(1), "7");
        entry[field] = value;
        entry
    };
    let entries = [
        entry("a", &json!(1), "7"),
        with("b", "ttl_ms", json!(0)),
        with("c", "ttl_ms", json!(5)),
        with("d", "session", json!("17")),
    ];
    let file = home.path().join("all.ndjson");
    let path = file.to_str().expect("UTF-8");
    fake.script([page(&entries), page(&entries)]);
    let ran = run(&fake.address, &["export", path]).await;
    let said = "2 entries of revision 7, left out 1 that belong to sessions, left out 1 that have expired";
    assert_eq!((ran.code, ran.out), (0, format!("{path}: {said}\n")), "{}", ran.err);
    let mode = std::fs::metadata(&file).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "nobody else may read it, whatever the umask");
    let text = std::fs::read_to_string(&file).expect("is there");
    assert_eq!(text, "{\"key\":\"a\",\"value\":1}\n{\"key\":\"c\",\"value\":1,\"ttl_ms\":5}\n");
    let there: Vec<_> = std::fs::read_dir(home.path()).expect("is there").collect();
    assert_eq!(there.len(), 1, "no part is left: {there:?}");
    let again = run(&fake.address, &["export", path]).await;
    assert!(again.code == 2 && again.err.contains("replaces nothing"), "{}", again.err);
    let piped = run(&fake.address, &["export", "-", "-o", "json"]).await;
    assert_eq!((piped.code, piped.out), (0, text));
}

#[tokio::test]
async fn an_import_refuses_what_has_expired() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let file = home.path().join("in");
    std::fs::write(&file, "{\"key\":\"a\",\"value\":1,\"ttl_ms\":0}\n{\"key\":\"b\",\"value\":1,\"ttl_ms\":9}\n")
        .expect("written");
    let ran = run(&fake.address, &["import", file.to_str().expect("UTF-8")]).await;
    assert!(ran.code == 3 && ran.err.contains("line 1: `ttl_ms` is 0: it has expired"), "{} {}", ran.code, ran.err);
    assert_eq!(fake.seen()[0].json()["ops"], json!([{"op": "insert", "key": "b", "value": 1, "ttl_ms": 9}]));
}

#[tokio::test]
async fn keys_that_are_no_text_go_out_and_come_back_each_as_itself() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let named = |base64: &str| {
        let mut entry = entry("", &json!(1), "7");
        entry.as_object_mut().expect("an object").remove("key");
        entry["key_base64"] = base64.into();
        entry
    };
    fake.script([page(&[entry("a/\u{FFFD}", &json!(1), "7"), named("YS/+"), named("YS//")])]);
    let file = home.path().join("all.ndjson");
    let path = file.to_str().expect("UTF-8");
    let ran = run(&fake.address, &["export", path, "--prefix", r"a/"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = run(&fake.address, &["import", path]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = fake.seen().pop().expect("a bulk").json();
    let op = |field: &str, key: &str| json!({"op": "insert", field: key, "value": 1});
    let expected = json!([op("key", "a/\u{FFFD}"), op("key_base64", "YS/+"), op("key_base64", "YS//")]);
    assert_eq!(sent["ops"], expected);
}

#[tokio::test]
async fn a_key_that_is_no_text_is_shown_and_taken_in_the_same_form() {
    let fake = Fake::start().await;
    let mut shown = entry("", &json!(1), "7");
    shown.as_object_mut().expect("an object").remove("key");
    shown["key_base64"] = "YS//".into();
    fake.script([page(std::slice::from_ref(&shown))]);
    let listed = run(&fake.address, &["list", r"a/\xff"]).await;
    assert_eq!((listed.code, listed.out.as_str()), (0, "a/\\xff  1  cas 7\n"), "{}", listed.err);
    assert!(fake.seen()[0].target.contains("prefix=a%2F%FF") || fake.seen()[0].target.contains("prefix=a/%FF"));
    fake.script([Act::Answer(200, shown.to_string())]);
    let got = run(&fake.address, &["get", r"a/\xff", "--output", "json"]).await;
    assert!(got.out.contains("\"key_base64\":\"YS//\""), "{}", got.out);
    let op = fake.seen()[1].op.clone().expect("an operation");
    assert_eq!(op.key.as_bytes(), b"a/\xFF");
}

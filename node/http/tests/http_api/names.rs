//! Keys that are no text: each is its bytes, in every place where one is given or shown.

use serde_json::{Value, json};

use crate::raw::{Server, post};

/// Three keys that look alike to who makes texts of them as best they can, and the key that they would become.
const KEYS: [(&str, &str); 4] =
    [("key", "e/\u{FFFD}"), ("key_base64", "ZS/9"), ("key_base64", "ZS/+"), ("key_base64", "ZS//")];
const PATHS: [&str; 4] = ["/v1/kv/e/%EF%BF%BD", "/v1/kv/e/%FD", "/v1/kv/e%2F%fe", "/v1/kv/e/%FF"];

async fn filled() -> Server {
    let server = Server::start().await;
    for (path, (field, key)) in PATHS.iter().zip(KEYS) {
        let made = server.put_json(path, r#"{"a":1}"#).await;
        assert_eq!((made.status, &made.json()[field]), (201, &json!(key)), "{}", made.text());
        assert_eq!(
            made.json().as_object().expect("an object").len(),
            6,
            "of its two forms one is there: {}",
            made.text()
        );
        // Where it can be read: the path as it is written by us.
        let location = made.header("location").expect("it was made").to_owned();
        assert_eq!(server.get(&location).await.json()[field], key);
    }
    server
}

/// The keys of entries, each in the field that it stands in.
fn keys(entries: &Value) -> Vec<(String, String)> {
    let of = |entry: &Value| {
        let named: Vec<_> = ["key", "key_base64"]
            .into_iter()
            .filter_map(|field| Some((field.to_owned(), entry[field].as_str()?.to_owned())))
            .collect();
        <[_; 1]>::try_from(named).unwrap_or_else(|named| panic!("{named:?} in {entry}"))
    };
    entries.as_array().expect("a list").iter().flat_map(of).collect()
}

fn all() -> Vec<(String, String)> {
    KEYS.map(|(field, key)| (field.to_owned(), key.to_owned())).into()
}

#[tokio::test]
async fn a_path_names_the_bytes_that_it_decodes_to() {
    let server = filled().await;
    for (path, (field, key)) in PATHS.iter().zip(KEYS) {
        let entry = server.get(path).await.json();
        assert_eq!((&entry[field], &entry["version"]), (&json!(key), &json!(1)));
        let patched =
            server.ask("PATCH", path, &[("content-type", "application/merge-patch+json")], br#"{"b":2}"#).await;
        assert_eq!((patched.status, &patched.json()[field]), (200, &json!(key)));
    }
    let gone = server.ask("DELETE", PATHS[2], &[], b"").await;
    assert_eq!((gone.status, &gone.json()["key_base64"]), (200, &json!("ZS/+")));
    let missing = server.get(PATHS[2]).await;
    assert_eq!(missing.status, 404);
    assert!(missing.problem().detail.contains(r"`e/\xfe`"), "{}", missing.text());
    let left = server.get("/v1/kv?prefix=e/").await.json();
    assert_eq!(keys(&left["entries"]), [&all()[..2], &all()[3..]].concat());
    // A part of a character is a name, too; half an escape is none.
    assert_eq!(server.put_json("/v1/kv/%C3", "1").await.json()["key_base64"], "ww==");
    assert_eq!(server.get("/v1/kv/%C").await.status, 400);
}

#[tokio::test]
async fn queries_name_bytes_and_pages_show_each_key_once() {
    let server = filled().await;
    let listed = server.get("/v1/kv?prefix=e/").await.json();
    assert_eq!(keys(&listed["entries"]), all());
    assert_eq!(keys(&server.get("/v1/kv?prefix=e/%FE").await.json()["entries"]), all()[2..3]);
    assert_eq!(keys(&server.get("/v1/kv?start=e/%FD&end=e/%FF").await.json()["entries"]), all()[1..3]);
    let mut paged = Vec::new();
    let mut target = "/v1/kv?prefix=e/&limit=1".to_owned();
    loop {
        let page = server.get(&target).await.json();
        paged.extend(keys(&page["entries"]));
        let Some(cursor) = page["cursor"].as_str() else { break };
        target = format!("/v1/kv?limit=1&cursor={cursor}");
    }
    assert_eq!(paged, all());
    for (fields, expected) in [(json!(["a"]), all()), (json!(["-a"]), all().into_iter().rev().collect())] {
        let mut found = Vec::new();
        let mut body = json!({"prefix": "e/", "order_by": fields, "limit": 1});
        loop {
            let page = post(&server, "/v1/find", body.clone()).await.json();
            found.extend(keys(&page["entries"]));
            let Some(cursor) = page["cursor"].as_str() else { break };
            body["cursor"] = cursor.into();
        }
        assert_eq!(found, expected);
    }
    for (path, pointer) in [("/v1/kv?cursor=%FF", "query:cursor"), ("/v1/kv?consistency=%FF", "query:consistency")] {
        let refused = server.get(path).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(pointer), "{}", refused.text());
    }
}

#[tokio::test]
async fn criteria_hold_of_the_key_that_they_name() {
    let server = filled().await;
    let of = |value: Value| json!({"prefix": "e/", "where": [{"field": "$key", "op": "eq", "value": value}]});
    for (value, (field, key)) in
        [(json!("e/\u{FFFD}"), KEYS[0]), (json!({"base64": "ZS/+"}), KEYS[2]), (json!({"base64": "ZS/vv70="}), KEYS[0])]
    {
        let found = post(&server, "/v1/find", of(value)).await.json();
        assert_eq!(keys(&found["entries"]), [(field.to_owned(), key.to_owned())]);
    }
    // What keys begin with need be no text either.
    let below = post(&server, "/v1/count", json!({"prefix_base64": "ZS/+"})).await.json();
    assert_eq!(below["count"], 1);
}

#[tokio::test]
async fn operations_alone_and_in_lists_are_about_the_key_that_they_name() {
    let server = filled().await;
    let get = post(&server, "/v1/ops", json!({"op": "get", "key_base64": "ZS//"})).await.json();
    assert_eq!((&get["key_base64"], &get["key"]), (&json!("ZS//"), &Value::Null));
    // Either form is taken of a text.
    let same = post(&server, "/v1/ops", json!({"op": "get", "key_base64": "ZS/vv70="})).await.json();
    assert_eq!(same["key"], "e/\u{FFFD}");
    let bulk = json!({"ops": [
        {"op": "insert", "key_base64": "ZS/+", "value": 1},
        {"op": "upsert", "key_base64": "ZS//", "value": 2, "prev": true},
        {"op": "remove", "key_base64": "ZS/8"},
    ]});
    let done = post(&server, "/v1/bulk", bulk).await.json();
    assert_eq!(
        keys(&done["results"]),
        [("key_base64", "ZS/+"), ("key_base64", "ZS//"), ("key_base64", "ZS/8")]
            .map(|(field, key)| (field.to_owned(), key.to_owned()))
    );
    assert_eq!((&done["skipped"], &done["applied"], &done["failed"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(done["results"][0]["current"]["key_base64"], "ZS/+");
    assert_eq!(done["results"][1]["prev"]["key_base64"], "ZS//");
    let twice = json!({"then": [{"op": "remove", "key_base64": "ZS/+"}, {"op": "remove", "key_base64": "ZS/+"}]});
    let refused = post(&server, "/v1/txn", twice).await;
    assert!(refused.text().contains(r"`e/\\xfe` is written before"), "{}", refused.text());
}

#[tokio::test]
async fn trails_are_of_the_key_that_is_named() {
    let server = filled().await;
    let trail = server.get("/v1/audit?key=e/%FE").await.json();
    assert_eq!((&trail["key_base64"], trail["lines"].as_array().map(Vec::len)), (&json!("ZS/+"), Some(1)));
    assert_eq!(server.get("/v1/audit?key=e/%EF%BF%BD").await.json()["key"], "e/\u{FFFD}");
}

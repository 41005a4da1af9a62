//! Mirrors over streams that break, end and are compacted.

use std::time::Duration;

use quorate_client::api::{WatchEnd, WatchEndCode};
use quorate_client::{Client, Error, MirrorChange};
use serde_json::{Value, json};

use crate::fake::{Act, Fake, entry};

fn initial(key: &str, value: &Value) -> String {
    let data = json!({"type": "put", "revision": 7, "key": key, "entry": entry(key, value, "7"), "initial": true});
    format!("event: put\ndata: {data}\n\n")
}

fn put(revision: u64, index: u32, key: &str, value: &Value, is_last: bool) -> String {
    let data =
        json!({"type": "put", "revision": revision, "index": index, "key": key, "entry": entry(key, value, "7")});
    let id = if is_last { format!("id: {revision}.{index}\n") } else { String::new() };
    format!("event: put\ndata: {data}\n{id}\n")
}

fn delete(revision: u64, key: &str) -> String {
    let data = json!({"type": "delete", "revision": revision, "index": 0, "key": key, "cause": "removed"});
    format!("event: delete\ndata: {data}\nid: {revision}.0\n\n")
}

fn at(name: &str, revision: u64) -> String {
    format!("event: {name}\nid: {revision}\ndata: {{\"revision\":{revision}}}\n\n")
}

fn compacted() -> String {
    let end =
        WatchEnd { code: WatchEndCode::Compacted, detail: "gone".into(), oldest_revision: Some(90), revision: None };
    format!("event: end\ndata: {}\n\n", serde_json::to_string(&end).expect("JSON"))
}

fn stream<const N: usize>(events: [String; N]) -> Act {
    Act::Answer(200, events.concat())
}

fn silent<const N: usize>(events: [String; N]) -> Act {
    Act::Silence(events.concat())
}

async fn fake() -> (Fake, Client) {
    let fake = Fake::start().await;
    let client =
        Client::builder().endpoints(&fake.address).timeout(Duration::from_secs(5)).build().expect("an endpoint");
    (fake, client)
}

#[tokio::test]
async fn a_mirror_shows_each_transaction_whole_and_goes_on_over_a_break() {
    let (fake, client) = fake().await;
    fake.script([
        stream([initial("u/a", &json!({"email": "a@x"})), initial("u/b", &json!({"email": "b@x"})), at("synced", 7)]),
        stream([put(8, 0, "u/a", &json!({"email": "b@x"}), false), put(8, 1, "u/c", &json!({"email": "c@x"}), true)]),
        silent([delete(9, "u/b")]),
    ]);
    let mirror =
        client.mirror("u/").index_by("email").heartbeat(Duration::from_secs(20)).start().await.expect("it is filled");
    let mut changes = mirror.changes();
    assert_eq!(mirror.wait_for(9).await.expect("comes"), 9);
    let keys: Vec<_> = mirror.list("").iter().map(|entry| entry.key.clone()).collect();
    assert_eq!(keys, ["u/a", "u/c"]);
    let found: Vec<_> = mirror.find_by("email", &json!("b@x")).iter().map(|entry| entry.key.clone()).collect();
    assert_eq!(found, ["u/a"]);
    assert!(mirror.try_find_by("name", &json!(1)).is_err());
    assert_eq!(mirror.get_json::<Value>("u/c").expect("JSON").expect("is there").content, json!({"email": "c@x"}));
    assert!(mirror.get("u/b").is_none() && mirror.trouble().is_none());
    let mut seen = Vec::new();
    for _ in 0..3 {
        let MirrorChange::Entry { key, entry, before, revision, .. } = changes.next().await else { panic!("an entry") };
        seen.push((key.to_string(), entry.is_some(), before.is_some(), revision));
    }
    let change = |key: &str, is: bool, was: bool, revision| (key.to_owned(), is, was, revision);
    assert_eq!(seen, [change("u/a", true, true, 8), change("u/c", true, false, 8), change("u/b", false, true, 9)]);
}

#[tokio::test]
async fn keys_that_are_no_text_are_kept_apart() {
    let (fake, client) = fake().await;
    let named = |text: String, base64: &str| text.replace(r#""key":"?""#, &format!(r#""key_base64":"{base64}""#));
    fake.script([
        stream([
            initial("e/\u{FFFD}", &json!(1)),
            named(initial("?", &json!(2)), "ZS/+"),
            named(initial("?", &json!(3)), "ZS//"),
            at("synced", 7),
        ]),
        silent([named(delete(8, "?"), "ZS/+")]),
    ]);
    let mirror = client.mirror("e/").heartbeat(Duration::from_secs(20)).start().await.expect("it is filled");
    assert_eq!(mirror.wait_for(8).await.expect("comes"), 8);
    let keys: Vec<_> = mirror.list("e/").iter().map(|entry| entry.key.to_string()).collect();
    assert_eq!(keys, ["e/\u{FFFD}", r"e/\xff"]);
    assert_eq!(mirror.get_json::<Value>(b"e/\xFF").expect("JSON").expect("is there").content, json!(3));
    assert!(mirror.get(b"e/\xFE").is_none());
}

#[tokio::test]
async fn what_was_compacted_is_filled_anew() {
    let (fake, client) = fake().await;
    fake.script([
        stream([initial("a", &json!(1)), at("synced", 7)]),
        stream([compacted()]),
        Act::Reset,
        silent([initial("b", &json!(2)), at("synced", 95)]),
    ]);
    let mirror = client.mirror("").heartbeat(Duration::from_secs(20)).start().await.expect("it is filled");
    let mut changes = mirror.changes();
    assert!(matches!(changes.next().await, MirrorChange::Resynced { revision: 95, .. }));
    assert_eq!(mirror.wait_for(95).await.expect("is there"), 95);
    assert!(mirror.get("a").is_none() && mirror.get("b").is_some() && mirror.len() == 1);
    let asked = fake.seen();
    assert!(asked.iter().all(|seen| seen.target.contains("initial=true")), "{asked:?}");
}

#[tokio::test]
async fn a_mirror_that_does_not_get_there_says_how_far_it_is() {
    let fake = Fake::start().await;
    let builder = Client::builder().endpoints(&fake.address).timeout(Duration::from_millis(200));
    let client = builder.build().expect("an endpoint");
    fake.script([silent([initial("a", &json!(1)), at("synced", 7)])]);
    let mirror = client.mirror("").heartbeat(Duration::from_secs(20)).start().await.expect("it is filled");
    assert_eq!(mirror.sync().await.expect("the fake's list is of revision 7"), 7);
    let error = mirror.wait_for(8).await.expect_err("nothing comes");
    assert!(matches!(error, Error::Behind { revision: 8, reached: 7, .. }), "{error:?}");
    assert_eq!(error.code(), Some(quorate_client::api::ErrorCode::Timeout));
    assert!(error.is_retryable() && error.to_string().contains("at revision 7, not yet at 8"), "{error}");
}

#[tokio::test]
async fn a_mirror_that_is_dropped_asks_no_more() {
    let (fake, client) = fake().await;
    fake.script([silent([at("synced", 7)])]);
    let mirror = client.mirror("").start().await.expect("it is filled");
    let changes = mirror.changes();
    drop((mirror, changes));
    fake.hang_up().await;
    client.put_json("k", &1).await.expect("works");
    assert_eq!(fake.seen().iter().filter(|seen| seen.target.starts_with("/v1/watch")).count(), 1);
}

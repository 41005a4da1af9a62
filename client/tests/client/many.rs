//! Changes by criteria, claims, collections and reads that write through the Rust client.

use futures::TryStreamExt;
use quorate_client::api::{Applied, CollectionRules, ErrorCode, IndexRule, Operator};
use quorate_client::{Cas, Error, RequestId, Value};
use serde_json::json;
use std::time::Duration;

use crate::fake::{Act, Fake, entry};

fn one() -> Value {
    Value::json(&1).expect("has JSON")
}

fn ok(answer: serde_json::Value) -> Act {
    Act::Answer(200, answer.to_string())
}

#[tokio::test]
async fn each_part_of_a_change_by_criteria_has_an_id_that_follows_from_the_first() {
    let (fake, client) = Fake::with_client().await;
    let part = |cursor: Option<&str>| {
        let mut part = json!({"matched": 1, "applied": 1, "skipped": 0, "failed": 0, "examined": 9, "results": [], "revision": "8", "index": 9});
        if let Some(cursor) = cursor {
            part["cursor"] = json!(cursor);
        }
        ok(part)
    };
    fake.script([part(Some("c1")), part(Some("c2")), Act::Reset, part(None)]);
    let id: RequestId = "nightly".parse().expect("an id");
    let delete = client.delete_where("o/").filter("n", Operator::Gt, 1).request_id(id);
    let parts: Vec<_> = delete.parts().try_collect().await.expect("works");
    assert_eq!(parts.len(), 3);
    let asked: Vec<_> = fake.seen().iter().map(|seen| (seen.id.clone(), seen.json()["cursor"].clone())).collect();
    let id = |id: &str| Some(id.to_owned());
    let expected = [(id("nightly"), json!(null)), (id("nightly-1"), json!("c1")), (id("nightly-2"), json!("c2"))];
    assert_eq!((&asked[..3], &asked[3]), (&expected[..], &expected[2]), "the last part took two tries");
    assert_eq!(fake.seen()[0].target, "/v1/delete_where");
}

#[tokio::test]
async fn what_is_done_to_a_claimed_entry_carries_the_key_to_its_lock() {
    let (fake, client) = Fake::with_client().await;
    let entries = json!([entry("jobs/j1", &json!({"n": 1}), "17"), entry("jobs/j2", &json!({"n": 2}), "17")]);
    let answer = json!({"entries": entries, "count": 2, "examined": 2, "more": false, "revision": "17", "index": 20});
    fake.script([ok(answer)]);
    let claims = client.claim("jobs/").order_by("-n").limit(2).lock_time(Duration::from_secs(20)).await.expect("works");
    assert_eq!(claims.len(), 2);
    let jobs: Vec<_> = claims.into_iter().collect();
    assert_eq!(jobs[0].json::<serde_json::Value>().expect("JSON"), json!({"n": 1}));
    jobs[0].extend(Duration::from_secs(30)).await.expect("works");
    jobs[0].replace(one()).await.expect("works");
    jobs[1].patch(Value::json(&json!({"n": 3})).expect("has JSON")).await.expect("works");
    jobs[1].release().await.expect("works");
    jobs[1].complete().await.expect("works");
    let done: Vec<_> =
        fake.seen()[1..].iter().map(|seen| (seen.json()["op"].clone(), seen.json()["key"].clone())).collect();
    let expected = [("extend", 1), ("replace", 1), ("update", 2), ("unlock", 2), ("remove", 2)];
    assert_eq!(done, expected.map(|(op, number)| (json!(op), json!(format!("jobs/j{number}")))));
    assert!(fake.seen()[1..].iter().all(|seen| seen.cas() == Some("17")), "{:?}", fake.seen());
}

#[tokio::test]
async fn without_a_key_nothing_is_done_to_a_claimed_entry() {
    let (fake, client) = Fake::with_client().await;
    let mut job = entry("jobs/j1", &json!(1), "17");
    job["cas"] = json!(null);
    fake.script([ok(json!({"entries": [job], "count": 1, "examined": 1, "more": false, "revision": "17", "index": 20, "dry_run": true}))]);
    let job = client.claim("jobs/").dry_run().await.expect("works").first().expect("there is one");
    assert!(matches!(job.complete().await, Err(Error::Invalid(_))));
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn collections_are_declared_on_their_token_and_read_back() {
    let (fake, client) = Fake::with_client().await;
    let rules = CollectionRules { indexes: vec![IndexRule::unique(["email"])], ..CollectionRules::default() };
    let answer = json!({"name": "eu users/new", "rules": rules, "cas": "5", "create_revision": "5", "mod_revision": "5", "version": 1,
        "indexes": [{"fields": ["email"], "unique": true, "state": "ready"}], "revision": "5", "index": 6});
    fake.script([Act::Reset, ok(answer.clone()), Act::problem(ErrorCode::NotFound, Applied::No), ok(answer)]);
    let users = client.collection("eu users/new");
    assert_eq!(users.put(rules.clone()).if_absent().await.expect("works").rules, rules);
    assert_eq!(users.get().await.expect("works"), None);
    users.delete().cas(Cas::new(5)).await.expect("works");
    assert!(matches!(users.delete().if_absent().await, Err(Error::Invalid(_))));
    let seen = fake.seen();
    assert!(seen.iter().all(|seen| seen.target == "/v1/collections/eu%20users/new"), "{seen:?}");
    assert!(seen[0].id.is_some() && seen[0].id == seen[1].id);
    assert_eq!((seen[1].header("if-none-match"), seen[3].header("if-match")), (Some("*"), Some("\"5\"")));
    assert_eq!((seen[1].method.as_str(), seen[3].method.as_str()), ("PUT", "DELETE"));
}

#[tokio::test]
async fn get_and_touch_gives_the_entry_as_get_does() {
    let (fake, client) = Fake::with_client().await;
    let mut answer = entry("k", &json!({"n": 1}), "7");
    (answer["ttl_ms"], answer["revision"], answer["index"]) = (json!(5_000), json!("9"), json!(11));
    fake.script([ok(answer)]);
    let entry = client.get_and_touch("k", Duration::from_secs(5)).await.expect("works");
    assert_eq!((entry.ttl_ms, entry.cas), (Some(5_000), Some(Cas::new(7))));
    assert!(fake.seen()[0].id.is_some(), "it is a write");
}

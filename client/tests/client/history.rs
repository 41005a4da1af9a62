//! The history of an entry: its audit trail, and reads of what it was.

use futures::TryStreamExt;
use quorate_client::Version;
use quorate_client::api::ErrorCode;
use quorate_client::api::{Applied, Problem};
use serde_json::{Value, json};

use crate::fake::{Act, Fake, entry};

fn answer(body: &Value) -> Act {
    Act::Answer(200, body.to_string())
}

fn line(revision: u64, effect: &str) -> Value {
    json!({"revision": revision.to_string(), "index": revision, "time": "2026-11-21T08:00:00.000Z", "op": "upsert", "effect": effect,
        "principal": "ann"})
}

/// A trail of two pages: four versions of the entry, and lines that make none.
async fn node_with_a_history() -> (Fake, quorate_client::Client) {
    let (fake, client) = Fake::with_client().await;
    let trail = |lines: &[Value], cursor: Option<&str>| {
        let mut trail = json!({"key": "k", "lines": lines, "oldest_revision": "2", "revision": "20", "index": 30});
        cursor.into_iter().for_each(|cursor| trail["cursor"] = json!(cursor));
        answer(&trail)
    };
    fake.always(
        "?key=k",
        trail(&[line(3, "changed"), line(4, "refused"), line(5, "relocked"), line(6, "removed")], Some("c")),
    );
    fake.always("?key=k&cursor=c", trail(&[line(7, "changed"), line(8, "changed")], None));
    for revision in [3, 7, 8] {
        fake.always(&format!("/k?revision={revision}"), answer(&entry("k", &json!(revision), &revision.to_string())));
    }
    (fake, client)
}

/// Revision and value of each.
fn shown(versions: &[Version]) -> Vec<(u64, Option<u64>)> {
    let value = |version: &Version| version.entry.as_ref().map(|entry| entry.json().expect("a number"));
    versions.iter().map(|version| (version.change.revision, value(version))).collect()
}

#[tokio::test]
async fn it_has_every_version_with_its_value_in_order() {
    let (_fake, client) = node_with_a_history().await;
    let pages: Vec<_> = client.history("k").pages().try_collect().await.expect("a history");
    assert_eq!(shown(&pages[0].versions), [(3, Some(3)), (6, None)]);
    assert_eq!(shown(&pages[1].versions), [(7, Some(7)), (8, Some(8))]);
    assert_eq!((pages.len(), pages[0].oldest_revision, pages[0].revision), (2, 2, 20));
    let second = client.history("k").page_after("c").await.expect("a page");
    assert_eq!(second, pages[1]);
    assert_eq!(second.versions[0].change.principal.as_deref(), Some("ann"));
}

#[tokio::test]
async fn the_last_versions_are_read_and_no_others() {
    let (fake, client) = node_with_a_history().await;
    let last = client.history("k").last(2).await.expect("a history");
    assert_eq!(shown(&last), [(7, Some(7)), (8, Some(8))]);
    assert!(fake.seen_at("/k?revision=3").is_empty(), "{:?}", fake.seen());
    assert_eq!(client.history("k").last(0).await.expect("none"), []);
    assert_eq!(shown(&client.history("k").last(9).await.expect("all")).len(), 4);
}

#[tokio::test]
async fn it_begins_where_it_is_told_and_ends_where_a_version_is_gone() {
    let (fake, client) = node_with_a_history().await;
    let empty = json!({"key": "k", "lines": [], "oldest_revision": "2", "revision": "20", "index": 30});
    fake.always("?key=k&from=9", answer(&empty));
    assert!(client.history("k").from(9).page().await.expect("a page").versions.is_empty());
    fake.always("/k?revision=3", Act::refuse(Problem::new(ErrorCode::Compacted, Applied::No, "gone")));
    let error = client.history("k").page().await.expect_err("it is compacted");
    assert_eq!(error.code(), Some(ErrorCode::Compacted), "{error:?}");
}

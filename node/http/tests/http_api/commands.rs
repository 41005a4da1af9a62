//! Commands that are not about one entry: what is asked of the cluster, and replies that few requests lead to. Transcripts show the rest.

use quorate_api::{Cas, ClaimAnswer, WhereAnswer};
use quorate_machine::document::path::Path;
use quorate_machine::types::{
    Action, ClaimReply, ContentKind, Entry, EntryMeta, Key, Outcome, Rejection, Shown, Value, WhereChange, WhereItem,
    WhereReply,
};
use quorate_node_core::backend::Consistency;
use serde_json::json;

use crate::raw::{Server, post, read};

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

fn locked_entry(data: &[u8]) -> Entry {
    let meta = EntryMeta {
        create_revision: 5,
        mod_revision: 7,
        version: 2,
        cas: 9,
        expires_at: None,
        locked_until: Some(16_000),
        session: None,
    };
    Entry { meta, value: Value { kind: ContentKind::Json, data: data.to_vec() } }
}

#[tokio::test]
async fn a_change_of_all_that_matches_says_that_results_are_left_out_and_writes_nothing_when_it_is_tried() {
    let server = Server::start().await;
    let tried = json!({"prefix": "", "where": [], "patch": {"a": 1}, "dry_run": true});
    assert!(read::<WhereAnswer>(&post(&server, "/v1/update_where", tried).await).dry_run);
    assert_eq!(server.backend.commands(), [], "a dry run is no command");
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable]);
    let reply = WhereReply { matched: 1, failed: 1, left_out: true, ..WhereReply::default() };
    server.backend.come_to(Outcome::Where(reply));
    let retried: WhereAnswer = read(&post(&server, "/v1/delete_where", json!({"prefix": "", "where": []})).await);
    assert_eq!((retried.failed, retried.results.len(), retried.left_out), (1, 0, true), "there were some");
    let Action::Where(op) = server.last_action() else { panic!("not a change of all that matches") };
    assert_eq!((op.change, op.limit), (WhereChange::Remove, 1_000));
}

#[tokio::test]
async fn a_claim_shows_the_keys_to_its_locks() {
    let server = Server::start().await;
    let bare = Shown::Whole(locked_entry(b"{\"a\":1}")).to_bare();
    let entries = vec![(key("j/1"), Shown::Whole(locked_entry(b"{\"a\":1}"))), (key("j/2"), bare)];
    let index = Some(vec![Path::parse("due").expect("a path"), Path::parse("a.b").expect("a path")]);
    let refused = vec![WhereItem { n: 0, key: key("j/0"), why: Rejection::PreconditionRequired }];
    server.backend.come_to(Outcome::Claimed(ClaimReply {
        entries,
        refused,
        left_out: false,
        examined: 7,
        more: true,
        index,
    }));
    let body = json!({"prefix": "j/", "order_by": ["-due"], "limit": 2, "lock_ms": 30_001, "patch": {"x": 1}});
    let answer: ClaimAnswer = read(&post(&server, "/v1/claim", body).await);
    assert_eq!((answer.count, answer.examined, answer.more), (2, 7, true));
    assert_eq!(
        (answer.failed.len(), answer.failed[0].key.text(), answer.failed[0].status),
        (1, Some("j/0"), Some(428))
    );
    assert_eq!(answer.index_used, Some(vec!["due".to_owned(), "a.b".to_owned()]));
    for entry in &answer.entries {
        assert_eq!((entry.cas, entry.locked, entry.lock_ms), (Some(Cas::new(9)), true, Some(15_000)));
    }
    assert_eq!(answer.entries[0].value.as_ref().map(|value| value.0.get()), Some("{\"a\":1}"));
    assert_eq!((&answer.entries[1].value, &answer.entries[1].value_base64), (&None, &None));
    let Action::Claim(op) = server.last_action() else { panic!("not a claim") };
    assert_eq!((op.limit, op.lock_ms, op.order.by_key()), (2, 15_000, None));
    for (asked, lock_ms) in [(json!(0), 15_000), (json!(30_000), 30_000), (json!(1), 1)] {
        let answer: ClaimAnswer = read(&post(&server, "/v1/claim", json!({"prefix": "", "lock_ms": asked})).await);
        assert_eq!((answer.count, answer.index_used), (0, None), "nothing found is no failure");
        let Action::Claim(op) = server.last_action() else { panic!("not a claim") };
        assert_eq!((op.limit, op.lock_ms, op.order.by_key()), (1, lock_ms, Some(false)));
    }
}

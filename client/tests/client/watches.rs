//! Watches against nodes whose streams break off, end and fall silent.

use std::time::{Duration, Instant};

use quorate_client::api::{Applied, ErrorCode, Problem, WatchEnd, WatchEndCode, WatchEventKind};
use quorate_client::{Client, Error, FailureKind, Watch, Watched};
use serde_json::json;

use crate::fake::{Act, Fake, entry, nobody};

/// A change; with an id where it is the last of its revision.
fn event(revision: u64, index: u32, is_last: bool) -> String {
    let data = json!({
        "type": "put", "revision": revision, "index": index, "key": "k", "entry": entry("k", &json!(1), "7"),
    });
    let id = if is_last { format!("id: {revision}.{index}\n") } else { String::new() };
    format!("event: put\ndata: {data}\n{id}\n")
}

fn initial(key: &str) -> String {
    let data =
        json!({"type": "put", "revision": "7", "key": key, "entry": entry(key, &json!(1), "7"), "initial": true});
    format!("event: put\ndata: {data}\n\n")
}

fn progress(name: &str, revision: u64) -> String {
    format!("event: {name}\nid: {revision}\ndata: {{\"revision\":{revision}}}\n\n")
}

fn end(code: WatchEndCode) -> String {
    let end = WatchEnd { code, detail: "as the script says".into(), oldest_revision: Some(90), revision: Some(3) };
    format!("event: end\ndata: {}\n\n", serde_json::to_string(&end).expect("JSON"))
}

fn stream(events: impl IntoIterator<Item = String>) -> Act {
    Act::Answer(200, events.into_iter().collect())
}

async fn revisions(watch: &mut Watch, count: usize) -> Vec<(u64, Option<u32>)> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let event = watch.next().await.expect("an event").event().expect("an event");
        seen.push((event.revision, event.index));
    }
    seen
}

/// `Last-Event-ID` of each stream asked for.
fn resumed(fake: &Fake) -> Vec<Option<String>> {
    fake.seen().iter().map(|seen| seen.header("last-event-id").map(str::to_owned)).collect()
}

#[tokio::test]
async fn what_did_not_come_whole_comes_again_and_nothing_comes_twice() {
    let (fake, client) = Fake::with_client().await;
    fake.script([
        stream([event(8, 0, true), event(9, 0, false), event(9, 1, false)]),
        stream([event(9, 0, false), event(9, 1, false), event(9, 2, true), event(10, 0, true)]),
        Act::Reset,
        stream([progress("progress", 20)]),
        stream([event(21, 0, true)]),
    ]);
    let mut watch = client.watch("a b").start().await.expect("it begins");
    let seen = revisions(&mut watch, 6).await;
    assert_eq!(seen, [(8, Some(0)), (9, Some(0)), (9, Some(1)), (9, Some(2)), (10, Some(0)), (21, Some(0))]);
    assert_eq!(watch.revision(), Some(21));
    assert_eq!(resumed(&fake), [None, Some("8".into()), Some("10".into()), Some("10".into()), Some("20".into())]);
    assert!(fake.seen().iter().all(|seen| seen.target == "/v1/watch?prefix=a%20b&heartbeat_ms=5000"));
}

#[tokio::test]
async fn a_watch_from_now_on_knows_where_now_was() {
    let (fake, client) = Fake::with_client().await;
    fake.script([stream([]), stream([event(8, 0, true)])]);
    let mut watch = client.watch("").start().await.expect("it begins");
    assert_eq!(watch.revision(), Some(7));
    assert_eq!(revisions(&mut watch, 1).await, [(8, Some(0))]);
    assert_eq!(resumed(&fake), [None, Some("7".into())]);
    fake.script([stream([]), stream([event(5, 0, true)])]);
    let mut watch = client.watch("").from(5).start().await.expect("it begins");
    assert_eq!(revisions(&mut watch, 1).await, [(5, Some(0))]);
    assert_eq!(resumed(&fake)[2..], [None, Some("4".into())]);
}

#[tokio::test]
async fn it_goes_on_after_each_end_but_that_of_its_history() {
    let (fake, client) = Fake::with_client().await;
    fake.script([
        stream([event(8, 0, true), end(WatchEndCode::Stopping)]),
        stream([event(9, 0, true), end(WatchEndCode::NoLeader)]),
        stream([event(10, 0, true), event(11, 0, false), end(WatchEndCode::SlowConsumer)]),
        stream([event(11, 0, false), end(WatchEndCode::Compacted)]),
    ]);
    let mut watch = client.watch("").start().await.expect("it begins");
    assert_eq!(revisions(&mut watch, 3).await, [(8, Some(0)), (9, Some(0)), (10, Some(0))]);
    match watch.next().await {
        Err(Error::Rejected(problem)) => {
            assert_eq!((problem.code, problem.oldest_revision), (ErrorCode::Compacted, Some(90)));
        }
        other => panic!("{other:?}"),
    }
    let mut problem = Problem::new(ErrorCode::Compacted, Applied::No, "as the script says");
    problem.oldest_revision = Some(90);
    fake.script([Act::refuse(problem)]);
    let error = watch.next().await.expect_err("that is still so");
    assert_eq!((error.code(), error.applied()), (Some(ErrorCode::Compacted), Applied::No));
    assert_eq!(resumed(&fake).last().expect("some"), &Some("10".to_owned()));
}

#[tokio::test]
async fn a_silent_stream_is_left() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Silence(event(8, 0, true)), stream([event(9, 0, true)])]);
    let mut watch = client.watch("").heartbeat(Duration::from_millis(500)).start().await.expect("it begins");
    assert_eq!(revisions(&mut watch, 1).await, [(8, Some(0))]);
    let began = Instant::now();
    // Given up again and again, as in a select: that must not make a silent stream look alive for ever.
    assert!(tokio::time::timeout(Duration::from_millis(100), watch.next()).await.is_err());
    assert_eq!(revisions(&mut watch, 1).await, [(9, Some(0))]);
    assert!(began.elapsed() >= Duration::from_millis(1_500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn initial_entries_come_anew_where_their_stream_broke() {
    let (fake, client) = Fake::with_client().await;
    fake.script([
        stream([initial("a")]),
        stream([initial("a"), initial("b"), progress("synced", 7)]),
        stream([event(8, 0, true)]),
    ]);
    let mut watch = client.watch("").initial().start().await.expect("it begins");
    assert_eq!(watch.revision(), None);
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(match watch.next().await.expect("goes on") {
            Watched::Event(event) if event.initial => event.key.to_string(),
            Watched::Event(event) => event.revision.to_string(),
            Watched::Synced(revision) => format!("synced {revision}"),
            Watched::Restarted => "restarted".into(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["a", "restarted", "a", "b", "synced 7", "8"]);
    assert_eq!(resumed(&fake), [None, None, Some("7".into())]);
}

#[tokio::test]
async fn another_node_goes_on_where_one_is_gone_and_the_first_try_has_a_deadline() {
    let (gone, fake) = (nobody(), Fake::start_as(2).await);
    let client = Client::new(format!("{gone},{}", fake.address)).expect("endpoints");
    fake.script([stream([event(8, 0, true)]), stream([event(9, 0, true)])]);
    let mut watch = client.watch("").start().await.expect("one node is there");
    assert_eq!(revisions(&mut watch, 2).await, [(8, Some(0)), (9, Some(0))]);
    let client = Client::builder().endpoints(&gone).timeout(Duration::from_millis(300)).build().expect("an endpoint");
    let error = client.watch("").start().await.expect_err("nobody is there");
    assert!(
        matches!(&error, Error::Unavailable(gave_up) if matches!(gave_up.last.kind, FailureKind::Connect(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn all_wishes_stand_in_the_url() {
    let (fake, client) = Fake::with_client().await;
    let criterion = quorate_client::api::Criterion::new("n", quorate_client::api::Operator::Eq, 1);
    let setup = client.watch("").range("a", Some("b/c".into())).filter(&criterion).only(WatchEventKind::Delete);
    setup.prev().keys_only().local().initial().start().await.expect("it begins");
    client.watch("").key("k").start().await.expect("it begins");
    let targets: Vec<_> = fake.seen().into_iter().map(|seen| seen.target).collect();
    let wanted = "/v1/watch?start=a&end=b/c&where=%5B%7B%22field%22%3A%22n%22%2C%22op%22%3A%22eq%22%2C%22value%22%3A1%7D%5D\
        &events=delete&prev=true&keys_only=true&consistency=local&initial=true&heartbeat_ms=5000";
    assert_eq!(targets, [wanted, "/v1/watch?key=k&heartbeat_ms=5000"]);
}

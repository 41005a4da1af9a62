//! The client without a runtime of its own.

use quorate_client::api::{Applied, ErrorCode};
use quorate_client::blocking::{Client, Run, RunIter, handler};
use quorate_client::{Cas, Error, Op, TaskError, Watched};
use serde_json::{Value, json};

use crate::fake::{Act, Fake};
use crate::workers::{claimed, settled};

/// A fake that lives on a runtime of another thread, as a real node would.
struct Elsewhere {
    fake: Fake,
    _runtime: tokio::runtime::Runtime,
}

fn elsewhere() -> (Elsewhere, Client) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (fake, client) = runtime.block_on(Fake::with_client());
    (Elsewhere { fake, _runtime: runtime }, client)
}

#[test]
fn everyday_calls_block_until_they_are_answered() {
    let (node, client) = elsewhere();
    assert_eq!(client.put_json("k", &json!({"n": 1})).run().expect("written").cas, Some(Cas::new(8)));
    assert_eq!(client.get_json::<Value>("k").run().expect("read").expect("is there").content, json!({"n": 1}));
    client.cas_json("k", Cas::new(8), &json!(2)).run().expect("written");
    client.remove("k").run().expect("removed");
    assert_eq!(client.bulk().push(Op::remove("a")).run().expect("works").applied, 1);
    let pages: Result<Vec<_>, Error> = client.list("").pages().run_iter().collect();
    assert_eq!(pages.expect("one page").len(), 1);
    node.fake.script([Act::problem(ErrorCode::CasMismatch, Applied::No)]);
    let error = client.cas_json("k", Cas::new(7), &json!(2)).run().expect_err("refused");
    assert_eq!(error.code(), Some(ErrorCode::CasMismatch));
    let bumped = client.update("k", |n: Option<Value>| n.map(|_| json!(2))).tries(3).run().expect("works");
    assert_eq!(bumped.written(), Some(json!(2)));
}

#[test]
fn a_session_is_renewed_while_its_thread_does_something_else() {
    let (node, client) = elsewhere();
    let session = client.session().ttl(std::time::Duration::from_millis(900)).run().expect("starts");
    let lock = session.lock("l").acquire().run().expect("granted");
    node.fake.asked("/renew", 2).run();
    client.put_json("k", &1).guarded_by(&lock).run().expect("written");
    lock.release().run().expect("released");
    session.end().run().expect("ended");
}

#[test]
fn a_watch_is_an_iterator() {
    let (node, client) = elsewhere();
    let synced = "event: synced\nid: 7\ndata: {\"revision\":7}\n\n".to_owned();
    node.fake.script([Act::Silence(synced)]);
    let watch = client.watch("a/").initial().start().run().expect("begins");
    let first = watch.into_stream().run_iter().next().expect("goes on").expect("an event");
    assert_eq!(first, Watched::Synced(7));
}

#[test]
fn a_handler_that_blocks_has_a_thread_and_may_itself_block_on_the_cluster() {
    let (node, client) = elsewhere();
    for (path, answer) in [("/claim", claimed(&["good", "bad"])), ("/complete", settled()), ("/fail", settled())] {
        node.fake.always(path, answer);
    }
    let (go, ready) = tokio::sync::watch::channel(false);
    let inner = client.clone();
    let work = handler(move |run| {
        drop(ready.clone().wait_for(|go| *go).run());
        inner.put_json("seen", run.task().id()).run()?;
        if run.task().id() == "bad" { Err(TaskError::new("no")) } else { Ok(()) }
    });
    let all = async {
        node.fake.asked("/claim", 1).await;
        node.fake.always("/claim", claimed(&[]));
        go.send_replace(true);
        node.fake.asked("/complete", 1).await;
        node.fake.asked("/fail", 1).await;
    };
    let report = client.tasks("q").worker().concurrency(2).run_until(all, work).run().expect("stops");
    assert_eq!((report.completed, report.failed), (1, 1));
    assert_eq!(node.fake.seen().iter().filter(|seen| seen.body.contains("seen")).count(), 2);
}

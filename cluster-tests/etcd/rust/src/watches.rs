//! Watches. This client hands frames on as they come, so their flags are seen.

use std::time::Duration;

use etcd_client::{
    Client, ConnectOptions, Error, EventType, Txn, TxnOp, WatchFilterType, WatchOptions, WatchResponse, WatchStream,
};

use crate::{Context, Outcome, cases};

cases! {
    watch, watches_on_one_stream, from_a_revision, from_a_future_revision, entries_as_they_were, filters,
    one_revision_in_one_frame, fragments, progress, cancelling, what_is_refused, from_a_compacted_revision,
    with_a_leader_required,
}

async fn next(stream: &mut WatchStream) -> Result<WatchResponse, Error> {
    let frame = tokio::time::timeout(Duration::from_secs(10), stream.message()).await.expect("a frame within 10 s")?;
    Ok(frame.expect("the stream goes on"))
}

/// Starts a watch and takes the frame that says so.
async fn started(of: &Context, key: String, options: WatchOptions) -> Result<WatchStream, Error> {
    let mut stream = of.etcd.clone().watch(key, Some(options)).await?;
    let frame = next(&mut stream).await?;
    assert!(frame.created() && !frame.canceled() && frame.events().is_empty(), "{frame:?}");
    let header = frame.header().expect("a header");
    assert!(header.revision() > 0 && header.cluster_id() != 0 && header.member_id() != 0 && header.raft_term() > 0);
    Ok(stream)
}

/// Values of the next events, until there are as many as wanted.
async fn values(stream: &mut WatchStream, count: usize) -> Result<Vec<String>, Error> {
    let mut seen = Vec::new();
    while seen.len() < count {
        for event in next(stream).await?.events() {
            seen.push(event.kv().expect("an entry").value_str()?.to_owned());
        }
    }
    Ok(seen)
}

async fn watch(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.at.clone(), WatchOptions::new().with_prefix()).await?;
    let revision = of.put("a", "one").await?;
    let frame = next(&mut stream).await?;
    assert!(!frame.created() && !frame.canceled());
    assert_eq!(frame.header().expect("a header").revision(), revision);
    let [event] = frame.events() else { panic!("other events: {frame:?}") };
    let entry = event.kv().expect("an entry");
    assert_eq!(
        (event.event_type(), entry.key_str()?, entry.mod_revision(), entry.version()),
        (EventType::Put, of.key("a").as_str(), revision, 1)
    );
    assert!(event.prev_kv().is_none());
    let deleted = of.etcd.delete(of.key("a"), None).await?.header().expect("a header").revision();
    let frame = next(&mut stream).await?;
    let entry = frame.events()[0].kv().expect("an entry");
    assert_eq!(frame.events()[0].event_type(), EventType::Delete);
    assert_eq!(
        (entry.mod_revision(), entry.version(), entry.create_revision(), entry.value()),
        (deleted, 0, 0, &b""[..])
    );
    Ok(())
}

async fn watches_on_one_stream(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_watch_id(7)).await?;
    stream.watch(of.key("b"), None).await?;
    let second = next(&mut stream).await?;
    assert!(second.created() && second.watch_id() != 7);
    of.put("a", "one").await?;
    let frame = next(&mut stream).await?;
    assert_eq!((frame.watch_id(), frame.events().len()), (7, 1));
    of.put("b", "two").await?;
    assert_eq!(next(&mut stream).await?.watch_id(), second.watch_id());
    Ok(())
}

async fn from_a_revision(mut of: Context) -> Outcome {
    of.put("a", "one").await?;
    let start = of.put("a", "two").await?;
    of.put("a", "three").await?;
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_start_revision(start)).await?;
    assert_eq!(values(&mut stream, 2).await?, ["two", "three"]);
    of.put("a", "four").await?;
    assert_eq!(values(&mut stream, 1).await?, ["four"]);
    Ok(())
}

async fn from_a_future_revision(mut of: Context) -> Outcome {
    let now = of.put("a", "zero").await?;
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_start_revision(now + 3)).await?;
    let mut wanted = Vec::new();
    for number in 1..=5 {
        if of.put("a", &number.to_string()).await? >= now + 3 {
            wanted.push(number.to_string());
        }
    }
    assert!(!wanted.is_empty());
    assert_eq!(values(&mut stream, wanted.len()).await?, wanted);
    Ok(())
}

async fn entries_as_they_were(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_prev_key()).await?;
    of.put("a", "one").await?;
    of.put("a", "two").await?;
    of.etcd.delete(of.key("a"), None).await?;
    let mut before = Vec::new();
    while before.len() < 3 {
        before.extend(
            next(&mut stream).await?.events().iter().map(|event| event.prev_kv().map(|entry| entry.value().to_vec())),
        );
    }
    assert_eq!(before, [None, Some(b"one".to_vec()), Some(b"two".to_vec())]);
    Ok(())
}

async fn filters(mut of: Context) -> Outcome {
    let mut puts = started(&of, of.key("a"), WatchOptions::new().with_filters([WatchFilterType::NoDelete])).await?;
    let mut deletes = started(&of, of.key("a"), WatchOptions::new().with_filters([WatchFilterType::NoPut])).await?;
    of.put("a", "one").await?;
    of.etcd.delete(of.key("a"), None).await?;
    of.put("a", "two").await?;
    assert_eq!(values(&mut puts, 2).await?, ["one", "two"]);
    assert_eq!(next(&mut deletes).await?.events()[0].event_type(), EventType::Delete);
    Ok(())
}

async fn one_revision_in_one_frame(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.at.clone(), WatchOptions::new().with_prefix()).await?;
    let puts: Vec<_> = (0..100).map(|number| TxnOp::put(of.key(&format!("{number:03}")), "x", None)).collect();
    of.etcd.txn(Txn::new().and_then(puts)).await?;
    let frame = next(&mut stream).await?;
    assert_eq!(frame.events().len(), 100, "a revision is not split unless fragments were asked for");
    let revisions: Vec<_> = frame.events().iter().map(|event| event.kv().expect("an entry").mod_revision()).collect();
    assert!(revisions.iter().all(|revision| *revision == revisions[0]));
    Ok(())
}

async fn fragments(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.at.clone(), WatchOptions::new().with_prefix().with_fragment()).await?;
    for round in 0..5 {
        let puts: Vec<_> =
            (0..10).map(|number| TxnOp::put(of.key(&format!("{round}-{number}")), "x".repeat(100_000), None)).collect();
        of.etcd.txn(Txn::new().and_then(puts)).await?;
    }
    assert_eq!(values(&mut stream, 50).await?.len(), 50);
    Ok(())
}

/// The frame asked for says that everything up to its revision was sent.
async fn progress(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.key("a"), WatchOptions::new()).await?;
    let other = of.put("b", "not watched").await?;
    stream.request_progress().await?;
    let mut frame = next(&mut stream).await?;
    // A member that is behind says so first.
    while frame.header().expect("a header").revision() < other {
        stream.request_progress().await?;
        frame = next(&mut stream).await?;
    }
    assert_eq!((frame.watch_id(), frame.created(), frame.canceled(), frame.events().len()), (-1, false, false, 0));
    Ok(())
}

async fn cancelling(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_watch_id(5)).await?;
    // One that is not there changes nothing.
    stream.cancel(99).await?;
    of.put("a", "one").await?;
    assert_eq!(values(&mut stream, 1).await?, ["one"]);
    stream.cancel(5).await?;
    let frame = next(&mut stream).await?;
    assert!(
        frame.canceled() && !frame.created() && frame.watch_id() == 5 && frame.compact_revision() == 0,
        "{frame:?}"
    );
    of.put("a", "two").await?;
    // The stream stays; another watch may begin on it.
    stream.watch(of.key("b"), None).await?;
    assert!(next(&mut stream).await?.created(), "an event of the cancelled watch came");
    of.put("b", "three").await?;
    assert_eq!(values(&mut stream, 1).await?, ["three"]);
    Ok(())
}

async fn what_is_refused(mut of: Context) -> Outcome {
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_watch_id(5)).await?;
    stream.watch(of.key("b"), Some(WatchOptions::new().with_watch_id(5))).await?;
    let frame = next(&mut stream).await?;
    assert!(frame.created() && frame.canceled() && frame.watch_id() == -1, "{frame:?}");
    assert_eq!(frame.cancel_reason(), "mvcc: duplicate watch ID provided on the WatchStream");
    stream.watch(of.key("b"), Some(WatchOptions::new().with_range(of.key("a")))).await?;
    let frame = next(&mut stream).await?;
    assert!(frame.created() && frame.canceled() && frame.watch_id() == -1, "{frame:?}");
    of.put("a", "one").await?;
    assert_eq!(values(&mut stream, 1).await?, ["one"], "the stream stays");
    Ok(())
}

async fn from_a_compacted_revision(mut of: Context) -> Outcome {
    let first = of.put("a", "one").await?;
    let last = of.put("a", "two").await?;
    of.etcd.compact(last, None).await?;
    let mut stream = started(&of, of.key("a"), WatchOptions::new().with_start_revision(first)).await?;
    let frame = next(&mut stream).await?;
    assert!(frame.canceled() && !frame.created(), "{frame:?}");
    assert_eq!(frame.compact_revision(), last);
    Ok(())
}

async fn with_a_leader_required(of: Context) -> Outcome {
    let etcd = Client::connect(&of.servers, Some(ConnectOptions::new().with_require_leader(true))).await?;
    let mut of = Context { etcd, ..of };
    let mut stream = started(&of, of.key("a"), WatchOptions::new()).await?;
    of.put("a", "one").await?;
    assert_eq!(values(&mut stream, 1).await?, ["one"]);
    Ok(())
}

//! Places in queues: how they are waited for, kept over lost nodes, and given up.

use std::time::{Duration, Instant};

use quorate_client::api::{Applied, BarrierState, ErrorCode, Guard};
use quorate_client::{Client, Error, Loss, Op, Session, Value};
use serde_json::json;

use crate::SOON;
use crate::fake::{Act, Fake};

/// No renewal falls into a test.
const TTL: Duration = Duration::from_secs(60);

async fn session(client: &Client) -> Session {
    client.session().ttl(TTL).await.expect("a session")
}

fn waiting(lock: &str) -> Act {
    let answer = json!({"lock": lock, "state": "waiting", "place": "12", "ahead": 1, "session": "17", "mode": "exclusive",
        "revision": "1", "index": 1});
    Act::Answer(202, answer.to_string())
}

#[tokio::test]
async fn it_asks_on_while_others_come_first_for_the_rest_of_its_time() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    fake.script([waiting("a/b"), Act::Slow(Duration::from_millis(50)), waiting("a/b")]);
    fake.script([waiting("a/b")]);
    let lock = session.lock("a/b").wait(Duration::from_secs(30)).slots(3).max_waiters(4).delay(Duration::from_secs(2));
    let lock = lock.acquire().await.expect("granted in the end");
    assert_eq!((lock.token().expect("certain"), lock.name()), (18, "a/b"));
    let asked = fake.seen_at("/v1/locks/a%2Fb/acquire");
    let waits: Vec<_> = asked.iter().map(|seen| seen.json()["wait_ms"].as_u64().expect("a number")).collect();
    assert!(waits.len() >= 2 && waits.is_sorted_by(|a, b| a >= b) && waits[0] <= 30_000, "{waits:?}");
    let first = asked[0].json();
    assert_eq!((&first["session"], &first["slots"], &first["delay_ms"]), (&json!("17"), &json!(3), &json!(2_000)));
    assert_eq!(first["max_waiters"], 4);
    let poll = first["poll_ms"].as_u64().expect("a number");
    assert!(asked[0].timeout_ms > poll, "the node has longer than it holds back: {} {poll}", asked[0].timeout_ms);
    assert!(asked.windows(2).all(|pair| pair[0].id != pair[1].id), "each question is a new one: {asked:?}");
}

#[tokio::test]
async fn a_lost_node_costs_neither_the_place_nor_the_wait() {
    let (one, other) = (Fake::start().await, Fake::start().await);
    let client = Client::new(format!("{},{}", one.address, other.address)).expect("endpoints");
    let session = session(&client).await;
    for fake in [&one, &other] {
        fake.script([Act::Reset, Act::problem(ErrorCode::NoLeader, Applied::No), Act::Reset]);
    }
    let lock = session.lock("l").acquire().await.expect("granted in the end");
    assert_eq!(lock.token().expect("certain"), 18);
    let mut asked = [one.seen_at("/acquire"), other.seen_at("/acquire")].concat();
    asked.dedup_by_key(|seen| (seen.id.clone(), seen.body.clone()));
    assert!(asked.iter().all(|seen| seen.json()["session"] == "17"), "{asked:?}");
    assert_eq!(asked.iter().map(|seen| &seen.id).collect::<std::collections::BTreeSet<_>>().len(), 1, "{asked:?}");
}

#[tokio::test]
async fn who_does_not_wait_any_more_learns_the_fate_of_the_question_before_leaving() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    fake.script([Act::Slow(Duration::from_secs(60))]);
    let waited = tokio::time::timeout(SOON, session.lock("l").acquire()).await;
    assert!(waited.is_err(), "nobody answered");
    let left = fake.asked("/release", 1).await;
    assert_eq!(left[0].json(), json!({"session": "17"}));
    let asked = fake.seen_at("/acquire");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0].id, asked[1].id, "the same question, which is applied once");
    assert_eq!(asked[1].json()["poll_ms"], 0, "and answered at once");
    assert_eq!(asked[0].json()["wait_ms"], asked[1].json()["wait_ms"], "it would be another one otherwise");
}

#[tokio::test]
async fn who_asks_again_waits_until_what_was_dropped_is_given_up() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let slow = Duration::from_millis(200);
    fake.always("/release", Act::Slow(slow));
    drop(session.lock("l").acquire().await.expect("granted"));
    let begun = Instant::now();
    let again = session.lock("l").acquire().await.expect("granted");
    assert!(begun.elapsed() >= slow, "it was asked for before the release was answered: {:?}", begun.elapsed());
    let seen = fake.seen().into_iter().map(|seen| seen.target).filter(|target| target.starts_with("/v1/locks/l/"));
    assert_eq!(seen.collect::<Vec<_>>(), ["acquire", "release", "acquire"].map(|verb| format!("/v1/locks/l/{verb}")));
    again.token().expect("it is not what was given up");
}

#[tokio::test]
async fn a_lock_that_is_not_got_in_time_leaves_nothing_to_clear_up() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    fake.always("/acquire", Act::problem(ErrorCode::Locked, Applied::No));
    let error = session.lock("l").no_wait().acquire().await.expect_err("somebody else holds it");
    assert_eq!(error.code(), Some(ErrorCode::Locked));
    assert_eq!(fake.seen_at("/acquire")[0].json()["wait_ms"], 0);
    session.end().await.expect("ended");
    assert!(fake.seen_at("/release").is_empty(), "{:?}", fake.seen());
}

#[tokio::test]
async fn a_wait_that_no_node_ends_is_ended_here() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    fake.always("/acquire", waiting("l"));
    let begun = Instant::now();
    let error = session.lock("l").wait(Duration::from_millis(200)).acquire().await.expect_err("nobody grants it");
    assert_eq!(error.code(), Some(ErrorCode::Locked), "{error:?}");
    assert!(begun.elapsed() >= Duration::from_millis(200) && begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn who_waits_hears_that_the_session_is_lost() {
    let (fake, client) = Fake::with_client().await;
    let session = client.session().ttl(Duration::from_millis(600)).await.expect("a session");
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    fake.always("/acquire", Act::Slow(Duration::from_secs(60)));
    let error = session.lock("l").acquire().await.expect_err("lost");
    assert!(matches!(error, Error::Session { loss: Some(Loss::NotRenewed), .. }), "{error:?}");
    assert_eq!((error.code(), error.applied()), (Some(ErrorCode::SessionExpired), Applied::No));
    let other = client.session().ttl(TTL).await.expect("a session");
    fake.always("/acquire", Act::problem(ErrorCode::SessionExpired, Applied::No));
    let error = other.lock("l").acquire().await.expect_err("the cluster says so");
    assert!(matches!(error, Error::Session { loss: Some(Loss::Expired), .. }), "{error:?}");
    assert_eq!(other.loss(), Some(Loss::Expired), "what one question finds out, all know");
}

#[tokio::test]
async fn a_lock_is_released_once_by_its_token_also_by_a_drop() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    session.lock("l").acquire().await.expect("granted").release().await.expect("released");
    drop(session.lock("l").shared().acquire().await.expect("granted"));
    let released = fake.asked("/release", 2).await;
    assert!(released.iter().all(|seen| seen.json() == json!({"token": "18"}) && seen.id.is_some()), "{released:?}");
    session.end().await.expect("ended");
    assert_eq!(fake.seen_at("/release").len(), 2);
}

#[tokio::test]
async fn guarded_writes_name_the_lock_and_the_token() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let lock = session.lock("l").acquire().await.expect("granted");
    let leadership = session.elect("e").value(Value::json_text("\"here\"")).campaign().await.expect("elected");
    let value = || Value::json_text("1");
    client.put("k", value()).guarded_by(&lock).session(&session).await.expect("written");
    client.remove("k").guarded_by(&leadership).await.expect("removed");
    client.bulk().push(Op::put("k", value()).guarded_by(&lock)).await.expect("written");
    client.put("k", value()).guarded_by(Guard::lock("l", 9)).await.expect("written");
    let seen = fake.seen();
    let guards: Vec<_> = seen.iter().filter_map(|seen| Some(seen.op.as_ref()?.guard.clone())).flatten().collect();
    assert_eq!(guards, [Guard::lock("l", 18), Guard::election("e", 18), Guard::lock("l", 9)]);
    assert_eq!(seen.iter().find_map(|seen| seen.op.as_ref()?.session.as_deref()), Some("17"));
    assert_eq!(fake.seen_at("/v1/bulk")[0].json()["ops"][0]["guard"], json!({"lock": "l", "token": "18"}));
    assert_eq!(fake.seen_at("/campaign")[0].json()["value"], "here");
    leadership.resign().await.expect("resigned");
    assert_eq!(fake.seen_at("/resign")[0].json(), json!({"term": "18"}));
}

#[tokio::test]
async fn a_barrier_is_waited_for_and_left_when_nobody_waits_any_more() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let alone = json!({"barrier": "b", "state": "waiting", "parties": 2, "entered": 1, "revision": "1", "index": 1});
    fake.script([Act::Answer(202, alone.to_string()), Act::Reset]);
    let open = session.barrier("b", 2).enter().await.expect("open");
    assert_eq!((open.entered, fake.seen_at("/enter").len()), (2, 3));
    assert!(fake.seen_at("/leave").is_empty(), "{:?}", fake.seen());
    fake.always("/enter", Act::Answer(202, alone.to_string()));
    let dropped = tokio::time::timeout(SOON, session.barrier("b", 2).enter()).await;
    assert!(dropped.is_err(), "nobody else came");
    fake.asked("/leave", 1).await;
}

#[tokio::test]
async fn whoever_is_told_that_the_time_at_a_barrier_is_over_is_in_it_no_more() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let alone = json!({"barrier": "b", "state": "waiting", "parties": 2, "entered": 1, "revision": "1", "index": 1});
    fake.always("/enter", Act::Answer(202, alone.to_string()));
    let slow = Duration::from_millis(200);
    fake.always("/leave", Act::Slow(slow));
    let (begun, wait) = (Instant::now(), Duration::from_millis(50));
    let late = session.barrier("b", 2).wait(wait).enter().await.expect("an answer");
    assert_eq!((late.state, late.entered), (BarrierState::Waiting, 1));
    assert!(begun.elapsed() >= wait + slow, "it was told before it was left: {:?}", begun.elapsed());
    let last_question = fake.seen_at("/enter").last().expect("it was asked").id.clone();
    assert_eq!(fake.seen_at("/enter").iter().filter(|seen| seen.id == last_question).count(), 1, "it was answered");
    // Nothing is left to do in the background.
    session.end().await.expect("ended");
    assert_eq!(fake.seen_at("/leave").len(), 1, "{:?}", fake.seen());
}

#[tokio::test]
async fn a_barrier_that_cannot_be_left_is_no_mere_lapse_of_time() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let alone = json!({"barrier": "b", "state": "waiting", "parties": 2, "entered": 1, "revision": "1", "index": 1});
    fake.always("/enter", Act::Answer(202, alone.to_string()));
    fake.always("/leave", Act::problem(ErrorCode::PermissionDenied, Applied::No));
    let error = session.barrier("b", 2).wait(Duration::ZERO).enter().await.expect_err("it is in there");
    assert!(matches!(&error, Error::NotLeft { barrier, .. } if barrier == "b"), "{error:?}");
    assert_eq!((error.applied(), error.code()), (Applied::Unknown, Some(ErrorCode::PermissionDenied)));
    assert!(error.to_string().contains("could not be left"), "{error}");
}

#[tokio::test]
async fn what_could_not_be_given_up_for_want_of_rights_is_given_up_later() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let lock = session.lock("l").acquire().await.expect("granted");
    fake.script([Act::problem(ErrorCode::PermissionDenied, Applied::No)]);
    let error = lock.release().await.expect_err("refused");
    assert_eq!(error.code(), Some(ErrorCode::PermissionDenied));
    let begin = Instant::now();
    while fake.seen_at("/release").len() < 2 {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "it is held as long as the session lives: {:?}",
            fake.seen()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Whoever does not hold it any more is told so once.
    let lock = session.lock("l").acquire().await.expect("granted");
    fake.script([Act::problem(ErrorCode::NotLockHolder, Applied::No)]);
    lock.release().await.expect_err("it was lost");
    session.lock("l").acquire().await.expect("granted").release().await.expect("released");
    assert_eq!(fake.seen_at("/release").len(), 4, "{:?}", fake.seen());
}

#[tokio::test]
async fn a_session_takes_its_place_in_a_queue_once_and_no_handle_gives_up_that_of_another() {
    let (fake, client) = Fake::with_client().await;
    let session = session(&client).await;
    let lock = session.lock("l").acquire().await.expect("granted");
    let again = session.lock("l").acquire().await.expect_err("it has the lock already");
    assert!(matches!(again, Error::Invalid(_)), "{again:?}");
    // Another lock of the same name is one of another kind.
    let leadership = session.elect("l").campaign().await.expect("elected");
    let again = session.elect("l").wait(Duration::ZERO).campaign().await.expect_err("it leads already");
    assert!(matches!(again, Error::Invalid(_)), "{again:?}");
    assert_eq!((fake.seen_at("/acquire").len(), fake.seen_at("/campaign").len()), (1, 1), "{:?}", fake.seen());
    lock.release().await.expect("released");
    leadership.resign().await.expect("resigned");
    assert_eq!((fake.seen_at("/release").len(), fake.seen_at("/resign").len()), (1, 1), "{:?}", fake.seen());

    // Who waits has a place as well, until it is dropped.
    fake.script([Act::Slow(Duration::from_millis(300))]);
    let waits = session.clone();
    let waiting = tokio::spawn(async move { waits.lock("l").acquire().await });
    fake.asked("/acquire", 2).await;
    session.lock("l").acquire().await.expect_err("it waits already");
    waiting.abort();
    assert!(waiting.await.is_err(), "it was dropped");
    session.lock("l").acquire().await.expect("its place was given up").release().await.expect("released");
}

/// A proxy that cleans paths enters `b` where `a/../b` was meant.
#[tokio::test]
async fn a_barrier_of_another_name_is_left_unless_the_session_is_in_it() {
    for is_ours in [false, true] {
        let (fake, client) = Fake::with_client().await;
        let session = session(&client).await;
        let ours = session.barrier("b", 2);
        if is_ours {
            ours.enter().await.expect("open");
        }
        let other = json!({"barrier": "b", "state": "open", "parties": 2, "entered": 2, "revision": "1", "index": 1});
        fake.always("/a%2F..%2Fb/enter", Act::Answer(200, other.to_string()));
        let error = session.barrier("a/../b", 2).enter().await.expect_err("it is another one");
        assert!(error.to_string().contains("about `b`, not `a/../b`"), "{error}");
        // Else it would be left while the session is in it.
        ours.enter().await.expect("open");
        assert_eq!(fake.seen_at("/a%2F..%2Fb/leave").len(), usize::from(!is_ours), "{:?}", fake.seen());
        ours.leave().await.expect("left");
        session.end().await.expect("ended");
        assert_eq!(fake.seen_at("/leave").len(), 1 + usize::from(!is_ours), "{:?}", fake.seen());
    }
}

/// A proxy that cleans paths asks for `b` where `a/../b` was meant.
#[tokio::test]
async fn a_lock_of_another_name_is_given_up_unless_another_handle_has_it() {
    for is_ours in [false, true] {
        let (fake, client) = Fake::with_client().await;
        let session = session(&client).await;
        let ours = if is_ours { Some(session.lock("b").acquire().await.expect("granted")) } else { None };
        let other = json!({"lock": "b", "state": "held", "token": "7", "session": "17", "mode": "exclusive", "revision": "1", "index": 1});
        fake.always("/a%2F..%2Fb/acquire", Act::Answer(200, other.to_string()));
        let error = session.lock("a/../b").acquire().await.expect_err("it is another one");
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        assert!(error.to_string().contains("about `b`, not `a/../b`"), "{error}");
        assert_eq!(error.applied(), Applied::Unknown);
        if let Some(ours) = ours {
            ours.release().await.expect("released");
            session.end().await.expect("ended");
            assert_eq!(fake.seen_at("/release").len(), 1, "what another handle has is not given up: {:?}", fake.seen());
        } else {
            let left = fake.asked("/a%2F..%2Fb/release", 1).await;
            assert_eq!(left[0].json(), json!({"session": "17"}), "by the path by which it was got");
            // Else it would be given up while it is held.
            session.lock("a/../b").acquire().await.expect_err("it is another one");
            session.lock("b").acquire().await.expect("granted").release().await.expect("released");
            let asked =
                fake.seen().into_iter().map(|seen| seen.target).filter(|target| target.starts_with("/v1/locks/"));
            let other = ["acquire", "acquire", "release"].map(|verb| format!("/v1/locks/a%2F..%2Fb/{verb}"));
            let meant = ["acquire", "release"].map(|verb| format!("/v1/locks/b/{verb}"));
            assert_eq!(asked.collect::<Vec<_>>(), [&other[..], &other, &meant].concat());
        }
    }
}

//! Sessions: when they are renewed, and what they say of themselves while nodes answer late, wrongly or not at all.

use std::time::{Duration, Instant};

use quorate_client::api::{Applied, ErrorCode, Problem};
use quorate_client::{Client, Error, Loss, Session, SessionState};
use serde_json::{Value, json};

use crate::fake::{Act, Fake, nobody};

/// So short that a test sees it end, so long that a busy machine renews it in time.
const TTL: Duration = Duration::from_secs(2);

async fn session(client: &Client) -> Session {
    client.session().ttl(TTL).await.expect("a session")
}

/// An answer to a renewal that confirms nothing.
fn expired() -> Act {
    let answer = json!({"sessions": [{"session": "17", "expired": true}], "revision": "1", "index": 1});
    Act::Answer(200, answer.to_string())
}

#[tokio::test]
async fn a_session_says_what_was_asked_for_and_is_renewed_at_a_third_of_its_time() {
    let (fake, client) = Fake::with_client().await;
    let started = Instant::now();
    let session = client.session().ttl(TTL).owner("ann").label("zone", "a").await.expect("a session");
    assert_eq!((session.id(), session.ttl(), session.state()), ("17", TTL, SessionState::Ok));
    let created = &fake.seen()[0];
    assert_eq!(created.json(), json!({"ttl_ms": 2_000, "owner": "ann", "labels": {"zone": "a"}}));
    assert!(created.id.is_some(), "a creation carries a request id");
    fake.asked("/renew", 5).await;
    assert!(started.elapsed() >= TTL / 3 * 4, "five renewals took {:?}", started.elapsed());
    session.check().expect("it is renewed");
}

#[tokio::test]
async fn sessions_that_are_due_together_are_renewed_together() {
    let (fake, client) = Fake::with_client().await;
    let ids = ["17", "21", "22"];
    let created = |id: &str| {
        let answer = json!({"session": id, "ttl_ms": 2_000, "expires_in_ms": 2_000, "renew_in_ms": 667, "owner": "",
            "labels": {}, "revision": "1", "index": 1});
        Act::Answer(200, answer.to_string())
    };
    fake.script(ids.map(created));
    let mut sessions = Vec::new();
    for _ in ids {
        sessions.push(client.session().ttl(TTL).await.expect("a session"));
    }
    let renewals = fake.asked("/renew", 6).await;
    let together =
        renewals.iter().filter(|seen| seen.json()["sessions"].as_array().expect("a list").len() == 3).count();
    assert!(together >= 4, "{renewals:?}");
}

#[tokio::test]
async fn without_an_answer_it_is_suspect_and_then_lost_before_the_cluster_can_end_it() {
    let (fake, client) = Fake::with_client().await;
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let asked_at = Instant::now();
    let session = session(&client).await;
    let lock = session.lock("l").acquire().await.expect("granted");
    assert_eq!(lock.token().expect("it is certain"), 18);
    assert_eq!(session.changed(SessionState::Ok).await, SessionState::Suspect);
    assert!(asked_at.elapsed() >= TTL / 2);
    assert!(matches!(lock.token(), Err(Error::Session { loss: None, .. })), "a suspect token is not handed out");
    assert_eq!(lock.lost().await, Loss::NotRenewed);
    // Counted from before the creation was sent, which is earlier than any node can count from.
    assert!(asked_at.elapsed() >= TTL * 9 / 10 && session.state() == SessionState::Lost, "{:?}", asked_at.elapsed());
    let refused = lock.token().expect_err("lost");
    assert_eq!(refused.applied(), Applied::No);
    assert!(refused.to_string().contains("no renewal was confirmed in time"), "{refused}");
    assert!(fake.seen_at("/renew").len() >= 2, "it was tried more than once: {:?}", fake.seen());
}

#[tokio::test]
async fn an_answer_that_comes_too_late_brings_nothing_back() {
    let (fake, client) = Fake::with_client().await;
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let session = session(&client).await;
    session.lost().await;
    fake.always("/renew", Act::Slow(Duration::ZERO));
    let asked = fake.seen_at("/renew").len();
    let other = session_is_kept(&client, &fake, asked).await;
    assert_eq!((session.loss(), other.state()), (Some(Loss::NotRenewed), SessionState::Ok));
    let renewals = fake.seen_at("/renew");
    let last: Value = renewals.last().expect("there are some").json();
    assert_eq!(last["sessions"].as_array().expect("a list").len(), 1, "what is lost is not renewed: {last}");
}

/// Another session of the same client, once it was renewed.
async fn session_is_kept(client: &Client, fake: &Fake, asked: usize) -> Session {
    let other = session(client).await;
    fake.asked("/renew", asked + 2).await;
    other
}

#[tokio::test]
async fn what_the_cluster_says_is_over_is_lost_at_once() {
    let (fake, client) = Fake::with_client().await;
    fake.always("/renew", expired());
    let session = client.session().ttl(Duration::from_secs(3)).await.expect("a session");
    let begun = Instant::now();
    assert_eq!(session.lost().await, Loss::Expired);
    assert!(begun.elapsed() < Duration::from_secs(2), "at the first renewal: {:?}", begun.elapsed());
    assert_eq!(fake.seen_at("/renew").len(), 1);
}

#[tokio::test]
async fn a_session_that_an_answer_does_not_name_was_not_renewed() {
    let (fake, client) = Fake::with_client().await;
    let other = json!({"session": "8", "ttl_ms": 2_000, "expires_in_ms": 2_000, "renew_in_ms": 667});
    let answer = json!({"sessions": [other], "revision": "1", "index": 1});
    fake.always("/renew", Act::Answer(200, answer.to_string()));
    let session = session(&client).await;
    let lost = tokio::time::timeout(5 * TTL, session.lost()).await.expect("nobody renewed it");
    assert_eq!(lost, Loss::NotRenewed);
    assert!(!fake.seen_at("/renew").is_empty(), "it was asked for");
}

#[tokio::test]
async fn renewals_find_another_node_when_one_is_gone_or_stands_still() {
    let (still, well) = (Fake::start().await, Fake::start().await);
    still.always("/renew", Act::Slow(Duration::from_secs(60)));
    let endpoints = format!("{},{},{}", nobody(), still.address, well.address);
    let client = Client::new(endpoints).expect("endpoints");
    let session = session(&client).await;
    well.asked("/renew", 8).await;
    assert_eq!(session.loss(), None, "eight renewals are more than two times its time to live");
}

#[tokio::test]
async fn a_session_that_was_created_too_late_is_not_used() {
    let fake = Fake::start().await;
    // The first answer is waited for, however much later it comes.
    let builder = Client::builder().endpoints(&fake.address).attempt_timeout(Duration::from_secs(8));
    let client = builder.build().expect("an endpoint");
    fake.script([Act::Slow(TTL)]);
    let session = session(&client).await;
    assert_eq!(session.state(), SessionState::Ok);
    let created = fake.seen_at("/v1/sessions");
    assert!(created.len() == 2 && created[0].id != created[1].id, "another one was asked for: {created:?}");
}

#[tokio::test]
async fn a_session_that_was_over_before_its_answer_came_is_asked_for_again() {
    let (fake, client) = Fake::with_client().await;
    // The first try's answer is lost; its retry is told that what it created is over.
    let over = Problem { index: Some(7), ..Problem::new(ErrorCode::SessionExpired, Applied::No, "it is over") };
    fake.script([Act::Reset, Act::refuse(over.clone())]);
    let session = session(&client).await;
    assert_eq!(session.state(), SessionState::Ok);
    let ids: Vec<_> = fake.seen_at("/v1/sessions").into_iter().map(|seen| seen.id).collect();
    assert!(ids.len() == 3 && ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
    fake.always("/v1/sessions", Act::refuse(over));
    let refused = client.session().await.expect_err("not for ever");
    assert_eq!(refused.code(), Some(ErrorCode::SessionExpired));
}

#[tokio::test]
async fn an_end_is_told_to_the_cluster_and_so_is_the_last_drop() {
    let (fake, client) = Fake::with_client().await;
    let ended = session(&client).await;
    ended.end().await.expect("ended");
    assert_eq!((ended.loss(), fake.seen_at("/sessions/17").len()), (Some(Loss::Ended), 1));
    drop(ended);
    let dropped = session(&client).await;
    drop(dropped.clone());
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "neither the one that was ended, nor one of two clones");
    drop(dropped);
    let ends = fake.asked("/sessions/17", 2).await;
    assert!(ends.iter().all(|seen| seen.method == "DELETE" && seen.id.is_some()), "{ends:?}");
    // A session that had ended by itself is ended.
    let gone = session(&client).await;
    fake.always("/sessions/17", Act::problem(ErrorCode::SessionExpired, Applied::No));
    gone.end().await.expect("it is over");
}

#[tokio::test]
async fn a_lost_session_is_not_ended_so_that_its_delay_counts() {
    let (fake, client) = Fake::with_client().await;
    fake.always("/renew", expired());
    let session = session(&client).await;
    let lock = session.lock("l").acquire().await.expect("granted");
    session.lost().await;
    drop((lock, session));
    // Whatever the drops had to say would be said before this.
    client.session_by_id("9").get().await.expect_err("the fake knows no such answer");
    assert!(fake.seen_at("/sessions/17").is_empty() && fake.seen_at("/release").is_empty(), "{:?}", fake.seen());
}

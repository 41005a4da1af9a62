//! How the client finds the leader and lets go of it.

use std::time::Duration;

use quorate_client::api::{Applied, ErrorCode};
use quorate_client::{Client, Reads, Value};

use crate::fake::{Act, Fake, nobody};

async fn three() -> ([Fake; 3], Client) {
    let fakes = [Fake::start_as(1).await, Fake::start_as(2).await, Fake::start_as(3).await];
    let endpoints: Vec<&str> = fakes.iter().map(|fake| fake.address.as_str()).collect();
    let client = Client::new(endpoints.join(",")).expect("endpoints");
    (fakes, client)
}

async fn put(client: &Client) {
    client.put("k", Value::json(&1).expect("has JSON")).await.expect("works");
}

/// Repeats a call until six in a row reach this node: the client learns in the background who is who.
async fn settle_on(fake: &Fake, call: impl AsyncFn()) {
    let settled = async {
        loop {
            let before = fake.seen().len();
            for _ in 0..6 {
                call().await;
            }
            if fake.seen().len() == before + 6 {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), settled).await.expect("six calls in a row reach the node");
}

#[tokio::test]
async fn a_new_leader_is_followed_and_an_old_term_is_not() {
    let (fakes, client) = three().await;
    fakes.iter().for_each(|fake| fake.name_leader(4, 2));
    settle_on(&fakes[1], async || put(&client).await).await;
    fakes[1].name_leader(5, 3);
    settle_on(&fakes[2], async || put(&client).await).await;
    fakes[2].name_leader(4, 1);
    let before = fakes[2].seen().len();
    for _ in 0..6 {
        put(&client).await;
    }
    assert_eq!(fakes[2].seen().len(), before + 6, "an older term says nothing");
}

#[tokio::test]
async fn a_wrong_hint_costs_a_try_and_no_more() {
    let fake = Fake::start_as(1).await;
    fake.name_leader(4, 2);
    let client = Client::new(format!("{},{}", fake.address, nobody())).expect("endpoints");
    for _ in 0..5 {
        put(&client).await;
    }
    assert_eq!(fake.seen().len(), 5, "the leader is out of reach; node 1 forwards");
}

#[tokio::test]
async fn a_leader_that_serves_no_longer_is_left() {
    let (fakes, client) = three().await;
    fakes.iter().for_each(|fake| fake.name_leader(4, 2));
    settle_on(&fakes[1], async || put(&client).await).await;
    let others = || fakes[0].seen().len() + fakes[2].seen().len();
    let before = others();
    fakes[1].script(vec![Act::problem(ErrorCode::NotReady, Applied::No); 50]);
    for _ in 0..3 {
        put(&client).await;
    }
    assert!(others() >= before + 3, "followers took the writes");
}

#[tokio::test]
async fn reads_spread_over_all_nodes_or_stay_with_the_leader() {
    let (fakes, client) = three().await;
    for _ in 0..6 {
        client.get("k").await.expect("works");
    }
    assert_eq!(fakes.each_ref().map(|fake| fake.seen().len()), [2, 2, 2]);
    let endpoints: Vec<&str> = fakes.iter().map(|fake| fake.address.as_str()).collect();
    let client = Client::builder().endpoints(endpoints.join(",")).reads(Reads::Leader).build().expect("endpoints");
    fakes.iter().for_each(|fake| fake.name_leader(4, 1));
    settle_on(&fakes[0], async || drop(client.get("k").await.expect("works"))).await;
}

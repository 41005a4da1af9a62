//! A node of another cluster among the endpoints: its word is not taken.

use quorate_client::api::{Applied, ErrorCode};
use quorate_client::{Client, Error, Protocol, RetryPolicy, Value};

use crate::fake::{Act, CLUSTER, Fake};

const OTHER: &str = "0000000000000000000000000000feed";

/// Three nodes of a cluster, and a client that has asked each of them.
async fn three(protocol: Protocol) -> ([Fake; 3], Client) {
    let fakes = [Fake::start_as(1).await, Fake::start_as(2).await, Fake::start_as(3).await];
    let endpoints: Vec<&str> = fakes.iter().map(|fake| fake.address.as_str()).collect();
    let client = Client::builder().endpoints(endpoints.join(",")).protocol(protocol).build().expect("endpoints");
    while fakes.iter().any(|fake| fake.seen().is_empty()) {
        client.get("k").await.expect("works");
    }
    (fakes, client)
}

#[tokio::test]
async fn what_a_node_that_was_founded_anew_says_is_not_believed() {
    for protocol in [Protocol::Stream, Protocol::Http1] {
        let (fakes, client) = three(protocol).await;
        fakes[2].always("/v1/ops", Act::problem(ErrorCode::NotFound, Applied::No));
        fakes[2].join(OTHER).await;
        let before = fakes[2].seen().len();
        for _ in 0..12 {
            assert!(
                client.get("k").await.expect("the others answer").is_some(),
                "{protocol:?}: no word of another cluster"
            );
            client.put("k", Value::json(&1).expect("has JSON")).await.expect("the others write");
        }
        assert!(fakes[2].seen().len() <= before + 1, "{protocol:?}: it is asked once: {:?}", fakes[2].seen());
    }
}

#[tokio::test]
async fn a_watch_is_not_opened_there() {
    let (fakes, client) = three(Protocol::Stream).await;
    fakes[2].join(OTHER).await;
    for fake in &fakes {
        fake.always("/v1/watch", Act::Answer(200, String::new()));
    }
    for _ in 0..6 {
        drop(client.watch("k").start().await.expect("the others answer"));
    }
    let watched = |fake: &Fake| fake.seen().iter().filter(|seen| seen.target.starts_with("/v1/watch")).count();
    assert!(watched(&fakes[2]) <= 1, "{:?}", fakes[2].seen());
}

#[tokio::test]
async fn a_client_goes_over_once_most_of_its_nodes_have() {
    let (fakes, client) = three(Protocol::Stream).await;
    for fake in &fakes[..2] {
        fake.join(OTHER).await;
    }
    for _ in 0..6 {
        client.get("k").await.expect("at most one try is lost");
    }
    let before = fakes[2].seen().len();
    for _ in 0..6 {
        client.get("k").await.expect("works");
    }
    assert_eq!(fakes[2].seen().len(), before, "it is the stranger now");
}

#[tokio::test]
async fn one_address_may_be_that_of_several_nodes() {
    let fake = Fake::start().await;
    let retry = RetryPolicy::default().attempts_max(3);
    let client = Client::builder().endpoints(&fake.address).retry(retry).build().expect("an endpoint");
    client.get("k").await.expect("works");
    fake.join(OTHER).await;
    let said = client.get("k").await.expect_err("no word of another cluster").to_string();
    assert!(said.contains(CLUSTER) && said.contains(OTHER), "{said}");
    fake.join(CLUSTER).await;
    assert!(client.get("k").await.expect("works").is_some());
}

#[tokio::test]
async fn a_connection_on_which_a_stranger_spoke_is_not_used_again() {
    let fake = Fake::start().await;
    let retry = RetryPolicy::default().attempts_max(3);
    let client = Client::builder().endpoints(&fake.address).retry(retry).build().expect("an endpoint");
    client.get("k").await.expect("works");
    fake.join(OTHER).await;
    client.get("k").await.expect_err("no word of another cluster");
    let before = fake.streams();
    client.get("k").await.expect_err("no word of another cluster");
    assert_eq!(fake.streams(), before + 3, "each try had a stream of its own");
}

#[tokio::test]
async fn where_nobody_else_answers_the_error_names_both_clusters() {
    let fakes = [Fake::start_as(1).await, Fake::start_as(2).await];
    let endpoints = fakes.each_ref().map(|fake| fake.address.as_str()).join(",");
    let client = Client::builder().endpoints(endpoints).retry(RetryPolicy::default().attempts_max(3)).build();
    let client = client.expect("endpoints");
    while fakes.iter().any(|fake| fake.seen().is_empty()) {
        client.get("k").await.expect("works");
    }
    fakes[0].always("/v1/ops", Act::Reset);
    fakes[1].join(OTHER).await;
    let error = client.get("k").await.expect_err("nobody answers");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let said = error.to_string();
    assert!(said.contains(CLUSTER) && said.contains(OTHER), "{said}");
}

#[tokio::test]
async fn the_status_of_a_stranger_says_so() {
    let (fakes, client) = three(Protocol::Stream).await;
    fakes[1].join(OTHER).await;
    let statuses = client.status_of_all().await.expect("is asked");
    let said = statuses[1].status.as_ref().expect_err("a stranger").to_string();
    assert!(said.contains(CLUSTER) && said.contains(OTHER), "{said}");
    assert!(statuses[0].status.is_ok() && statuses[2].status.is_ok());
    let members = client.overview().await.expect("is asked");
    let strangers: Vec<_> = members.iter().filter(|member| member.status.is_err()).collect();
    assert_eq!(strangers.iter().map(|member| member.address.as_str()).collect::<Vec<_>>(), [fakes[1].address.as_str()]);
}

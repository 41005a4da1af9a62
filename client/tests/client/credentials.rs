//! Tokens that are exchanged while a client lives.

use std::fs;

use quorate_client::api::{Applied, ErrorCode};
use quorate_client::{Client, Error, Protocol, Value};

use crate::fake::{Act, Fake};

fn one() -> Value {
    Value::json_text("1")
}

fn shown(fake: &Fake) -> Vec<Option<String>> {
    fake.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_token_that_was_exchanged_is_read_again_when_a_node_refuses_the_former() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let path = home.path().join("token");
    fs::write(&path, "one\n").expect("written");
    let builder = Client::builder().endpoints(&fake.address).token_file(&path).protocol(Protocol::Http1);
    let client = builder.build().expect("a token");
    client.put("k", one()).await.expect("works");
    fs::write(&path, "second\n").expect("written");
    fake.script([Act::problem(ErrorCode::Unauthenticated, Applied::No)]);
    client.put("k", one()).await.expect("the second token is good");
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    let last: Vec<_> = shown(&fake).into_iter().skip(1).collect();
    // The look that is due once a second may have come first; then the refusal met the new token.
    assert!(last.ends_with(&[bearer("second")]), "{last:?}");

    fake.script([Act::problem(ErrorCode::Unauthenticated, Applied::No)]);
    let error = client.put("k", one()).await.expect_err("there is no other token");
    assert!(matches!(&error, Error::Rejected(problem) if problem.code == ErrorCode::Unauthenticated), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_was_opened_with_a_former_token_takes_no_further_calls() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let path = home.path().join("token");
    fs::write(&path, "one").expect("written");
    let client = Client::builder().endpoints(&fake.address).token_file(&path).build().expect("a token");
    client.put("k", one()).await.expect("works");
    client.put("k", one()).await.expect("works");
    assert_eq!(fake.streams(), 1);
    fs::write(&path, "second").expect("written");
    fake.script([Act::problem(ErrorCode::Unauthenticated, Applied::No)]);
    client.put("k", one()).await.expect("works on a new stream");
    assert_eq!(fake.streams(), 2);
}

#[test]
fn certificates_that_were_given_are_judged_as_those_in_files_are() {
    for (builder, hint) in [
        (Client::builder().ca_pem("no certificate"), "no certificate in it"),
        (Client::builder().identity_pem("cert", "key"), "name the CA"),
    ] {
        let error = builder.build().expect_err("refused").to_string();
        assert!(error.contains(hint) && error.contains("was given"), "{error}");
    }
}

//! A register of services that are alive: `cargo run --example service_registry` on the local cluster, or the one in
//! `QUORATE_ENDPOINTS`.
//!
//! Each service writes where it is, with its session. When it ends, or dies and does not renew its session any more, the entry
//! goes with the session.

use std::error::Error as StdError;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use quorate_client::{Change, Client, Error, RequestId, Value};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let client = Client::from_env()?;
    let (web, mail) = (register(&client, "web", 8080).await?, register(&client, "mail", 25).await?);
    // This one dies at once: nobody renews its session.
    let dead = client.session().ttl(Duration::from_secs(1)).owner("chat").create(RequestId::random()).await?;
    let died = Instant::now();
    put(&client, "chat", 5222, &dead.session).await?;
    println!("registered: {}", names(&client).await?.join(", "));

    let known = client.get("recipes/services/chat").await?.and_then(|entry| entry.cas);
    loop {
        match client.wait_for_change("recipes/services/chat", known, Duration::from_secs(10)).await? {
            Change::Gone => break,
            change => println!("chat: {change:?}"),
        }
    }
    println!("chat is gone after {:?}; left are {}", died.elapsed(), names(&client).await?.join(", "));
    assert!(died.elapsed() >= Duration::from_secs(1), "never before its time is over");
    assert_eq!(names(&client).await?, ["mail", "web"]);
    mail.end().await?;
    assert_eq!(names(&client).await?, ["web"]);
    web.end().await?;
    Ok(())
}

/// What a service does when it starts. As long as it holds the session, it is registered.
async fn register(client: &Client, name: &str, port: u16) -> Result<quorate_client::Session, Error> {
    let session = client.session().ttl(Duration::from_secs(5)).owner(name).await?;
    put(client, name, port, session.id()).await?;
    Ok(session)
}

async fn put(client: &Client, name: &str, port: u16, session: &str) -> Result<(), Error> {
    let value = Value::json(&json!({"host": "10.0.0.7", "port": port}))?;
    client.put(format!("recipes/services/{name}"), value).session(session).await.map(drop)
}

/// What others do: look who is there.
async fn names(client: &Client) -> Result<Vec<String>, Error> {
    let pages: Vec<_> = client.list("recipes/services/").keys_only().pages().try_collect().await?;
    let keys = pages.into_iter().flat_map(|page| page.entries).map(|entry| entry.key);
    Ok(keys.map(|key| key.to_string().trim_start_matches("recipes/services/").to_owned()).collect())
}

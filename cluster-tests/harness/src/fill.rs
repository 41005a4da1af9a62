//! Documents for tests that need many.
//!
//! Owns writing them quickly. Never checks them: that is what the test is for.

use quorate_client::{Client, Value};

/// Writers at once: enough for each group that the leader proposes to be a large one.
const WRITERS: u64 = 64;

/// Writes `count` documents, each under the key and with the value that its number gives.
pub async fn fill<K, V>(client: &Client, count: u64, key: K, document: V)
where
    K: Fn(u64) -> String + Clone + Send + Sync + 'static,
    V: Fn(u64) -> serde_json::Value + Clone + Send + Sync + 'static,
{
    let mut writers = tokio::task::JoinSet::new();
    for first in 0..WRITERS {
        let (client, key, document) = (client.clone(), key.clone(), document.clone());
        writers.spawn(async move {
            for number in (first..count).step_by(WRITERS as usize) {
                let value = Value::json(&document(number)).expect("a document is JSON");
                let key = key(number);
                if let Err(error) = client.put(&key, value).await {
                    panic!("the writer of {key} gave up: {error}");
                }
            }
        });
    }
    writers.join_all().await;
}

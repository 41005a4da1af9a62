//! The program of the README: `cargo run --example readme`. It shows an update that loses nothing, and a lock with its fence.

use quorate_client::Client;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), quorate_client::Error> {
    // The nodes that QUORATE_ENDPOINTS names, or those of the local cluster.
    let client = Client::from_env()?;
    client.put_json("stock/pears", &json!({"left": 5})).await?;
    // Reads the entry, changes it, writes it back if nobody else did meanwhile; else tries again.
    let updated = client
        .update("stock/pears", |stock: Option<serde_json::Value>| {
            let left = stock?["left"].as_u64()?.checked_sub(1)?;
            Some(json!({"left": left}))
        })
        .await?;
    match updated.written() {
        Some(stock) => println!("{} pears left", stock["left"]),
        None => println!("sold out"),
    }
    // Whatever happens to this process, a write under the lock is applied only while the lock is ours.
    let session = client.session().await?;
    let lock = session.lock("stock").acquire().await?;
    client.put_json("stock/counted", &true).guarded_by(&lock).await?;
    lock.release().await
}

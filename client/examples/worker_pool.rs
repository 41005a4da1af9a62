//! Any number of workers, of which three at most work at once: `cargo run --example worker_pool` on the local cluster, or the
//! one in `QUORATE_ENDPOINTS`.
//!
//! The workers here are tasks, each with a session of its own; they could as well be processes on many machines.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorate_client::{Client, Error};

const WORKERS: u32 = 8;
const AT_ONCE: u32 = 3;
const JOBS_EACH: u32 = 2;

/// How many work now, and how many ever did at once.
#[derive(Debug, Default)]
struct Busy {
    now: AtomicU32,
    most: AtomicU32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let client = Client::from_env()?;
    let busy = Arc::new(Busy::default());
    let workers = (0..WORKERS).map(|number| tokio::spawn(work(client.clone(), number, busy.clone())));
    for worker in futures::future::join_all(workers).await {
        worker??;
    }
    let most = busy.most.load(Ordering::SeqCst);
    println!("{} jobs were done, never more than {AT_ONCE} at once (most: {most})", WORKERS * JOBS_EACH);
    assert!((1..=AT_ONCE).contains(&most));
    Ok(())
}

async fn work(client: Client, number: u32, busy: Arc<Busy>) -> Result<(), Error> {
    let session = client.session().owner(format!("worker {number}")).await?;
    for job in 0..JOBS_EACH {
        // First come, first served: nobody starves.
        let slot = session.lock("recipes/api-calls").slots(AT_ONCE).acquire().await?;
        let now = busy.now.fetch_add(1, Ordering::SeqCst) + 1;
        busy.most.fetch_max(now, Ordering::SeqCst);
        println!("worker {number} does job {job}, beside {} others", now - 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
        busy.now.fetch_sub(1, Ordering::SeqCst);
        slot.release().await?;
    }
    session.end().await
}

//! A service of three processes of which one leads: `cargo run --example leader_service` on the local cluster, or the one in
//! `QUORATE_ENDPOINTS`.
//!
//! It starts itself three times, lets them elect a leader, kills that with SIGKILL and waits for the next.

use std::error::Error as StdError;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use quorate_client::api::LeaderView;
use quorate_client::{Client, Error, Value};
use serde_json::json;

type Outcome = Result<(), Box<dyn StdError>>;

const ELECTION: &str = "recipes/leader";

#[tokio::main]
async fn main() -> Outcome {
    match std::env::args().nth(1) {
        Some(name) => serve(&name).await,
        None => demonstrate().await,
    }
}

/// What each process does: stands until it leads, leads until it is lost, and then stands again.
async fn serve(name: &str) -> Outcome {
    let client = Client::from_env()?;
    loop {
        let session = client.session().ttl(Duration::from_secs(1)).owner(name).await?;
        let leadership = session.elect(ELECTION).value(Value::json(name)?).campaign().await?;
        println!("{name} leads now, in term {}", leadership.term()?);
        tokio::select! {
            loss = leadership.lost() => println!("{name} leads no more: {loss}"),
            done = work(&client, name, &leadership) => done?,
        }
    }
}

/// What only the leader does. The guard holds even if this process was asleep when its leadership was lost.
async fn work(client: &Client, name: &str, leadership: &quorate_client::Leadership) -> Result<(), Error> {
    for beat in 0.. {
        let value = Value::json(&json!({"by": name, "beat": beat}))?;
        match client.put("recipes/heartbeat", value).guarded_by(leadership).await {
            // Somebody else leads; `lost` will say so.
            Err(Error::Rejected(refused)) => println!("{name}: {}", refused.detail),
            other => drop(other?),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn demonstrate() -> Outcome {
    let client = Client::from_env()?;
    let mut service = Service(Vec::new());
    for name in ["ann", "ben", "cid"] {
        service.0.push((name, Command::new(std::env::current_exe()?).arg(name).spawn()?));
    }
    let first = leader_after(&client, 0).await?;
    println!("killing {}", first.owner);
    let killed = Instant::now();
    service.kill(&first.owner)?;
    let second = leader_after(&client, first.term).await?;
    println!("{} followed it after {:?}", second.owner, killed.elapsed());
    assert_ne!(first.owner, second.owner);
    Ok(())
}

/// Waits for a leader with a greater term.
async fn leader_after(client: &Client, term: u64) -> Result<LeaderView, Error> {
    loop {
        match client.election(ELECTION).leader().await? {
            Some(leader) if leader.term > term => return Ok(leader),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The processes; they end with this one.
struct Service(Vec<(&'static str, Child)>);

impl Service {
    fn kill(&mut self, name: &str) -> std::io::Result<()> {
        for (_, process) in self.0.iter_mut().filter(|(other, _)| *other == name) {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for (name, process) in &mut self.0 {
            if let Err(error) = process.kill().and_then(|()| process.wait().map(drop)) {
                eprintln!("{name}: {error}");
            }
        }
    }
}

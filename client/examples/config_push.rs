//! Configuration that is pushed: a service that follows its settings, `cargo run --example config_push`.
//!
//! The service reads all settings once and then takes each change as it happens, over fail-overs and restarts of nodes, without ever
//! asking again. Several settings that belong together are changed in one transaction, and the service takes them together: it
//! never runs with half of them. Here the operator is in the same program, which ends when the service has what it was sent.

use std::collections::BTreeMap;
use std::error::Error as StdError;

use quorate_client::api::{ErrorCode, Name};
use quorate_client::{Client, Error, Op, Value, Watch, Watched};
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn StdError>>;

const PREFIX: &str = "example/config/";

/// The settings as the service has them.
#[derive(Debug, Default)]
struct Settings {
    values: BTreeMap<Name, serde_json::Value>,
    revision: u64,
}

impl Settings {
    /// Follows the settings; calls `apply` each time they are complete. Ends when that says so.
    async fn follow(client: &Client, mut apply: impl FnMut(&Settings) -> bool) -> Outcome<()> {
        loop {
            let watch = client.watch(PREFIX).initial().start().await?;
            match Self::default().take(watch, &mut apply).await {
                // It was cut off for so long that changes are no longer known: all anew.
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::Compacted => {}
                ended => return Ok(ended?),
            }
        }
    }

    async fn take(mut self, mut watch: Watch, apply: &mut impl FnMut(&Settings) -> bool) -> Result<(), Error> {
        let mut is_synced = false;
        loop {
            match watch.next().await? {
                Watched::Restarted => self.values.clear(),
                Watched::Synced(revision) => {
                    (is_synced, self.revision) = (true, revision);
                }
                Watched::Event(event) => {
                    self.revision = event.revision;
                    match &event.entry {
                        Some(entry) => self.values.insert(event.key, entry.json()?),
                        None => self.values.remove(&event.key),
                    };
                }
                // Of a later version of the library.
                _ => {}
            }
            // Events of one revision come together: once the watch says that it is whole, so are the settings.
            if is_synced && !watch.has_more() && apply(&self) {
                return Ok(());
            }
        }
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let client = Client::from_env()?;
    let set = |name: &str, value: serde_json::Value| -> Result<Op, Error> {
        Ok(Op::put(format!("{PREFIX}{name}"), Value::json(&value)?))
    };
    client.txn().then(set("host", json!("db-1"))?).then(set("port", json!(5432))?).await?;
    let operator = async {
        for number in 2..=4 {
            let host = set("host", json!(format!("db-{number}")))?;
            client.txn().then(host).then(set("port", json!(5430 + number))?).await?;
        }
        Ok::<(), Error>(())
    };
    let service = Settings::follow(&client, |settings| {
        let of = |name: &str| settings.values.get(&Name::from(format!("{PREFIX}{name}"))).cloned().unwrap_or_default();
        println!("as of revision {}: {}:{}", settings.revision, of("host"), of("port"));
        of("host") == json!("db-4") && of("port") == json!(5434)
    });
    let (operated, served) = futures::join!(operator, service);
    operated?;
    served
}

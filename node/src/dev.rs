//! What a node with `--dev` says once it serves: where it is, and what to type next.
//!
//! Owns these words. Never changes what the node does.

use std::time::{Duration, Instant};

use quorate_node_core::backend::Consistency;
use quorate_node_core::logging;
use quorate_node_core::logging::LogFormat;
use quorate_node_replica::app::App;
use quorate_threads::watchdog;

use crate::config::{Config, DEV_CLIENT_LISTEN};
use crate::server::OnStarted;

/// How long one look whether the node serves may take, and the pause before the next.
const LOOK_MAX: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Greets whoever started the node by hand; nobody else is told anything. Lines for programs get no prose among them.
pub fn greeting(config: &Config) -> OnStarted {
    if !config.dev || config.log_format == LogFormat::Json {
        return Box::new(|_, _| {});
    }
    let text = text(config);
    Box::new(move |app, _| {
        let app = app.clone();
        watchdog::spawn(async move {
            serves(&app).await;
            logging::say(&text);
        });
    })
}

/// Returns once the node answers a linearizable read.
async fn serves(app: &App) {
    while app.unready_reason().is_some()
        || app.reads().barrier(Consistency::Linearizable, Instant::now() + LOOK_MAX).await.is_err()
    {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn text(config: &Config) -> String {
    let address = &config.client_advertise;
    let mut quorate = "quorate".to_owned();
    let mut curl = format!("curl {address}");
    if config.tls.is_some() {
        quorate += &format!(" --ca CA.crt --endpoints https://{address}");
        curl = format!("curl --cacert CA.crt https://{address}");
    } else if address != DEV_CLIENT_LISTEN {
        // The command line looks for this node elsewhere.
        quorate += &format!(" --endpoints {address}");
    }
    format!(
        "A node to try things with serves at {address}. It keeps nothing once it ends (Ctrl-C). In another terminal:\n  \
         {quorate} put greeting '\"hello\"'\n  \
         {quorate} get greeting\n  \
         {curl}/v1/kv/greeting"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::Args;

    fn said(arguments: &[&str]) -> String {
        let arguments = ["quorate-node", "--dev"].iter().chain(arguments);
        text(&Config::try_from(Args::try_parse_from(arguments).unwrap()).unwrap())
    }

    #[test]
    fn the_next_command_names_the_node_only_where_it_would_not_be_found() {
        assert!(
            said(&[]).contains("at 127.0.0.1:7101.") && said(&[]).contains("\n  quorate put greeting '\"hello\"'\n")
        );
        assert!(
            said(&["--client-listen", "127.0.0.1:9"]).contains("\n  quorate --endpoints 127.0.0.1:9 get greeting\n")
        );
    }
}

//! New certificates while the node runs.
//!
//! Owns the looking: files that have changed are taken whole or not at all. What that means for connections that are open is the port's.

use std::sync::Arc;
use std::time::Duration;

use quorate_threads::background;

use super::PortTls;
use crate::metrics::{MetricsSource, Sample};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Looks at the files of these ports for ever.
pub async fn run(ports: Vec<Arc<PortTls>>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        for port in &ports {
            let looked = Arc::clone(port);
            match background::blocking(move || looked.reload()).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(ended))) => {
                    let [field, ..] = port.port().fields();
                    tracing::info!(field, left = ?port.seconds_left(), "new TLS certificates are in use");
                    if ended > 0 {
                        tracing::warn!(field, ended, "connections were ended whose certificates are revoked");
                    }
                }
                Ok(Err(reason)) => {
                    tracing::error!(reason, "new TLS files were not taken, the old ones stay; correct them");
                }
                Err(error) => tracing::warn!(%error, "the TLS files could not be looked at"),
            }
        }
    }
}

/// The numbers of both ports.
pub struct TlsSamples(pub Vec<Arc<PortTls>>);

impl MetricsSource for TlsSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let failures = self.0.iter().map(|port| port.failures()).sum();
        let help = "Times that changed TLS files were not taken, and the old ones stayed";
        out.push(Sample::counter("tls_reload_failures", help, failures));
        let help = "Time until a certificate or a list of revoked ones in use expires, less than 0 once it has";
        for (label, seconds) in self.0.iter().flat_map(|port| port.seconds_left()) {
            out.push(Sample::seconds("tls_certificate_left_seconds", help, seconds).labelled("certificate", label));
        }
    }
}

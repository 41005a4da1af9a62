//! The cluster that can be hurt: `cluster.py` of the suite, and its control port.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;

pub struct Cluster {
    process: Child,
    described: Described,
}

/// What the program prints once the nodes serve.
#[derive(Deserialize)]
struct Described {
    endpoints: Vec<String>,
    control: String,
}

impl Cluster {
    pub fn start(script: &Path) -> Result<Self, String> {
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("python3: {error}"))?;
        match first_line(&mut process) {
            Ok(described) => Ok(Self { process, described }),
            Err(why) => {
                stop(&mut process);
                Err(format!("{} did not start a cluster: {why}", script.display()))
            }
        }
    }

    /// The first so many endpoints, or all.
    pub fn endpoints(&self, count: Option<usize>) -> String {
        let all = &self.described.endpoints;
        all[..count.map_or(all.len(), |count| count.min(all.len()))].join(",")
    }

    /// Does one thing to the cluster; gives what it answers.
    pub async fn fault(&self, name: &str, with: &Value) -> Result<Value, String> {
        let (status, answer) = self.post(name, with.to_string()).await.map_err(|error| format!("{name}: {error}"))?;
        let text = String::from_utf8_lossy(&answer);
        if status != StatusCode::OK {
            return Err(format!("{name}: {text}"));
        }
        serde_json::from_slice(&answer).map_err(|error| format!("{name}: {error} in {text}"))
    }

    async fn post(&self, path: &str, body: String) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error>> {
        let address = self.described.control.trim_start_matches("http://");
        let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(address).await?)).await?;
        let request = Request::post(format!("/{path}")).header("host", address).body(Full::new(Bytes::from(body)))?;
        // The connection is driven until the answer is whole.
        let answer = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes()))
        };
        let (answer, connection) = tokio::join!(answer, connection);
        connection?;
        Ok(answer?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

fn first_line(process: &mut Child) -> Result<Described, String> {
    let out = process.stdout.as_mut().ok_or("it has no standard output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    if line.is_empty() {
        return Err("it ended".to_owned());
    }
    serde_json::from_str(&line).map_err(|error| format!("{error} in `{}`", line.trim_end()))
}

/// It ends at the end of its standard input.
fn stop(process: &mut Child) {
    drop(process.stdin.take());
    match process.wait() {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("client-conformance: the cluster ended with {status}"),
        Err(error) => eprintln!("client-conformance: the cluster: {error}"),
    }
}

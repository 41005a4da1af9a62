//! Real nodes for the tests of other programs.
//!
//! A [`TestCluster`] starts `quorate-node` processes on free ports, with their data in a temporary directory, and ends them when it is
//! dropped. The program is the one that `QUORATE_NODE` names, else the one on the `PATH`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use quorate_client::testing::TestCluster;
//!
//! // One node answers in a moment; three can lose one.
//! let cluster = TestCluster::start(1).await?;
//! let client = cluster.client();
//! client.put_json("greeting", "hello").await?;
//! assert_eq!(client.get_json::<String>("greeting").await?.expect("it was written").content, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! Owns processes, ports and directories. Talks to the nodes as any client does.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt, io};

use self::ports::Ports;
use crate::client::Client;

// For the tests of Quorate itself.
#[doc(hidden)]
pub mod ports;

/// The environment variable that names the program of a node.
pub const NODE_ENV: &str = "QUORATE_NODE";
/// How long nodes may take until they are ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two looks at nodes that start.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often new ports are tried when another program was faster.
const PORT_TRIES: u32 = 5;
/// Lines of a log that an error shows.
const LOG_LINES: usize = 20;

/// Why there is no cluster to test with.
#[derive(Debug)]
pub struct TestError {
    what: String,
    source: Option<io::Error>,
}

impl fmt::Display for TestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(out, "{}: {source}", self.what),
            None => out.write_str(&self.what),
        }
    }
}

impl std::error::Error for TestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> TestError {
    let what = what.into();
    move |source| TestError { what, source: Some(source) }
}

/// Moves the wall clock that all clients of this process go by: so far ahead of the machine's, as after a suspend through which the
/// monotonic clock stood still. Sessions are suspect then until they are renewed, and what was sent before is not repeated. Zero puts it
/// right again.
pub fn set_wall_ahead(by: Duration) {
    crate::call::moment::set_wall_ahead(by);
}

/// A cluster of real nodes, ended when this is dropped.
///
/// # Examples
///
/// ```no_run
/// use quorate_client::testing::TestCluster;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
///
/// // Three nodes: what does a program do while one is down?
/// let mut cluster = TestCluster::start(3).await?;
/// let client = cluster.client();
/// cluster.kill(0);
/// client.put_json("greeting", "hello").await?;
/// cluster.restart(0).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestCluster {
    nodes: Vec<Node>,
    // After the nodes, so that they are gone before their data is.
    _home: Home,
    // Theirs until they are gone, and while one of them is down.
    _ports: Ports,
}

#[derive(Debug)]
struct Node {
    address: SocketAddr,
    log: PathBuf,
    command: Command,
    child: Option<Child>,
}

#[derive(Debug)]
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        // What is left of it is in the system's directory for what may be left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl TestCluster {
    /// Starts so many nodes, and waits until all are ready. One node keeps nothing beyond its process.
    pub async fn start(nodes: usize) -> Result<Self, TestError> {
        let program = env::var_os(NODE_ENV).unwrap_or_else(|| "quorate-node".into());
        Self::start_program(Path::new(&program), nodes).await
    }

    /// [`Self::start`] with this program, whatever the environment says.
    pub async fn start_program(program: &Path, nodes: usize) -> Result<Self, TestError> {
        let mut tries = 1;
        loop {
            let mut cluster = Self::prepare(program, nodes)?;
            cluster.nodes.iter_mut().try_for_each(Node::start)?;
            match cluster.ready().await {
                // Another program took a port between our look and the node's.
                Err(error) if tries < PORT_TRIES && error.what.to_lowercase().contains("in use") => tries += 1,
                ready => return ready.map(|()| cluster),
            }
        }
    }

    /// A client of all nodes.
    pub fn client(&self) -> Client {
        Client::new(self.endpoints()).expect("addresses of this machine are endpoints")
    }

    /// The addresses of all nodes, as [`crate::ClientBuilder::endpoints`] takes them.
    pub fn endpoints(&self) -> String {
        self.nodes.iter().map(|node| node.address.to_string()).collect::<Vec<_>>().join(",")
    }

    /// Ends a node at once, as a crash does; nodes are counted from 0.
    ///
    /// # Panics
    ///
    /// Where there are not so many.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].end();
    }

    /// Starts a node again that was killed, with the data that it has; waits until all that run are ready.
    ///
    /// # Panics
    ///
    /// Where there are not so many.
    pub async fn restart(&mut self, node: usize) -> Result<(), TestError> {
        self.nodes[node].end();
        self.nodes[node].start()?;
        self.ready().await
    }

    /// Ports, directories and command lines; nothing runs yet.
    fn prepare(program: &Path, count: usize) -> Result<Self, TestError> {
        if count == 0 {
            return Err(TestError { what: "a cluster has at least one node".into(), source: None });
        }
        let home = env::temp_dir().join(format!("quorate-testing-{:016x}", rand::random::<u64>()));
        fs::create_dir(&home).map_err(failed(format!("cannot make {}", home.display())))?;
        let home = Home(home);
        let ports = Ports::take(2 * count).map_err(failed("no free port"))?;
        let (clients, peers) = ports.split_at(count);
        let join: Vec<_> = peers.iter().enumerate().map(|(node, peer)| format!("{}={peer}", node + 1)).collect();
        let nodes = clients.iter().zip(peers).enumerate().map(|(number, (client, peer))| {
            let mut command = command(program, &home.0);
            command.args(["--client-listen", &client.to_string(), "--peer-listen", &peer.to_string()]);
            if count == 1 {
                command.arg("--dev");
            } else {
                let data = home.0.join(format!("node-{}", number + 1));
                command.args(["--node-id", &(number + 1).to_string(), "--join", &join.join(",")]);
                command.arg("--data-dir").arg(data).args(["--ballast-bytes", "0", "--min-free-bytes", "0"]);
            }
            let log = home.0.join(format!("node-{}.log", number + 1));
            Node { address: *client, log, command, child: None }
        });
        Ok(Self { nodes: nodes.collect(), _home: home, _ports: ports })
    }

    /// Waits until every node that runs would serve a linearizable read.
    async fn ready(&mut self) -> Result<(), TestError> {
        let until = Instant::now() + READY_WITHIN;
        let running: Vec<_> = self.nodes.iter().filter(|node| node.child.is_some()).collect();
        let endpoints: Vec<_> = running.iter().map(|node| node.address.to_string()).collect();
        let client = Client::builder().endpoints(endpoints.join(",")).discover_members(false).build();
        let client = client.expect("addresses of this machine are endpoints");
        loop {
            self.nodes.iter_mut().try_for_each(Node::check)?;
            if client
                .wait_ready(false, Duration::ZERO)
                .await
                .is_ok_and(|nodes| nodes.iter().all(|node| node.is_ready()))
            {
                return Ok(());
            }
            if Instant::now() > until {
                let logs: Vec<_> = self.nodes.iter().map(Node::log_end).collect();
                let what = format!("the nodes are not ready after {READY_WITHIN:?}:\n{}", logs.join("\n"));
                return Err(TestError { what, source: None });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Node {
    fn start(&mut self) -> Result<(), TestError> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(failed(format!("cannot write {}", self.log.display())))?;
        let program = self.command.get_program().to_string_lossy().into_owned();
        let twin = log.try_clone().map_err(failed("cannot share the log"))?;
        let child = self.command.stdin(Stdio::null()).stdout(log).stderr(twin).spawn();
        let hint = "name it in QUORATE_NODE, or put it on the PATH";
        self.child = Some(child.map_err(failed(format!("cannot start `{program}` ({hint})")))?);
        Ok(())
    }

    /// Whether it has not ended by itself.
    fn check(&mut self) -> Result<(), TestError> {
        let Some(child) = &mut self.child else { return Ok(()) };
        match child.try_wait().map_err(failed("cannot ask for a process"))? {
            None => Ok(()),
            Some(status) => {
                let what = format!("a node ended at its start with {status}:\n{}", self.log_end());
                Err(TestError { what, source: None })
            }
        }
    }

    fn log_end(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// The program, without settings that the environment of the test might have for it.
fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUORATE_")) {
        command.env_remove(name);
    }
    // A node that keeps nothing has its files there; nobody else removes them when it is killed.
    command.env("TMPDIR", home);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_cannot_be_started_is_named() {
        let program = Path::new("/no/such/program");
        let error = TestCluster::start_program(program, 1).await.expect_err("it cannot be started");
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}

//! A coding agent as a script: starts `quorate mcp` and talks to it as the program of an agent does, in lines of JSON-RPC.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Longer than a call may wait.
const ANSWERED_WITHIN: Duration = Duration::from_secs(70);

/// The agent.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    requests: u64,
    /// What the server said of itself.
    pub introduced: Value,
}

impl Agent {
    /// Starts the server with these arguments, and opens the protocol.
    pub async fn start(quorate: &Path, endpoints: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(quorate);
        command.args(["--endpoints", endpoints, "mcp"]).args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let input = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut agent = Self { child, input, lines, requests: 0, introduced: Value::Null };
        let program = json!({"name": "scripted", "version": "1"});
        let opening = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": program});
        agent.introduced = agent.request("initialize", opening).await["result"].take();
        agent.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        agent
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    async fn send(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("it reads");
    }

    /// Sends a request; gives the message that answers it.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answered = async {
            loop {
                let line = self.lines.next_line().await.expect("can be read").expect("it goes on");
                let message: Value = serde_json::from_str(&line).expect("a line of JSON");
                if message["id"] == id {
                    return message;
                }
            }
        };
        tokio::time::timeout(ANSWERED_WITHIN, answered).await.expect("in time")
    }

    /// Calls a tool: what it gave, or how it was refused.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let mut message = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let mut result = message["result"].take();
        assert!(result.is_object(), "no result but {message}");
        let answer = result["structuredContent"].take();
        // Programs that know no structured content read the text.
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), answer);
        if result["isError"] == true { Err(answer) } else { Ok(answer) }
    }

    /// Calls a tool that does it.
    pub async fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let said = format!("{tool} {arguments}");
        self.call(tool, arguments).await.unwrap_or_else(|refusal| panic!("{said}: {refusal}"))
    }

    /// Calls a tool that refuses it with this code.
    pub async fn refused(&mut self, code: &str, tool: &str, arguments: Value) -> Value {
        let said = format!("{tool} {arguments}");
        let refusal = self.call(tool, arguments).await.expect_err(&said);
        assert_eq!(refusal["error"], code, "{said}: {refusal}");
        refusal
    }

    /// Ends it as a crash does.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it ran");
    }

    /// Disconnects, and waits until it has ended.
    pub async fn leave(self) -> ExitStatus {
        let Self { mut child, input, .. } = self;
        drop(input);
        tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("in time").expect("it ran")
    }
}

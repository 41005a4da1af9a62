//! The protocol's side: what the server says of itself, and how a call of a tool is answered.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool as Shown,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::agent::Agent;
use crate::refusal::Refusal;
use crate::table;
use crate::tool::{Outcome, Tool};

/// What every agent is told first.
const INSTRUCTIONS: &str = "\
Quorate is a store that several agents share; what one reads is what the last one wrote. Use it to divide work, and not to lose or overwrite \
each other's.
- Work: claim_next gives you an item that nobody else has; end it with claim_complete or claim_release.
- Files and other things that two must not change at once: lock_acquire a lock named after it (`file:src/main.rs`) before you begin, \
lock_release it when you are done. If it is refused, the answer says who has it: do something else first.
- Shared state: entry_get, then entry_put with its `cas`. If it is refused, somebody was faster: decide anew on `current`. Give guard_lock \
to writes that belong under a lock.
- All that you hold goes when you disconnect. If a call is refused with `session_lost`, you hold nothing any more: begin again by reading.
A refusal says in `applied` whether anything was written, and in `next` what to do.";

/// The tools, which all agents share.
pub struct Toolbox {
    tools: Vec<Tool>,
    instructions: String,
    versions: &'static [ProtocolVersion],
}

impl Toolbox {
    /// `versions`: those of the protocol that the transport can keep an agent's session in.
    pub fn new(read_only: bool, prefix: &str, versions: &'static [ProtocolVersion]) -> Self {
        let mut instructions = INSTRUCTIONS.to_owned();
        if read_only {
            instructions.push_str("\nYou may only read: there are no tools that change something.");
        }
        if !prefix.is_empty() {
            instructions.push_str(&format!("\nAll keys and names that you may use begin with `{prefix}`."));
        }
        Self { tools: table::tools(read_only), instructions, versions }
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }
}

/// The server of one agent.
pub struct Server {
    agent: Arc<Agent>,
    toolbox: Arc<Toolbox>,
}

impl Server {
    pub fn new(agent: Arc<Agent>, toolbox: &Arc<Toolbox>) -> Self {
        Self { agent, toolbox: toolbox.clone() }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let program = Implementation::new("quorate", env!("CARGO_PKG_VERSION")).with_title("Quorate");
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(program).with_instructions(&self.toolbox.instructions)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.toolbox.versions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.toolbox.tools.iter().map(|tool| tool.shown().clone()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Shown> {
        self.toolbox.find(name).map(|tool| tool.shown().clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.toolbox.find(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        if let Some(client) = context.client_info() {
            self.agent.introduce(&client.name);
        }
        let call = call(&self.agent, tool, request.arguments.unwrap_or_default());
        // A call that is given up is dropped; who waited in a queue leaves it.
        let outcome = context.ct.run_until_cancelled(call).await;
        Ok(shown(outcome.unwrap_or_else(|| Err(Refusal::new("cancelled", "the call was cancelled")))).into())
    }
}

/// Runs a tool. What was lost is told first: nothing is changed by who believes to hold what it does not hold.
async fn call(agent: &Arc<Agent>, tool: &Tool, arguments: serde_json::Map<String, Value>) -> Outcome {
    if !tool.only_reads()
        && let Some(lost) = agent.take_lost()
    {
        return Err(lost.refusal());
    }
    let mut answer = tool.run(agent.clone(), arguments).await?;
    if tool.only_reads() {
        agent.note_lost(&mut answer);
    }
    Ok(answer)
}

fn shown(outcome: Outcome) -> CallToolResult {
    match outcome {
        Ok(answer) => CallToolResult::structured(Value::Object(answer)),
        Err(refusal) => CallToolResult::structured_error(refusal.into_json()),
    }
}

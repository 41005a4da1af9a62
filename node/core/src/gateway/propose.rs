//! The one way of a command from a checked request to the reply of the cluster.
//!
//! Owns request ids, the caller's permission, the audit log, dry runs, and what a command costs its account. Checks nothing of a command but its size.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_api::{Applied, ErrorCode};
use quorate_machine::command_codec;
use quorate_machine::limits::COMMAND_BYTES_MAX;
use quorate_machine::types::{Action, Command, Outcome, Rejection, Reply, RequestId};
use quorate_threads::background;

use crate::backend::{AppError, Consistency, Decision};
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::paced::hold_awake;
use crate::gateway::audit_event::{Event, Names};
use crate::gateway::auth::requirement;
use crate::gateway::caller::{Admitted, Caller};
use crate::gateway::failure::{Effect, Failure};
use crate::limits::{self, DEAR_BYTES};

/// Time of a processor that each node takes for a command, however little it does.
const COMMAND: Duration = Duration::from_micros(10);

/// Time of a processor for each byte that is counted. A step of apply takes about 5 ns and counts as two bytes; the rest is what log, followers
/// and compaction take for a byte.
const BYTE: Duration = Duration::from_nanos(8);

/// Number of nodes in most clusters. Each node applies every command.
const NODES: u32 = 3;

/// The answer is not of the kind of what was asked, by another build perhaps: it was decided, and how cannot be told.
pub fn confused(reply: &Reply) -> Failure {
    let detail = format!("the command of log index {} was answered as something else", reply.index);
    Failure::new(ErrorCode::Internal, Applied::Unknown, detail)
}

/// Each write has a request id, the caller's or our own, so that nodes may forward and retry it safely.
pub async fn propose(
    caller: &Caller<'_>,
    action: Action,
    request_id: RequestId,
    deadline: Instant,
) -> Result<Reply, Failure> {
    if caller.is_judged_or_noted() {
        return Box::pin(propose_judged(caller, action, request_id, deadline)).await;
    }
    let command = Command { request_id: Some(request_id), ..Command::unnamed(action) };
    submit(caller, command, deadline).await
}

async fn submit(caller: &Caller<'_>, command: Command, deadline: Instant) -> Result<Reply, Failure> {
    let api = caller.api;
    let is_dear = api.node.is_dear(&command);
    // It may hold room, or a place, until it is decided.
    let _awake = hold_awake();
    let work = Work::begin(caller, is_dear);
    let decided = api.node.write(command, deadline).await;
    let Decision { reply, cost } = decided.map_err(|error| Failure::from_app(error, Effect::Write))?;
    work.ends(cost);
    api.confirm(reply.revision);
    charge(caller, &reply, cost);
    Ok(reply)
}

/// Charges the caller's account for a command that every node refused only after much work, and for one that took much: a client that repeats
/// such commands has to wait. Nothing is refused for that before the log, since the work depends on the entries. A command that is too
/// dear by the request alone is refused before any node does work for it.
fn charge(caller: &Caller<'_>, reply: &Reply, cost: u32) {
    let at_least = if cost as usize >= DEAR_BYTES { limits::DEAR_OPS } else { 0 };
    let ops = (reply.outcome.steps_in_vain() / limits::STEPS_FOR_OP).max(at_least);
    // Apply did not look at a command of an older access revision, and it comes again.
    let comes_again = matches!(reply.outcome, Outcome::Rejected(Rejection::AccessChanged));
    if ops == 0 || reply.replayed || comes_again {
        return;
    }
    let account = caller.api.admission.accounts.of(|| Account::of(caller.who, caller.origin.neighbour()));
    if let Some(account) = account {
        account.pay(usize::try_from(ops).unwrap_or(usize::MAX));
    }
}

/// The work of a command at all nodes. The part that is known is charged to its account at the beginning, so that the next request of the account
/// sees it, and the rest once it was decided. A caller that hangs up has paid for the beginning.
struct Work<'a> {
    caller: &'a Caller<'a>,
    /// The bytes that were charged.
    bytes: u32,
}

impl<'a> Work<'a> {
    fn begin(caller: &'a Caller<'a>, is_dear: bool) -> Self {
        let bytes = if is_dear { DEAR_BYTES as u32 } else { 0 };
        caller.lanes.share.spend((COMMAND + BYTE * bytes) * NODES);
        Self { caller, bytes }
    }

    fn ends(self, bytes: u32) {
        let Self { caller, bytes: charged } = self;
        if bytes > charged {
            caller.api.admission.turns.charge(Arc::clone(caller.lanes), BYTE * (bytes - charged) * NODES);
        }
    }
}

/// Proposes a command after checking its caller's permission, and writes it to the audit log.
async fn propose_judged(
    caller: &Caller<'_>,
    action: Action,
    request_id: RequestId,
    deadline: Instant,
) -> Result<Reply, Failure> {
    let names = if caller.api.auth.notes() { Names::of(&requirement::on_action(&action)) } else { Names::default() };
    let mut noted = Noted { caller, names, id: request_id.0.clone(), is_told: false };
    let result = until_judged_in_time(caller, action, Some(request_id), deadline).await;
    noted.tell(Some(&result));
    result
}

/// Proposes a step of a request that has several. It is judged as every command is; the audit log has the request as a whole, and
/// nothing is kept under its id, since only one command could be: a step may be taken again.
pub async fn propose_step(caller: &Caller<'_>, action: Action, deadline: Instant) -> Result<Reply, Failure> {
    until_judged_in_time(caller, action, None, deadline).await
}

/// A command on its way into the audit log, where it gets to also if whoever sent it hangs up before it is answered: it may
/// be decided all the same.
struct Noted<'a> {
    caller: &'a Caller<'a>,
    names: Names,
    id: String,
    is_told: bool,
}

impl Noted<'_> {
    fn tell(&mut self, result: Option<&Result<Reply, Failure>>) {
        self.is_told = true;
        let (caller, names) = (self.caller, std::mem::take(&mut self.names));
        caller.api.auth.note(|| Event::command(caller, names, &self.id, result));
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(None);
        }
    }
}

/// Proposes until the rules by which it was let in are those by which it is decided. What was refused for that reason left nothing
/// behind, so it goes under the same request id again.
async fn until_judged_in_time(
    caller: &Caller<'_>,
    action: Action,
    request_id: Option<RequestId>,
    deadline: Instant,
) -> Result<Reply, Failure> {
    let backend = &caller.api.node;
    loop {
        let Admitted { principal, access_revision } = caller.admit(deadline, &requirement::on_action(&action)).await?;
        let (request_id, action) = (request_id.clone(), action.clone());
        let command = Command { request_id, principal, action, access_revision };
        let reply = submit(caller, command, deadline).await?;
        if !matches!(reply.outcome, Outcome::Rejected(Rejection::AccessChanged)) {
            return Ok(reply);
        }
        let applied = tokio::time::timeout_at(deadline.into(), backend.wait_applied(reply.index)).await;
        if applied.is_err() || Instant::now() >= deadline {
            return Err(Failure::from_app(AppError::TimeoutNotProposed, Effect::Write));
        }
    }
}

/// A dry run is a linearizable read of what the write would do.
pub async fn evaluate(caller: &Caller<'_>, action: Action, deadline: Instant) -> Result<Reply, Failure> {
    caller.admit_read(Consistency::Linearizable, deadline, &requirement::on_action(&action)).await?;
    let command = rehearsal(caller.who.name(), action)?;
    // A short command may take as many steps as one may that is decided, and Raft shares these threads.
    let tried = background::in_place(usize::MAX, || caller.api.node.dry_run(&command));
    let reply = tried.map_err(|fault| Failure::from_fault(&fault))?;
    charge(caller, &reply, 0);
    Ok(reply)
}

/// What is only evaluated. It has no request id: nothing is kept of it. Too large is what would be too large for the log.
pub fn rehearsal(principal: &str, action: Action) -> Result<Command, Failure> {
    let command = Command { principal: principal.to_owned(), ..Command::unnamed(action) };
    let actual = command_codec::encode_command(&command).len();
    match actual > COMMAND_BYTES_MAX {
        true => Err(Failure::from_app(AppError::TooLarge { actual, limit: COMMAND_BYTES_MAX }, Effect::Read)),
        false => Ok(command),
    }
}

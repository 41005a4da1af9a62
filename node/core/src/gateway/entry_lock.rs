//! Locks of entries that are waited for, first come first served.
//!
//! Owns the way from the request to what is answered: a turn in the queue that the leader keeps, then the lock is asked for as if
//! nobody had waited. What the request is answered was decided under its request id or one made of it, so a retry finds what an
//! earlier try was given. The place in the queue is memory: it goes with the request.

use std::time::{Duration, Instant};

use quorate_api::{Applied, ErrorCode};
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::query::ReadPosition;
use quorate_machine::types::{Action, Outcome, Rejection, Reply, RequestId, WriteOp};

use crate::backend::{LockPlace, SharedNode};
use crate::gateway::admission::paced::hold_awake;
use crate::gateway::admission::request_class::RequestClass;
use crate::gateway::auth::requirement;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::gateway::propose::propose;
use crate::timings::{self, Part};

/// How often one request asks for a lock that somebody who did not wait got before it. Each time leaves an outcome.
const TRIES_MAX: usize = 64;

/// Locks an entry once it can be locked, or says after `wait` why it cannot.
pub async fn lock(call: &Call, op: WriteOp, wait: Duration) -> Result<Reply, Failure> {
    let end = Instant::now() + wait;
    let (mut place, id) = (call.api.node.lock_place(op.key.clone()), RequestId(call.request_id()));
    let action = Action::Write(op);
    // Who may not lock it takes no place in the queue; and what an earlier try of the request came to is known from here on.
    call.admit_read(&requirement::on_action(&action)).await?;
    // All who wait for the entry wait for whose turn it is.
    let _awake = hold_awake();
    let ask = async |id: RequestId| propose(&call.caller(), action.clone(), id, Instant::now() + call.timeout).await;
    for number in 0..TRIES_MAX {
        let part = id.of_part(number);
        let mut may_go_on = is_decided(call, &part)?;
        if !may_go_on {
            if is_decided(call, &last_word(&id))? {
                break;
            }
            may_go_on = come_to_turn(call, &mut *place, end).await?;
        }
        let reply = ask(part).await?;
        if !is_locked(&reply) {
            return Ok(reply);
        }
        if !may_go_on {
            break;
        }
    }
    ask(last_word(&id)).await
}

/// What was kept of a request of `owner`, also of one that waited for the lock on an entry: that one was refused a few times, each under an id of
/// its own, until it was not or had waited for long enough.
pub fn kept(backend: &SharedNode, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), Failure> {
    let read = |id: &RequestId| backend.request(owner, id).map_err(|fault| Failure::from_fault(&fault));
    let was_refused = |kept: &Option<KeptReply>| kept.as_ref().is_some_and(|kept| is_locked(&kept.reply));
    let mut found = read(id)?;
    for number in 1..TRIES_MAX {
        if !was_refused(&found.1) {
            return Ok(found);
        }
        match read(&id.of_part(number))? {
            next @ (_, Some(_)) => found = next,
            (_, None) => break,
        }
    }
    if was_refused(&found.1)
        && let last @ (_, Some(_)) = read(&last_word(id))?
    {
        return Ok(last);
    }
    Ok(found)
}

/// The id under which a request asks when it may not wait any longer: a retry finds that this is what it came to.
fn last_word(id: &RequestId) -> RequestId {
    id.of_part(TRIES_MAX)
}

/// Whether this is what who finds a lock on the entry is told.
fn is_locked(reply: &Reply) -> bool {
    matches!(reply.outcome, Outcome::Rejected(Rejection::Locked { .. }))
}

fn is_decided(call: &Call, id: &RequestId) -> Result<bool, Failure> {
    let (_, kept) = call.api.node.request(call.who().name(), id).map_err(|fault| Failure::from_fault(&fault))?;
    Ok(kept.is_some())
}

/// Waits for the turn. False: the time is over.
async fn come_to_turn(call: &Call, place: &mut dyn LockPlace, end: Instant) -> Result<bool, Failure> {
    let Some(_waiting) = call.wait() else { return Err(call.api.admission.classes.refusal(RequestClass::Waiting)) };
    let ending = || Failure::new(ErrorCode::NotReady, Applied::No, "this node is stopping; ask again at another one");
    let stop = call.stop().ok_or_else(ending)?;
    let turn = async {
        tokio::select! {
            turn = place.turn(end) => turn.map_err(|fault| Failure::from_fault(&fault)),
            () = stop.cancelled() => Err(ending()),
        }
    };
    timings::on(Part::Wait, turn).await
}

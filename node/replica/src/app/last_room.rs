//! What is still taken where a disk has hardly any room.
//!
//! Owns the last part of the room that writes need. Within it whatever changes nothing is answered without the log, what removes
//! something goes through, a few at a time, and the rest is refused: so what is written there comes to an end with what there is to be
//! removed. Never holds up what needs nothing, see `need`, and never says of a command that it did nothing unless that is so by
//! everything that was answered before.

use std::time::Instant;

use quorate_machine::query::StateFault;
use quorate_machine::types::{Action, Command, Outcome, Rejection, Reply, Txn};
use quorate_machine::{command_codec, limits};
use quorate_node_core::backend::{AppError, Consistency};
use quorate_store::state::StateReader;
use quorate_threads::background;
use tokio::sync::SemaphorePermit;

use super::need::{self, Need};
use super::reads::ReadPath;
use super::space::DiskSpace;
use crate::peer::message::DiskRoom;

/// The last part of what writes need, and how much it is at least.
const PART: u64 = 4;
const BYTES_MIN: u64 = 32 << 20;

/// Free bytes below which a disk is at its last, where writes need so many.
fn last_of(needed: u64) -> u64 {
    (needed / PART).max(BYTES_MIN).min(needed)
}

impl DiskRoom {
    /// As told where it has hardly any room: by what is needed for anything at all.
    pub fn at_its_last(self) -> Option<Self> {
        let needed = last_of(self.needed);
        (self.free < needed).then_some(Self { needed, ..self })
    }
}

/// How a command goes on.
pub enum Passage<'a> {
    /// It is to be decided by the log, while this is held.
    Log(Option<SemaphorePermit<'a>>),
    /// This is the answer.
    Answered(Box<Reply>),
}

/// What becomes of a command that would be decided where there is hardly any room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the log.
    Propose,
    /// It changes nothing, or was decided before: this is the answer.
    Answer(Box<Reply>),
    /// It frees nothing.
    Refuse,
    /// One before it, which is not decided yet, may change what comes of it: to be asked for again.
    Again,
}

/// Whether there is the room that a command needs. Judged by its action first: mostly there is.
pub async fn passage<'a>(
    space: &'a DiskSpace,
    reads: &ReadPath,
    command: &Command,
    deadline: Instant,
) -> Result<Passage<'a>, AppError> {
    let Some(lack) = space.lack() else { return Ok(Passage::Log(None)) };
    let need = need::of(&command.action);
    if need == Need::Room {
        return Err(space.refusal(lack));
    }
    let Some(lack) = space.lack_of_last().filter(|_| need != Need::Nothing) else {
        return Ok(Passage::Log(None));
    };
    let place = space.place_for_removals(deadline).await?;
    // Boxed, since it is seldom and large: each write would carry its room.
    match Box::pin(judge(reads, vec![command.clone()], deadline)).await?.pop() {
        Some(Verdict::Propose) => Ok(Passage::Log(Some(place))),
        Some(Verdict::Answer(reply)) => Ok(Passage::Answered(reply)),
        Some(Verdict::Refuse | Verdict::Again) | None => Err(space.refusal(lack)),
    }
}

/// Judges commands that come one after the other, by the state as it is.
pub async fn judge(reads: &ReadPath, commands: Vec<Command>, deadline: Instant) -> Result<Vec<Verdict>, AppError> {
    reads.barrier(Consistency::Linearizable, deadline).await?;
    let state = reads.state().clone();
    let of = |command: &Command| {
        let bytes = command_codec::encode_command(command).len();
        (need::of(&command.action), bytes)
    };
    let needs: Vec<(Need, usize)> = commands.iter().map(of).collect();
    let judged = background::blocking(move || would_change(&state, commands)).await;
    let judged = judged.map_err(|error| AppError::Fault(error.to_string()))??;
    Ok(verdicts(&needs, judged))
}

/// Evaluates commands one after the other, each seeing what those before it would do. Tells of each what it would answer, and whether it
/// would change anything: whether it would take a revision. That is so of all that clients ask for but renewals.
fn would_change(state: &StateReader, commands: Vec<Command>) -> Result<Vec<(Reply, bool)>, StateFault> {
    let mut judged = Vec::with_capacity(commands.len());
    // What has nothing to do tells the revision from which the others go on.
    let nothing = Command::unnamed(Action::Txn(Txn::default()));
    let mut next = std::iter::once(nothing).chain(commands);
    let mut revision = None;
    state.rehearse(state.wall_by_now(), &mut |reply| {
        if let Some(reply) = reply {
            match revision {
                None => revision = Some(reply.revision),
                Some(before) => {
                    // A kept reply names the revision of then.
                    let changes = !reply.replayed && reply.revision > before;
                    revision = Some(if changes { reply.revision } else { before });
                    judged.push((reply, changes));
                }
            }
        }
        next.next()
    })?;
    Ok(judged)
}

/// What becomes of each, given what it would answer and whether it would change anything.
fn verdicts(needs: &[(Need, usize)], judged: Vec<(Reply, bool)>) -> Vec<Verdict> {
    let mut is_as_it_was = true;
    let of = |((need, bytes), (reply, changes)): (&(Need, usize), (Reply, bool))| match (need, changes) {
        (_, false) if is_as_it_was && !is_beyond(&reply.outcome) => Verdict::Answer(Box::new(reply)),
        (_, false) => Verdict::Again,
        (Need::IfItFrees, true) if need::frees(&reply.outcome, *bytes) => {
            is_as_it_was = false;
            Verdict::Propose
        }
        (_, true) => {
            // What it would do was seen by those behind it.
            is_as_it_was = false;
            Verdict::Refuse
        }
    };
    needs.iter().zip(judged).map(of).collect()
}

/// Whether those before it took all that is judged at once.
fn is_beyond(outcome: &Outcome) -> bool {
    let all = limits::REHEARSAL_BYTES_MAX as u64;
    matches!(outcome, Outcome::Rejected(Rejection::TooMuch { limit }) if *limit == all)
}

#[cfg(test)]
mod tests {
    use quorate_machine::types::Written;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_disk_is_at_its_last_below_a_quarter_of_what_writes_need_or_below_32_mib() {
        let last = |needed, free| DiskRoom { free, needed }.at_its_last().map(|room| room.needed);
        assert_eq!(last(256 * MIB, 64 * MIB), None);
        assert_eq!(last(256 * MIB, 64 * MIB - 1), Some(64 * MIB));
        assert_eq!(last(100 * MIB, 32 * MIB - 1), Some(32 * MIB));
        assert_eq!(last(16 * MIB, 16 * MIB - 1), Some(16 * MIB), "not more than writes need");
        assert_eq!(last(0, 0), None, "where it was turned off");
    }

    fn reply(outcome: Outcome) -> Reply {
        Reply { index: 1, revision: 1, clock: 0, replayed: false, outcome }
    }

    fn removed() -> Reply {
        reply(Outcome::Written(Written { meta: None, previous: None }))
    }

    fn absent() -> Reply {
        reply(Outcome::Rejected(Rejection::NotFound))
    }

    #[test]
    fn what_changes_nothing_is_answered_and_only_what_frees_goes_into_the_log() {
        let one = |need, reply, changes| verdicts(&[(need, 100)], vec![(reply, changes)]).remove(0);
        assert_eq!(one(Need::IfItFrees, removed(), true), Verdict::Propose);
        assert_eq!(one(Need::IfItFrees, absent(), false), Verdict::Answer(Box::new(absent())));
        assert_eq!(one(Need::Little, removed(), true), Verdict::Refuse, "a touch");
        assert_eq!(one(Need::Little, absent(), false), Verdict::Answer(Box::new(absent())));
        let kept = Reply { replayed: true, ..removed() };
        assert_eq!(one(Need::IfItFrees, kept.clone(), false), Verdict::Answer(Box::new(kept)), "decided before");
    }

    #[test]
    fn what_stands_behind_a_removal_in_one_group_is_asked_for_again() {
        let needs = [(Need::IfItFrees, 100); 4];
        let judged = vec![(absent(), false), (removed(), true), (absent(), false), (removed(), true)];
        let expected = [Verdict::Answer(Box::new(absent())), Verdict::Propose, Verdict::Again, Verdict::Propose];
        assert_eq!(verdicts(&needs, judged), expected);
        let limit = limits::REHEARSAL_BYTES_MAX as u64;
        let beyond = reply(Outcome::Rejected(Rejection::TooMuch { limit }));
        assert_eq!(verdicts(&needs[..1], vec![(beyond, false)]), [Verdict::Again]);
    }
}

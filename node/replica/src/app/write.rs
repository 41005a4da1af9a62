//! The write path: one command through the log, here or at the leader.
//!
//! Owns the tries: which outcome is repeated, and what is said of all tries together. Never decides what a command does.

use std::sync::Arc;
use std::time::Instant;

use quorate_machine::command_codec;
use quorate_machine::limits::COMMAND_BYTES_MAX;
use quorate_machine::types::Command;
use quorate_node_core::backend::{AppError, Decision};
use quorate_node_core::slow::SlowLog;
use quorate_node_core::timings::{self, Part};

use super::last_room::{self, Passage};
use super::no_space;
use super::proposer::{Proposer, Urgency};
use super::reads::ReadPath;
use super::space::DiskSpace;
use super::view::{View, wait_for_leader};
use crate::peer::message::ProposalOutcome;

/// The write path of a node.
pub struct WritePath {
    /// The way of single tries into the log.
    pub(super) proposer: Proposer,
    pub(super) view: Arc<View>,
    pub(super) reads: Arc<ReadPath>,
    pub(super) space: Arc<DiskSpace>,
    /// The log of forwarded writes that take too long.
    pub(super) slow: SlowLog,
}

impl WritePath {
    /// Puts one command through the log, here or at the leader, and returns its reply.
    ///
    /// A try that was certainly not proposed is repeated until the deadline. A try with an unknown outcome is repeated only
    /// where the command carries a request id, which makes the repetition harmless.
    pub async fn write(&self, command: Command, deadline: Instant) -> Result<Decision, AppError> {
        timings::on(Part::Log, self.put_through(command, deadline)).await
    }

    /// Whether a command is known here to take much work, so that it goes by itself.
    pub fn is_dear(&self, command: &Command) -> bool {
        self.proposer.urgency_of(command) == Urgency::Patient
    }

    async fn put_through(&self, command: Command, deadline: Instant) -> Result<Decision, AppError> {
        self.reads.check_disk()?;
        let _place = match last_room::passage(&self.space, &self.reads, &command, deadline).await? {
            Passage::Log(place) => place,
            Passage::Answered(reply) => return Ok(Decision { reply: *reply, cost: 0 }),
        };
        let repeatable = command.request_id.is_some();
        let mut urgency = self.proposer.urgency_of(&command);
        let encoded = command_codec::encode_command(&command);
        drop(command);
        if encoded.len() > COMMAND_BYTES_MAX {
            return Err(AppError::TooLarge { actual: encoded.len(), limit: COMMAND_BYTES_MAX });
        }
        let mut may_be_in_log = false;
        loop {
            // The error of a later try must not hide that an earlier one may be in the log.
            let of_all_tries = |error| if may_be_in_log { AppError::Unknown } else { error };
            let seen = self.view.subscribe();
            let submitted = self.proposer.submit(encoded.clone(), urgency, false, deadline).map_err(of_all_tries)?;
            match submitted.outcome(deadline).await {
                Some(ProposalOutcome::Decided { reply, cost }) => {
                    self.proposer.learn(&encoded, &reply);
                    return Ok(Decision { reply, cost });
                }
                Some(ProposalOutcome::NotProposed) => {}
                Some(ProposalOutcome::Dear) => {
                    self.proposer.learn_dear(&encoded);
                    urgency = Urgency::Patient;
                }
                Some(ProposalOutcome::Unknown) => may_be_in_log = true,
                Some(ProposalOutcome::NoSpace { node_id, lack }) => return Err(of_all_tries(no_space(node_id, lack))),
                None => return Err(of_all_tries(self.view.no_leader_error())),
            }
            if may_be_in_log && !repeatable {
                return Err(AppError::Unknown);
            }
            if !wait_for_leader(seen, deadline).await {
                return Err(if may_be_in_log { AppError::Unknown } else { self.view.no_leader_error() });
            }
        }
    }
}

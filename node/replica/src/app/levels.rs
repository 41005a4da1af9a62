//! Raising the feature level of the cluster.
//!
//! Owns when the leader proposes it: once every member has said, lately, that its binary knows the level. Never raises what a
//! member does not know, and never lowers anything. See [`quorate_machine::level`] for what a level is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate_machine::command_codec;
use quorate_machine::level::Level;
use quorate_machine::types::{Action, Command, Maintenance};
use quorate_store::raft::NodeId;

use super::proposer::ProposerParts;
use crate::peer::message::{PeerRequest, PeerResponse};

/// How often the leader looks whether the level can be raised.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// For one question.
const ASK: Duration = Duration::from_millis(1_000);

/// Runs for as long as the node; does nothing while another node leads, or while the level is `own_max` already.
pub async fn run(parts: Arc<ProposerParts>, own_max: Level) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let reached = parts.state.applied().level;
        if parts.view.now().leader != Some(parts.self_id) || reached >= own_max {
            continue;
        }
        let Some(level) = agreed(&parts, own_max).await.filter(|level| *level > reached) else { continue };
        let step = Action::Maintain(Maintenance::RaiseLevel { level });
        let command = command_codec::encode_command(&Command::unnamed(step));
        // Not proposed or unknown: the next look does it again.
        if parts.write_batch(vec![command]).await.is_ok() {
            tracing::info!(from = reached, to = level, "raised the feature level: every member knows it");
        }
    }
}

/// The highest level that all members know; `None` where one of them does not say.
async fn agreed(parts: &ProposerParts, own_max: Level) -> Option<Level> {
    let members = parts.peers.members();
    let others = members.keys().copied().filter(|id| *id != parts.self_id);
    let known = join_all(others.map(|id| level_of(parts, id))).await;
    lowest(own_max, known)
}

fn lowest(own: Level, others: impl IntoIterator<Item = Option<Level>>) -> Option<Level> {
    others.into_iter().try_fold(own, |lowest, other| other.map(|other| lowest.min(other)))
}

async fn level_of(parts: &ProposerParts, id: NodeId) -> Option<Level> {
    match parts.peers.ask(id, PeerRequest::Hello, Instant::now() + ASK).await {
        Ok(PeerResponse::Hello(hello)) => Some(hello.level_known),
        Ok(other) => {
            tracing::warn!(id, ?other, "an answer to Hello that is none");
            None
        }
        Err(error) => {
            quorate_node_core::debug!(id, %error, "does not say which feature levels it knows");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_the_lowest_of_all_and_waits_for_whoever_is_silent() {
        assert_eq!(lowest(3, [Some(5), Some(2)]), Some(2));
        assert_eq!(lowest(3, [Some(5), Some(4)]), Some(3));
        assert_eq!(lowest(3, [Some(5), None]), None);
        assert_eq!(lowest(3, []), Some(3));
    }
}

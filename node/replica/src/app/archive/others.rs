//! What the other nodes have of what is to be archived, and what they know of its place.
//!
//! Owns the questions, and when leadership goes to a node whose log has entries that this one lacks. Never archives anything.

use std::time::{Duration, Instant};

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use quorate_archive::Location;
use quorate_store::raft::NodeId;

use crate::app::App;
use crate::app::members::cluster_view::ClusterView;
use crate::peer::message::{ArchiveStanding, PeerRequest, PeerResponse};

/// For one question.
const ASK: Duration = Duration::from_millis(1_000);
/// How long others have to answer before a node takes it that none of them knows of an archive.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Between two rounds of questions.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long a leader waits for a voter that has what it lacks, or may have it.
const HOLDER_WITHIN: Duration = Duration::from_secs(30);
/// How often leadership is given away for the same entry.
const HAND_OVERS_MAX: u32 = 3;
/// How long one hand-over may take.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);

/// What this node says of itself.
pub fn standing(app: &App) -> ArchiveStanding {
    let log_from = app.raft().metrics().borrow_watched().purged.as_ref().map_or(0, |purged| purged.index + 1);
    ArchiveStanding { log_from, location: app.archive().and_then(|ledger| ledger.location()) }
}

/// Silence is no answer, and a build that knows no such question says nothing.
async fn ask(app: &App, id: NodeId) -> Option<ArchiveStanding> {
    match app.peers().ask(id, PeerRequest::Archive, Instant::now() + ASK).await {
        Ok(PeerResponse::Archive(standing)) => Some(standing),
        Ok(other) => {
            quorate_node_core::debug!(node = id, ?other, "does not say what it has for the archive");
            None
        }
        Err(error) => {
            quorate_node_core::debug!(node = id, %error, "does not say what it has for the archive");
            None
        }
    }
}

/// Whether another node has found this place: then it is there, or not mounted. `None` on a node that is no member yet.
pub async fn is_known_to_others(app: &App, location: &Location) -> Option<bool> {
    let location = location.to_string();
    let until = Instant::now() + ANSWER_WITHIN;
    loop {
        let members = app.peers().members();
        if !members.contains_key(&app.node_id()) {
            return None;
        }
        let others = members.keys().copied().filter(|id| *id != app.node_id());
        let answers = join_all(others.map(|id| ask(app, id))).await;
        let is_known = answers.iter().flatten().any(|standing| standing.location.as_ref() == Some(&location));
        if is_known || answers.iter().all(Option::is_some) || Instant::now() >= until {
            return Some(is_known);
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// An entry that is to be archived, and is not in this node's log any more.
#[derive(Debug)]
pub struct Missing {
    /// Which: the first of them.
    index: u64,
    /// Since when this node, which leads, knows that.
    since: Instant,
    /// How often leadership was given away for it.
    handed: u32,
}

impl Missing {
    /// Found now.
    pub fn from(index: u64) -> Self {
        Self { index, since: Instant::now(), handed: 0 }
    }

    /// Whether it is this one.
    pub fn is(&self, index: u64) -> bool {
        self.index == index
    }

    /// This node leads once more.
    pub fn begin_anew(&mut self) {
        self.since = Instant::now();
    }

    /// Gives leadership to a voter that has it. True: to be asked again, since another one leads now, or there may be one that has it.
    pub async fn hand_over(&mut self, app: &App) -> bool {
        if self.handed >= HAND_OVERS_MAX || self.since.elapsed() >= HOLDER_WITHIN {
            return false;
        }
        let Some(view) = ClusterView::of(app) else { return true };
        let others = view.membership.voters().iter().copied().filter(|id| *id != app.node_id());
        let asked = join_all(others.map(|id| async move { (id, ask(app, id).await) })).await;
        let (fit, may_have_it) = holder(self.index, &asked, |id| {
            view.membership
                .can_succeed(id)
                .then(|| view.membership.health.get(&id).map_or(u64::MAX, |health| health.lag))
        });
        let Some(holder) = fit else { return may_have_it };
        tracing::warn!(
            entry = self.index,
            holder,
            "entries that are not archived yet are gone from this node's log, and another node has them: leadership goes there"
        );
        match app.transfer_leader(Some(holder), Instant::now() + HAND_OVER_MAX).await {
            Ok(_) => self.handed += 1,
            Err(error) => tracing::warn!(%error, holder, "leadership was not handed over; it is tried again"),
        }
        true
    }
}

/// Of those who have an entry, the one that leads best, by its lag; `None` for those that cannot lead now. And whether anybody has the entry
/// or did not say.
fn holder(
    entry: u64,
    asked: &[(NodeId, Option<ArchiveStanding>)],
    lag: impl Fn(NodeId) -> Option<u64>,
) -> (Option<NodeId>, bool) {
    let may_have_it = |standing: &Option<ArchiveStanding>| standing.as_ref().is_none_or(|has| has.log_from <= entry);
    let holders = asked.iter().filter(|(_, standing)| standing.is_some() && may_have_it(standing));
    let fit = holders.filter_map(|(id, _)| lag(*id).map(|lag| (lag, *id))).min();
    (fit.map(|(_, id)| id), asked.iter().any(|(_, standing)| may_have_it(standing)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_from(id: NodeId, log_from: u64) -> (NodeId, Option<ArchiveStanding>) {
        (id, Some(ArchiveStanding { log_from, location: None }))
    }

    #[test]
    fn the_voter_that_has_the_entry_and_is_least_behind_is_to_lead() {
        let asked = [log_from(2, 10), log_from(3, 11), log_from(4, 5), log_from(5, 12)];
        let lag = |id: NodeId| Some(10 - id);
        assert_eq!(holder(11, &asked, lag), (Some(4), true));
        assert_eq!(holder(10, &asked, |id| (id == 2).then_some(0)), (Some(2), true));
        assert_eq!(holder(4, &asked, lag), (None, false), "nobody has it: there is a gap");
    }

    #[test]
    fn one_that_cannot_lead_now_or_says_nothing_is_waited_for() {
        assert_eq!(holder(11, &[log_from(2, 10), log_from(3, 12)], |_| None), (None, true));
        assert_eq!(holder(11, &[(2, None), log_from(3, 12)], |_| Some(0)), (None, true), "it may have it");
        assert_eq!(holder(11, &[], |_| Some(0)), (None, false), "it is alone");
    }
}

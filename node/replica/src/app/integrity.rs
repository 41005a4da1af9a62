//! Whether this node's state can be trusted: it is compared with those of the others all the time.
//!
//! Owns the comparison, the quarantine that a node puts itself into when a majority holds another state, or when it is on the wrong side
//! of a split that no majority decides, and the ways out of it: a snapshot of the leader's, and, after a split, a majority that agrees
//! with this node. Never judges by itself (see [`mod@judge`]) and never trusts a state again for anything else, nor after a restart.

mod judge;
mod repair;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use quorate_store::quarantine::{self, Cause, Quarantine};
use quorate_store::raft::NodeId;
use quorate_threads::background;

use super::App;
use crate::peer::message::{PeerRequest, PeerResponse, StateTrust};

use judge::{Digests, Side, Verdict, judge};

/// How often nodes compare.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// For one question.
const ASK: Duration = Duration::from_millis(1_000);
/// How long others have to elect one of them before a node in quarantine stands.
const NEEDED_AFTER: Duration = Duration::from_secs(5);
/// How long a quarantined leader waits for another to lead, before it tries again.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);

/// Whether this node trusts its state, and how that is known.
#[derive(Debug)]
pub struct Integrity {
    data_dir: PathBuf,
    quarantine: ArcSwapOption<Quarantine>,
    /// Greatest log index at which a majority held what this node held; 0 for none.
    compared: AtomicU64,
    /// Nodes that held something else then.
    diverged: AtomicU64,
    /// What is known of a split that this node is in.
    split: ArcSwapOption<Split>,
    /// Other nodes that a majority contradicts or that said they are in quarantine, as far as is known.
    distrusted: ArcSwap<BTreeSet<NodeId>>,
    /// Held by a leader while it repairs a node.
    repairs: tokio::sync::Mutex<()>,
    /// Which.
    under_repair: Mutex<Option<NodeId>>,
    /// While this node is being repaired: how often its state had been replaced before.
    replaced_before: Mutex<Option<u64>>,
}

/// A split that no majority has decided.
#[derive(Debug)]
struct Split {
    /// Log index.
    index: u64,
    /// Those that differ from this node.
    others: BTreeSet<NodeId>,
    /// No leader is known whose state counts: nothing is served until one is. No mark on disk, and nothing that keeps a node from being
    /// elected: that would keep a leader from being known.
    is_unclear: bool,
}

/// Numbers for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegritySamples {
    /// Whether this node serves nobody, since it does not trust its state or waits to know whether it may.
    pub quarantined: bool,
    /// See [`Integrity`].
    pub compared_index: u64,
    /// Other nodes whose state was found to differ from the majority's.
    pub diverged_nodes: u64,
    /// Other nodes whose state differs from this node's, where no majority says who is right.
    pub split_nodes: u64,
}

impl Integrity {
    /// Of a data directory, which may be marked from before.
    pub fn open(data_dir: PathBuf) -> Result<Self, quorate_store::durable::SealError> {
        let found = quarantine::read(&data_dir)?;
        if let Some(Quarantine { index, reason, .. }) = &found {
            tracing::error!(index, reason, "this node's state is not trusted since an earlier run; it serves nobody");
        }
        let quarantine = ArcSwapOption::from_pointee(found);
        let (compared, diverged) = (AtomicU64::new(0), AtomicU64::new(0));
        let (split, distrusted) = (ArcSwapOption::empty(), ArcSwap::default());
        let (repairs, under_repair) = (tokio::sync::Mutex::default(), Mutex::default());
        let replaced_before = Mutex::default();
        Ok(Self { data_dir, quarantine, compared, diverged, split, distrusted, repairs, under_repair, replaced_before })
    }

    /// The nodes whose state is not trusted, as far as this one, `self_id`, knows: as of the last comparison, a second ago.
    pub fn distrusted(&self, self_id: NodeId) -> BTreeSet<NodeId> {
        let others = self.distrusted.load();
        others.iter().copied().chain(self.is_quarantined().then_some(self_id)).collect()
    }

    /// The node that this one, as the leader, is repairing. It answers no entries meanwhile, and is not dead.
    pub fn under_repair(&self) -> Option<NodeId> {
        *self.under_repair.lock()
    }

    /// What a comparison found. Of those that were silent nothing new is known.
    fn note_distrusted(&self, found: &BTreeSet<NodeId>, answered: &BTreeSet<NodeId>) {
        let known = self.distrusted.load();
        let now: BTreeSet<NodeId> = known.difference(answered).chain(found).copied().collect();
        if now != **known {
            self.distrusted.store(Arc::new(now));
        }
    }

    /// Why this node serves nobody, if so: its state is not trusted, or it waits to know whether it may be.
    pub fn why_not_served(&self) -> Option<String> {
        if let Some(found) = &*self.quarantine.load() {
            return Some(found.reason.clone());
        }
        self.split.load().as_ref().filter(|split| split.is_unclear).map(|split| split.to_string())
    }

    /// What a split comes to for this node, while it goes on.
    pub fn split_warning(&self) -> Option<String> {
        self.split
            .load()
            .as_ref()
            .filter(|split| !split.is_unclear && !self.is_quarantined())
            .map(|split| format!("{split} It goes on, since it holds what the leader holds; the others serve nobody"))
    }

    /// Whether the state is not trusted; a few nanoseconds. One that only waits for a leader to be known is.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.load().is_some()
    }

    /// What this node says of its state to others.
    pub fn trust(&self) -> StateTrust {
        match self.quarantine.load().as_ref().map(|found| found.cause) {
            None => StateTrust::Trusted,
            Some(Cause::Split) => StateTrust::Undecided,
            Some(Cause::Contradicted) => StateTrust::Contradicted,
        }
    }

    /// Whether what was found at this index says that the node was right after it stopped for a split.
    fn is_confirmed_at(&self, index: u64) -> bool {
        self.quarantine.load().as_ref().is_some_and(|found| found.cause == Cause::Split && found.index <= index)
    }

    /// Numbers for metrics.
    pub fn samples(&self) -> IntegritySamples {
        IntegritySamples {
            quarantined: self.why_not_served().is_some(),
            compared_index: self.compared.load(Ordering::Relaxed),
            diverged_nodes: self.diverged.load(Ordering::Relaxed),
            split_nodes: self.split.load().as_ref().map_or(0, |split| split.others.len() as u64),
        }
    }

    /// A split that waited for a leader has one: this node, whose state counts.
    fn goes_on_as_leader(&self) {
        let waits = self.split.load_full().filter(|split| split.is_unclear && !self.is_quarantined());
        if let Some(split) = waits {
            let (index, others) = (split.index, split.others.clone());
            tracing::warn!(index, ?others, "this node leads: what it holds counts, until a majority says otherwise");
            self.split.store(Some(Arc::new(Split { index, others, is_unclear: false })));
        }
    }

    /// Stops trusting the state: at once in this process, and then durably.
    async fn quarantine_for(&self, found: Quarantine) {
        let marking = (self.data_dir.clone(), found.clone());
        self.quarantine.store(Some(Arc::new(found)));
        let marked = background::blocking(move || quarantine::write(&marking.0, &marking.1)).await;
        if let Err(error) = marked.and_then(|marked| marked) {
            tracing::error!(%error, "the quarantine could not be marked on disk; a restart will have to find out again");
        }
    }

    /// Trusts a state that was replaced, or that a majority agrees with after a split.
    async fn lift(&self) -> std::io::Result<()> {
        let data_dir = self.data_dir.clone();
        background::blocking(move || quarantine::lift(&data_dir)).await??;
        self.quarantine.store(None);
        self.split.store(None);
        Ok(())
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { index, others, is_unclear } = self;
        write!(
            f,
            "at log index {index} the state of this node and that of nodes {others:?} differ, and no majority says who is right."
        )?;
        match is_unclear {
            true => f.write_str(" Nothing is served until a leader is known, whose state counts then"),
            false => Ok(()),
        }
    }
}

/// Compares with the others until it is aborted.
pub async fn run(app: App) {
    if app.integrity().is_quarantined() {
        app.candidacy().hold_back(true);
    }
    let mut said = Verdict::Unknown;
    let mut ticks = tokio::time::interval(COMPARE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Only another state helps, and that is asked for.
        if app.integrity().trust() == StateTrust::Contradicted {
            stand_back(&app).await;
            continue;
        }
        let verdict = compare(&app).await;
        note(&app, &verdict, &said).await;
        said = verdict;
        if app.integrity().is_quarantined() {
            stand_back(&app).await;
        }
    }
}

/// Asks all other members, and judges.
async fn compare(app: &App) -> Verdict {
    let voters: BTreeSet<NodeId> = app.raft().server_metrics().borrow_watched().membership_config.voter_ids().collect();
    // Before the question: whoever applies less meanwhile has what this node has now.
    let own = app.state().digests();
    let members = app.peers().members();
    let others = members.keys().filter(|id| **id != app.node_id());
    let asked = others.map(|id| async move { Some((*id, digests_of(app, *id).await?)) });
    let answers: BTreeMap<NodeId, Said> = join_all(asked).await.into_iter().flatten().collect();
    let trust: BTreeMap<NodeId, StateTrust> = answers.iter().map(|(id, said)| (*id, said.trust)).collect();
    // One that a majority contradicts is no witness for another; one that stopped for a split is, or no majority would ever be found.
    let witnesses = answers.into_iter().filter(|(_, said)| said.trust != StateTrust::Contradicted);
    let others: BTreeMap<NodeId, Digests> = witnesses.map(|(id, said)| (id, said.digests)).collect();
    let is_trusted = |id: &NodeId| match *id == app.node_id() {
        true => !app.integrity().is_quarantined(),
        false => trust.get(id) == Some(&StateTrust::Trusted),
    };
    let leader = app.members().leader().filter(is_trusted);
    let mut verdict = judge(app.node_id(), leader, &voters, &own, &others);
    let mut distrusted: BTreeSet<NodeId> = trust.keys().copied().filter(|id| !is_trusted(id)).collect();
    match &mut verdict {
        Verdict::Agrees { diverged, .. } => {
            let said = trust.iter().filter(|(_, trust)| **trust == StateTrust::Contradicted);
            diverged.extend(said.map(|(id, _)| *id));
            distrusted.extend(&*diverged);
        }
        Verdict::Split { others, side: Side::Leader, .. } => distrusted.extend(&*others),
        Verdict::Split { .. } | Verdict::Diverged { .. } | Verdict::Unknown => {}
    }
    app.integrity().note_distrusted(&distrusted, &trust.keys().copied().collect());
    verdict
}

/// What a node says of its state.
struct Said {
    digests: Digests,
    trust: StateTrust,
}

/// Silence is no answer.
async fn digests_of(app: &App, id: NodeId) -> Option<Said> {
    match app.peers().ask(id, PeerRequest::Digests, Instant::now() + ASK).await {
        Ok(PeerResponse::Digests { points, trust }) => Some(Said { digests: points.into_iter().collect(), trust }),
        Ok(other) => {
            tracing::warn!(node = id, ?other, "an answer to Digests that is none");
            None
        }
        Err(error) => {
            quorate_node_core::debug!(node = id, %error, "no answer to Digests");
            None
        }
    }
}

async fn note(app: &App, verdict: &Verdict, said: &Verdict) {
    let integrity = app.integrity();
    match verdict {
        // Whoever differed may only be silent: what was found of a split stays, but a leader is known where this node became it.
        Verdict::Unknown => {
            if app.members().is_leader() {
                integrity.goes_on_as_leader();
            }
        }
        Verdict::Agrees { index, diverged } => {
            integrity.compared.store(*index, Ordering::Relaxed);
            integrity.diverged.store(diverged.len() as u64, Ordering::Relaxed);
            let known = matches!(said, Verdict::Agrees { diverged: known, .. } if known == diverged);
            if !diverged.is_empty() && !known {
                tracing::error!(index, ?diverged, "the state of these nodes differs from that of the majority");
            }
            if integrity.split.load().as_ref().is_some_and(|split| split.index <= *index) {
                tracing::warn!(index, "a majority agrees with this node: the split is decided");
                integrity.split.store(None);
            }
            trust_again(app, *index).await;
        }
        Verdict::Split { index, others, side } => note_split(app, (*index, others, *side), said).await,
        Verdict::Diverged { index, own, theirs, majority } => {
            let reason = format!(
                "at log index {index} this node has digest {own:032x}, nodes {majority:?} have {theirs:032x}: its state is \
                 wrong. It serves nobody until `quorate member repair {}` rebuilds it",
                app.node_id()
            );
            tracing::error!(reason, "quarantine");
            integrity.split.store(None);
            integrity.quarantine_for(Quarantine { index: *index, cause: Cause::Contradicted, reason }).await;
        }
    }
}

/// Goes on or stops, as [`mod@judge`] has it.
async fn note_split(app: &App, (index, others, side): (u64, &BTreeSet<NodeId>, Side), said: &Verdict) {
    let integrity = app.integrity();
    let is_known =
        matches!(said, Verdict::Split { others: known, side: before, .. } if known == others && *before == side);
    if !is_known {
        tracing::error!(index, ?others, ?side, "nodes hold different states, and there is no majority for any of them");
    }
    match side {
        Side::Unclear => {}
        Side::Leader => trust_again(app, index).await,
        Side::Other if integrity.is_quarantined() => {}
        Side::Other => {
            let reason = format!(
                "at log index {index} the state of this node and that of nodes {others:?} differ, and no majority says who is right: \
                 what the leader holds counts. This node serves nobody until a majority agrees with it, or until \
                 `quorate member repair {}` gives it the leader's state",
                app.node_id()
            );
            tracing::error!(reason, "quarantine");
            integrity.quarantine_for(Quarantine { index, cause: Cause::Split, reason }).await;
        }
    }
    integrity.split.store(Some(Arc::new(Split { index, others: others.clone(), is_unclear: side == Side::Unclear })));
}

/// Ends the quarantine for a split in which this node was right, as is seen at this index.
async fn trust_again(app: &App, index: u64) {
    if !app.integrity().is_confirmed_at(index) {
        return;
    }
    match app.integrity().lift().await {
        Ok(()) => {
            app.candidacy().hold_back(false);
            tracing::warn!(index, "others hold the state of this node: out of quarantine");
        }
        Err(error) => tracing::error!(%error, "the mark of the quarantine stays"),
    }
}

/// A node in quarantine keeps and acknowledges the log, which is as good as any other's, but does not lead.
async fn stand_back(app: &App) {
    // Unless nobody else can: the only ones with all committed entries may be this node and one that is gone. It serves nobody
    // then either, brings the others up to date, and hands over.
    // A leader that is about to repair it is there, though it sends no entries.
    let is_silent = app.staleness_ms().is_none_or(|silence| u128::from(silence) > NEEDED_AFTER.as_millis());
    let is_needed = is_silent && !app.halt().is_on();
    app.candidacy().hold_back(!is_needed);
    if app.leader_hint().leader_id == Some(app.node_id()) {
        match app.transfer_leader(None, Instant::now() + HAND_OVER_MAX).await {
            Ok(leader) => tracing::warn!(leader, "handed leadership over"),
            Err(error) => tracing::error!(%error, "leadership could not be handed over"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_that_becomes_leader_waits_for_none_any_more() {
        let dir = tempfile::tempdir().expect("a directory");
        let integrity = Integrity::open(dir.path().into()).expect("opens");
        integrity.split.store(Some(Arc::new(Split { index: 7, others: BTreeSet::from([2]), is_unclear: true })));
        assert!(integrity.why_not_served().is_some() && integrity.split_warning().is_none());
        integrity.goes_on_as_leader();
        assert!(integrity.why_not_served().is_none(), "what the leader holds counts");
        let warning = integrity.split_warning().expect("the split goes on");
        assert!(warning.contains("7"), "{warning}");
        assert_eq!(integrity.samples().split_nodes, 1);
    }

    #[test]
    fn to_lead_takes_no_quarantine_away() {
        let dir = tempfile::tempdir().expect("a directory");
        let integrity = Integrity::open(dir.path().into()).expect("opens");
        let (index, cause, reason) = (7, Cause::Split, "as a test says".to_owned());
        integrity.quarantine.store(Some(Arc::new(Quarantine { index, cause, reason })));
        integrity.split.store(Some(Arc::new(Split { index, others: BTreeSet::from([2]), is_unclear: true })));
        integrity.goes_on_as_leader();
        assert!(integrity.is_quarantined() && integrity.split.load().as_ref().is_some_and(|split| split.is_unclear));
        assert_eq!(integrity.why_not_served().as_deref(), Some("as a test says"));
    }
}

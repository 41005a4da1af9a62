//! Whether this node's state can be trusted: it is compared with those of the others all the time.
//!
//! Owns the comparison, the quarantine that a node puts itself into when a majority holds another state, and the way out of
//! it: a snapshot of the leader's. Never judges by itself (see [`mod@judge`]) and never trusts a state again that it did not see
//! replaced, not after a restart either.

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
use quorate_store::background;
use quorate_store::quarantine::{self, Quarantine};
use quorate_store::raft::NodeId;

use super::App;
use crate::peer::message::{PeerRequest, PeerResponse};
use judge::{Digests, Verdict, judge};

pub use repair::Repaired;

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
    /// Other nodes that a majority contradicts or that said they are in quarantine, as far as is known.
    distrusted: ArcSwap<BTreeSet<NodeId>>,
    /// Held by a leader while it repairs a node.
    repairs: tokio::sync::Mutex<()>,
    /// Which.
    under_repair: Mutex<Option<NodeId>>,
    /// While this node is being repaired: how often its state had been replaced before.
    replaced_before: Mutex<Option<u64>>,
}

/// Numbers for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegritySamples {
    /// Whether this node is in quarantine.
    pub quarantined: bool,
    /// See [`Integrity`].
    pub compared_index: u64,
    /// Other nodes whose state was found to differ from the majority's.
    pub diverged_nodes: u64,
}

impl Integrity {
    /// Of a data directory, which may be marked from before.
    pub fn open(data_dir: PathBuf) -> Result<Self, quorate_store::durable::SealError> {
        let found = quarantine::read(&data_dir)?;
        if let Some(Quarantine { index, reason }) = &found {
            tracing::error!(index, reason, "this node's state is not trusted since an earlier run; it serves nobody");
        }
        let quarantine = ArcSwapOption::from_pointee(found);
        let (compared, diverged) = (AtomicU64::new(0), AtomicU64::new(0));
        let distrusted = ArcSwap::default();
        let (repairs, under_repair) = (tokio::sync::Mutex::default(), Mutex::default());
        let replaced_before = Mutex::default();
        Ok(Self { data_dir, quarantine, compared, diverged, distrusted, repairs, under_repair, replaced_before })
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

    /// Why the state is not trusted, if so.
    pub fn quarantine(&self) -> Option<Arc<Quarantine>> {
        self.quarantine.load_full()
    }

    /// Whether the state is not trusted; a few nanoseconds.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.load().is_some()
    }

    /// Numbers for metrics.
    pub fn samples(&self) -> IntegritySamples {
        IntegritySamples {
            quarantined: self.is_quarantined(),
            compared_index: self.compared.load(Ordering::Relaxed),
            diverged_nodes: self.diverged.load(Ordering::Relaxed),
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

    /// Trusts a state that was replaced.
    async fn lift(&self) -> std::io::Result<()> {
        let data_dir = self.data_dir.clone();
        background::blocking(move || quarantine::lift(&data_dir)).await??;
        self.quarantine.store(None);
        Ok(())
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
        if app.integrity().is_quarantined() {
            stand_back(&app).await;
            continue;
        }
        let verdict = compare(&app).await;
        note(&app, &verdict, &said).await;
        said = verdict;
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
    let (trusted, untrusted): (Vec<_>, Vec<_>) =
        join_all(asked).await.into_iter().flatten().partition(|(_, said)| said.is_trusted);
    let others: BTreeMap<NodeId, Digests> = trusted.into_iter().map(|(id, said)| (id, said.digests)).collect();
    let mut verdict = judge(app.node_id(), &voters, &own, &others);
    let mut distrusted: BTreeSet<NodeId> = untrusted.into_iter().map(|(id, _)| id).collect();
    let answered = others.keys().chain(&distrusted).copied().collect();
    if let Verdict::Agrees { diverged, .. } = &mut verdict {
        diverged.append(&mut distrusted.clone());
        distrusted.clone_from(diverged);
    }
    app.integrity().note_distrusted(&distrusted, &answered);
    verdict
}

/// What a node says of its state.
struct Said {
    digests: Digests,
    /// One that does not trust itself is no witness for another.
    is_trusted: bool,
}

/// Silence is no answer.
async fn digests_of(app: &App, id: NodeId) -> Option<Said> {
    match app.peers().ask(id, PeerRequest::Digests, Instant::now() + ASK).await {
        Ok(PeerResponse::Digests { points, is_trusted }) => {
            Some(Said { digests: points.into_iter().collect(), is_trusted })
        }
        Ok(other) => {
            tracing::warn!(node = id, ?other, "an answer to Digests that is none");
            None
        }
        Err(error) => {
            crate::debug!(node = id, %error, "no answer to Digests");
            None
        }
    }
}

async fn note(app: &App, verdict: &Verdict, said: &Verdict) {
    let integrity = app.integrity();
    match verdict {
        Verdict::Unknown => {}
        Verdict::Agrees { index, diverged } => {
            integrity.compared.store(*index, Ordering::Relaxed);
            integrity.diverged.store(diverged.len() as u64, Ordering::Relaxed);
            let known = matches!(said, Verdict::Agrees { diverged: known, .. } if known == diverged);
            if !diverged.is_empty() && !known {
                tracing::error!(index, ?diverged, "the state of these nodes differs from that of the majority");
            }
        }
        Verdict::Split { index } => {
            if !matches!(said, Verdict::Split { .. }) {
                tracing::error!(index, "nodes hold different states, and there is no majority for any of them");
            }
        }
        Verdict::Diverged { index, own, theirs, majority } => {
            let reason = format!(
                "at log index {index} this node has digest {own:032x}, nodes {majority:?} have {theirs:032x}: its state is \
                 wrong. It serves nobody until `quorate member repair {}` rebuilds it",
                app.node_id()
            );
            tracing::error!(reason, "quarantine");
            integrity.quarantine_for(Quarantine { index: *index, reason }).await;
            stand_back(app).await;
        }
    }
}

/// A node in quarantine keeps and acknowledges the log, which is as good as any other's, but does not lead.
async fn stand_back(app: &App) {
    // Unless nobody else can: the only ones with all committed entries may be this node and one that is gone. It serves nobody
    // then either, brings the others up to date, and hands over.
    // A leader that is about to repair it is there, though it sends no entries.
    let is_silent = app.staleness_ms().is_none_or(|silence| u128::from(silence) > NEEDED_AFTER.as_millis());
    let is_needed = is_silent && !app.inner.halt.is_on();
    app.candidacy().hold_back(!is_needed);
    if app.leader_hint().leader_id == Some(app.node_id()) {
        match app.transfer_leader(None, Instant::now() + HAND_OVER_MAX).await {
            Ok(leader) => tracing::warn!(leader, "handed leadership over"),
            Err(error) => tracing::error!(%error, "leadership could not be handed over"),
        }
    }
}

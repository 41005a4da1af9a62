//! What the leader sees to among the members without being asked.
//!
//! Owns when it looks: at changes that a former leader left unfinished and, where that is configured, at voters that died.
//! Decides nothing itself, and does nothing while this node does not lead.

use std::time::{Duration, Instant};

use super::super::App;
use super::autopilot::{Silences, decide};
use super::carry_out::{self, finish, grant};
use super::cluster_view::ClusterView;
use super::plan::Change;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a change may look unfinished before it counts as interrupted.
const JOINT_MAX: Duration = Duration::from_secs(1);
/// For one change of its own.
const CHANGE_MAX: Duration = Duration::from_secs(10);

/// Runs until it is aborted.
pub async fn run(app: App, replace_after: Option<Duration>) {
    let mut silences = Silences::default();
    let (mut joint_since, mut rest_until) = (None, Instant::now());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(view) = ClusterView::of(&app) else {
            silences.forget();
            joint_since = None;
            continue;
        };
        let now = Instant::now();
        joint_since = view.membership.is_joint().then(|| joint_since.unwrap_or(now));
        if joint_since.is_some_and(|since| now.duration_since(since) >= JOINT_MAX) {
            finish_interrupted(&app).await;
            joint_since = None;
        }
        silences.note(&view, app.integrity().under_repair(), now);
        let Some(after) = replace_after.filter(|_| now >= rest_until) else { continue };
        let Some(found) = decide(&view.membership, &silences.at(now), after) else { continue };
        tracing::warn!(old = found.old, new = found.new, reason = found.reason, "replacing a dead voter");
        let wanted = Change::Replace { old: found.old, new: found.new };
        match grant(&app, wanted, false, false, now + CHANGE_MAX).await {
            Ok(_) => tracing::warn!(old = found.old, new = found.new, "replaced a dead voter"),
            Err(stop) => tracing::warn!(?stop, "the dead voter was not replaced"),
        }
        // One at a time: the next dead voter has to wait until it is clear what came of this.
        rest_until = Instant::now() + after;
    }
}

/// Nobody here is at work on it, so it was another leader's.
async fn finish_interrupted(app: &App) {
    let Ok(_one_at_a_time) = app.members().changes.try_lock() else { return };
    let Some(view) = ClusterView::of(app).filter(|view| view.membership.is_joint()) else { return };
    match finish(app, &view, Instant::now() + CHANGE_MAX).await {
        Ok(()) | Err(carry_out::Stop::NotLeader) => {}
        Err(stop) => tracing::warn!(?stop, "an interrupted change of the members could not be finished"),
    }
}

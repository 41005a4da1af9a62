//! Renewals of sessions: those that come at about the same time are one command.
//!
//! Owns the rounds: what waits to be renewed is in [`turns`], and each round takes as much of it as one command holds. To renew
//! again is harmless, so a command carries no request id and is proposed again until somebody's deadline has passed; nobody else's
//! deadline is touched by that. Never asks whether there is such a session: whoever renews has looked before, see
//! [`quorate_node_core::gateway::renew`].

mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_machine::types::{Action, ClusterMillis, Command, Outcome, Reply, SessionId, SessionOp, SessionReply};
use quorate_node_core::backend::{AppError, Decision, Renewed, Renewer};
use tokio::sync::{mpsc, oneshot};

use super::write::WritePath;

use turns::{Asked, Turns};

/// From one command to the next for each session in it, and at most: who comes in between shares the next one. So few renewals wait
/// for nobody, and many cost little.
const EACH_SESSION: Duration = Duration::from_micros(250);
const BETWEEN_COMMANDS_MAX: Duration = Duration::from_millis(20);
/// Sessions that are enough for a command: to wait for more would save nothing.
const ENOUGH: usize = 128;

/// Requests that wait for a command.
const QUEUE_MAX: usize = 16_384;

/// How long a caller waits beyond its deadline for the answer that is made at it.
const ANSWER_GRACE: Duration = Duration::from_millis(50);

/// The front end.
pub struct Renewals {
    queue: mpsc::Sender<Asked>,
    counts: Arc<RenewalCounts>,
}

/// What is left to run: see [`run`].
pub struct RenewalQueue {
    queue: mpsc::Receiver<Asked>,
    counts: Arc<RenewalCounts>,
}

/// How many renewals share a command.
#[derive(Debug, Default)]
pub struct RenewalCounts {
    commands: AtomicU64,
    sessions: AtomicU64,
    unknown: AtomicU64,
}

impl RenewalCounts {
    /// Commands that renewed sessions, and sessions in them, since the start.
    pub fn now(&self) -> (u64, u64) {
        (self.commands.load(Ordering::Relaxed), self.sessions.load(Ordering::Relaxed))
    }

    /// Ids of no session that were to be renewed since the start.
    pub fn unknown(&self) -> u64 {
        self.unknown.load(Ordering::Relaxed)
    }
}

impl Renewals {
    /// A front end, and the queue behind it.
    pub fn new() -> (Self, RenewalQueue) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let counts = Arc::new(RenewalCounts::default());
        (Self { queue: sender, counts: Arc::clone(&counts) }, RenewalQueue { queue, counts })
    }

    /// For the metrics.
    pub fn counts(&self) -> Arc<RenewalCounts> {
        Arc::clone(&self.counts)
    }

    /// Notes that so many ids were of no session.
    pub(super) fn count_unknown(&self, ids: usize) {
        self.counts.unknown.fetch_add(ids as u64, Ordering::Relaxed);
    }

    /// Renews some sessions, at most [`quorate_machine::limits::SESSIONS_RENEWED_MAX`].
    ///
    /// # Errors
    /// [`AppError::Overloaded`] where too many wait; [`AppError::Unknown`] where a command may be in the log.
    pub async fn renew(
        &self,
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> Result<Renewed, AppError> {
        let (asked, answer) = Asked::new(renewer, sessions, deadline);
        self.queue.try_send(asked).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AppError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => AppError::NotReady("the node is stopping".into()),
        })?;
        match tokio::time::timeout_at((deadline + ANSWER_GRACE).into(), answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(oneshot::error::RecvError { .. })) => Err(AppError::Unknown),
            // It is on its way with others, whose deadlines are later.
            Err(_) => Err(AppError::Unknown),
        }
    }
}

/// Renews what is asked for, until the front end is gone.
pub async fn run(write: Arc<WritePath>, mut renewals: RenewalQueue) {
    let mut turns = Turns::default();
    loop {
        if turns.is_empty() {
            let Some(first) = renewals.queue.recv().await else { return };
            turns.push(first);
        }
        while let Ok(next) = renewals.queue.try_recv() {
            turns.push(next);
        }
        let begun = Instant::now();
        let ids = turns.take_round();
        let pause = pause_after(ids.len());
        renew_once(&write, &renewals.counts, ids, &mut turns).await;
        let until = (begun + pause).into();
        if tokio::time::timeout_at(until, gather(&mut renewals.queue, &mut turns)).await == Ok(Gathered::All) {
            if turns.is_empty() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// How long the next command is at most behind the begin of one with so many sessions.
fn pause_after(sessions: usize) -> Duration {
    BETWEEN_COMMANDS_MAX.min(EACH_SESSION * u32::try_from(sessions).unwrap_or(u32::MAX))
}

/// Whether more sessions can come.
#[derive(Debug, PartialEq, Eq)]
enum Gathered {
    /// Enough have come for a command.
    Enough,
    /// No more will come.
    All,
}

/// Waits until enough sessions have come for a command.
async fn gather(queue: &mut mpsc::Receiver<Asked>, turns: &mut Turns) -> Gathered {
    let mut came = 0;
    while came < ENOUGH {
        let Some(next) = queue.recv().await else { return Gathered::All };
        came += next.left();
        turns.push(next);
    }
    Gathered::Enough
}

/// Proposes one command, and tells those whose sessions are in it.
async fn renew_once(write: &WritePath, counts: &RenewalCounts, ids: Vec<SessionId>, turns: &mut Turns) {
    let Some(deadline) = turns.last_deadline() else { return };
    counts.commands.fetch_add(1, Ordering::Relaxed);
    counts.sessions.fetch_add(ids.len() as u64, Ordering::Relaxed);
    let action = Action::Session(SessionOp::Renew(ids.clone()));
    match write.write(Command::unnamed(action), deadline).await {
        Ok(Decision { reply, .. }) => match of_reply(&ids, &reply) {
            Ok(each) => turns.renewed((reply.index, reply.revision, reply.clock), &each),
            Err(error) => turns.failed(&error, true),
        },
        Err(error) => turns.failed(&error, is_final(&error)),
    }
}

/// Whether another try cannot help.
fn is_final(error: &AppError) -> bool {
    matches!(error, AppError::Fault(_) | AppError::NotReady(_) | AppError::Quarantined(_))
}

/// What became of each session of a command.
fn of_reply(ids: &[SessionId], reply: &Reply) -> Result<BTreeMap<SessionId, (u64, ClusterMillis)>, AppError> {
    match &reply.outcome {
        Outcome::Session(SessionReply::Renewed(each)) if each.len() == ids.len() => {
            Ok(ids.iter().zip(each).filter_map(|(id, renewed)| Some((*id, (*renewed)?))).collect())
        }
        other => Err(AppError::Fault(format!("a renewal was answered as something else: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_renewals_wait_for_nobody_and_many_for_each_other() {
        assert_eq!(pause_after(1), Duration::from_micros(250));
        assert_eq!(pause_after(1_000), BETWEEN_COMMANDS_MAX);
        assert_eq!(pause_after(usize::MAX), BETWEEN_COMMANDS_MAX);
    }

    #[tokio::test]
    async fn who_gathers_stops_when_there_are_enough_or_no_more_come() {
        let (sender, mut queue) = mpsc::channel(8);
        let many: Vec<u64> = (0..ENOUGH as u64).collect();
        for ids in [&[1][..], &many, &[2]] {
            let sessions = ids.iter().copied().map(SessionId).collect();
            let (asked, _) = Asked::new(Renewer::user("ann"), sessions, Instant::now());
            sender.try_send(asked).unwrap_or_else(|_| panic!("there is room"));
        }
        drop(sender);
        let mut turns = Turns::default();
        assert_eq!(gather(&mut queue, &mut turns).await, Gathered::Enough);
        assert_eq!(turns.requests(), 2);
        assert_eq!(gather(&mut queue, &mut turns).await, Gathered::All);
        assert_eq!(turns.requests(), 3);
    }

    #[test]
    fn an_answer_tells_of_each_session_or_is_none() {
        let ids = [SessionId(3), SessionId(5), SessionId(9)];
        let each = vec![Some((100, 600)), None, Some((200, 700))];
        let outcome = Outcome::Session(SessionReply::Renewed(each));
        let reply = Reply { index: 7, revision: 6, clock: 500, replayed: false, outcome };
        let told = of_reply(&ids, &reply).expect("renewals");
        assert_eq!(told, [(SessionId(3), (100, 600)), (SessionId(9), (200, 700))].into());
        let other = Reply { outcome: Outcome::Deferred, ..reply };
        assert!(of_reply(&ids, &other).is_err());
    }
}

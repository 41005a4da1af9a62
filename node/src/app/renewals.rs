//! Renewals of sessions: those that come at about the same time are one command.
//!
//! Owns the queue of those that wait to be renewed. To renew again is harmless, so a command carries no request id and is
//! proposed again until somebody's deadline has passed; nobody else's deadline is touched by that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_store::limits::SESSIONS_RENEWED_MAX;
use quorate_store::types::{
    Action, ClusterMillis, Command, Outcome, Reply, Revision, SessionId, SessionOp, SessionReply,
};
use tokio::sync::{mpsc, oneshot};

use super::{App, AppError};

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

/// What became of some sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// Log index of the command.
    pub index: u64,
    /// Revision at which it was evaluated.
    pub revision: Revision,
    /// Cluster clock at which it was evaluated.
    pub clock: ClusterMillis,
    /// Of each session, in order: its time to live and when it ends; nothing where there is none.
    pub each: Vec<Option<(u64, ClusterMillis)>>,
}

/// Some sessions to renew, and who waits for that.
struct Asked {
    sessions: Vec<SessionId>,
    deadline: Instant,
    /// Whether a command with them may be in the log, although nobody knows.
    may_be_in_log: bool,
    answer: oneshot::Sender<Result<Renewed, AppError>>,
}

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
}

impl RenewalCounts {
    /// Commands that renewed sessions, and sessions in them, since the start.
    pub fn now(&self) -> (u64, u64) {
        (self.commands.load(Ordering::Relaxed), self.sessions.load(Ordering::Relaxed))
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

    /// Renews some sessions, at most [`SESSIONS_RENEWED_MAX`].
    ///
    /// # Errors
    /// [`AppError::Overloaded`] where too many wait; [`AppError::Unknown`] where a command may be in the log.
    pub async fn renew(&self, sessions: Vec<SessionId>, deadline: Instant) -> Result<Renewed, AppError> {
        let (sender, answer) = oneshot::channel();
        let asked = Asked { sessions, deadline, may_be_in_log: false, answer: sender };
        self.queue.try_send(asked).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AppError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => AppError::NotReady("the node is stopping".into()),
        })?;
        match tokio::time::timeout_at((deadline + ANSWER_GRACE).into(), answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(AppError::Unknown),
            // It is on its way with others, whose deadlines are later.
            Err(_) => Err(AppError::Unknown),
        }
    }
}

/// Renews what is asked for, until the front end is gone.
pub async fn run(app: App, mut renewals: RenewalQueue) {
    let mut waiting: Vec<Asked> = Vec::new();
    loop {
        if waiting.is_empty() {
            let Some(first) = renewals.queue.recv().await else { return };
            waiting.push(first);
        }
        while let Ok(next) = renewals.queue.try_recv() {
            waiting.push(next);
        }
        let begun = Instant::now();
        waiting.retain(|asked| !asked.answer.is_closed());
        let round = take_round(&mut waiting);
        let pause = pause_after(round.iter().map(|asked| asked.sessions.len()).sum());
        let left = renew_once(&app, &renewals.counts, round).await;
        waiting.splice(0..0, left);
        let until = (begun + pause).into();
        if tokio::time::timeout_at(until, gather(&mut renewals.queue, &mut waiting)).await == Ok(Gathered::All) {
            if waiting.is_empty() {
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
async fn gather(queue: &mut mpsc::Receiver<Asked>, waiting: &mut Vec<Asked>) -> Gathered {
    let mut came = 0;
    while came < ENOUGH {
        let Some(next) = queue.recv().await else { return Gathered::All };
        came += next.sessions.len();
        waiting.push(next);
    }
    Gathered::Enough
}

/// Takes as many requests as one command has room for.
fn take_round(waiting: &mut Vec<Asked>) -> Vec<Asked> {
    let mut sessions = 0;
    let fits = |asked: &Asked| {
        sessions += asked.sessions.len();
        sessions <= SESSIONS_RENEWED_MAX
    };
    let count = waiting.iter().map(fits).take_while(|fits| *fits).count();
    waiting.drain(..count).collect()
}

/// Proposes one command. Gives back those for whom there is time for another try.
async fn renew_once(app: &App, counts: &RenewalCounts, mut round: Vec<Asked>) -> Vec<Asked> {
    let ids: BTreeSet<_> = round.iter().flat_map(|asked| &asked.sessions).copied().collect();
    let Some(deadline) = round.iter().map(|asked| asked.deadline).max() else { return Vec::new() };
    let ids: Vec<_> = ids.into_iter().collect();
    counts.commands.fetch_add(1, Ordering::Relaxed);
    counts.sessions.fetch_add(ids.len() as u64, Ordering::Relaxed);
    let action = Action::Session(SessionOp::Renew(ids.clone()));
    match app.write(Command::unnamed(action), deadline).await {
        Ok(reply) => {
            let outcome = of_reply(&ids, &reply);
            for asked in round {
                let answer = outcome.as_ref().map(|each| asked.answer_of(&reply, each)).map_err(Clone::clone);
                // Whoever has gone does not want to know.
                let _ = asked.answer.send(answer);
            }
            Vec::new()
        }
        Err(error) => {
            round.iter_mut().for_each(|asked| asked.may_be_in_log |= error == AppError::Unknown);
            give_up(round, &error)
        }
    }
}

/// Answers those whose time is over, or whom another try cannot help. Gives back the others.
fn give_up(round: Vec<Asked>, error: &AppError) -> Vec<Asked> {
    let is_final = matches!(error, AppError::Fault(_) | AppError::NotReady(_) | AppError::Quarantined(_));
    let now = Instant::now();
    let (over, left): (Vec<_>, Vec<_>) = round.into_iter().partition(|asked| is_final || asked.deadline <= now);
    for asked in over {
        let error = if asked.may_be_in_log { AppError::Unknown } else { error.clone() };
        let _ = asked.answer.send(Err(error));
    }
    left
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

impl Asked {
    fn answer_of(&self, reply: &Reply, each: &BTreeMap<SessionId, (u64, ClusterMillis)>) -> Renewed {
        let each = self.sessions.iter().map(|id| each.get(id).copied()).collect();
        Renewed { index: reply.index, revision: reply.revision, clock: reply.clock, each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ids: &[u64], left: Duration) -> (Asked, oneshot::Receiver<Result<Renewed, AppError>>) {
        let (answer, receiver) = oneshot::channel();
        let sessions = ids.iter().copied().map(SessionId).collect();
        (Asked { sessions, deadline: Instant::now() + left, may_be_in_log: false, answer }, receiver)
    }

    #[test]
    fn a_round_ends_before_a_command_is_full() {
        let many: Vec<u64> = (0..1_000).collect();
        let mut waiting: Vec<_> =
            [&many[..], &[1], &many[..]].map(|ids| asked(ids, Duration::ZERO).0).into_iter().collect();
        assert_eq!(take_round(&mut waiting).len(), 2);
        assert_eq!(take_round(&mut waiting).len(), 1);
        assert!(waiting.is_empty() && take_round(&mut waiting).is_empty());
    }

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
            sender.try_send(asked(ids, Duration::ZERO).0).unwrap_or_else(|_| panic!("there is room"));
        }
        drop(sender);
        let mut waiting = Vec::new();
        assert_eq!(gather(&mut queue, &mut waiting).await, Gathered::Enough);
        assert_eq!(waiting.len(), 2);
        assert_eq!(gather(&mut queue, &mut waiting).await, Gathered::All);
        assert_eq!(waiting.len(), 3);
    }

    #[test]
    fn each_gets_what_is_said_of_its_own_sessions() {
        let ids = [SessionId(3), SessionId(5), SessionId(9)];
        let each = vec![Some((100, 600)), None, Some((200, 700))];
        let outcome = Outcome::Session(SessionReply::Renewed(each));
        let reply = Reply { index: 7, revision: 6, clock: 500, replayed: false, outcome };
        let told = of_reply(&ids, &reply).expect("renewals");
        let (of_two, _) = asked(&[9, 5, 9], Duration::ZERO);
        assert_eq!(of_two.answer_of(&reply, &told).each, [Some((200, 700)), None, Some((200, 700))]);
        let other = Reply { outcome: Outcome::Deferred, ..reply };
        assert!(of_reply(&ids, &other).is_err());
    }

    #[test]
    fn only_those_whose_time_is_over_are_told_of_a_failure() {
        let (late, mut late_answer) = asked(&[1], Duration::ZERO);
        let (early, mut early_answer) = asked(&[2], Duration::from_secs(60));
        let (doubtful, mut doubtful_answer) = asked(&[3], Duration::ZERO);
        let doubtful = Asked { may_be_in_log: true, ..doubtful };
        let left = give_up(vec![late, early, doubtful], &AppError::NoLeader);
        assert_eq!(left.len(), 1);
        assert_eq!(late_answer.try_recv(), Ok(Err(AppError::NoLeader)));
        assert_eq!(doubtful_answer.try_recv(), Ok(Err(AppError::Unknown)));
        assert_eq!(early_answer.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert!(give_up(left, &AppError::Fault("broken".into())).is_empty());
        assert!(matches!(early_answer.try_recv(), Ok(Err(AppError::Fault(_)))));
    }
}

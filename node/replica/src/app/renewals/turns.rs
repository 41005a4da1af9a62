//! What waits to be renewed, and whose turn it is.
//!
//! Owns the order: those who renew take turns, one session each, and so do the requests of each of them. Whoever asks for many
//! sessions in many requests is served to the end, and keeps nobody else from the next round. A session that several ask for, or one
//! asks for several times, is renewed once for all of them. Never proposes anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use quorate_machine::limits::SESSIONS_RENEWED_MAX;
use quorate_machine::types::{ClusterMillis, Revision, SessionId};
use quorate_node_core::backend::{AppError, Renewed, Renewer};
use tokio::sync::oneshot;

/// Most turns in one round: those for a session that is in it already are free, and are looked at all the same.
const TURNS_MAX: usize = 8 * SESSIONS_RENEWED_MAX;

/// Some sessions to renew, and who waits for that.
pub(super) struct Asked {
    renewer: Renewer,
    /// As they were given, in order.
    sessions: Vec<SessionId>,
    /// Those that are in no command yet, each once.
    left: Vec<SessionId>,
    /// Those that are in the command under way.
    taken: Vec<SessionId>,
    /// What became of the others.
    each: BTreeMap<SessionId, (u64, ClusterMillis)>,
    deadline: Instant,
    /// Whether a command with them may be in the log, although nobody knows.
    may_be_in_log: bool,
    answer: oneshot::Sender<Result<Renewed, AppError>>,
}

impl Asked {
    /// A request, and where it is answered.
    pub(super) fn new(
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> (Self, oneshot::Receiver<Result<Renewed, AppError>>) {
        let (answer, receiver) = oneshot::channel();
        let left: BTreeSet<_> = sessions.iter().copied().collect();
        // The last one is taken first.
        let left = left.into_iter().rev().collect();
        let (taken, each, may_be_in_log) = (Vec::new(), BTreeMap::new(), false);
        (Self { renewer, sessions, left, taken, each, deadline, may_be_in_log, answer }, receiver)
    }

    /// How many sessions are in no command yet.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    fn tell(self, (index, revision, clock): Moment) {
        let each = self.sessions.iter().map(|id| self.each.get(id).copied()).collect();
        // Whoever has gone does not want to know.
        let _ = self.answer.send(Ok(Renewed { index, revision, clock, each }));
    }

    fn refuse(self, error: &AppError) {
        let error = if self.may_be_in_log { AppError::Unknown } else { error.clone() };
        let _ = self.answer.send(Err(error));
    }
}

/// Log index, revision and cluster clock of a command.
type Moment = (u64, Revision, ClusterMillis);

/// All that wait.
///
/// Invariant: `order` has each renewer of `requests` once, and none of them has no request.
#[derive(Default)]
pub(super) struct Turns {
    requests: BTreeMap<Renewer, VecDeque<Asked>>,
    order: VecDeque<Renewer>,
}

impl Turns {
    /// One more waits.
    pub(super) fn push(&mut self, asked: Asked) {
        if !self.requests.contains_key(&asked.renewer) {
            self.order.push_back(asked.renewer.clone());
        }
        self.requests.entry(asked.renewer.clone()).or_default().push_back(asked);
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// How many requests wait.
    #[cfg(test)]
    pub(super) fn requests(&self) -> usize {
        self.requests.values().map(VecDeque::len).sum()
    }

    /// Takes as many sessions as one command has room for, none twice.
    pub(super) fn take_round(&mut self) -> Vec<SessionId> {
        self.forget_gone();
        let mut ids = BTreeSet::new();
        let (mut waiting, mut served) = (std::mem::take(&mut self.order), VecDeque::new());
        let mut turns = 0;
        while ids.len() < SESSIONS_RENEWED_MAX
            && turns < TURNS_MAX
            && let Some(renewer) = waiting.pop_front()
        {
            turns += 1;
            match self.requests.get_mut(&renewer).and_then(take_one) {
                Some(id) => {
                    ids.insert(id);
                    waiting.push_back(renewer);
                }
                None => served.push_back(renewer),
            }
        }
        waiting.append(&mut served);
        self.order = waiting;
        ids.into_iter().collect()
    }

    /// The latest moment at which somebody wants to know what became of the command under way.
    pub(super) fn last_deadline(&self) -> Option<Instant> {
        let asked = self.requests.values().flatten().filter(|asked| !asked.taken.is_empty());
        asked.map(|asked| asked.deadline).max()
    }

    /// The command under way was decided then, with this outcome for the sessions that live.
    pub(super) fn renewed(&mut self, at: Moment, each: &BTreeMap<SessionId, (u64, ClusterMillis)>) {
        self.settle(|mut asked| {
            let taken = std::mem::take(&mut asked.taken);
            let was_in_it = !taken.is_empty() || asked.sessions.is_empty();
            asked.each.extend(taken.into_iter().filter_map(|id| Some((id, *each.get(&id)?))));
            if was_in_it && asked.left.is_empty() {
                asked.tell(at);
                return None;
            }
            Some(asked)
        });
    }

    /// The command under way failed: those are told whose time is over, or whom another try cannot help.
    pub(super) fn failed(&mut self, error: &AppError, is_final: bool) {
        let now = Instant::now();
        self.settle(|mut asked| {
            if asked.taken.is_empty() {
                return Some(asked);
            }
            asked.may_be_in_log |= *error == AppError::Unknown;
            let mut taken = std::mem::take(&mut asked.taken);
            asked.left.append(&mut taken);
            if is_final || asked.deadline <= now {
                asked.refuse(error);
                return None;
            }
            Some(asked)
        });
    }

    /// Forgets those who do not wait any more.
    fn forget_gone(&mut self) {
        self.settle(|asked| (!asked.answer.is_closed()).then_some(asked));
    }

    /// Keeps of all requests what this gives back.
    fn settle(&mut self, mut keep: impl FnMut(Asked) -> Option<Asked>) {
        for requests in self.requests.values_mut() {
            let all = std::mem::take(requests);
            requests.extend(all.into_iter().filter_map(&mut keep));
        }
        self.requests.retain(|_, requests| !requests.is_empty());
        self.order.retain(|renewer| self.requests.contains_key(renewer));
    }
}

/// Takes a session of the next request that has one left; its requests take turns, too.
fn take_one(requests: &mut VecDeque<Asked>) -> Option<SessionId> {
    // Those that have nothing left gather at the end, so mostly the first one has.
    for _ in 0..requests.len() {
        let mut asked = requests.pop_front()?;
        let id = asked.left.pop();
        asked.taken.extend(id);
        requests.push_back(asked);
        if id.is_some() {
            return id;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Answer = oneshot::Receiver<Result<Renewed, AppError>>;

    fn push(turns: &mut Turns, renewer: &str, ids: impl IntoIterator<Item = u64>) -> Answer {
        push_until(turns, renewer, ids, Duration::from_secs(60))
    }

    fn push_until(turns: &mut Turns, renewer: &str, ids: impl IntoIterator<Item = u64>, left: Duration) -> Answer {
        let sessions = ids.into_iter().map(SessionId).collect();
        let (asked, answer) = Asked::new(Renewer::user(renewer), sessions, Instant::now() + left);
        turns.push(asked);
        answer
    }

    /// All of them live, and end by their number.
    fn all_live(turns: &mut Turns, index: u64, round: &[SessionId]) {
        turns.renewed((index, 6, 500), &round.iter().map(|id| (*id, (100, 600 + id.0))).collect());
    }

    #[test]
    fn one_session_of_somebody_is_in_the_first_round_whatever_others_ask_for() {
        let mut turns = Turns::default();
        let flood: Vec<_> = (0..600).map(|n| push(&mut turns, "mallory", n * 1_000..(n + 1) * 1_000)).collect();
        let mut honest = push(&mut turns, "ann", [5_000_000]);
        let mut own = push(&mut turns, "mallory", [6_000_000]);
        let round = turns.take_round();
        assert_eq!(round.len(), SESSIONS_RENEWED_MAX);
        all_live(&mut turns, 1, &round);
        assert!(honest.try_recv().is_ok_and(|answer| answer.is_ok()), "ann waited for mallory");
        // Nor does a small request of the same user wait for the large ones.
        assert!(own.try_recv().is_ok_and(|answer| answer.is_ok()), "a small request waited for large ones");
        assert_eq!(turns.requests(), flood.len());
    }

    #[test]
    fn all_are_served_to_the_end() {
        let mut turns = Turns::default();
        let mut answers: Vec<_> =
            (0..5).map(|n| push(&mut turns, ["ann", "bob"][n as usize % 2], n * 1_000..(n + 1) * 1_000)).collect();
        let mut rounds = 0;
        while !turns.is_empty() {
            let round = turns.take_round();
            assert!((1..=SESSIONS_RENEWED_MAX).contains(&round.len()));
            rounds += 1;
            all_live(&mut turns, rounds, &round);
        }
        assert_eq!(rounds, 5_000_u64.div_ceil(SESSIONS_RENEWED_MAX as u64));
        for (n, answer) in (0..).zip(&mut answers) {
            let told = answer.try_recv().expect("an answer").expect("renewals");
            assert!(told.each.into_iter().eq((n * 1_000..(n + 1) * 1_000).map(|id| Some((100, 600 + id)))));
        }
    }

    #[test]
    fn a_session_that_is_asked_for_again_and_again_is_renewed_once() {
        let mut turns = Turns::default();
        let answers: Vec<_> = (0..300).map(|n| push(&mut turns, "mallory", [7, 7, 8, 1_000 + n])).collect();
        let mut ann = push(&mut turns, "ann", [9, 5, 9]);
        let round = turns.take_round();
        assert_eq!(round.len(), 2 + 2 + answers.len());
        turns.renewed((7, 6, 500), &[(SessionId(5), (200, 700)), (SessionId(9), (100, 600))].into());
        let told = ann.try_recv().expect("an answer").expect("renewals");
        let each = vec![Some((100, 600)), Some((200, 700)), Some((100, 600))];
        assert_eq!(told, Renewed { index: 7, revision: 6, clock: 500, each });
        assert!(turns.is_empty());
    }

    #[test]
    fn only_those_whose_time_is_over_are_told_of_a_failure() {
        let mut turns = Turns::default();
        let mut late = push_until(&mut turns, "ann", [1], Duration::ZERO);
        let mut early = push(&mut turns, "ann", [2]);
        let mut doubtful = push(&mut turns, "bob", [3]);
        turns.take_round();
        turns.failed(&AppError::NoLeader, false);
        assert_eq!(late.try_recv(), Ok(Err(AppError::NoLeader)));
        assert_eq!(early.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(turns.take_round(), [SessionId(2), SessionId(3)], "they are tried again");
        turns.failed(&AppError::Unknown, false);
        turns.take_round();
        turns.failed(&AppError::Fault("broken".into()), true);
        assert_eq!(doubtful.try_recv(), Ok(Err(AppError::Unknown)), "one of the tries may be in the log");
        assert!(turns.is_empty());
    }

    #[test]
    fn who_has_gone_takes_no_turn() {
        let mut turns = Turns::default();
        drop(push(&mut turns, "ann", [1]));
        let _bob = push(&mut turns, "bob", [2]);
        assert_eq!(turns.take_round(), [SessionId(2)]);
    }
}

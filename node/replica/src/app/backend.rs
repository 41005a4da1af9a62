//! This node behind the seam to the protocols.
//!
//! Owns which service answers what. Never does anything itself.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_feed::Feed;
use quorate_machine::query::{Observed, Queries, ReadPosition, StateFault};
use quorate_machine::types::{Command, Key, QueueName, Reply, Revision, SessionId, WallMillis};
use quorate_node_core::backend::members::{MemberReply, MemberRequest, MembersSeen};
use quorate_node_core::backend::{
    AppError, Consistency, Decision, DigestAt, IsDone, LeaderHint, LockPlace, Node, Operations, Renewed, Renewer,
    Repaired, Waits,
};
use quorate_store::backup::BackupError;

use super::App;
use super::backup::BackupFor;

/// An answer on its way, or why there is none.
type Answering<'a, T> = BoxFuture<'a, Result<T, AppError>>;

macro_rules! of_state {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Queries for App {
            fn access_revision(&self) -> Revision {
                self.state().access_revision()
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    self.state().$name($($argument),*)
                }
            )*
        }
    };
}

quorate_machine::every_query!(of_state);

impl Node for App {
    fn write(&self, command: Command, deadline: Instant) -> Answering<'_, Decision> {
        Box::pin(self.writes().write(command, deadline))
    }

    fn renew(&self, renewer: Renewer, sessions: Vec<SessionId>, deadline: Instant) -> Answering<'_, Renewed> {
        Box::pin(self.inner.sessions.renew(renewer, sessions, deadline))
    }

    fn is_dear(&self, command: &Command) -> bool {
        self.writes().is_dear(command)
    }

    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault> {
        self.state().rehearse(self.wall_now(), next)
    }

    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault> {
        self.state().dry_run(command, self.wall_now())
    }

    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> Answering<'_, ()> {
        Box::pin(self.reads().barrier(consistency, deadline))
    }

    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> Answering<'a, Observed<Vec<Option<String>>>> {
        Box::pin(self.inner.sessions.owners_of(sessions, deadline))
    }

    fn feed(&self) -> &Arc<Feed> {
        self.state().feed()
    }

    fn position(&self) -> ReadPosition {
        self.state().position()
    }

    fn leader_hint(&self) -> LeaderHint {
        self.leader_hint()
    }

    fn wall_now(&self) -> WallMillis {
        self.wall_now()
    }

    fn unready_reason(&self) -> Option<String> {
        self.unready_reason()
    }
}

impl Waits for App {
    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.state().wait_applied(index))
    }

    fn wait_key_change<'a>(&'a self, key: &'a Key, seen: Revision, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.state().wait_key_change(key, seen, wait))
    }

    fn wait_woken<'a>(
        &'a self,
        waker: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>> {
        Box::pin(async move {
            let _waiting = self.inner.waiting.enter();
            self.state().wait_woken(waker, wait, is_done).await
        })
    }

    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        revision: Revision,
        wall: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>> {
        Box::pin(self.state().wait_tasks(queue, revision, wall, until))
    }

    fn lock_place(&self, key: Key) -> Box<dyn LockPlace> {
        Box::new(self.lock_turns().place(key))
    }
}

impl Operations for App {
    fn status(&self) -> StatusAnswer {
        self.status()
    }

    fn quarantine(&self) -> Option<String> {
        self.quarantine()
    }

    fn staleness_ms(&self) -> Option<u64> {
        self.staleness_ms()
    }

    fn digest(&self) -> DigestAt {
        let applied = self.state().applied();
        DigestAt { at: applied.at, digest: applied.digest }
    }

    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> io::Result<()> {
        match self.backups().back_up(BackupFor::Client, sink, begun) {
            Ok(_) => {
                self.backups().ledger().note_completed(BackupFor::Client);
                Ok(())
            }
            Err(error) => {
                self.backups().ledger().note_failed(BackupFor::Client);
                Err(match error {
                    BackupError::Io(error) => error,
                    other => io::Error::other(other),
                })
            }
        }
    }

    fn hand_over(&self, to: Option<u64>, deadline: Instant) -> Answering<'_, u64> {
        Box::pin(App::hand_over(self, to, deadline))
    }

    fn members_seen(&self, deadline: Instant) -> Answering<'_, MembersSeen> {
        Box::pin(App::members_seen(self, deadline))
    }

    fn change_members(&self, context: MemberRequest, deadline: Instant) -> Answering<'_, MemberReply> {
        Box::pin(App::change_members(self, context, deadline))
    }

    fn repair(&self, node: u64, deadline: Instant) -> Answering<'_, Repaired> {
        Box::pin(App::repair(self, node, deadline))
    }
}

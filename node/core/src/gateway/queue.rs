//! A session that asks for a lock or to lead, and waits for it.
//!
//! Owns the way from the request to what is answered. The place in the queue is the cluster's: it has an end of its own, and stays
//! where a request that waits for it is answered before, or dies with its node. Where its connection ends, the place stays for a
//! while, and goes unless the session has asked again by then. Who asks again goes on waiting.

use std::time::{Duration, Instant};

use quorate_api::{Applied, ErrorCode};
use quorate_machine::query::{Party, ReadPosition, StateFault};
use quorate_machine::types::{
    Acquire, Action, LockName, LockOp, LockReply, LockSpace, Outcome as Decided, Question, Rejection, Reply, RequestId,
    Revision, SessionId,
};
use quorate_threads::watchdog;
use tokio::runtime::Handle;

use crate::backend::SharedNode;
use crate::gateway::auth::requirement::{self, Permission};
use crate::gateway::call::Call;
use crate::gateway::decide::decide;
use crate::gateway::failure::Failure;
use crate::gateway::text::quoted;
use crate::gateway::{freshness, propose, request_ids, wait};
use crate::limits;

/// How long an answer waits at most until this node has applied what was decided.
const SHOWN_WITHIN: Duration = Duration::from_secs(1);

/// A request, and how long a request waits for it.
pub struct QueueRequest {
    /// For the log.
    pub acquire: Acquire,
    /// After how long it is answered although the wait is not over.
    pub poll: Duration,
}

/// What a request came to.
pub struct Acquired {
    /// Where the session stands.
    pub state: QueueState,
    /// Revision at which that was decided or read.
    pub revision: Revision,
    /// Log index at which that was decided or read.
    pub index: u64,
    /// Whether the command was replayed.
    pub replayed: bool,
}

/// Where a session stands.
pub enum QueueState {
    /// It holds the lock.
    Holds {
        /// The fencing token.
        token: Revision,
    },
    /// It waits.
    Waits {
        /// Its place.
        place: Revision,
        /// How many are before it, if this node can tell.
        ahead: Option<u64>,
    },
}

/// Asks for the lock, and waits for it as long as the request says. Dropped while it waits, it gives up what nobody listens for.
pub async fn acquire(call: &Call, request: QueueRequest) -> Result<Acquired, Failure> {
    let (lock, session) = (request.acquire.lock.clone(), request.acquire.session);
    let mut listener = Listener { call, lock, session, listens: Listens::Nothing };
    let acquired = ask(call, request, &mut listener.listens).await;
    if !matches!(listener.listens, Listens::Nothing) {
        // What has come from the network is looked at before this goes on. If that is the end of the connection, this goes no further, and
        // nobody counts as told of a grant who hung up before it.
        tokio::task::yield_now().await;
    }
    listener.listens = Listens::Nothing;
    acquired
}

/// Tells meanwhile what it listens to.
async fn ask(call: &Call, request: QueueRequest, listens: &mut Listens) -> Result<Acquired, Failure> {
    let QueueRequest { acquire, poll } = request;
    let (lock, session) = (acquire.lock.clone(), acquire.session);
    let end_of_poll = Instant::now() + poll;
    let waits = acquire.wait_ms > 0;
    if waits {
        *listens = Listens::Request(RequestId(call.request_id()));
    }
    let mut reply = decide(call, Action::Lock(LockOp::Acquire(acquire)), false).await?;
    if waits && reply.replayed {
        reply = listen_again(call, &lock, session, reply, listens).await?;
    }
    match reply.outcome {
        // Of a request that waits it is no more than a moment old.
        Decided::Lock(LockReply::Held { token }) if waits => Ok(Acquired::by(&reply, QueueState::Holds { token })),
        // The kept answer may be of a hold that is over.
        Decided::Lock(LockReply::Held { token }) if reply.replayed => {
            // No question has this number: what was granted to any must be heard first.
            let place = QueuePlace { lock, session, place: token, asked: 0 };
            place.look_again(call, &reply, listens).await
        }
        Decided::Lock(LockReply::Held { token }) => Ok(Acquired::by(&reply, QueueState::Holds { token })),
        // An earlier question of the session waits; this one does not.
        Decided::Lock(LockReply::Waiting { place, .. }) if !waits => {
            Ok(Acquired::by(&reply, QueueState::Waits { place, ahead: None }))
        }
        Decided::Lock(LockReply::Waiting { place, asked }) => {
            *listens = Listens::Question(asked);
            let place = QueuePlace { lock, session, place, asked };
            place.wait(call, reply, end_of_poll, listens).await
        }
        Decided::Rejected(ref why) => Err(refused(&lock, &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// Has the log know that a request which was sent before is listened to again: the node that saw its earlier connection end would give
/// up what it has. Fails where nothing is left of it.
async fn listen_again(
    call: &Call,
    lock: &LockName,
    session: SessionId,
    told: Reply,
    listens: &mut Listens,
) -> Result<Reply, Failure> {
    if !matches!(told.outcome, Decided::Lock(LockReply::Held { .. } | LockReply::Waiting { .. })) {
        return Ok(told);
    }
    let heard = listen(call, lock, session, call.deadline, listens).await?;
    match &heard.outcome {
        Decided::Lock(LockReply::Gone(_)) => Err(over(lock).evaluated_at(heard.revision, heard.index)),
        _ => Ok(Reply { replayed: true, ..heard }),
    }
}

/// Where a session stands at a lock, and that it was told. It takes nothing: a request that comes late may be one of a session that left.
async fn listen(
    call: &Call,
    lock: &LockName,
    session: SessionId,
    deadline: Instant,
    listens: &mut Listens,
) -> Result<Reply, Failure> {
    // Under an id that nobody asks with again.
    let (op, id) = (LockOp::Listen { lock: lock.clone(), session }, RequestId(request_ids::fresh_id()));
    *listens = Listens::Request(id.clone());
    let heard = propose::propose(&call.caller(), Action::Lock(op), id, deadline).await;
    heard.map_err(|failure| failure.undecided(WAITS_ON))
}

/// Somebody who waits. Whoever hangs up before the wait is over loses the place, or what it was granted unheard, unless the session has
/// asked again soon, wherever that was.
struct Listener<'a> {
    call: &'a Call,
    lock: LockName,
    session: SessionId,
    listens: Listens,
}

/// To what somebody listens who waits.
#[derive(Debug, Clone)]
enum Listens {
    /// Nobody waits yet, or any more.
    Nothing,
    /// The outcome of a request that was sent, and may have to wait for a leader.
    Request(RequestId),
    /// The outcome of the question with this number.
    Question(u64),
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        // A node that ends has no runtime any more, and did not see a connection end.
        let (false, Ok(runtime)) = (matches!(self.listens, Listens::Nothing), Handle::try_current()) else { return };
        let left = Left {
            call: self.call.lasting(),
            lock: self.lock.clone(),
            session: self.session,
            listened: self.listens.clone(),
            decided_by: self.call.deadline,
            id: RequestId(request_ids::fresh_id()),
        };
        watchdog::spawn_on(&runtime, async move { left.give_up().await });
    }
}

/// A question that nobody listens to, since its caller hung up.
struct Left {
    call: Call,
    lock: LockName,
    session: SessionId,
    listened: Listens,
    /// Until when a request that was sent may come to something.
    decided_by: Instant,
    /// Request id of the command; all attempts share it, so the command takes effect once.
    id: RequestId,
}

impl Left {
    /// Gives up what nobody listens for any more.
    async fn give_up(&self) {
        const PAUSE: Duration = Duration::from_millis(500);
        let end = Instant::now() + Duration::from_millis(limits::HUNG_UP_TRIED_MS);
        while let Err(failure) = self.give_up_unless_asked_again().await {
            if !failure.is_passing() || Instant::now() >= end {
                // It ends with its time, or with its session.
                let (lock, session, detail) = (&self.lock, self.session, failure.detail());
                tracing::warn!(?lock, %session, detail, "a place in a queue stays although nobody listens for it any more");
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn give_up_unless_asked_again(&self) -> Result<(), Failure> {
        let Some(question) = self.question().await? else { return Ok(()) };
        let (lock, session) = (self.lock.clone(), self.session);
        // Only time counts in which the cluster knows, and others who wait for the session can say that they do.
        let hung_up = self.propose(LockOp::HangUp { lock: lock.clone(), session, question }, self.id.clone()).await?;
        let Decided::Lock(LockReply::HungUp(asked)) = hung_up.outcome else { return Ok(()) };
        tokio::time::sleep(Duration::from_millis(limits::HUNG_UP_MS)).await;
        let leave = LockOp::Leave { lock, session, asked: Some(asked), release: true };
        self.propose(leave, self.id.of_part(1)).await.map(drop)
    }

    /// The question that nobody listens to. `None`: the request had no outcome, and will have none.
    async fn question(&self) -> Result<Option<Question>, Failure> {
        let id = match &self.listened {
            Listens::Nothing => return Ok(None),
            Listens::Question(number) => return Ok(Some(Question::Numbered(*number))),
            Listens::Request(id) => id,
        };
        if let found @ Some(_) = self.came_to(id).await? {
            return Ok(found);
        }
        tokio::time::sleep_until(self.decided_by.into()).await;
        self.came_to(id).await
    }

    async fn came_to(&self, id: &RequestId) -> Result<Option<Question>, Failure> {
        let backend = &self.call.api.node;
        freshness::refresh(backend, Instant::now() + self.call.timeout).await?;
        let (_, kept) = backend.request(self.call.who().name(), id).map_err(|fault| Failure::from_fault(&fault))?;
        Ok(match kept.map(|kept| kept.reply.outcome) {
            Some(Decided::Lock(LockReply::Waiting { asked, .. })) => Some(Question::Numbered(asked)),
            Some(Decided::Lock(LockReply::Held { token })) => Some(Question::Granted(token)),
            _ => None,
        })
    }

    async fn propose(&self, op: LockOp, id: RequestId) -> Result<Reply, Failure> {
        let deadline = Instant::now() + self.call.timeout;
        propose::propose(&self.call.caller(), Action::Lock(op), id, deadline).await
    }
}

/// A place in a queue, as a command was told of it.
struct QueuePlace {
    lock: LockName,
    session: SessionId,
    place: Revision,
    /// The number of its question: who asks later, elsewhere, waits by itself.
    asked: u64,
}

impl QueuePlace {
    async fn wait(
        mut self,
        call: &Call,
        mut reply: Reply,
        end_of_poll: Instant,
        listens: &mut Listens,
    ) -> Result<Acquired, Failure> {
        let backend = &call.api.node;
        loop {
            let waits = |ahead| Acquired::by(&reply, QueueState::Waits { place: self.place, ahead });
            // Every answer has the number of waiters ahead. This node knows it only after it has applied the command.
            let shown_by = end_of_poll.max(Instant::now() + SHOWN_WITHIN).min(call.deadline);
            if !wait::for_applied(backend, reply.index, shown_by).await {
                return Ok(waits(None));
            }
            let Some(end_of_wait) = self.end_of_wait(backend)? else {
                let party = self.read(backend).map_err(|fault| Failure::from_fault(&fault))?;
                return self.found(call, &reply, party, listens).await;
            };
            let left = |backend: &SharedNode| match self.read(backend)? {
                (_, Party::Waiting { row, .. }) if !row.hung_up => Ok(None),
                other => Ok(Some(other)),
            };
            let end = end_of_poll.min(end_of_wait);
            match wait::until(call, &self.lock.waker(), end, left).await? {
                Some((_, Party::Waiting { .. })) => {}
                Some(party) => return self.found(call, &reply, party, listens).await,
                None if end_of_wait <= Instant::now() => return self.leave(call).await,
                None => return Ok(waits(self.ahead(backend)?)),
            }
            // A later question of the session was hung up on: this one becomes the last. In a loop, since somebody may do that all the time.
            let heard = listen(call, &self.lock, self.session, Instant::now() + call.timeout, listens).await?;
            let Decided::Lock(LockReply::Waiting { place, asked }) = heard.outcome else {
                return self.heard(&heard, reply.replayed);
            };
            *listens = Listens::Question(asked);
            (self.place, self.asked) = (place, asked);
            reply = Reply { replayed: reply.replayed, ..heard };
        }
    }

    /// What is true now of a session that was told that it holds the lock.
    async fn look_again(&self, call: &Call, reply: &Reply, listens: &mut Listens) -> Result<Acquired, Failure> {
        let party = self.look(call).await?;
        self.found(call, reply, party, listens).await
    }

    /// What is true now, for who may ask for the lock.
    async fn look(&self, call: &Call) -> Result<(ReadPosition, Party), Failure> {
        let wanted = requirement::on_name(Permission::Lock, self.lock.name.as_str().as_bytes());
        call.admit_read(&wanted).await?;
        self.read(&call.api.node).map_err(|fault| Failure::from_fault(&fault))
    }

    fn read(&self, backend: &SharedNode) -> Result<(ReadPosition, Party), StateFault> {
        backend.party(&self.lock, self.session).map(|seen| (seen.at, seen.found))
    }

    /// When its time is over, by this node's clock; `None` where it waits no more.
    fn end_of_wait(&self, backend: &SharedNode) -> Result<Option<Instant>, Failure> {
        let (at, party) = self.read(backend).map_err(|fault| Failure::from_fault(&fault))?;
        Ok(match party {
            Party::Waiting { row, .. } => {
                Some(Instant::now() + Duration::from_millis(row.until.saturating_sub(at.clock)))
            }
            _ => None,
        })
    }

    fn ahead(&self, backend: &SharedNode) -> Result<Option<u64>, Failure> {
        let ahead = backend.places_before(&self.lock, self.place, limits::PLACES_COUNTED_MAX);
        ahead.map(|count| Some(count as u64)).map_err(|fault| Failure::from_fault(&fault))
    }

    /// What this node's state tells of a session that waits no more.
    async fn found(
        &self,
        call: &Call,
        reply: &Reply,
        (at, party): (ReadPosition, Party),
        listens: &mut Listens,
    ) -> Result<Acquired, Failure> {
        let replayed = reply.replayed;
        let acquired = |state| Ok(Acquired { state, revision: at.revision, index: at.index, replayed });
        match party {
            // It was granted to another question of the session. Whoever asks that may hang up yet: what is told here must stay.
            Party::Holding { row, .. } if row.unheard.is_some_and(|other| other != self.asked) => {
                let heard = listen(call, &self.lock, self.session, Instant::now() + call.timeout, listens).await?;
                self.heard(&heard, replayed)
            }
            Party::Holding { token, .. } => acquired(QueueState::Holds { token }),
            // It asked again, elsewhere, after it had left.
            Party::Waiting { place, .. } => acquired(QueueState::Waits { place, ahead: None }),
            nothing @ (Party::Nothing | Party::Expired) => Err(self.none_left((at, nothing))),
        }
    }

    /// The answer to a session that listened anew.
    fn heard(&self, heard: &Reply, replayed: bool) -> Result<Acquired, Failure> {
        let acquired = |state| Ok(Acquired { replayed, ..Acquired::by(heard, state) });
        match &heard.outcome {
            Decided::Lock(LockReply::Held { token }) => acquired(QueueState::Holds { token: *token }),
            Decided::Lock(LockReply::Waiting { place, .. }) => {
                acquired(QueueState::Waits { place: *place, ahead: None })
            }
            Decided::Lock(LockReply::Gone(_)) => Err(over(&self.lock).evaluated_at(heard.revision, heard.index)),
            Decided::Rejected(why) => Err(refused(&self.lock, heard, why)),
            _ => Err(propose::confused(heard)),
        }
    }

    /// What a session is told that neither holds nor waits.
    fn none_left(&self, (at, party): (ReadPosition, Party)) -> Failure {
        let failure = match party {
            Party::Expired => Failure::session_expired(self.session),
            _ => over(&self.lock),
        };
        failure.evaluated_at(at.revision, at.index)
    }

    /// The time is over: the place is given up, unless the lock was given to it just now, or the session asked again elsewhere.
    async fn leave(&self, call: &Call) -> Result<Acquired, Failure> {
        let backend = &call.api.node;
        let (lock, session) = (self.lock.clone(), self.session);
        let op = LockOp::Leave { lock, session, asked: Some(self.asked), release: false };
        let deadline = Instant::now() + call.timeout;
        let caller = call.caller();
        let propose = |id| propose::propose(&caller, Action::Lock(op.clone()), id, deadline);
        let mut reply = propose(last_word(&RequestId(call.request_id()))).await;
        if matches!(&reply, Ok(Reply { outcome: Decided::Rejected(Rejection::RequestIdReused), .. })) {
            // The request was sent to two nodes, and the other one has given up by its question.
            reply = propose(RequestId(request_ids::fresh_id())).await;
        }
        let reply = reply.map_err(|failure| failure.undecided(WAITS_ON))?;
        match &reply.outcome {
            Decided::Lock(LockReply::Held { token }) => Ok(Acquired::by(&reply, QueueState::Holds { token: *token })),
            Decided::Lock(LockReply::Waiting { place, .. }) => {
                Ok(Acquired::by(&reply, QueueState::Waits { place: *place, ahead: self.ahead(backend)? }))
            }
            Decided::Lock(LockReply::Gone(_)) => Err(over(&self.lock).evaluated_at(reply.revision, reply.index)),
            Decided::Rejected(why) => Err(refused(&self.lock, &reply, why)),
            _ => Err(propose::confused(&reply)),
        }
    }
}

/// The id under which a request whose time is over gives its place up: of the same request, so that a retry of it is told the same.
fn last_word(id: &RequestId) -> RequestId {
    id.of_part(1)
}

/// Whether a request of `owner` whose kept answer is that it waits has given its place up since; with where that was decided.
pub fn gave_up_since(
    backend: &SharedNode,
    owner: &str,
    id: &RequestId,
    kept: &Reply,
) -> Result<Option<Reply>, Failure> {
    if !matches!(kept.outcome, Decided::Lock(LockReply::Waiting { .. })) {
        return Ok(None);
    }
    let (_, last) = backend.request(owner, &last_word(id)).map_err(|fault| Failure::from_fault(&fault))?;
    Ok(last.map(|last| last.reply).filter(|reply| matches!(reply.outcome, Decided::Lock(LockReply::Gone(_)))))
}

/// Why a question was refused; the number that may be another one is that of slots.
fn refused(lock: &LockName, reply: &Reply, why: &Rejection) -> Failure {
    let name = lock.name.as_str();
    Failure::from_rejection(name, reply, why).of_number(name, why, "slots")
}

fn over(lock: &LockName) -> Failure {
    let what = match lock.space {
        LockSpace::Lock => "was not to be had",
        LockSpace::Election => "had another leader",
    };
    let detail = format!("{} {what} in the time given; the place in the queue is given up", quoted(lock.name.as_str()));
    Failure::new(ErrorCode::Locked, Applied::No, detail)
}

/// What is said where the fate of a request that waits is not known.
pub const WAITS_ON: &str = "the session may wait in the queue until its time is over";

impl Acquired {
    fn by(reply: &Reply, state: QueueState) -> Self {
        Self { state, revision: reply.revision, index: reply.index, replayed: reply.replayed }
    }
}

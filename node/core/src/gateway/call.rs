//! One request on its way through a node, whatever protocol it came by.
//!
//! Owns its deadline, its request id and what it takes of this node until it is answered. Never knows how it was written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quorate_api::{Applied, ErrorCode};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::backend::{AppError, Consistency};
use crate::connection::monitor::{Busy, ConnectionMonitor};
use crate::connection::origin::Origin;
use crate::evicting_limit::Standing;
use crate::gateway::admission::accounts::{Account, Spender};
use crate::gateway::admission::answer_memory::{Share, ValuesRoom};
use crate::gateway::admission::body_memory::{BodyPermit, BodyRoom};
use crate::gateway::admission::classes::{Permit, Waiting};
use crate::gateway::admission::paced::{hold_awake, paid};
use crate::gateway::admission::request_class::RequestClass;
use crate::gateway::admission::shares::{Full, HeldShare, LentPlace, Scarce};
use crate::gateway::admission::turns::{Begun, ConnectionAccount, Lanes};
use crate::gateway::admission::{AdmissionRequest, LogScan};
use crate::gateway::api::Api;
use crate::gateway::auth::requirement::Wanted;
use crate::gateway::auth::who::Who;
use crate::gateway::caller::Caller;
use crate::gateway::failure::{Effect, Failure};
use crate::limits;
use crate::timings::{self, Part};

/// What is known of a request.
pub struct Call {
    /// The API it came to.
    pub api: Arc<Api>,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// The account that its connection is on.
    connection_account: Arc<ConnectionAccount>,
    /// The turns of its account, once it is known.
    lanes: OnceLock<Arc<Lanes>>,
    /// The template of its route, or the name of its method.
    pub route: &'static str,
    /// How long it may take from its beginning on.
    pub timeout: Duration,
    /// When the answer has to be there.
    pub deadline: Instant,
    /// Its place in its class, once it is whole.
    pub permit: Permit,
    /// What its body takes of the memory for all bodies.
    pub body_permit: BodyPermit,
    /// Room for the values that its answer shows.
    values_room: Mutex<Option<ValuesRoom>>,
    /// Whether it turned out that it changes nothing, though its route or method may.
    only_looks: AtomicBool,
    /// Whether it is served whatever its account owes.
    is_vital: bool,
    /// Who asks; set once that was proved.
    who: OnceLock<Who>,
    /// Who pays for it; nobody where that is not bounded.
    account: OnceLock<Spender>,
    /// Keeps its connection busy. Taken by an answer that goes on after the handler.
    busy: Arc<Mutex<Option<Busy>>>,
    /// Of its connection, once that was taken.
    monitor: OnceLock<Arc<ConnectionMonitor>>,
    request_id: Mutex<String>,
}

/// Where a request goes, and what follows from that.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The template of its route, or the name of its method.
    pub route: &'static str,
    /// Where it is admitted.
    pub class: RequestClass,
    /// Whether it is served whatever its account owes.
    pub is_vital: bool,
}

impl Call {
    /// Starts with the default deadline, under this request id.
    pub fn new(
        api: Arc<Api>,
        target: Target,
        origin: Arc<Origin>,
        connection_account: Arc<ConnectionAccount>,
        busy: Arc<Mutex<Option<Busy>>>,
        started: Instant,
        request_id: String,
    ) -> Self {
        let timeout = api.settings.request_timeout;
        let Target { route, class, is_vital } = target;
        let (permit, body_permit) =
            (api.admission.classes.permit(class), BodyPermit::new(class == RequestClass::Coordination));
        Self {
            api,
            origin,
            connection_account,
            lanes: OnceLock::new(),
            route,
            timeout,
            deadline: started + timeout,
            permit,
            body_permit,
            values_room: Mutex::default(),
            only_looks: AtomicBool::new(false),
            is_vital,
            who: OnceLock::new(),
            account: OnceLock::new(),
            busy,
            monitor: OnceLock::new(),
            request_id: Mutex::new(request_id),
        }
    }

    /// The same caller's, for an answer that goes on: it takes nothing of a class, since it lasts as long as its caller wants.
    pub fn lasting(&self) -> Self {
        self.going_on(RequestClass::Node)
    }

    /// The same caller's, for the next part of an answer that goes on, where that is a scan: once it is its turn. Others have theirs
    /// between two parts.
    pub async fn next_scan(&self) -> Result<Self, Failure> {
        let part = self.going_on(RequestClass::Scan);
        part.enter().await?;
        Ok(part)
    }

    fn going_on(&self, class: RequestClass) -> Self {
        let target = Target { route: self.route, class, is_vital: self.is_vital };
        let (api, origin, on) = (Arc::clone(&self.api), Arc::clone(&self.origin), Arc::clone(&self.connection_account));
        let call = Self::new(api, target, origin, on, Arc::default(), Instant::now(), self.request_id());
        let (who, account, lanes) = (self.who.clone(), self.account.clone(), self.lanes.clone());
        Self { who, account, lanes, timeout: self.timeout, ..call }
    }

    /// Takes the deadline that the caller gave, at most the configured maximum.
    pub fn give_time(&mut self, wanted: Duration) {
        let wanted = self.api.timeout(wanted);
        self.deadline = self.deadline - self.timeout + wanted;
        self.timeout = wanted;
    }

    /// Who asks.
    pub fn who(&self) -> &Who {
        self.who.get_or_init(|| if self.api.auth.is_open() { Who::Anybody } else { Who::Nobody })
    }

    /// Says who asks, before anybody wants to know. The connection is on that account from now on.
    pub fn identify(&self, who: Who) {
        let lanes = self.connection_account.is(Account::of(&who, self.origin.neighbour()));
        let is_first = self.lanes.set(lanes).is_ok();
        debug_assert!(is_first, "who asks is said before a turn is taken");
        let first = self.who.set(who);
        debug_assert!(first.is_ok(), "who asks is said once");
    }

    /// Who pays for it; nobody where that is not bounded.
    pub fn account(&self) -> Option<&Spender> {
        self.account.get()
    }

    /// What keeps its connection busy, for an answer that goes on after the handler.
    pub fn take_busy(&self) -> Result<Busy, Failure> {
        let busy = self.busy.lock().take();
        let busy = busy.ok_or_else(|| {
            Failure::new(ErrorCode::Internal, Applied::No, "the request was answered before").closing()
        })?;
        // Taken once, so it is set once.
        let _first = self.monitor.set(Arc::clone(busy.monitor()));
        Ok(busy)
    }

    /// What watches its connection; `None` where the answer goes on by itself.
    pub fn monitor(&self) -> Option<Arc<ConnectionMonitor>> {
        let taken = self.monitor.get().cloned();
        taken.or_else(|| self.busy.lock().as_ref().map(|busy| Arc::clone(busy.monitor())))
    }

    /// The turns of its account.
    pub fn lanes(&self) -> &Arc<Lanes> {
        self.lanes.get_or_init(|| self.connection_account.lanes())
    }

    /// The account that it takes limited resources on.
    fn payer(&self) -> Account {
        Account::of(self.who(), self.origin.neighbour())
    }

    /// The same for places and memory that are few: strangers, who have many addresses, are one account there.
    fn sender(&self) -> Account {
        Account::of_sender(self.who(), self.origin.neighbour())
    }

    /// What its account holds of answers that were not taken.
    pub fn answer_share(&self) -> Arc<Share> {
        self.api.admission.answers.share(self.payer())
    }

    /// The part of its account in the memory for bodies.
    pub fn body_room(&self) -> BodyRoom {
        self.api.admission.bodies.of(self.sender())
    }

    /// Counts bytes of its body that came.
    pub fn take_body(&self, bytes: usize) -> Result<(), Failure> {
        self.body_permit.grow(bytes, || self.body_room()).map_err(Failure::closing)
    }

    /// A place among the requests whose body is still on its way.
    pub fn arrive(&self) -> Result<HeldShare, Failure> {
        let why = match self.api.admission.shares.hold(self.sender(), Scarce::Arriving) {
            Ok(place) => return Ok(place),
            Err(Full::All { bound }) => {
                format!("the bodies of {bound} requests are on their way to this node, as many as it waits for at once")
            }
            Err(Full::Share { of_one, bound }) => format!(
                "half of the {bound} requests whose bodies this node waits for at once are on their way, and your account has \
                 as many of them as one may have then, {of_one}: send their bodies to the end first"
            ),
        };
        Err(Failure::too_many(why).after(Duration::from_secs(limits::RETRY_AFTER_SECONDS)).closing())
    }

    /// Refuses to make another long answer while its account, or all, have not taken as much as they may hold.
    pub fn check_answers(&self) -> Result<(), Failure> {
        // Who holds nothing needs no look at the share.
        if self.api.admission.answers.held() == 0 { Ok(()) } else { self.answer_share().check() }
    }

    /// Takes room for this many values of an answer that will have to be given, before there is one, where its caller may have what is wanted.
    /// Waits for it where others of its account, or all, have too many under way, and refuses where the account has not taken its earlier answers.
    pub async fn take_values_room(&self, values: usize, wanted: Wanted<'_>) -> Result<(), Failure> {
        // A second try of the same request keeps what the first one took.
        if values == 0 || self.values_room.lock().is_some() {
            return Ok(());
        }
        // The command is judged once more where it is decided, by the rules as they are then.
        self.caller().admit(self.deadline, wanted).await?;
        self.take_room(values).await
    }

    async fn take_room(&self, values: usize) -> Result<(), Failure> {
        let share = self.answer_share();
        share.check_own(1)?;
        let room = match share.try_values(values) {
            Some(room) => room,
            None => Box::pin(self.wait_for_values_room(&share, values)).await?,
        };
        *self.values_room.lock() = Some(room);
        Ok(())
    }

    /// Gives its turns back meanwhile and then takes them again, or more of one account would be at work than its share. No call waits the
    /// other way round: one with a turn gives it back before it waits here.
    async fn wait_for_values_room(&self, share: &Arc<Share>, values: usize) -> Result<ValuesRoom, Failure> {
        let waiting = self.wait().ok_or_else(|| self.api.admission.classes.refusal(RequestClass::Waiting))?;
        let _awake = hold_awake();
        let waited = tokio::time::timeout_at(self.deadline.into(), share.values(values));
        let room = timings::on(Part::Wait, waited).await.map_err(|_late| share.refuse_values(values))?;
        drop(waiting);
        self.take_turn().await?;
        self.take_large_turn(self.body_permit.bytes()).await?;
        Ok(room)
    }

    /// Takes room for the values of the next part of its answer, likewise; that of the part before is free again. The whole was judged before.
    pub async fn take_values_room_of_part(&self, values: usize) -> Result<(), Failure> {
        drop(self.values_room.lock().take());
        if values == 0 { Ok(()) } else { self.take_room(values).await }
    }

    /// Refuses a request for values while its account has not taken its earlier answers: for requests whose kind has a bound of its own on
    /// how many are under way.
    pub fn check_values(&self) -> Result<(), Failure> {
        self.answer_share().check_own(1)
    }

    /// Notes that it changes nothing, so that its answer may be refused once it is made.
    pub fn only_looks(&self) {
        self.only_looks.store(true, Ordering::Relaxed);
    }

    /// Refuses to give away a long answer where there are too many of those. The answer to a write is always given, unless the write turned
    /// out to change nothing.
    pub fn check_answer(&self, writes: bool, bytes: u64) -> Result<(), Failure> {
        let may_refuse = !writes || self.only_looks.load(Ordering::Relaxed);
        if may_refuse && bytes >= limits::LONG_ANSWER_BYTES { self.check_answers() } else { Ok(()) }
    }

    /// The failure to answer with. One that shows a long entry becomes the refusal to show it where its account has not taken its earlier
    /// answers: nothing was applied either way, and a retry under the same request id gets the outcome.
    pub fn told(&self, failure: Failure) -> Failure {
        let may_refuse = failure.applied() == Applied::No && failure.shows_long_entry();
        if may_refuse && self.api.admission.answers.held() > 0 {
            self.check_values().err().unwrap_or(failure)
        } else {
            failure
        }
    }

    /// The connection ends with the answer, although the request may not have come whole.
    pub fn linger(&self) {
        if let Some(busy) = &*self.busy.lock() {
            busy.monitor().linger();
        }
    }

    /// Its connection has shown so much, and keeps its place by it: see [`Standing`].
    pub fn prove(&self, standing: Standing) {
        if let Some(busy) = &*self.busy.lock() {
            busy.monitor().prove(standing);
        }
    }

    /// Its connection has shown that it is this person's.
    pub fn prove_person(&self, person: &Arc<str>) {
        if let Some(busy) = &*self.busy.lock() {
            busy.monitor().prove_person(person);
        }
    }

    /// Cancelled when the connection, or this node, is to end; `None` where the answer goes on by itself.
    pub fn stop(&self) -> Option<CancellationToken> {
        self.busy.lock().as_ref().map(|busy| busy.monitor().stop().clone())
    }

    /// Lets it in by its head, as one operation for now, or says when its account has room for one. It takes nothing of its class yet:
    /// see [`Self::enter`].
    pub async fn admit(&self) -> Result<(), Failure> {
        let request = AdmissionRequest {
            permit: &self.permit,
            account: &self.account,
            is_vital: self.is_vital,
            deadline: self.deadline,
        };
        self.api.admission.admit(request, || self.payer(), || self.sender()).await
    }

    /// Takes a place of its class, and waits for the turn of its account: once all of it is there, so that nobody is kept out by what does
    /// not come. Done once, however often it is asked for.
    pub async fn enter(&self) -> Result<(), Failure> {
        if self.permit.is_held() || self.permit.class() == RequestClass::Node {
            return Ok(());
        }
        self.permit.enter(|| self.sender())?;
        self.pay().await?;
        self.take_turn().await
    }

    /// Waits until its account has paid for what was done for it, where that is more than its share of the processors: before the request holds
    /// anything that others wait for.
    async fn pay(&self) -> Result<(), Failure> {
        if self.owes() { self.wait_until_paid().await } else { Ok(()) }
    }

    /// Gives back its place and its turns meanwhile.
    async fn wait_until_paid(&self) -> Result<(), Failure> {
        let Some(_waiting) = self.wait() else {
            return Err(self.api.admission.classes.refusal(RequestClass::Waiting));
        };
        match timings::on(Part::Wait, paid(self.lanes(), self.deadline)).await {
            true => Ok(()),
            false => Err(Self::no_turn()),
        }
    }

    /// Waits likewise before more is begun for it. Gives its turns back meanwhile and takes them again; it must hold nothing that others wait for.
    pub async fn pay_again(&self) -> Result<(), Failure> {
        if !self.owes() {
            return Ok(());
        }
        self.wait_until_paid().await?;
        self.take_turn().await?;
        self.take_large_turn(self.body_permit.bytes()).await
    }

    /// Ends a part of it: the room for the values of that part is free again. Then waits until its account has paid for it.
    pub async fn end_part(&self) -> Result<(), Failure> {
        drop(self.values_room.lock().take());
        self.pay_again().await
    }

    /// Whether it may be held up: not at the port of operators.
    pub fn is_paced(&self) -> bool {
        self.connection_account.is_paced
    }

    /// Whether it has to wait until its account has paid.
    pub fn owes(&self) -> bool {
        matches!(self.permit.class(), RequestClass::Point | RequestClass::Scan)
            && self.is_paced()
            && self.lanes().share.pause_elsewhere(Instant::now()).is_some()
    }

    /// Goes on as a scan, where its message shows that it looks for what it is about: gives its place and its turn back, and waits for those
    /// of a scan. Refused like every scan while its caller has not taken its long answers.
    pub async fn go_on_as_scan(&self) -> Result<(), Failure> {
        if self.permit.class() == RequestClass::Scan {
            return Ok(());
        }
        self.permit.move_to(RequestClass::Scan, || self.sender())?;
        self.pay().await?;
        self.take_turn().await?;
        self.check_answers()
    }

    /// Waits until it is the turn of its account, as long as there is room for those that wait.
    async fn take_turn(&self) -> Result<(), Failure> {
        let turn = match self.lanes().begin(self.permit.class()) {
            Begun::Now(turn) => turn,
            Begun::Later(turn) => {
                let Some(_waiting) = self.wait() else {
                    return Err(self.api.admission.classes.refusal(RequestClass::Waiting));
                };
                let waited = timings::on(Part::Wait, tokio::time::timeout_at(self.deadline.into(), turn)).await;
                // It is told of its turn for as long as its lane is there, and that it keeps.
                waited.ok().and_then(Result::ok)
            }
        };
        match turn {
            Some(turn) => self.permit.hold(turn),
            None if Instant::now() >= self.deadline => return Err(Self::no_turn()),
            None => {}
        }
        Ok(())
    }

    /// Waits until it is the turn of its account once more, where its body is so long that what it asks for takes as long as many others.
    pub async fn take_large_turn(&self, body_bytes: usize) -> Result<(), Failure> {
        let waits_for_none = matches!(self.permit.class(), RequestClass::Coordination | RequestClass::Node);
        if body_bytes < limits::LARGE_BODY_BYTES || waits_for_none {
            return Ok(());
        }
        let turn = match self.lanes().begin_large() {
            Begun::Now(turn) => turn,
            Begun::Later(turn) => {
                let waited = timings::on(Part::Wait, tokio::time::timeout_at(self.deadline.into(), turn)).await;
                Some(waited.ok().and_then(Result::ok).ok_or_else(Self::no_turn)?)
            }
        };
        turn.into_iter().for_each(|turn| self.permit.hold_large(turn));
        Ok(())
    }

    fn no_turn() -> Failure {
        let failure = Failure::from_app(AppError::TimeoutNotProposed, Effect::Read);
        failure
            .saying("the deadline passed while this caller had more than its share of this node: of requests at work, or of the processors")
    }

    /// Charges the real cost, once it is known: `cost` units of its class, `ops` operations of its account.
    pub fn costs(&self, cost: usize, ops: usize) -> Result<(), Failure> {
        if let Some(account) = self.account() {
            account.costs(ops)?;
        }
        self.permit.costs(cost, || self.sender())
    }

    /// What a page of up to this many entries costs.
    pub const fn cost_of_page(entries: usize) -> usize {
        1 + entries / limits::ENTRIES_FOR_COST
    }

    /// Charges a page of up to this many entries.
    pub fn costs_page(&self, entries: usize) -> Result<(), Failure> {
        let cost = Self::cost_of_page(entries);
        self.costs(cost, cost)
    }

    /// Charges a search that may look at many entries.
    pub fn costs_a_find(&self) -> Result<(), Failure> {
        self.costs(limits::FIND_COST, limits::FIND_COST)
    }

    /// The id under which the outcome of a write is kept: the caller's, else one of our own. For a read, only to find it again.
    pub fn request_id(&self) -> String {
        self.request_id.lock().clone()
    }

    /// Goes on under this request id.
    pub fn set_request_id(&self, id: String) {
        *self.request_id.lock() = id;
    }

    /// Who asks, as authentication sees it.
    pub fn caller(&self) -> Caller<'_> {
        Caller { api: &self.api, who: self.who(), origin: &self.origin, lanes: self.lanes(), route: self.route }
    }

    /// Waits until this node knows what is true now, and checks that the caller may be told what it wants, by the rules as they are then.
    pub async fn admit_read(&self, wanted: Wanted<'_>) -> Result<(), Failure> {
        self.caller().admit_read(Consistency::Linearizable, self.deadline, wanted).await
    }

    /// Waits in the class for that, and out of its own until what is returned is dropped; `None` where no more may wait, or where its
    /// caller has its share of the places.
    pub fn wait(&self) -> Option<(Waiting<'_>, HeldShare)> {
        let share = self.api.admission.shares.hold(self.sender(), Scarce::Waits).ok()?;
        let Some(waiting) = self.permit.wait(|| self.sender()) else {
            self.api.admission.shares.places(Scarce::Waits).refused_elsewhere();
            return None;
        };
        // It may wait for long, and is no stranger meanwhile.
        if self.api.auth.is_open() {
            self.prove(Standing::Served);
        }
        Some((waiting, share))
    }

    /// Whether this node may have one more watch of any caller.
    pub fn has_room_for_watch(&self) -> bool {
        let has_room = self.api.node.feed().watches() < self.api.settings.bounds.watches_max;
        if !has_room {
            self.api.admission.shares.places(Scarce::Watches).refused_elsewhere();
        }
        has_room
    }

    /// One more watch, which looks now and then whether it has to make room for those of others; see `watch::crowded_out`.
    pub fn watch_place(&self) -> Result<LentPlace, Failure> {
        self.api.admission.shares.lend(self.sender(), Scarce::Watches).map_err(|_full| {
            let (all, most) = (self.api.settings.bounds.watches_max, self.api.admission.shares.most(Scarce::Watches));
            Failure::too_many(format!(
                "half of the {all} watches of this node are taken, and this caller has as many of them as one may have then, {most}"
            ))
        })
    }

    /// The place of its caller among scans that go through the log: each caller has one of each kind.
    pub fn own_log_scans(&self, what: LogScan) -> Arc<Semaphore> {
        self.api.admission.own_log_scans.get((self.sender(), what), || Semaphore::new(1))
    }

    /// What is left until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

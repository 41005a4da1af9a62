//! An agent: its session, and what hangs on it.
//!
//! Owns that there is one session at a time, opened at first need and ended with the agent; that claims are kept while they are worked on;
//! and that whatever is lost is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::Mutex;
use quorate_client::api::{EntryView, ErrorCode, Guard, Name};
use quorate_client::{Cas, Client, Error, Leadership, LockGuard, Session};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::loss::Lost;
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::shown::Budget;

/// Longest time for which an entry is locked at once.
const CLAIM_LOCK_MAX: Duration = Duration::from_millis(quorate_api::LOCK_MS_MAX);
/// How long giving everything up may take; what is left ends by its time.
const END_WITHIN: Duration = Duration::from_secs(3);
/// Longest owner of a session.
const OWNER_CHARS_MAX: usize = 128;

/// One agent.
#[derive(Debug)]
pub struct Agent {
    settings: Settings,
    scope: Scope,
    /// What its program calls itself.
    program: OnceLock<String>,
    /// Nobody listens any more: waits end.
    leaving: CancellationToken,
    /// One call at a time opens a session.
    opening: tokio::sync::Mutex<()>,
    held: Mutex<Held>,
    endings: TaskTracker,
    // Who waits for the endings waits for this agent, too.
    _counted: TaskTrackerToken,
}

/// What it has.
#[derive(Debug, Default)]
struct Held {
    session: Option<Session>,
    locks: BTreeMap<String, LockGuard>,
    leaderships: BTreeMap<String, Leadership>,
    claims: BTreeMap<Name, Claim>,
    /// Tokens by queue and id.
    tasks: BTreeMap<(String, String), u64>,
    /// Keys of entries that go with the session.
    entries: BTreeSet<Name>,
    lost: Lost,
}

/// An entry that is locked for the agent.
#[derive(Debug)]
pub struct Claim {
    /// The key to its lock.
    pub cas: Cas,
    until: Instant,
    _renewal: Renewal,
}

/// Ends with the claim.
#[derive(Debug)]
struct Renewal(AbortHandle);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    pub fn new(settings: Settings, endings: &TaskTracker) -> Self {
        Self {
            scope: Scope::new(&settings.prefix),
            settings,
            program: OnceLock::new(),
            leaving: CancellationToken::new(),
            opening: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            endings: endings.clone(),
            _counted: endings.token(),
        }
    }

    pub fn client(&self) -> &Client {
        &self.settings.client
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whom others see at a lock.
    pub fn owner(&self) -> String {
        let program = || self.program.get().map_or("agent", String::as_str);
        let name = self.settings.name.clone();
        let name = name.unwrap_or_else(|| format!("{} (process {})", program(), std::process::id()));
        name.chars().take(OWNER_CHARS_MAX).collect()
    }

    /// What its program calls itself; what it says first counts.
    pub fn introduce(&self, program: &str) {
        self.program.get_or_init(|| program.to_owned());
    }

    /// For an answer with one value.
    pub fn budget(&self) -> Budget {
        Budget::new(self.settings.answer_bytes)
    }

    /// For an answer with several.
    pub fn shared_budget(&self) -> Budget {
        Budget::shared(self.settings.answer_bytes)
    }

    pub fn answer_bytes(&self) -> usize {
        self.settings.answer_bytes
    }

    /// The error of a call.
    pub fn refused(&self, error: &Error) -> Refusal {
        Refusal::of(error, &mut self.budget())
    }

    /// When nobody listens any more.
    pub fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    /// What was waited for, unless nobody listens any more.
    pub async fn unless_gone<T>(&self, work: impl Future<Output = T>) -> Result<T, Refusal> {
        let gone = || Refusal::new("disconnected", "the agent disconnected while this call waited");
        self.leaving.run_until_cancelled(work).await.ok_or_else(gone)
    }

    /// The session; opens one where there is none.
    pub async fn session(&self) -> Result<Session, Refusal> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let _one = self.opening.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let start = self.client().session().ttl(self.settings.ttl).owner(self.owner());
        let session = start.await.map_err(|error| self.refused(&error))?;
        self.held.lock().session = Some(session.clone());
        Ok(session)
    }

    /// The session, if there is one.
    pub fn current(&self) -> Option<Session> {
        let mut held = self.held.lock();
        held.settle();
        held.session.clone()
    }

    /// What was lost and not told yet; who asks has to tell it.
    pub fn take_lost(&self) -> Option<Lost> {
        let mut held = self.held.lock();
        held.settle();
        Some(std::mem::take(&mut held.lost)).filter(|lost| !lost.is_empty())
    }

    /// Notes what was lost, which has to be told again to who changes something.
    pub fn note_lost(&self, answer: &mut Map<String, Value>) {
        let mut held = self.held.lock();
        held.settle();
        if !held.lost.is_empty() {
            held.lost.note(answer);
        }
    }

    /// The fencing token of a lock that it holds.
    pub fn lock_token(&self, name: &str) -> Option<u64> {
        self.held.lock().locks.get(name).map(|lock| lock.guard().token)
    }

    pub fn keep_lock(&self, lock: LockGuard) {
        self.held.lock().locks.insert(lock.name().to_owned(), lock);
    }

    pub fn take_lock(&self, name: &str) -> Option<LockGuard> {
        self.held.lock().locks.remove(name)
    }

    /// The term in which it leads.
    pub fn term(&self, name: &str) -> Option<u64> {
        self.held.lock().leaderships.get(name).map(|leadership| leadership.guard().token)
    }

    pub fn keep_leadership(&self, leadership: Leadership) {
        self.held.lock().leaderships.insert(leadership.name().to_owned(), leadership);
    }

    pub fn take_leadership(&self, name: &str) -> Option<Leadership> {
        self.held.lock().leaderships.remove(name)
    }

    /// The guard of what it holds by this name.
    pub fn guard(&self, lock: Option<&str>, election: Option<&str>) -> Option<Guard> {
        let held = self.held.lock();
        match (lock, election) {
            (Some(name), _) => held.locks.get(name).map(LockGuard::guard),
            (None, Some(name)) => held.leaderships.get(name).map(Leadership::guard),
            (None, None) => None,
        }
    }

    pub fn keep_task(&self, queue: &str, id: &str, token: u64) {
        self.held.lock().tasks.insert((queue.to_owned(), id.to_owned()), token);
    }

    pub fn task_token(&self, queue: &str, id: &str) -> Option<u64> {
        self.held.lock().tasks.get(&(queue.to_owned(), id.to_owned())).copied()
    }

    pub fn forget_task(&self, queue: &str, id: &str) {
        self.held.lock().tasks.remove(&(queue.to_owned(), id.to_owned()));
    }

    /// An entry that was written goes with the session, or not any more.
    pub fn note_entry(&self, key: &Name, goes_with_session: bool) {
        let entries = &mut self.held.lock().entries;
        match goes_with_session {
            true => drop(entries.insert(key.clone())),
            false => drop(entries.remove(key)),
        }
    }

    /// For how long claims are locked at once: no longer than the session would live.
    pub fn claim_lock(&self) -> Duration {
        self.settings.ttl.min(CLAIM_LOCK_MAX)
    }

    /// Keeps an entry locked that was claimed, for so long at most.
    pub fn keep_claim(self: &Arc<Self>, entry: &EntryView, cas: Cas, time: Duration) {
        let until = Instant::now() + time;
        let renewal = renew(Arc::downgrade(self), entry.key.clone(), cas, until, self.claim_lock());
        let renewal = Renewal(tokio::spawn(renewal).abort_handle());
        self.held.lock().claims.insert(entry.key.clone(), Claim { cas, until, _renewal: renewal });
    }

    /// A claim, to be ended.
    pub fn take_claim(&self, key: &Name) -> Option<Claim> {
        self.held.lock().claims.remove(key)
    }

    /// It was not ended after all.
    pub fn put_claim_back(&self, key: &Name, claim: Claim) {
        self.held.lock().claims.insert(key.clone(), claim);
    }

    /// A claim is over, unless it was ended meanwhile. Dropping it ends its renewal.
    fn on_claim_over(&self, key: &Name, cas: Cas, why: &str) -> Option<Claim> {
        let mut held = self.held.lock();
        held.claims.get(key).filter(|claim| claim.cas == cas)?;
        held.lost.add(format!("claim {key}"), why.to_owned());
        held.claims.remove(key)
    }

    /// What it has, for an answer.
    pub fn holdings(&self) -> Map<String, Value> {
        let mut held = self.held.lock();
        held.settle();
        held.shown()
    }

    /// Gives up all that it has.
    pub async fn end(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        held.end(self.settings.client.clone()).await;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut());
        // Without a runtime nothing can be sent: its time ends the session.
        if let (Some(_), Ok(runtime)) = (&held.session, Handle::try_current()) {
            self.endings.spawn_on(held.end(self.settings.client.clone()), &runtime);
        }
    }
}

impl Held {
    /// Notes what is lost, if the session is.
    fn settle(&mut self) {
        let Some((session, loss)) = self.session.as_ref().and_then(|session| Some((session, session.loss()?))) else {
            return;
        };
        let names =
            |kind: &'static str, names: Vec<String>| names.into_iter().map(move |name| format!("{kind} {name}"));
        let what = names("lock", std::mem::take(&mut self.locks).into_keys().collect())
            .chain(names("leadership", std::mem::take(&mut self.leaderships).into_keys().collect()))
            .chain(names("claim", std::mem::take(&mut self.claims).into_keys().map(|key| key.to_string()).collect()))
            .chain(names("entry", std::mem::take(&mut self.entries).into_iter().map(|key| key.to_string()).collect()))
            .chain(std::mem::take(&mut self.tasks).into_keys().map(|(queue, id)| format!("task {queue}/{id}")));
        self.lost.add_session(session.id(), &loss.to_string(), what);
        self.session = None;
    }

    fn shown(&self) -> Map<String, Value> {
        let mut shown = Map::new();
        let locks: Map<_, _> =
            self.locks.iter().map(|(name, lock)| (name.clone(), lock.guard().token.to_string().into())).collect();
        let leaderships = self.leaderships.iter().map(|(name, leads)| (name.clone(), leads.guard().token.to_string()));
        let leaderships: Map<_, _> = leaderships.map(|(name, term)| (name, term.into())).collect();
        let now = Instant::now();
        let claims =
            self.claims.iter().map(|(key, claim)| (key.to_string(), claim.until.duration_since(now).as_secs().into()));
        let claims: Map<String, Value> = claims.collect();
        let tasks: Vec<_> = self.tasks.keys().map(|(queue, id)| json!({"queue": queue, "id": id})).collect();
        for (name, value) in [
            ("locks", Value::from(locks)),
            ("leaderships", leaderships.into()),
            ("claims_for_s", claims.into()),
            ("tasks", tasks.into()),
            ("entries_while_connected", self.entries.iter().map(Name::to_string).collect::<Vec<_>>().into()),
        ] {
            shown.insert(name.into(), value);
        }
        shown
    }

    /// Gives everything up: others need not wait for a time to pass.
    async fn end(self, client: Client) {
        let Some(session) = self.session else { return };
        let unlocks = self.claims.into_iter().map(|(key, claim)| {
            let client = &client;
            async move { client.unlock_entry(key, claim.cas).timeout(END_WITHIN).await }
        });
        let all = async { (join_all(unlocks).await, session.end().await) };
        // What reaches no node is left to its time.
        let _ = tokio::time::timeout(END_WITHIN, all).await;
    }
}

/// Lets the lock of a claim hold on, until its time is over or it is lost.
async fn renew(agent: Weak<Agent>, key: Name, cas: Cas, until: Instant, lock: Duration) {
    let pause = lock / 3;
    loop {
        tokio::time::sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
        let Some(agent) = agent.upgrade() else { return };
        if Instant::now() >= until {
            // We are its renewal, so it is dropped last.
            let over = agent.on_claim_over(&key, cas, "its time (for_s) is over");
            if over.is_some() {
                // It ends by itself if this reaches no node.
                let _ = agent.client().unlock_entry(&key, cas).await;
            }
            return drop(over);
        }
        let extended = agent.client().extend_entry_lock(&key, cas, lock).timeout(pause).await;
        if let Err(error) = extended
            && is_over(&error)
        {
            return drop(agent.on_claim_over(&key, cas, &error.to_string()));
        }
    }
}

/// Whether an error says that a claim is not ours any more.
pub fn is_over(error: &Error) -> bool {
    let codes = [ErrorCode::NotLockHolder, ErrorCode::Locked, ErrorCode::CasMismatch, ErrorCode::NotFound];
    error.code().is_some_and(|code| codes.contains(&code))
}

//! Dear searches beside what must not wait for them: small writes, a lock for which few may wait, a quota.
//!
//! Owns who asks for what through which node, and the model that judges each answer, in the order in which the log decided. A search is dear here
//! by the entries alone that it looks at; what a node does with such ones stands in `dear` and `lanes` of `quorate_node_replica`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cluster_harness::drive::client::Nodes;
use cluster_harness::{Answer, Connection, Request};
use futures::FutureExt;
use parking_lot::Mutex;
use quorate_machine::limits::LOOK_BYTES;
use quorate_node_core::limits::DEAR_BYTES;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Found, Stage, UP_MAX};
use crate::address::{CLIENTS, address};
use crate::host_network;
use crate::world::{CLIENT_PORT, World};

/// Entries that each search looks at; a search of [`DEAR_FROM`] of them is dear for any criteria.
const JOBS: usize = 4_200;
const DEAR_FROM: usize = DEAR_BYTES.div_ceil(LOOK_BYTES);
const _: () = assert!(JOBS > DEAR_FROM + PHASES * REMOVALS * REMOVED);
/// Entries of one request to begin with.
const AT_ONCE: usize = 1_000;
/// Entries that the quota leaves room for, and those that are tried in a phase.
const ROOM: usize = 5;
const TRIED: usize = 20;
/// Criteria of a search that no entry meets.
const NEVER: usize = 39;
/// The entries with the greatest numbers: updates are about them, and claims begin with them.
const GREATEST: u64 = 40;
/// Entries that one removal finds: those with the smallest numbers.
const REMOVED: usize = 4;
/// Phases: without harm, and with a leader that dies.
const PHASES: usize = 2;
/// Searches of each client in a phase.
const CLAIMS: usize = 3;
const UPDATES: usize = 3;
const REMOVALS: usize = 2;
/// Clients that write little, that claim, and that want the lock.
const WRITERS: usize = 3;
const CLAIMERS: usize = 2;
const CONTENDERS: usize = 4;
/// How long a try may take, the time that it gives its node, and the pause before the next one.
const TRY: Duration = Duration::from_secs(4);
const TRY_MS: u64 = 3_000;
const PAUSE: Duration = Duration::from_millis(100);
/// How long a small write and a wait for the lock may take while nobody is hurt, while somebody is, and a search at any time.
const SMALL_MAX: [Duration; PHASES] = [Duration::from_secs(3), Duration::from_secs(15)];
const SEARCH_MAX: Duration = Duration::from_secs(60);
/// How long all of a phase may take, milliseconds.
const PHASE_MAX: u64 = 240_000;
/// Milliseconds from the beginning of its phase to the death of the leader, which then comes back.
const DIES_AFTER: Range<u64> = 10..300;
const DOWN_FOR: u64 = 1_000;
/// For how long a session holds the lock, and rests, milliseconds; and how long its place in the queue keeps.
const HOLDS: Range<u64> = 40..160;
const RESTS: Range<u64> = 20..80;
const WAIT_MS: u64 = 60_000;
const POLL_MS: u64 = 2_000;
/// For how long a claim locks an entry, milliseconds.
const LOCK_MS: u64 = 300;
/// How long sessions live without a renewal, milliseconds: longer than the story.
const TTL_MS: u64 = 86_400_000;

const THROUGH_LEADER: &str = "a dear search went through the leader";
const THROUGH_FOLLOWER: &str = "a dear search went through a follower";
const CLAIMED: &str = "a dear claim found entries";
const UPDATED: &str = "a dear search changed entries";
const DELETED: &str = "a dear search removed entries";
const ANSWERED_AGAIN: &str = "a search that came twice was answered again";
const BESIDE: &str = "a small write was made beside a search";
const EXCEEDED: &str = "a quota had no room for an entry";
const QUEUE_FULL: &str = "as many waited for the lock as may";
const WAITED: &str = "a session got the lock that had waited for it";
const LEADER_DIED: &str = "the leader died";

/// Results that each run has to show.
const TO_BE_MET: [&str; 11] = [
    THROUGH_LEADER,
    THROUGH_FOLLOWER,
    CLAIMED,
    UPDATED,
    DELETED,
    ANSWERED_AGAIN,
    BESIDE,
    EXCEEDED,
    QUEUE_FULL,
    WAITED,
    LEADER_DIED,
];

impl Stage {
    /// The story.
    pub(super) fn dear_searches(&mut self) -> Found {
        self.begin()?;
        let mut jobs = self.fill_with_jobs()?;
        let sessions = (0..CONTENDERS).map(|_| self.open_session()).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::<Shared>::default();
        for phase in 0..PHASES {
            self.search_phase(phase, &shared, &sessions)?;
        }
        let decided = std::mem::take(&mut *shared.decided.lock());
        self.operations += decided.len() as u64;
        judge(decided, &mut jobs)?;
        self.is_as_in_the_model(&jobs, &shared)?;
        for (what, times) in std::mem::take(&mut *shared.met.lock()) {
            *self.met.entry(what).or_default() += times;
        }
        match TO_BE_MET.iter().find(|name| !self.met.contains_key(*name)) {
            Some(name) => Err(format!("never met: {name}; met: {:?}", self.met)),
            None => Ok(()),
        }
    }

    /// Writes the entries, and sets a quota that leaves little room beside them.
    fn fill_with_jobs(&mut self) -> Result<BTreeMap<String, Job>, String> {
        let jobs: BTreeMap<_, _> = (0..JOBS).map(|number| (job_key(number), Job::new(number))).collect();
        let ops: Vec<_> =
            jobs.iter().map(|(key, job)| json!({"op": "upsert", "key": key, "value": job.value()})).collect();
        for ops in ops.chunks(AT_ONCE) {
            self.asked_once(Request::post("/v1/bulk", json!({ "ops": ops }).to_string()))?;
        }
        let bounds = json!({"entries": JOBS + ROOM}).to_string();
        self.asked_once(Request::new("PUT", "/v1/quotas/prefixes/j%2F").json(bounds))?;
        // Until they are counted it refuses nothing.
        self.until(UP_MAX, "the entries are not counted", |world| {
            let leader = world.leader().and_then(|leader| world.parts(leader));
            leader.is_some_and(|parts| matches!(parts.app.state().has_counting_work(), Ok(false)))
        })?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        self.say("there are many entries, and a quota");
        Ok(jobs)
    }

    fn open_session(&mut self) -> Result<String, String> {
        let opened = self.asked_once(Request::post("/v1/sessions", json!({"ttl_ms": TTL_MS}).to_string()))?;
        text_of(&opened["session"]).ok_or_else(|| format!("no session in {opened}"))
    }

    /// Asks the leader for what succeeds while nobody is hurt.
    fn asked_once(&mut self, request: Request) -> Result<Value, String> {
        let asked = self.world.request(self.leader()?, request);
        let answer = self.answer(asked, UP_MAX)?;
        body_of(&answer).filter(|_| answer.is_success()).ok_or_else(|| refused(&answer))
    }

    /// Lets all clients work until the last search is answered, and those end then who go on.
    fn search_phase(&mut self, phase: usize, shared: &Arc<Shared>, sessions: &[String]) -> Found {
        shared.is_over.store(false, Ordering::Relaxed);
        let nodes = self.nodes();
        let mut lanes = 0;
        let dice = &mut self.dice;
        let mut lane = || {
            lanes += 1;
            let (name, dice) = (format!("p{phase}-{lanes}"), StdRng::seed_from_u64(dice.random()));
            Lane { shared: Arc::clone(shared), nodes: nodes.clone(), dice, name, next: lanes, asked: 0 }
        };
        let claimers: Vec<_> = (0..CLAIMERS).map(|_| lane()).collect();
        let (updater, remover, inserter) = (lane(), lane(), lane());
        let writers: Vec<_> = (0..WRITERS).map(|_| lane()).collect();
        let contenders: Vec<_> = sessions.iter().map(|session| (lane(), session.clone())).collect();
        let mut searching = vec![
            self.world.spawn(updater.update()),
            self.world.spawn(remover.remove(phase)),
            self.world.spawn(inserter.insert(phase)),
        ];
        searching.extend(claimers.into_iter().map(|lane| self.world.spawn(lane.claim())));
        let mut others = Vec::new();
        for (number, writer) in writers.into_iter().enumerate() {
            others.push(self.world.spawn(writer.write(small_key(number), SMALL_MAX[phase])));
        }
        for (lane, session) in contenders {
            others.push(self.world.spawn(lane.contend(session, SMALL_MAX[phase])));
        }
        if phase > 0 {
            let after = self.dice.random_range(DIES_AFTER);
            self.steps_beside(after, shared)?;
            let leader = self.leader()?;
            self.say(&format!("the leader, node {leader}, dies"));
            let cure = self.world.crash(leader, self.dice.random());
            self.world.heal_after(DOWN_FOR, cure);
            self.meet(LEADER_DIED);
        }
        let begun = self.world.now;
        let is_over = |lanes: &[Asking]| lanes.iter().all(JoinHandle::is_finished);
        while !is_over(&searching) {
            self.steps_beside(1, shared)?;
            if self.world.now > begun + PHASE_MAX {
                return Err(format!("the searches do not end: {}", self.world.describe()));
            }
        }
        shared.is_over.store(true, Ordering::Relaxed);
        self.until(PHASE_MAX, "small writes and locks do not end", |_| is_over(&others))?;
        for lane in searching.into_iter().chain(others) {
            self.world.clients.at_once(lane).map_err(|panic| panic.to_string())??;
        }
        self.until(UP_MAX, "not all come back", World::is_up)?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)
    }

    /// Steps, and lets clients know who leads.
    fn steps_beside(&mut self, count: u64, shared: &Shared) -> Found {
        for _ in 0..count {
            shared.leader.store(self.world.leader().map_or(0, u64::from), Ordering::Relaxed);
            self.world.step()?;
        }
        Ok(())
    }

    fn nodes(&self) -> Nodes {
        let founders = self.world.founders().iter();
        let network = host_network::of(&self.world.net, CLIENTS);
        Nodes::over(
            founders.map(|id| (u64::from(*id), address(*id, CLIENT_PORT))).collect(),
            Arc::new(move |to| network.connect(&to.to_string()).map(|stream| stream.map(Connection::over)).boxed()),
        )
    }

    /// Compares all entries with those of the model: nothing is lost, and nothing was applied twice.
    fn is_as_in_the_model(&mut self, jobs: &BTreeMap<String, Job>, shared: &Shared) -> Found {
        let (mut found, mut cursor) = (BTreeMap::new(), None);
        loop {
            // A cursor stands for the prefix, too.
            let part = cursor.map_or_else(|| "prefix=j/".to_owned(), |cursor: String| format!("cursor={cursor}"));
            let page = self.asked_once(Request::get(format!("/v1/kv?limit=1000&{part}")))?;
            for entry in page["entries"].as_array().into_iter().flatten() {
                found.insert(text_of(&entry["key"]).unwrap_or_default(), entry["value"].clone());
            }
            cursor = text_of(&page["cursor"]);
            if cursor.is_none() {
                break;
            }
        }
        let expected: BTreeMap<_, _> = jobs.iter().map(|(key, job)| (key.clone(), job.value())).collect();
        let mut keys = expected.keys().chain(found.keys());
        if let Some(key) = keys.find(|key| expected.get(*key) != found.get(*key)) {
            return Err(format!("`{key}` is {:?}, and {:?} in the model", found.get(key), expected.get(key)));
        }
        for (key, number) in std::mem::take(&mut *shared.written.lock()) {
            let read = self.asked_once(Request::get(format!("/v1/kv/{key}")))?;
            if read["value"] != number {
                return Err(format!("`{key}` is {}, and {number} was written last", read["value"]));
            }
        }
        Ok(())
    }
}

/// A client that is under way.
type Asking = JoinHandle<Found>;

fn job_key(number: usize) -> String {
    format!("j/{number:05}")
}

fn small_key(number: usize) -> String {
    format!("small-{number}")
}

/// An entry that searches are about.
struct Job {
    /// No two have the same.
    n: u64,
    is_new: bool,
    /// How often it was changed while it was new.
    by: u64,
}

impl Job {
    fn new(number: usize) -> Self {
        Self { n: number as u64, is_new: true, by: 0 }
    }

    fn value(&self) -> Value {
        json!({"n": self.n, "state": if self.is_new { "new" } else { "taken" }, "by": self.by})
    }
}

/// The knowledge that all clients share.
#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// The leader; nobody has the number 0.
    leader: AtomicU64,
    searching: Mutex<Searching>,
    decided: Mutex<Vec<Decided>>,
    met: Mutex<BTreeMap<&'static str, u64>>,
    lock: Mutex<Held>,
    /// The last number that was written at each small key.
    written: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    fn meet(&self, what: &'static str) {
        *self.met.lock().entry(what).or_default() += 1;
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Gives the number of a search that begins.
    fn begin_search(&self) -> u64 {
        let mut searching = self.searching.lock();
        searching.begun += 1;
        let number = searching.begun;
        searching.under_way.insert(number);
        number
    }

    fn end_search(&self, number: u64) {
        self.searching.lock().under_way.remove(&number);
    }

    fn under_way(&self) -> BTreeSet<u64> {
        self.searching.lock().under_way.clone()
    }

    /// The leader, if one is known.
    fn leader(&self) -> Option<u64> {
        Some(self.leader.load(Ordering::Relaxed)).filter(|leader| *leader != 0)
    }
}

/// The searches that clients ask for.
#[derive(Default)]
struct Searching {
    /// The number of the last one.
    begun: u64,
    /// Those that are not answered yet.
    under_way: BTreeSet<u64>,
}

/// The holder of the lock, as far as clients know.
#[derive(Default)]
struct Held {
    by: Option<String>,
    last_token: u64,
}

/// A request that the log decided.
struct Decided {
    index: u64,
    revision: u64,
    what: What,
    is_success: bool,
    body: Value,
}

/// A request to the log, as the model has it.
#[derive(Debug, Clone, Copy)]
enum What {
    /// A claim of up to this many new jobs, those with the greatest numbers first.
    Claim(usize),
    /// A change of all new jobs from this number on.
    Update(u64),
    /// A removal of all new jobs below this number.
    Remove(u64),
    /// A new job of this number.
    Insert(usize),
}

/// A client.
struct Lane {
    shared: Arc<Shared>,
    nodes: Nodes,
    dice: StdRng,
    /// How its request ids begin.
    name: String,
    /// The place of the node that is asked next: each is in turn.
    next: usize,
    asked: u64,
}

/// An answer, and whether the node that gave it led; `None` where it is not known that one node led from the request to the answer.
struct Told {
    answer: Answer,
    by_leader: Option<bool>,
}

impl Lane {
    /// Claims jobs.
    async fn claim(mut self) -> Found {
        for _ in 0..CLAIMS {
            let limit = self.dice.random_range(1..=4);
            let body = json!({
                "prefix": "j/", "where": [any_of(is_new())], "order_by": ["-n"], "limit": limit, "lock_ms": LOCK_MS,
                "patch": {"state": "taken"},
            });
            self.search("/v1/claim", &body, What::Claim(limit)).await?;
        }
        Ok(())
    }

    /// Changes those jobs that claims begin with.
    async fn update(mut self) -> Found {
        let from = JOBS as u64 - GREATEST;
        for _ in 0..UPDATES {
            let patch = json!([{"op": "inc", "path": "by", "value": 1}]);
            let greatest = json!({"field": "n", "op": "gte", "value": from});
            let body = json!({"prefix": "j/", "where": [any_of(greatest), is_new()], "patch": patch});
            self.search("/v1/update_where", &body, What::Update(from)).await?;
        }
        Ok(())
    }

    /// Removes the jobs that claims come to last.
    async fn remove(mut self, phase: usize) -> Found {
        for nth in 1..=REMOVALS {
            let below = ((phase * REMOVALS + nth) * REMOVED) as u64;
            let smallest = json!({"field": "n", "op": "lt", "value": below});
            let body = json!({"prefix": "j/", "where": [any_of(smallest), is_new()]});
            self.search("/v1/delete_where", &body, What::Remove(below)).await?;
        }
        Ok(())
    }

    /// Asks for a search, now and then twice under one request id.
    async fn search(&mut self, path: &'static str, body: &Value, what: What) -> Found {
        let request = self.named(Request::post(path, body.to_string()));
        let number = self.shared.begin_search();
        let told = self.decide(&request, SEARCH_MAX).await;
        self.shared.end_search(number);
        let Told { answer, by_leader } = told?;
        let decided = Decided::of(what, &answer)?;
        if !decided.is_success {
            return Err(refused(&answer));
        }
        if decided.number("examined") >= DEAR_FROM as u64 {
            if let Some(by_leader) = by_leader {
                self.shared.meet(if by_leader { THROUGH_LEADER } else { THROUGH_FOLLOWER });
            }
            if let Some(found) = decided.found() {
                self.shared.meet(found);
            }
        }
        // A search that changed nothing is not kept, and may find something the next time.
        let is_sent_again = self.asked == 1 || self.dice.random_ratio(1, 3);
        if decided.has_effect() && is_sent_again {
            let Told { answer, .. } = self.decide(&request, SEARCH_MAX).await?;
            let again = Decided::of(what, &answer)?;
            if (again.index, again.changed()) != (decided.index, decided.changed()) {
                return Err(format!(
                    "{path} came to {}, and under the same request id to {}",
                    decided.body, again.body
                ));
            }
            self.shared.meet(ANSWERED_AGAIN);
        }
        self.shared.decided.lock().push(decided);
        self.rest().await;
        Ok(())
    }

    /// Makes jobs, until and while there is no room for them.
    async fn insert(mut self, phase: usize) -> Found {
        for number in phase * TRIED..(phase + 1) * TRIED {
            let op = json!({"op": "insert", "key": inserted_key(number), "value": inserted(number).value()});
            let request = self.named(Request::post("/v1/ops", op.to_string()));
            let Told { answer, .. } = self.decide(&request, SMALL_MAX[phase]).await?;
            let decided = Decided::of(What::Insert(number), &answer)?;
            match answer.status {
                507 if decided.body["code"] == "quota_exceeded" => self.shared.meet(EXCEEDED),
                _ if decided.is_success => {}
                _ => return Err(refused(&answer)),
            }
            self.shared.decided.lock().push(decided);
            self.rest().await;
        }
        Ok(())
    }

    /// Writes little, again and again.
    async fn write(mut self, key: String, within: Duration) -> Found {
        let mut number = 0_u64;
        while !self.shared.is_over() {
            number += 1;
            let before = self.shared.under_way();
            self.succeed(Request::put(&key, number.to_string()), within).await?;
            // One search went on all the while.
            if !before.is_disjoint(&self.shared.under_way()) {
                self.shared.meet(BESIDE);
            }
            self.shared.written.lock().insert(key.clone(), number);
            self.rest().await;
        }
        Ok(())
    }

    /// Wants the lock, again and again, where only one may wait for it. Writes while it is held.
    async fn contend(mut self, session: String, within: Duration) -> Found {
        let acquire = json!({"session": session, "wait_ms": WAIT_MS, "poll_ms": POLL_MS, "max_waiters": 1}).to_string();
        let acquire = Request::post("/v1/locks/dear/acquire", acquire);
        let mut begun = Instant::now();
        while !self.shared.is_over() {
            let was_held = self.shared.lock.lock().by.is_some();
            let Told { answer, .. } = self.decide(&acquire, within).await?;
            match answer.status {
                200 => {
                    let took = begun.elapsed();
                    if took > within {
                        return Err(format!("session {session} got the lock after {took:?}"));
                    }
                    self.hold(&session, &answer, within).await?;
                    if was_held {
                        self.shared.meet(WAITED);
                    }
                }
                // Its place stays.
                202 if begun.elapsed() < within => continue,
                423 if body_of(&answer).is_some_and(|body| body["waiters"].as_u64() >= Some(1)) => {
                    self.shared.meet(QUEUE_FULL);
                }
                _ => return Err(refused(&answer)),
            }
            self.rest().await;
            begun = Instant::now();
        }
        Ok(())
    }

    /// Has got the lock: nobody else has it until it is given up.
    async fn hold(&mut self, session: &str, answer: &Answer, within: Duration) -> Found {
        let token = body_of(answer).and_then(|body| decimal(&body["token"])).ok_or_else(|| refused(answer))?;
        {
            let mut held = self.shared.lock.lock();
            if let Some(other) = &held.by {
                return Err(format!("session {session} got the lock while session {other} held it"));
            }
            if token <= held.last_token {
                return Err(format!("session {session} got the token {token} after {}", held.last_token));
            }
            *held = Held { by: Some(session.to_owned()), last_token: token };
        }
        let millis = self.dice.random_range(HOLDS);
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let token = token.to_string();
        let write =
            json!({"op": "upsert", "key": "guarded", "value": token, "guard": {"lock": "dear", "token": token}});
        self.succeed(Request::post("/v1/ops", write.to_string()), within).await?;
        self.shared.lock.lock().by = None;
        let release = json!({ "token": token }).to_string();
        self.succeed(Request::post("/v1/locks/dear/release", release), within).await
    }

    /// Asks for what succeeds, within this time.
    async fn succeed(&mut self, request: Request, within: Duration) -> Found {
        let request = self.named(request);
        let Told { answer, .. } = self.decide(&request, within).await?;
        if answer.is_success() { Ok(()) } else { Err(refused(&answer)) }
    }

    /// Gives a request an id of its own.
    fn named(&mut self, request: Request) -> Request {
        self.asked += 1;
        request.request_id(&format!("{}-{}", self.name, self.asked)).header("Request-Timeout", TRY_MS.to_string())
    }

    /// Asks one node after the other, until it is decided. An answer that comes later than `within` is a failure.
    async fn decide(&mut self, request: &Request, within: Duration) -> Result<Told, String> {
        let (begun, mut last) = (Instant::now(), "no answer".to_owned());
        while begun.elapsed() < within {
            let (node, address) = self.nodes.at(self.next);
            self.next += 1;
            let leader = self.shared.leader();
            match self.nodes.exchange(address, None, request, TRY).await {
                Some((answer, _)) if is_decided(&answer) => {
                    let took = begun.elapsed();
                    if took > within {
                        return Err(format!("{} {} took {took:?}", request.method, request.target));
                    }
                    let leader = leader.filter(|leader| self.shared.leader() == Some(*leader));
                    return Ok(Told { answer, by_leader: leader.map(|leader| leader == node) });
                }
                Some((answer, _)) => last = refused(&answer),
                None => "no answer".clone_into(&mut last),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("{} {} was not decided within {within:?}: {last}", request.method, request.target))
    }

    async fn rest(&mut self) {
        let millis = self.dice.random_range(RESTS);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// Tells whether nobody has to ask again. A quota that is exceeded is decided, too, and a fault of a node ends the story.
fn is_decided(answer: &Answer) -> bool {
    !matches!(answer.status, 429 | 502..) || answer.status == 507
}

fn refused(answer: &Answer) -> String {
    format!("status {}: {}", answer.status, answer.text())
}

fn body_of(answer: &Answer) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A revision or a token.
fn decimal(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// Many criteria, of which only the last one can hold.
fn any_of(criterion: Value) -> Value {
    let mut any = vec![json!({"field": "n", "op": "lt", "value": 0}); NEVER];
    any.push(criterion);
    json!({ "any": any })
}

/// A criterion for jobs that nobody has claimed.
fn is_new() -> Value {
    json!({"field": "state", "op": "eq", "value": "new"})
}

fn inserted_key(number: usize) -> String {
    format!("j/new-{number:03}")
}

fn inserted(number: usize) -> Job {
    Job::new(JOBS + number)
}

impl Decided {
    fn of(what: What, answer: &Answer) -> Result<Self, String> {
        let body = body_of(answer).ok_or_else(|| refused(answer))?;
        let place = body["index"].as_u64().zip(decimal(&body["revision"]));
        let (index, revision) =
            place.ok_or_else(|| format!("it is not told when that was decided: {}", refused(answer)))?;
        Ok(Self { index, revision, what, is_success: answer.is_success(), body })
    }

    fn number(&self, name: &str) -> u64 {
        self.body[name].as_u64().unwrap_or_default()
    }

    /// How many entries it changed.
    fn changed(&self) -> u64 {
        match self.what {
            What::Claim(_) => self.number("count"),
            What::Update(_) | What::Remove(_) => self.number("applied"),
            What::Insert(_) => u64::from(self.is_success),
        }
    }

    /// Whether it has its revision to itself, or tells the one that there was.
    fn has_effect(&self) -> bool {
        self.changed() > 0
    }

    /// The result of a search that found something.
    fn found(&self) -> Option<&'static str> {
        match self.what {
            What::Claim(_) => Some(CLAIMED),
            What::Update(_) => Some(UPDATED),
            What::Remove(_) => Some(DELETED),
            What::Insert(_) => None,
        }
        .filter(|_| self.has_effect())
    }

    /// Applies it to the model, and compares what it came to.
    fn apply(&self, jobs: &mut BTreeMap<String, Job>) -> Found {
        match self.what {
            What::Claim(limit) => self.apply_claim(limit, jobs),
            What::Update(from) => {
                for key in self.found_in(jobs, |job| job.n >= from)? {
                    jobs.get_mut(&key).expect("it was just found").by += 1;
                }
                Ok(())
            }
            What::Remove(below) => {
                for key in self.found_in(jobs, |job| job.n < below)? {
                    jobs.remove(&key);
                }
                Ok(())
            }
            What::Insert(number) => {
                let has_room = jobs.len() < JOBS + ROOM;
                if self.is_success != has_room {
                    return Err(format!("there are {} of {} entries", jobs.len(), JOBS + ROOM));
                }
                if has_room {
                    jobs.insert(inserted_key(number), inserted(number));
                }
                Ok(())
            }
        }
    }

    fn apply_claim(&self, limit: usize, jobs: &mut BTreeMap<String, Job>) -> Found {
        let mut free: Vec<_> = jobs.iter_mut().filter(|(_, job)| job.is_new).collect();
        free.sort_by_key(|(_, job)| Reverse(job.n));
        let told = self.body["entries"].as_array().into_iter().flatten();
        let told: Vec<_> = told.map(|entry| (entry["key"].as_str().unwrap_or_default(), &entry["value"])).collect();
        // It ends early at the bound of its work, and has one at least.
        let has_ended_early = self.body["more"] == true && !told.is_empty();
        let limit = if has_ended_early { told.len().min(limit) } else { limit };
        let mut claimed = Vec::new();
        for (key, job) in free.into_iter().take(limit) {
            job.is_new = false;
            claimed.push((key.as_str(), job.value()));
        }
        // The kept answer to a retry may have lost the values.
        let is_replayed = self.body["replayed"] == true;
        let is_same = |((key, value), (other, told)): (&(&str, Value), &(&str, &Value))| {
            key == other && (is_replayed || value == *told)
        };
        match claimed.len() == told.len() && claimed.iter().zip(&told).all(is_same) {
            true => Ok(()),
            false => Err(format!("the model gives {claimed:?}")),
        }
    }

    /// Gives the new jobs of this kind among those that were looked at, and compares their number with what was told.
    fn found_in(&self, jobs: &BTreeMap<String, Job>, is_wanted: impl Fn(&Job) -> bool) -> Result<Vec<String>, String> {
        let examined = self.number("examined") as usize;
        // It stops at a cursor if its batch has no room for more, and nobody here goes on from there.
        if self.body["cursor"].is_null() && examined != jobs.len() {
            return Err(format!("it looked at {examined} of {} entries", jobs.len()));
        }
        let looked_at = jobs.iter().take(examined).filter(|(_, job)| job.is_new && is_wanted(job));
        let found: Vec<_> = looked_at.map(|(key, _)| key.clone()).collect();
        let told = ["matched", "applied", "skipped", "failed"].map(|name| self.number(name));
        let count = found.len() as u64;
        match told == [count, count, 0, 0] {
            true => Ok(found),
            false => Err(format!("the model finds {found:?}")),
        }
    }
}

/// Judges all answers by the model, in the order in which the log decided: what changes nothing tells the revision of what came before.
fn judge(mut decided: Vec<Decided>, jobs: &mut BTreeMap<String, Job>) -> Found {
    decided.sort_by_key(|one| (one.index, one.revision, !one.has_effect()));
    for one in decided {
        one.apply(jobs).map_err(|why| format!("{:?} at index {} came to {}: {why}", one.what, one.index, one.body))?;
    }
    Ok(())
}

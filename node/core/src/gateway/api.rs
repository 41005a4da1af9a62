//! The API of one node: what all its requests share.
//!
//! Owns the settings, the bounds and the caches. Never handles a request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use quorate_api::NodeResource;
use quorate_machine::types::Revision;
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_64;

use crate::backend::{Backend, Node};
use crate::gateway::admission::accounts::{AccountLimits, AccountSamples, Accounts};
use crate::gateway::admission::answer_memory::AnswerMemory;
use crate::gateway::admission::body_memory::BodyMemory;
use crate::gateway::admission::classes::{ClassLimits, ClassSamples, RequestClasses};
use crate::gateway::admission::connections::Connections;
use crate::gateway::admission::resource_samples::ResourceSamples;
use crate::gateway::admission::shares::{Scarce, Shares};
use crate::gateway::admission::turns::{TurnSamples, Turns};
use crate::gateway::auth::audit::{AuditFile, AuditSamples};
use crate::gateway::auth::authenticator::{AuthSamples, AuthSettings, Authenticator};
use crate::gateway::auth::jwt::JwtSamples;
use crate::gateway::door::AdminPort;
use crate::gateway::hosts::AllowedHosts;
use crate::gateway::leader_headers::LeaderHeaders;
use crate::gateway::task_lines::TaskLines;
use crate::gateway::versions::EtcdVersion;
use crate::limits;
use crate::logging::LogControl;
use crate::metrics::{HttpLoad, Metrics};
use crate::slow::SlowLog;
use crate::traces::Traces;

/// What the handlers need to know of the configuration.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// This node.
    pub node_id: u64,
    /// Deadline of a request that names none.
    pub request_timeout: Duration,
    /// Longest deadline a request may name.
    pub request_timeout_max: Duration,
    /// Largest request body, bytes.
    pub body_bytes_max: usize,
    /// Most bytes of all bodies together; a request that needs more is answered with 429.
    pub bodies_bytes_max: usize,
    /// How long a body may take before its rate counts.
    pub body_timeout: Duration,
    /// Slowest body tolerated after that, bytes a second.
    pub body_rate_min: u64,
    /// Most bytes of long answers that nobody has taken yet; beyond it requests are answered with 429.
    pub answers_bytes_max: usize,
    /// Watches at a time, those over etcd's protocol too.
    pub watches_max: usize,
    /// What is handled at once; more is answered with 429.
    pub classes: ClassLimits,
    /// What one caller may take.
    pub accounts: AccountLimits,
    /// From when on a request is logged as slow; zero for never.
    pub slow_request: Duration,
    /// Where spans of requests go.
    pub traces: Option<Arc<Traces>>,
    /// Origins of web pages that may ask, `*` for every one; none without it.
    pub cors_origins: Vec<String>,
    /// The names by which it may be asked.
    pub hosts: AllowedHosts,
    /// Whether the console is served.
    pub console: bool,
    /// Which etcd it says that it speaks like.
    pub etcd_version: EtcdVersion,
    /// Who has to say who they are.
    pub auth: AuthSettings,
    /// Where it is told who did what.
    pub audit: Option<Arc<AuditFile>>,
    /// What decides what this process logs, if it keeps a log of its own.
    pub log: Option<LogControl>,
    /// Every setting that was given, as it may be shown.
    pub given: Arc<BTreeMap<String, String>>,
    /// The port for metrics and administration, if there is one.
    pub admin: Option<AdminPort>,
    /// Whether the port of clients speaks TLS, on all members.
    pub clients_use_tls: bool,
    /// Whether the port of peers does.
    pub peers_use_tls: bool,
}

/// The API over one node.
pub struct Api {
    /// The node.
    pub backend: Node,
    /// Who asks, and whether they may.
    pub authenticator: Authenticator,
    /// As configured.
    pub settings: ApiSettings,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Requests being handled.
    pub in_flight: AtomicUsize,
    /// Where requests are admitted.
    pub classes: Arc<RequestClasses>,
    /// What each caller has taken.
    pub accounts: Arc<Accounts>,
    /// Whose turn it is.
    pub turns: Arc<Turns>,
    /// What each caller holds of what there are few of.
    pub shares: Arc<Shares>,
    /// Those of the port of clients, as far as operators are told of them.
    pub connections: Arc<Connections>,
    /// Streams that observe an election.
    pub observers: AtomicUsize,
    /// Term and leader as headers.
    pub hints: LeaderHeaders,
    /// Where bodies have their place while their request is handled.
    pub bodies: Arc<BodyMemory>,
    /// Where long answers have theirs until they are taken.
    pub answers: AnswerMemory,
    /// Held by listings, counts and finds while they scan.
    pub scans: Arc<Semaphore>,
    /// Held by dry runs, transactions that only read, and long bodies while they are read.
    pub evaluations: Arc<Semaphore>,
    /// Held by changes of all that matches while they are in the log.
    pub log_scans: Semaphore,
    /// Held while the metrics are written.
    pub scrapes: Semaphore,
    /// Held by watches while they read from disk.
    pub watch_reads: Arc<Semaphore>,
    /// Held by backups while they are given out.
    pub backups: Arc<Semaphore>,
    /// Where claims stand that wait for tasks.
    pub task_lines: TaskLines,
    /// Which requests take too long.
    pub slow: SlowLog,
    /// The cluster's names, once it is known.
    cluster: OnceLock<ClusterName>,
    /// Highest revision that a write was answered with here.
    confirmed: AtomicU64,
}

/// The cluster's id as protocols write it.
#[derive(Debug)]
struct ClusterName {
    /// For protocols that have no other ids. Never 0.
    number: u64,
    /// 32 hexadecimal digits.
    header: HeaderValue,
}

impl Api {
    /// Puts the API in front of `backend`.
    pub fn new(backend: impl Backend, settings: ApiSettings, metrics: Arc<Metrics>) -> Arc<Self> {
        let scans = Arc::new(Semaphore::new(limits::SCANS_MAX));
        let evaluations = Arc::new(Semaphore::new(limits::EVALUATIONS_MAX));
        let bodies = Arc::new(BodyMemory::new(settings.bodies_bytes_max, settings.body_bytes_max));
        let classes = Arc::new(RequestClasses::new(settings.classes));
        let accounts = Accounts::new(settings.accounts);
        let turns = Arc::new(Turns::default());
        metrics.add_source(TurnSamples(Arc::clone(&turns)));
        let shares = Shares::new(settings.classes.waiting, settings.watches_max, settings.classes.arriving);
        let (answers, connections) = (AnswerMemory::new(settings.answers_bytes_max), Arc::<Connections>::default());
        metrics.add_source(ResourceSamples {
            shares: Arc::clone(&shares),
            bodies: Arc::clone(&bodies),
            answers: answers.clone(),
            connections: Arc::clone(&connections),
            classes: Arc::clone(&classes),
        });
        metrics.add_source(ClassSamples(Arc::clone(&classes)));
        metrics.add_source(AccountSamples(Arc::clone(&accounts)));
        let (log_scans, scrapes) = (Semaphore::new(limits::LOG_SCANS_MAX), Semaphore::new(limits::SCRAPES_MAX));
        let (in_flight, observers, hints) = (AtomicUsize::new(0), AtomicUsize::new(0), LeaderHeaders::default());
        let watch_reads = Arc::new(Semaphore::new(limits::WATCH_READS_MAX));
        let backups = Arc::new(Semaphore::new(limits::BACKUPS_MAX));
        let task_lines = TaskLines::default();
        let slow = SlowLog::new(settings.slow_request);
        let authenticator = Authenticator::new(settings.auth.clone(), settings.audit.clone());
        metrics.add_source(AuthSamples(authenticator.counts()));
        metrics.add_source(JwtSamples(authenticator.jwt().cloned()));
        metrics.add_source(AuditSamples(settings.audit.clone()));
        Arc::new(Self {
            backend: Arc::new(backend),
            authenticator,
            settings,
            metrics,
            in_flight,
            classes,
            accounts,
            turns,
            shares,
            connections,
            observers,
            hints,
            bodies,
            answers,
            scans,
            evaluations,
            log_scans,
            scrapes,
            watch_reads,
            backups,
            task_lines,
            slow,
            cluster: OnceLock::new(),
            confirmed: AtomicU64::new(0),
        })
    }

    /// Notes that a write is about to be answered with this revision.
    pub fn confirm(&self, revision: Revision) {
        self.confirmed.fetch_max(revision, Ordering::Release);
    }

    /// The revision up to which this node knows of writes. What it has answered may be ahead of what it shows to readers, on a node
    /// that follows above all: what only tells of the present goes by this, so that nobody sees it go back.
    pub fn revision(&self) -> Revision {
        self.confirmed.load(Ordering::Acquire).max(self.backend.position().revision)
    }

    /// The cluster as a number, for protocols that have no other ids. Never 0, which stands for a node that has no cluster yet.
    pub fn cluster_number(&self) -> u64 {
        self.cluster().map_or(0, |cluster| cluster.number)
    }

    /// The cluster's id as the value of a header; `None` for a node that has no cluster yet.
    pub fn cluster_header(&self) -> Option<HeaderValue> {
        self.cluster().map(|cluster| cluster.header.clone())
    }

    /// Names of the cluster. A running node gets one once and keeps it.
    fn cluster(&self) -> Option<&ClusterName> {
        if let Some(cluster) = self.cluster.get() {
            return Some(cluster);
        }
        let id = self.backend.status().cluster_id;
        let header = HeaderValue::from_str(&id).ok().filter(|_| !id.is_empty())?;
        Some(self.cluster.get_or_init(|| ClusterName { number: xxh3_64(id.as_bytes()).max(1), header }))
    }

    /// The deadline that a caller gets who asks for this one.
    pub fn timeout(&self, wanted: Duration) -> Duration {
        wanted.min(self.settings.request_timeout_max)
    }

    /// Requests being handled at the moment.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The limited resources of this node, with the accounts that hold most of each.
    pub fn callers(&self) -> Vec<NodeResource> {
        let places = [Scarce::Waits, Scarce::Watches, Scarce::Arriving].map(|what| self.shares.places(what).told());
        let rest = [self.connections.told()].into_iter().chain(self.classes.told());
        places.into_iter().chain([self.bodies.room().told()]).chain(self.answers.told()).chain(rest).collect()
    }

    /// What the server holds, for the metrics.
    pub fn load(&self) -> HttpLoad {
        let (body_bytes, answer_bytes) = (self.bodies.taken(), self.answers.held());
        HttpLoad { requests: self.in_flight(), body_bytes, answer_bytes }
    }
}

/// Counts a request while it is handled, also when its future is dropped half-way.
pub struct Slot(Arc<Api>);

impl Slot {
    /// Counts one.
    pub fn take(api: &Arc<Api>) -> Self {
        api.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(api))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

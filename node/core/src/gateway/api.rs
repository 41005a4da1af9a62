//! The API of one node: what all its requests share.
//!
//! Owns the three parts that they go through, the settings, and what this node says of itself with each answer. Never handles a request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use quorate_machine::types::Revision;
use xxhash_rust::xxh3::xxh3_64;

use crate::backend::{Node, SharedNode};
use crate::gateway::admission::{Admission, AdmissionLimits};
use crate::gateway::auth::audit::{AuditFile, AuditSamples};
use crate::gateway::auth::authenticator::{AuthSamples, AuthSettings, Authenticator};
use crate::gateway::auth::jwt::JwtSamples;
use crate::gateway::door::AdminPort;
use crate::gateway::hosts::AllowedHosts;
use crate::gateway::leader_headers::LeaderHeaders;
use crate::gateway::versions::EtcdVersion;
use crate::logging::LogControl;
use crate::metrics::Metrics;
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
    /// Bounds of what is taken at once; more is answered with 429.
    pub bounds: AdmissionLimits,
    /// How long a body may take before its rate counts.
    pub body_timeout: Duration,
    /// Slowest body tolerated after that, bytes a second.
    pub body_rate_min: u64,
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
    /// Proofs of who asks, and their rights.
    pub auth: Authenticator,
    /// Bounds of how much is let in.
    pub admission: Admission,
    /// The node.
    pub node: SharedNode,
    /// The configuration.
    pub settings: ApiSettings,
    /// Counts of everything.
    pub metrics: Arc<Metrics>,
    /// Term and leader as headers.
    pub hints: LeaderHeaders,
    /// The log of requests that take too long.
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
    /// Puts the API in front of a node.
    pub fn new(node: impl Node, settings: ApiSettings, metrics: Arc<Metrics>) -> Arc<Self> {
        let admission = Admission::new(settings.bounds, &metrics);
        let auth = Authenticator::new(settings.auth.clone(), settings.audit.clone());
        metrics.add_source(AuthSamples(auth.counts()));
        metrics.add_source(JwtSamples(auth.jwt().cloned()));
        metrics.add_source(AuditSamples(settings.audit.clone()));
        let slow = SlowLog::new(settings.slow_request);
        Arc::new(Self {
            auth,
            admission,
            node: Arc::new(node),
            settings,
            metrics,
            hints: LeaderHeaders::default(),
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
        self.confirmed.load(Ordering::Acquire).max(self.node.position().revision)
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
        let id = self.node.status().cluster_id;
        let header = HeaderValue::from_str(&id).ok().filter(|_| !id.is_empty())?;
        Some(self.cluster.get_or_init(|| ClusterName { number: xxh3_64(id.as_bytes()).max(1), header }))
    }

    /// The deadline that a caller gets who asks for this one.
    pub fn timeout(&self, wanted: Duration) -> Duration {
        wanted.min(self.settings.request_timeout_max)
    }
}

/// Counts a request while it is handled, also when its future is dropped half-way.
pub struct Slot(Arc<Api>);

impl Slot {
    /// Counts one.
    pub fn take(api: &Arc<Api>) -> Self {
        api.admission.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(api))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.admission.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

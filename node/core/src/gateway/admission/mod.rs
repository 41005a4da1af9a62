//! How much work is let in: classes for all requests, accounts for each caller.
//!
//! Owns the bounds and the refusals, and the entrance of a request: [`Admission::admit`] judges its head. It takes a place and a turn once
//! all of it is there. Never knows what the work is.

pub mod accounts;
pub mod answer_memory;
pub mod body_memory;
pub mod bucket;
pub mod classes;
pub mod connections;
pub mod pace;
pub mod paced;
pub mod refusals;
pub mod request_class;
pub mod resource_samples;
pub mod seldom;
pub mod shares;
pub mod turns;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use quorate_api::NodeResource;
use tokio::sync::Semaphore;

use crate::alive_table::AliveTable;
use crate::gateway::failure::Failure;
use crate::gateway::task_lines::TaskLines;
use crate::limits;
use crate::metrics::{HttpLoad, Metrics};
use accounts::{Account, AccountLimits, AccountSamples, Accounts, Spender};
use answer_memory::AnswerMemory;
use body_memory::BodyMemory;
use classes::{ClassLimits, ClassSamples, Permit, RequestClasses};
use connections::Connections;
use request_class::RequestClass;
use resource_samples::ResourceSamples;
use shares::{Scarce, Shares};
use turns::{TurnSamples, Turns};

/// The configured bounds of admission.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// Requests handled at once, by class.
    pub classes: ClassLimits,
    /// Requests, bytes and connections of one caller.
    pub accounts: AccountLimits,
    /// Watches at a time, those over etcd's protocol too.
    pub watches_max: usize,
    /// Bytes of all bodies together; a request that needs more is answered with 429.
    pub bodies_bytes_max: usize,
    /// Bytes of one body.
    pub body_bytes_max: usize,
    /// Bytes of long answers that nobody has taken yet; beyond it requests are answered with 429.
    pub answers_bytes_max: usize,
}

/// The kinds of commands that look for the entries that they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogScan {
    /// Changes of all that matches.
    Change,
    /// Claims.
    Claim,
}

/// The bounds of one node, and what is taken of them.
pub struct Admission {
    /// Requests being handled.
    pub in_flight: AtomicUsize,
    /// Places of requests, by class.
    pub classes: Arc<RequestClasses>,
    /// Operations and bytes, by account.
    pub accounts: Arc<Accounts>,
    /// The turns of accounts.
    pub turns: Arc<Turns>,
    /// Places that are few, by account.
    pub shares: Arc<Shares>,
    /// Connections of the port of clients, as far as operators are told of them.
    pub connections: Arc<Connections>,
    /// Streams that observe an election.
    pub observers: AtomicUsize,
    /// Memory for bodies while their request is handled.
    pub bodies: Arc<BodyMemory>,
    /// Memory for long answers until they are taken.
    pub answers: AnswerMemory,
    /// Held by listings, counts and finds while they scan.
    pub scans: Arc<Semaphore>,
    /// Held by dry runs, transactions that only read, and long bodies while they are read.
    pub evaluations: Arc<Semaphore>,
    /// Held by changes of all that matches, and by claims, while they are in the log.
    pub log_scans: Semaphore,
    /// Held by the one of each account and kind that is there, or waits to be.
    pub own_log_scans: AliveTable<(Account, LogScan), Semaphore>,
    /// Held while the metrics are written.
    pub scrapes: Semaphore,
    /// Held by watches while they read from disk.
    pub watch_reads: Arc<Semaphore>,
    /// Held by backups while they are given out.
    pub backups: Arc<Semaphore>,
    /// Lines of claims that wait for tasks.
    pub task_lines: TaskLines,
    answers_bytes_max: usize,
}

/// A request as admission sees it, by its head.
pub struct AdmissionRequest<'c> {
    /// Its place in its class, which it does not hold yet.
    pub permit: &'c Permit,
    /// The account that pays for it; set here, and left empty where accounts are not bounded.
    pub account: &'c OnceLock<Spender>,
    /// Set for a request that is served although its account owes.
    pub is_vital: bool,
    /// The time at which the answer has to be there.
    pub deadline: Instant,
}

impl Admission {
    /// All of it free. The metrics tell what is taken.
    pub fn new(bounds: AdmissionLimits, metrics: &Metrics) -> Self {
        let classes = Arc::new(RequestClasses::new(bounds.classes));
        let accounts = Accounts::new(bounds.accounts);
        let turns = Arc::new(Turns::default());
        let shares = Shares::new(bounds.classes.waiting, bounds.watches_max, bounds.classes.arriving);
        let bodies = Arc::new(BodyMemory::new(bounds.bodies_bytes_max, bounds.body_bytes_max));
        let (answers, connections) = (AnswerMemory::new(bounds.answers_bytes_max), Arc::<Connections>::default());
        metrics.add_source(TurnSamples(Arc::clone(&turns)));
        metrics.add_source(ResourceSamples {
            shares: Arc::clone(&shares),
            bodies: Arc::clone(&bodies),
            answers: answers.clone(),
            connections: Arc::clone(&connections),
            classes: Arc::clone(&classes),
        });
        metrics.add_source(ClassSamples(Arc::clone(&classes)));
        metrics.add_source(AccountSamples(Arc::clone(&accounts)));
        Self {
            in_flight: AtomicUsize::new(0),
            classes,
            accounts,
            turns,
            shares,
            connections,
            observers: AtomicUsize::new(0),
            bodies,
            answers,
            scans: Arc::new(Semaphore::new(limits::SCANS_MAX)),
            evaluations: Arc::new(Semaphore::new(limits::EVALUATIONS_MAX)),
            log_scans: Semaphore::new(limits::LOG_SCANS_MAX),
            own_log_scans: AliveTable::default(),
            scrapes: Semaphore::new(limits::SCRAPES_MAX),
            watch_reads: Arc::new(Semaphore::new(limits::WATCH_READS_MAX)),
            backups: Arc::new(Semaphore::new(limits::BACKUPS_MAX)),
            task_lines: TaskLines::default(),
            answers_bytes_max: bounds.answers_bytes_max,
        }
    }

    /// Lets a request in by its head, as one operation for now, or says when its account has room for one. It takes nothing of its class
    /// yet: it does once all of it is there. `payer` is the account that pays, `sender` the one that takes places.
    pub async fn admit(
        &self,
        request: AdmissionRequest<'_>,
        payer: impl Fn() -> Account,
        sender: impl FnOnce() -> Account,
    ) -> Result<(), Failure> {
        let AdmissionRequest { permit, account, is_vital, deadline } = request;
        // Refusals show an entry, too: an account that reads none of them is not to have more made.
        let may_be_large = permit.class() != RequestClass::Coordination;
        if may_be_large && self.answers.held() >= self.answers_bytes_max / 2 {
            self.answers.share(payer()).check_own(2)?;
        }
        let Some(spender) = self.accounts.of(payer) else {
            return Ok(());
        };
        let account = account.get_or_init(|| spender);
        if is_vital {
            account.pay(1);
        } else if let Err(failure) = account.admit() {
            if account.may_keep_back()
                && let Some(_waiting) = permit.wait(sender)
            {
                account.keep_back(&failure, deadline.saturating_duration_since(Instant::now())).await;
            }
            return Err(failure);
        }
        Ok(())
    }

    /// The limited resources of this node, with the accounts that hold most of each.
    pub fn callers(&self) -> Vec<NodeResource> {
        let places = [Scarce::Waits, Scarce::Watches, Scarce::Arriving].map(|what| self.shares.places(what).told());
        let rest = [self.connections.told()].into_iter().chain(self.classes.told()).chain([self.turns.pace.told()]);
        places.into_iter().chain([self.bodies.room().told()]).chain(self.answers.told()).chain(rest).collect()
    }

    /// Requests and bytes that the server holds, for the metrics.
    pub fn load(&self) -> HttpLoad {
        let (body_bytes, answer_bytes) = (self.bodies.taken(), self.answers.held());
        HttpLoad { requests: self.in_flight.load(Ordering::Relaxed), body_bytes, answer_bytes }
    }
}

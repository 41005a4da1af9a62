//! Limits of one caller on this node: operations and bytes a second, watches. Connections are counted by their port.
//!
//! Owns who counts as one caller ([`Account`]), the bounded table of them, and the refusals. Off where nothing is configured: then
//! no request looks anything up. Never knows what a request does.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use quorate_api::NodeCallerKind;

use crate::connection::origin::Neighbour;
use crate::gateway::admission::bucket::Bucket;
use crate::gateway::auth::who::Who;
use crate::gateway::failure::Failure;
use crate::limits;
use crate::metrics::{MetricsSource, Sample};
use crate::timings::{self, Part};

/// What one account may take; 0 stands for no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountLimits {
    /// Operations, by what they cost.
    pub ops_per_second: u64,
    /// Bytes of requests and answers.
    pub bytes_per_second: u64,
    /// Connections at a time, at each port.
    pub connections_max: usize,
    /// Watches and observers at a time.
    pub watches_max: usize,
}

/// Who is one caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// Where nothing but an address is known.
    Neighbour(Neighbour),
    /// A user, wherever it asks from.
    User(Arc<str>),
    /// All callers without credentials, where authentication is on: addresses cost them nothing.
    Strangers,
}

impl Account {
    /// Whose account somebody's requests are on.
    pub fn of(who: &Who, neighbour: Neighbour) -> Self {
        match who {
            Who::Somebody(somebody) => Self::User(Arc::clone(somebody.name())),
            Who::Anybody | Who::Nobody => Self::Neighbour(neighbour),
        }
    }

    /// The account of requests while they come: strangers have one together, or a few of their addresses would keep users out.
    pub fn of_sender(who: &Who, neighbour: Neighbour) -> Self {
        match who {
            Who::Nobody => Self::Strangers,
            Who::Somebody(_) | Who::Anybody => Self::of(who, neighbour),
        }
    }

    /// How it is known, and its name, for operators.
    pub fn told(&self) -> (NodeCallerKind, Option<String>) {
        match self {
            Self::User(name) => (NodeCallerKind::User, Some(name.to_string())),
            Self::Neighbour(Neighbour::Network(address)) => (NodeCallerKind::Address, Some(address.to_string())),
            Self::Neighbour(Neighbour::User(uid)) => (NodeCallerKind::LocalUser, Some(uid.to_string())),
            Self::Strangers => (NodeCallerKind::Strangers, None),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(out, "user {name}"),
            Self::Neighbour(Neighbour::Network(address)) => write!(out, "address {address}"),
            Self::Neighbour(Neighbour::User(uid)) => write!(out, "user {uid} of this machine"),
            Self::Strangers => out.write_str("strangers"),
        }
    }
}

/// A bound that an account may meet.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Limit {
    Ops,
    Bytes,
    Connections,
    Watches,
}

const LIMITS: [(&str, Limit); 4] =
    [("ops", Limit::Ops), ("bytes", Limit::Bytes), ("connections", Limit::Connections), ("watches", Limit::Watches)];

/// What one account has taken.
#[derive(Debug, Default)]
struct Ledger {
    ops: Bucket,
    bytes: Bucket,
    /// Requests that were refused and are kept back: they will all ask again.
    kept_back: AtomicUsize,
    watches: AtomicUsize,
}

/// The accounts of a node.
#[derive(Debug)]
pub struct Accounts {
    limits: AccountLimits,
    born: Instant,
    table: RwLock<BTreeMap<Account, Arc<Ledger>>>,
    /// When idle accounts were looked for last.
    swept: AtomicU64,
    /// Who finds the table full of accounts that are in use shares this one with others.
    others: Arc<Ledger>,
    refused: [AtomicU64; LIMITS.len()],
}

impl Accounts {
    /// Nobody has taken anything.
    pub fn new(limits: AccountLimits) -> Arc<Self> {
        let (born, table, swept) = (Instant::now(), RwLock::default(), AtomicU64::new(0));
        Arc::new(Self { limits, born, table, swept, others: Arc::default(), refused: Default::default() })
    }

    /// Whether nothing is bounded that a request takes. A bound of connections, which there is by default, is none of it.
    fn is_off_for_requests(&self) -> bool {
        AccountLimits { connections_max: 0, ..self.limits } == AccountLimits::default()
    }

    fn now(&self) -> u64 {
        // A node does not run for centuries.
        self.born.elapsed().as_nanos() as u64
    }

    /// What this account may still take for a request; `None` where nothing of that is bounded: then nothing is looked up.
    pub fn of(self: &Arc<Self>, account: impl FnOnce() -> Account) -> Option<Spender> {
        if self.is_off_for_requests() { None } else { Some(self.spender(account())) }
    }

    fn spender(self: &Arc<Self>, account: Account) -> Spender {
        let known = self.table.read().get(&account).cloned();
        let ledger = known.unwrap_or_else(|| self.begin(account));
        Spender { accounts: Arc::clone(self), ledger }
    }

    fn begin(&self, account: Account) -> Arc<Ledger> {
        let mut table = self.table.write();
        if table.len() >= limits::ACCOUNTS_MAX && !table.contains_key(&account) {
            self.sweep(&mut table);
            if table.len() >= limits::ACCOUNTS_MAX {
                return Arc::clone(&self.others);
            }
        }
        Arc::clone(table.entry(account).or_default())
    }

    /// Forgets the accounts to which nothing is owed. Not for each newcomer, or many of them would have no other effect.
    fn sweep(&self, table: &mut BTreeMap<Account, Arc<Ledger>>) {
        let now = self.now();
        if now.saturating_sub(self.swept.load(Ordering::Relaxed)) < limits::ACCOUNTS_SWEEP_NANOS {
            return;
        }
        self.swept.store(now, Ordering::Relaxed);
        table.retain(|_, ledger| {
            Arc::strong_count(ledger) > 1 || !ledger.ops.is_full(now) || !ledger.bytes.is_full(now)
        });
    }

    /// How many connections of one address a port takes; `None` where it takes as many as of all. The port counts them.
    pub fn connections_max(&self) -> Option<usize> {
        Some(self.limits.connections_max).filter(|most| *most > 0)
    }

    /// The refusal of a connection whose address has as many as it may.
    pub fn too_many_connections(&self) -> Failure {
        let most = self.limits.connections_max;
        self.refuse(Limit::Connections, format!("one account may have {most} connections on this node"))
    }

    fn refuse(&self, limit: Limit, detail: String) -> Failure {
        self.refused[limit as usize].fetch_add(1, Ordering::Relaxed);
        Failure::too_many(detail)
    }
}

/// An account, for one request, stream or connection.
#[derive(Debug, Clone)]
pub struct Spender {
    accounts: Arc<Accounts>,
    ledger: Arc<Ledger>,
}

impl Spender {
    /// Lets one operation in, or says when there is room for one.
    pub fn admit(&self) -> Result<(), Failure> {
        let now = self.accounts.now();
        let (ops, bytes) = (self.ledger.ops.wait(now), self.ledger.bytes.wait(now));
        match (ops.is_zero(), bytes.is_zero()) {
            (true, true) => {
                self.pay(1);
                Ok(())
            }
            (false, _) => Err(self.too_many_ops(self.turn(ops.max(bytes)))),
            (true, false) => {
                let bound = self.accounts.limits.bytes_per_second;
                let detail = format!("one account may take {bound} bytes a second of this node");
                Err(self.accounts.refuse(Limit::Bytes, detail).after(bytes))
            }
        }
    }

    /// Takes operations without asking whether there are any.
    pub fn pay(&self, ops: usize) {
        self.ledger.ops.take(ops as u64, self.accounts.limits.ops_per_second, self.accounts.now());
    }

    fn too_many_ops(&self, wait: Duration) -> Failure {
        let bound = self.accounts.limits.ops_per_second;
        let detail = format!("one account may take {bound} operations a second of this node");
        self.accounts.refuse(Limit::Ops, detail).after(wait)
    }

    /// How long until there is room for one more than for those who are kept back already.
    fn turn(&self, wait: Duration) -> Duration {
        let before = self.ledger.kept_back.load(Ordering::Relaxed) as u64;
        let millis = before.saturating_mul(1_000) / self.accounts.limits.ops_per_second.max(1);
        wait + Duration::from_millis(millis.min(limits::RETRY_AFTER_MS_MAX))
    }

    /// Keeps a refusal back for a while: whoever does not heed it must not be able to ask a thousand times meanwhile.
    pub async fn keep_back(&self, failure: &Failure, most: Duration) {
        let bounds = [limits::REFUSAL_PAUSE_MS_MIN, limits::REFUSAL_PAUSE_MS_MAX].map(Duration::from_millis);
        let pause = failure.retry_after().clamp(bounds[0], bounds[1]).min(most);
        let _kept = KeptBack::begin(&self.ledger.kept_back);
        // Nobody has to look for why that took long.
        timings::on(Part::Wait, tokio::time::sleep(pause)).await;
    }

    /// An operation that was let in turned out to be so many. Refused while others of the account owe much: many that begin at
    /// once must not all take what one may. What was let in a moment ago is no debt, or a large one would never get its turn.
    pub fn costs(&self, ops: usize) -> Result<(), Failure> {
        let wait = self.ledger.ops.wait(self.accounts.now());
        if ops > 1 && wait > MUCH {
            return Err(self.too_many_ops(wait));
        }
        self.pay(ops.saturating_sub(1));
        Ok(())
    }

    /// Whether one more refusal may be kept back: they take places among those that wait, which others need.
    pub fn may_keep_back(&self) -> bool {
        self.ledger.kept_back.load(Ordering::Relaxed) < limits::KEPT_BACK_MAX
    }

    /// Bytes went in or out.
    pub fn moved(&self, bytes: usize) {
        self.ledger.bytes.take(bytes as u64, self.accounts.limits.bytes_per_second, self.accounts.now());
    }

    /// A watch, until what is returned is dropped.
    pub fn watch(&self) -> Result<Held, Failure> {
        let held = Held { ledger: Arc::clone(&self.ledger) };
        let most = self.accounts.limits.watches_max;
        // Counted first, and given back by `Held`, so that two at once do not both pass.
        let before = held.ledger.watches.fetch_add(1, Ordering::Relaxed);
        if most > 0 && before >= most {
            let detail = format!("one account may have {most} watches on this node");
            return Err(self.accounts.refuse(Limit::Watches, detail));
        }
        Ok(held)
    }
}

/// Owed for longer than that is much.
const MUCH: Duration = Duration::from_secs(1);

/// One of the watches of an account.
#[derive(Debug)]
pub struct Held {
    ledger: Arc<Ledger>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One refusal that is kept back.
struct KeptBack<'l>(&'l AtomicUsize);

impl<'l> KeptBack<'l> {
    fn begin(count: &'l AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for KeptBack<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The numbers of the accounts, for the metrics.
pub struct AccountSamples(pub Arc<Accounts>);

impl MetricsSource for AccountSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let known = self.0.table.read().len() as u64;
        out.push(Sample::gauge(
            "http_accounts",
            "Accounts that have taken something of late, where they are bounded",
            known,
        ));
        let help = "What accounts were refused since they had taken as much as they may, by limit";
        out.extend(LIMITS.into_iter().map(|(name, limit)| {
            let refused = self.0.refused[limit as usize].load(Ordering::Relaxed);
            Sample::counter("http_account_refused", help, refused).labelled("limit", name)
        }));
    }
}

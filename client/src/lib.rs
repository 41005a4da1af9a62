//! The client of Quorate, a replicated compare-and-swap store: documents with conditional writes, queries and transactions; locks,
//! elections, barriers and latches; timed tasks.
//!
//! ```no_run
//! use quorate_client::Client;
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), quorate_client::Error> {
//!     let client = Client::new("127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103")?;
//!     client.put_json("stock/apples", &json!({"left": 5})).await?;
//!     // Reads the entry, changes it, writes it back if nobody else did meanwhile; else tries again.
//!     let updated = client
//!         .update("stock/apples", |stock: Option<serde_json::Value>| {
//!             let left = stock?["left"].as_u64()?.checked_sub(1)?;
//!             Some(json!({"left": left}))
//!         })
//!         .await?;
//!     match updated.written() {
//!         Some(stock) => println!("{} apples left", stock["left"]),
//!         None => println!("sold out"),
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Where to begin
//!
//! | for | take |
//! |---|---|
//! | reading and writing one key | [`Client::get`], [`Client::put`], [`Client::cas`], [`Client::patch`], [`Client::update`] |
//! | reading many | [`Client::list`], [`Client::find`], [`Client::mirror`] |
//! | reading what was | [`Client::history`], [`Get::revision`] |
//! | writing many | [`Client::txn`], [`Client::bulk`], [`Client::patch_where`], [`Client::delete_where`] |
//! | hearing of changes | [`Client::watch`] |
//! | doing something in one place only | [`Client::session`], then [`Session::lock`] or [`Session::elect`] |
//! | doing something later | [`Client::tasks`] |
//! | programs without a runtime | [`blocking`] |
//! | tests with real nodes | `testing`, with the feature of that name |
//!
//! Most methods describe a call, which is refined and then awaited: `client.put(key, value).ttl(time).prev().await`. Every write carries a
//! request id from the beginning. So it is repeated, at another node where it has to be, until it is decided, and takes effect at
//! most once.
//!
//! # Two kinds of locks
//!
//! [`Session::lock`] takes a lock by its name: it is held as long as the session lives, its queue is fair, and its token fences off those
//! who held it before. [`Client::lock_entry`] locks one entry for half a minute at most, while somebody thinks about what to write there.
//!
//! # Errors
//!
//! [`Error::applied`] says whether a call that failed took effect, and [`Error::is_retryable`] whether it may succeed later. What a newer
//! server says that this version does not know stays readable: [`api::ErrorCode::Other`] has its code, the [`api::Problem`] its status and
//! detail.
//!
//! # Tracing
//!
//! Each call is a span `quorate_call` of the crate `tracing`, of the level debug and the target `quorate_client`, with one span
//! `quorate_attempt` in it for each node that was asked:
//!
//! | span | field | is |
//! |---|---|---|
//! | `quorate_call` | `operation` | what is done, such as `upsert`, `GET kv` or `locks acquire`; never a key |
//! | | `request_id` | the id of a write |
//! | `quorate_attempt` | `attempt` | its number, from 1 |
//! | | `endpoint` | the node, `host:port` |
//! | | `failure` | why it brought no final answer, where it did not |
//!
//! # Inside
//!
//! Knows nothing of RocksDB, openraft or how a node stores anything.
//!
//! Rooms; each uses only those above it:
//!
//! | room | has |
//! |---|---|
//! | `call` | a call before it is sent, and what comes of it: requests, operations, values, errors, nodes to ask |
//! | `transport` | how it goes out: credentials, connections, answers, streams of events |
//! | `client` | [`Client`]: its settings, and the way of every call over all its attempts; which sessions to renew |
//! | `entries`, `coordination`, `tasks`, `cluster` | what can be called. None of them uses another |
//! | [`blocking`], `testing` | the same without a runtime; real nodes for tests |

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(missing_docs)]

pub mod blocking;
mod call;
mod client;
mod cluster;
mod coordination;
mod entries;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod transport;

pub use quorate_api as api;
pub use quorate_api::{Cas, CasError};

pub use call::endpoints::Reads;
pub use call::error::{Error, Failure, FailureKind, GaveUp};
pub use call::loss::Loss;
pub use call::operation::Op;
pub use call::reason::Reason;
pub use call::request::RequestId;
pub use call::value::Value;
pub use client::Client;
pub use client::builder::{ClientBuilder, DEFAULT_ENDPOINTS, ENDPOINTS_ENV};
pub use client::lease::SessionState;
pub use client::pages::Pages;
pub use client::pending::Pending;
pub use client::retry::RetryPolicy;
pub use cluster::access::{Access, CreateToken};
pub use cluster::backup::{Backup, SavedBackup};
pub use cluster::invitations::Invite;
pub use cluster::members::{ChangeMembers, Members};
pub use cluster::node::NodeClient;
pub use cluster::overview::{MemberStatus, NodeMetrics};
pub use cluster::quotas::Quotas;
pub use cluster::scrape::{Labels, MetricFamily, MetricKind, Scrape, Spread};
pub use cluster::status::NodeStatus;
pub use coordination::barrier::Barrier;
pub use coordination::election::{Campaign, Election, Leadership};
pub use coordination::latch::Latch;
pub use coordination::lock::{Lock, LockGuard, NamedLock};
pub use coordination::observe::{Leads, Observation};
pub use coordination::session::{Session, SessionById, StartSession};
pub use entries::bulk::Bulk;
pub use entries::change_where::ChangeWhere;
pub use entries::claim::{Claim, Claimed, Claims};
pub use entries::collections::{Collection, CollectionWrite};
pub use entries::find::Find;
pub use entries::history::{History, HistoryPage, Version};
pub use entries::kv::{Change, Document, Get, Write};
pub use entries::list::List;
pub use entries::mirror::{Mirror, MirrorChange, MirrorChanges, MirrorSetup};
pub use entries::sequences::Sequence;
pub use entries::txn::{Step, Txn, When};
pub use entries::update::{TRIES_MAX, Update, Updated};
pub use entries::watch::{Watch, WatchSetup, Watched};
pub use tasks::claim::{ClaimTasks, ClaimedTasks, Task};
pub use tasks::queue::{ScheduleTask, TaskQueue};
pub use tasks::run::{TaskError, TaskRun};
pub use tasks::worker::{TaskWorker, WorkerReport};
pub use transport::Protocol;
pub use transport::tls::{CA_ENV, CERT_ENV, KEY_ENV};
pub use transport::token::{TOKEN_ENV, TOKEN_FILE_ENV};

/// The example of the page that a registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

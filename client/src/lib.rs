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
//! Order of reading: `client` (settings, and the way of every call), `kv`, `list`, `find`, `history`, `update`, `bulk`, `txn`, `change_where`,
//! `claim`, `collections`, `sequences`, `tasks`, `task_claim`, `task_worker`, `watch`, `mirror`, `cluster`, `access`, `quotas`, `backup` (what can be
//! called), `session`, `lock`, `election`, `observe`, `barrier`, `latch` (what is held; waiting for a place and giving it up are
//! `queue_place` and `leaving`), `operation` (what is done to one key), `request` and `op` (a call before it is sent), `subject` (what it is
//! about), `messages` and
//! `stream_end` (a stream of events), then the leaves: `endpoints` (which node), `retry` (whether again), `credentials` (who asks),
//! `transport` (how), `error` (what it means when it fails), `spans` (what is told of it).

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(missing_docs)]

mod access;
mod backup;
mod barrier;
pub mod blocking;
mod bulk;
mod change;
mod change_where;
mod claim;
mod client;
mod cluster;
mod collections;
mod credentials;
mod criteria;
mod election;
mod endpoints;
mod error;
mod find;
mod history;
mod invitations;
mod kv;
mod latch;
mod leaving;
mod list;
mod lock;
mod members;
mod messages;
mod mirror;
mod moment;
mod node;
mod observe;
mod op;
mod operation;
mod overview;
mod pages;
mod queue_place;
mod quotas;
mod reason;
mod request;
mod request_id;
mod retry;
mod scrape;
mod sequences;
mod session;
mod spans;
mod stream_end;
mod subject;
mod task_claim;
mod task_run;
mod task_worker;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod token;
mod transport;
mod txn;
mod update;
mod value;
mod watch;
mod way;

pub use quorate_api as api;
pub use quorate_api::{Cas, CasError};

pub use access::{Access, CreateToken};
pub use backup::{Backup, SavedBackup};
pub use barrier::Barrier;
pub use bulk::Bulk;
pub use change::Pending;
pub use change_where::ChangeWhere;
pub use claim::{Claim, Claimed, Claims};
pub use client::{Client, ClientBuilder, DEFAULT_ENDPOINTS, ENDPOINTS_ENV};
pub use cluster::NodeStatus;
pub use collections::{Collection, CollectionWrite};
pub use election::{Campaign, Election, Leadership};
pub use endpoints::Reads;
pub use error::{Error, Failure, FailureKind, GaveUp};
pub use find::Find;
pub use history::{History, HistoryPage, Version};
pub use invitations::Invite;
pub use kv::{Change, Document, Get, Write};
pub use latch::Latch;
pub use list::List;
pub use lock::{Lock, LockGuard, NamedLock};
pub use members::{ChangeMembers, Members};
pub use mirror::{Mirror, MirrorChange, MirrorChanges, MirrorSetup};
pub use node::NodeClient;
pub use observe::{Leads, Observation};
pub use operation::Op;
pub use overview::{MemberStatus, NodeMetrics};
pub use pages::Pages;
pub use quotas::Quotas;
pub use reason::Reason;
pub use request::RequestId;
pub use retry::RetryPolicy;
pub use scrape::{Labels, MetricFamily, MetricKind, Scrape, Spread};
pub use sequences::{Sequence, TakeNext};
pub use session::{Loss, Session, SessionById, SessionState, StartSession};
pub use task_claim::{ClaimTasks, ClaimedTasks, Task};
pub use task_run::{TaskError, TaskRun};
pub use task_worker::{TaskWorker, WorkerReport};
pub use tasks::{ScheduleTask, TaskQueue};
pub use tls::{CA_ENV, CERT_ENV, KEY_ENV};
pub use token::{TOKEN_ENV, TOKEN_FILE_ENV};
pub use transport::Protocol;
pub use txn::{Step, Txn, When};
pub use update::{TRIES_MAX, Update, Updated};
pub use value::Value;
pub use watch::{Watch, WatchSetup, Watched};

/// The example of the page that a registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Quorate for programs in Rust.
//!
//! Knows nothing of RocksDB, openraft or how a node stores anything.
//!
//! ```no_run
//! use quorate_client::{Client, Value};
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), quorate_client::Error> {
//!     let client = Client::new("127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103")?;
//!     client.put("stock/apples", Value::json(&json!({"left": 5}))?).await?;
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
//! Order of reading: `client` (settings, and the way of every call), `kv`, `list`, `find`, `update`, `bulk`, `txn`, `change_where`,
//! `claim`, `collections`, `sequences`, `tasks`, `task_claim`, `task_worker`, `watch`, `cluster`, `access`, `backup` (what can be called), `session`,
//! `lock`, `election`, `observe`, `barrier`, `latch` (what is held; waiting for a place and giving it up are `place` and `leaving`),
//! `operation` (what is done to one key), `request` and `op` (a call before it is sent), `messages` (a stream of events), then
//! the leaves: `endpoints` (which node), `retry` (whether again), `transport`
//! (how), `error` (what it means when it fails).

// Where it cannot fail, `expect` says why; where it can, the error has a way to go. Tests may.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

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
mod kv;
mod latch;
mod leaving;
mod list;
mod lock;
mod members;
mod messages;
mod mirror;
mod observe;
mod op;
mod operation;
mod overview;
mod pages;
mod queue_place;
mod reason;
mod request;
mod request_id;
mod retry;
mod scrape;
mod sequences;
mod session;
mod spans;
mod stream_end;
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
pub use kv::{Change, Document, Get, Write};
pub use latch::Latch;
pub use list::List;
pub use lock::{Lock, LockGuard, NamedLock};
pub use members::{ChangeMembers, Members};
pub use mirror::{Mirror, MirrorChange, MirrorChanges, MirrorSetup};
pub use observe::{Leads, Observation};
pub use operation::Op;
pub use overview::{MemberStatus, NodeMetrics};
pub use pages::Pages;
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

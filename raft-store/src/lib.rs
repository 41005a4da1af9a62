//! Quorate's storage: a deterministic state machine, the RocksDB databases under it, and the openraft adapters
//! around it. `ARCHITECTURE.md` at the root of the repository has the whole picture.

pub mod codec;
pub mod digest;
pub mod keyspace;
pub mod limits;
pub mod machine;
pub mod types;

pub mod durable;
pub mod identity;
pub mod log;
pub mod raft;
pub mod space;
pub mod state;

//! Entries: reading, writing, finding and watching them, one or many.

pub(crate) mod bulk;
pub(crate) mod change_where;
pub(crate) mod claim;
pub(crate) mod collections;
pub(crate) mod find;
pub(crate) mod history;
pub(crate) mod kv;
pub(crate) mod list;
pub(crate) mod mirror;
pub(crate) mod sequences;
pub(crate) mod txn;
pub(crate) mod update;
pub(crate) mod watch;

//! The HTTP layer over real sockets, with a node behind it that lives in memory.

// Tasks of a node are watched; those that stand for its surroundings are not.
#![allow(clippy::disallowed_methods)]

mod http_2;
mod memory_node;
mod raw;

mod access;
mod auth;
mod backups;
mod bad_input;
mod browsers;
mod bulk;
mod conditions;
mod connections;
mod console;
mod coordination;
mod documents;
mod entries;
mod errors;
mod faults;
mod find;
mod hosts;
mod limits;
mod pages;
mod processors;
mod quotas;
mod readers;
mod slow;
mod stream;
mod tasks;
mod tls;
mod transcripts;
mod txn;
mod waits;
mod watch;

//! The command line.
//!
//! Owns the arguments and which of them go together. Never connects to anything.

use clap::{Parser, ValueEnum};

use crate::Failure;
use crate::work::{BULK, FOUND, RANGE, TXN};

/// Measures a cluster and prints one JSON object.
#[derive(Debug, Clone, Parser)]
pub struct Args {
    /// host:port of the members, separated by commas
    #[arg(long)]
    pub endpoints: String,
    /// How the members are asked
    #[arg(long, value_enum, default_value_t = Protocol::Grpc)]
    pub protocol: Protocol,
    /// What every client does, over and over
    #[arg(long, value_enum)]
    pub op: Op,
    /// Clients, each with one request in flight
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Clients on each connection of gRPC; by HTTP/1.1 each has one of its own
    #[arg(long, default_value_t = 16)]
    pub clients_per_connection: usize,
    /// Seconds to measure
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Seconds to run before measuring
    #[arg(long, default_value_t = 2.0)]
    pub warmup: f64,
    /// Bytes of each value
    #[arg(long, default_value_t = 256)]
    pub value_size: usize,
    /// How many different keys, or documents; for cas each client has a key of its own
    #[arg(long, default_value_t = 100_000)]
    pub keys: usize,
    /// Do not write the keys, or documents, before reading them
    #[arg(long)]
    pub no_fill: bool,
    /// Which members to connect to
    #[arg(long, value_enum, default_value_t = Target::All)]
    pub target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// etcd's protocol
    Grpc,
    /// etcd's protocol as JSON, by HTTP/1.1
    Gateway,
    /// Quorate's API, by HTTP/1.1
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Overwrite a random key
    Put,
    /// Read a random key, linearizably
    Get,
    /// Overwrite its own key on its last revision
    Cas,
    /// Overwrite 8 random keys in one transaction
    Txn8,
    /// Read 1,000 keys in a row from a random one on, linearizably
    Range1000,
    /// Overwrite 1,000 random keys in one bulk
    Bulk1000,
    /// Find the 100 documents from a random place of an index on
    Find,
    /// Open a session and end it
    Session,
    /// Wait for the one lock that all want and release it; measures from a release to the next holder's answer
    Lock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// All members in turn
    All,
    /// The leader only
    Leader,
}

/// What a value is called on the command line.
pub fn name(of: &impl ValueEnum) -> String {
    of.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Args {
    /// Refuses what cannot be done.
    pub fn check(&self) -> Result<(), Failure> {
        let op = name(&self.op);
        if matches!(self.op, Op::Bulk1000 | Op::Find) && self.protocol != Protocol::Http {
            return Err(format!("etcd has nothing like {op}: it takes --protocol http").into());
        }
        let least = match self.op {
            Op::Txn8 => TXN,
            Op::Range1000 => RANGE,
            Op::Bulk1000 => BULK,
            Op::Find => FOUND,
            _ => 1,
        };
        if self.keys < least {
            return Err(format!("{op} takes at least {least} --keys").into());
        }
        if self.clients == 0 {
            return Err("without --clients there is nothing to measure".into());
        }
        Ok(())
    }
}

//! The log of a node whose state was made and not replicated: empty, and beginning where the state ends.
//!
//! Owns what such a log has to hold so that Raft goes on after the state: the purge mark, and a vote of a later term than
//! that of any entry in the state, else the first leader would give its entries an older term.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::OfflineError;
use crate::identity::Identity;
use crate::log::LogStore;
use crate::raft::wire::{LogIdRecord, VoteRecord};
use crate::raft::{LogId, Vote};

/// Makes the log of `dir`, which has none, durably.
pub fn make_log(dir: &Path, identity: &Identity, last: LogIdRecord) -> Result<(), OfflineError> {
    let fault = Arc::new(OnceLock::new());
    let told = Arc::clone(&fault);
    let on_fatal = move |error: &str| drop(told.set(error.to_owned()));
    let log = LogStore::open(dir, identity, Arc::new(on_fatal))?;
    log.set_durable_state_index(last.index);
    let vote = VoteRecord { term: last.term + 1, node: identity.node_id, committed: false };
    let written = futures::executor::block_on(async {
        log.save_vote(&Vote::from(vote)).await?;
        log.purge(LogId::from(last)).await
    });
    log.close();
    written.map_err(OfflineError::at(dir))?;
    match fault.get() {
        Some(error) => Err(OfflineError::Refused(format!("the new log could not be written: {error}"))),
        None => Ok(()),
    }
}

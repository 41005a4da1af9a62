//! The request table: a write is applied at most once, however often it is retried.
//!
//! Owns looking up and keeping outcomes, and dropping them bucket by bucket.

use xxhash_rust::xxh3::xxh3_64;

use super::Applier;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::history::{self, Version};
use crate::keyspace::request::{self, KeptReply};
use crate::keyspace::{bucket, entry};
use crate::limits;
use crate::types::{Action, ClusterMillis, Command, Entry, Key, Reply, RequestId, Revision, Shown, Value};

impl Command {
    /// Tells a retry from another command under the same request id. Of the whole command with its principal, so
    /// nobody is answered what somebody else asked.
    pub fn fingerprint(&self) -> u64 {
        fingerprint_of(&codec::encode_command(self))
    }
}

/// [`Command::fingerprint`] of a command in its encoded form: decoding and encoding give the same bytes again.
pub(super) fn fingerprint_of(encoded: &[u8]) -> u64 {
    xxh3_64(encoded)
}

/// Whether an id is within the bounds that [`RequestId`] states.
pub(super) fn is_valid(id: &RequestId) -> bool {
    (1..=limits::REQUEST_ID_BYTES_MAX).contains(&id.0.len()) && id.0.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

impl<V: View> Applier<'_, V> {
    /// What was kept for an id, if anything.
    pub(super) fn kept_reply(&self, id: &RequestId) -> Result<Option<KeptReply>, Fault> {
        let clock = self.vars.clock;
        for bucket in (bucket::oldest_live(clock)..=bucket::at(clock)).rev() {
            let row_key = request::row_key(bucket, &id.0);
            if let Some(row) = self.overlay.peek(&row_key)? {
                return codec::decode(&row).map(Some).map_err(|error| Fault::row(&row_key, error));
            }
        }
        Ok(None)
    }

    /// The kept answer of a command that came again, with the value of the entry that it shows as long as that version
    /// is there.
    pub(super) fn replay(&self, action: &Action, kept: Reply) -> Result<Reply, Fault> {
        let mut reply = Reply { replayed: true, ..kept };
        if let (Action::Write(op), Some(shown)) = (action, reply.outcome.shown()) {
            let meta = *shown.meta();
            if let Some(value) = self.value_of_version(&op.key, meta.mod_revision)? {
                reply.outcome = reply.outcome.showing(Shown::Whole(Entry { meta, value }));
            }
        }
        Ok(reply)
    }

    /// The value that a key took at `revision`: the current one, or one in the history.
    fn value_of_version(&self, key: &Key, revision: Revision) -> Result<Option<Value>, Fault> {
        let row_key = entry::row_key(key.as_bytes());
        if let Some(row) = self.overlay.peek(&row_key)? {
            let row = entry::decode(&row).map_err(|error| Fault::row(&row_key, error))?;
            if row.meta.mod_revision == revision {
                return Ok(Some(row.to_entry().value));
            }
        }
        let row_key = history::row_key(key.as_bytes(), revision);
        let Some(row) = self.overlay.peek(&row_key)? else { return Ok(None) };
        match history::decode(&row).map_err(|error| Fault::row(&row_key, error))? {
            Version::Entry(row) => Ok(Some(row.to_entry().value)),
            Version::Tombstone => Err(Fault::Invariant(format!("row {} is no version", row_key.escape_ascii()))),
        }
    }

    /// Keeps the first outcome of an id.
    pub(super) fn keep_reply(&mut self, id: &str, fingerprint: u64, reply: &Reply) -> Result<(), Fault> {
        assert!(!reply.replayed, "only a first outcome is kept, not {reply:?}");
        let row_key = request::row_key(bucket::at(self.vars.clock), id);
        let row = request::encode(fingerprint, reply);
        self.take_bytes(row.len());
        self.overlay.insert_new(row_key, row).map(|_| ())
    }

    /// Drops the buckets that are no longer live at the clock of `vars`, which was `before`.
    pub(super) fn drop_old_buckets(&mut self, before: ClusterMillis) {
        let oldest = bucket::oldest_live(self.vars.clock);
        if oldest == bucket::oldest_live(before) {
            return;
        }
        for family in bucket::FAMILIES {
            // Rows that this apply call wrote itself were never in the view: they are just not written.
            let (start, end) = bucket::range(family, 0, oldest);
            self.overlay.forget_range(&start, &end);
            for part in self.vars.buckets.iter().filter(|part| part.bucket < oldest) {
                let (start, end) = bucket::range(family, part.bucket, part.bucket + 1);
                self.overlay.drop_range(start, end);
            }
        }
        self.vars.buckets.retain(|part| part.bucket >= oldest);
    }
}

//! Healing of sums that builds before feature level 2 let drift.
//!
//! Owns that each session's bytes are counted anew once the level is reached, a few sessions a step; until the walk has passed
//! a session its sum may be wrong, and nothing is made of that. Never changes anything else.

use super::Applier;
use super::maintain::maintained;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::session::{self, AttachedKind, SessionRow};
use crate::keyspace::{entry, family, family_range, repair};
use crate::types::{Outcome, SessionId};

/// Sessions whose bytes are counted in one step.
const SESSIONS: usize = 16;

impl<V: View> Applier<'_, V> {
    /// The level is reached: from here on sums are exact but those of the sessions that there are already.
    pub(super) fn begin_repair(&mut self) -> Result<(), Fault> {
        if self.vars.sessions == 0 {
            return Ok(());
        }
        self.overlay.replace(repair::ROW_KEY, Some(codec::encode(&SessionId(0)))).map(|_| ())
    }

    /// Whether the bytes of a session may differ from what its entries have.
    pub(super) fn may_have_drifted(&self, id: SessionId) -> Result<bool, Fault> {
        if !self.is_hardened() {
            return Ok(true);
        }
        Ok(self.decoded::<SessionId>(repair::ROW_KEY)?.is_some_and(|from| from <= id))
    }

    /// Counts the bytes of the next sessions anew; once that is done, what is not counted yet for quotas.
    pub(super) fn repair_step(&mut self) -> Result<Outcome, Fault> {
        let Some(from) = self.decoded::<SessionId>(repair::ROW_KEY)? else { return self.count_step() };
        let (_, end) = family_range(family::SESSION);
        let sessions = self.overlay.scan(&session::row_key(from), &end, SESSIONS)?;
        let (mut counted, mut next) = (0, None);
        for (row_key, _) in &sessions {
            if counted > 0 && self.has_taken_all() {
                break;
            }
            self.work_on_row(row_key, |applier| applier.count_anew(row_key))?;
            let id = session::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
            (counted, next) = (counted + 1, Some(SessionId(id.0.saturating_add(1))));
        }
        let is_done = counted == sessions.len() && counted < SESSIONS;
        let row = next.filter(|_| !is_done).map(|next| codec::encode(&next));
        self.overlay.replace(repair::ROW_KEY, row)?;
        Ok(maintained(counted, !is_done))
    }

    /// Counts the bytes of a session anew; `row_key` is its own.
    pub(super) fn count_anew(&mut self, row_key: &[u8]) -> Result<(), Fault> {
        let damaged = |error| Fault::row(row_key, error);
        let id = session::decode_key(row_key).map_err(damaged)?;
        let Some(mut row) = self.decoded::<SessionRow>(row_key)? else { return Ok(()) };
        let (start, end) = session::attached_to(id);
        let mut bytes = 0;
        for (attached, _) in self.overlay.scan(&start, &end, usize::MAX)? {
            let (_, kind, key) = session::decode_attached(&attached).map_err(damaged)?;
            if kind == AttachedKind::Entry {
                let length = self.overlay.peek(&entry::row_key(key))?.map_or(0, |row| row.len());
                self.take_bytes(length);
                bytes += length as u64;
            }
        }
        row.bytes = bytes;
        self.put_session(id, &row)
    }
}

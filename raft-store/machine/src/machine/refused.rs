//! The record of batches that changed nothing.
//!
//! Owns how much of it is kept: a bucket holds a bounded part, and once half of that is taken each principal has a share of the rest. Lines
//! that are left out are counted. Never decides what is refused.

use std::borrow::Cow;

use super::Applier;
use super::view::{Fault, View};
use crate::keyspace::audit::{self, AuditGroup, AuditLine};
use crate::keyspace::{bucket, refusals};
use crate::limits;

impl<V: View> Applier<'_, V> {
    /// Writes what there is room for of a batch that changed nothing; of the rest only how many lines it has is kept.
    pub(super) fn record_refusals(&mut self, group: &AuditGroup) -> Result<(), Fault> {
        let bucket = bucket::at(self.vars.clock);
        let taken = self.held_in(bucket)?.refusals;
        let recorded = match taken < limits::REFUSALS_SHARED_FROM {
            true => Cow::Borrowed(group),
            false => Cow::Owned(AuditGroup { lines: self.lines_with_room(taken, &group.lines)?, ..*group }),
        };
        let left_out = group.lines.len() - recorded.lines.len();
        let mut bytes = 0;
        if !recorded.lines.is_empty() {
            let (row_key, row) = (refusals::row_key(bucket, group.index), audit::encode(&recorded));
            bytes = row_key.len() + row.len();
            self.overlay.insert_new(row_key, row)?;
        }
        self.count_in_bucket(|held| {
            held.refusals += bytes as u64;
            held.dropped += left_out as u64;
        })
    }

    /// Those for which there is room in a bucket of which so much is taken that shares hold.
    fn lines_with_room(&mut self, taken: u64, lines: &[AuditLine]) -> Result<Vec<AuditLine>, Fault> {
        let mut found = Vec::new();
        if taken >= limits::REFUSALS_BYTES_MAX {
            return Ok(found);
        }
        for line in lines {
            let has_room = match line.principal.as_str() {
                "" => taken < limits::REFUSALS_OF_NOBODY_TO,
                owner => self.count_refused(owner, audit::line_bytes(line) as u64)?,
            };
            if has_room {
                found.push(line.clone());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryView, Vars, Write};
    use super::*;
    use crate::keyspace::bucket_use::{self, BucketUse, RefusedUse};
    use crate::keyspace::family;
    use crate::types::{Action, Batch, Change, Command, Key, WriteOp};
    use crate::{codec, command_codec, level};

    const BUCKET: u64 = 40;

    /// Gives what a batch writes of these principals' refused commands, where so much of the bucket is taken, and so much of that by ann: whose
    /// lines, and how many lines are left out.
    fn recorded(taken: u64, by_ann: u64, principals: &[&str]) -> (Vec<String>, u64) {
        let vars = Vars { clock: BUCKET * limits::REQUEST_BUCKET_MS, level: level::KNOWN, ..Vars::default() };
        let held = BucketUse { refusals: taken, ..BucketUse::default() };
        let rows = [
            (bucket_use::row_key(BUCKET), codec::encode(&held)),
            (bucket_use::refused_key(BUCKET, "ann"), codec::encode(&RefusedUse { refusals: by_ann })),
        ];
        let view = MemoryView(rows.into());
        let mut applier = Applier::new(&view, vars.clone());
        let touch = Action::Write(WriteOp { change: Change::Touch, ..WriteOp::removal(Key::new("k").unwrap(), false) });
        let by = |name: &&str| Command { principal: (*name).to_owned(), ..Command::unnamed(touch.clone()) };
        let commands = principals.iter().map(by).map(|command| command_codec::encode_command(&command)).collect();
        applier.apply_batch(3, &Batch { clock: vars.clock, wall: 0, seed: [0; 16], commands }).unwrap();
        let (mut whose, mut bytes, mut said) = (Vec::new(), 0, held);
        for write in applier.finish().writes {
            let Write::Put { key, value } = write else { continue };
            if key[0] == family::REFUSALS {
                bytes += (key.len() + value.len()) as u64;
                whose.extend(audit::decode(&value).unwrap().lines.into_iter().map(|line| line.principal));
            } else if key == bucket_use::row_key(BUCKET) {
                said = codec::decode(&value).unwrap();
            }
        }
        assert_eq!(said.refusals, taken + bytes, "what is there is what is counted");
        (whose, said.dropped)
    }

    #[test]
    fn a_full_bucket_records_no_refusal_and_counts_each() {
        let names = ["ann", "bob", ""];
        let all = |count: usize| names[..count].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(recorded(0, 0, &names), (all(3), 0));
        assert_eq!(recorded(limits::REFUSALS_BYTES_MAX - 1, 0, &names), (all(2), 1));
        assert_eq!(recorded(limits::REFUSALS_BYTES_MAX, 0, &names), (all(0), 3));
    }

    #[test]
    fn nobody_drowns_the_trail_of_another_once_half_of_it_is_taken() {
        let (half, share) = (limits::REFUSALS_SHARED_FROM, limits::REFUSALS_SHARE_MAX);
        let asked = ["ann", "bob", "ann", "anna"];
        let with = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(recorded(half - 1, share, &asked), (with(&asked), 0), "below half nobody is counted");
        assert_eq!(recorded(half, share, &asked), (with(&["bob", "anna"]), 2));
        assert_eq!(
            recorded(half, share - 1, &asked),
            (with(&["ann", "bob", "anna"]), 1),
            "the second line is beyond it"
        );
        assert_eq!(recorded(half, share, &["ann"]), (Vec::new(), 1), "a batch of which nothing is kept has no row");
        // Those without a name share one part: what is behind it is for those who have one.
        assert_eq!(recorded(limits::REFUSALS_OF_NOBODY_TO - 1, 0, &["", "bob"]), (with(&["", "bob"]), 0));
        assert_eq!(recorded(limits::REFUSALS_OF_NOBODY_TO, 0, &["", "bob"]), (with(&["bob"]), 1));
    }
}

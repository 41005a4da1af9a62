//! Declaring collections, and drawing numbers by themselves.
//!
//! Owns what setting rules does to the row of a collection and to its indexes.

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::collection;
use crate::keyspace::{entry, index, sequence};
use crate::limits;
use crate::machine::expect::{check_absent, check_present};
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::rules::{CollectionName, Rules, candidates};
use crate::types::{
    CollectionRow, Expect, IndexStage, IndexState, NumbersOp, Outcome, Presence, Rejection, Revision, RulesChange,
    RulesOp,
};

/// Ids of the indexes that are declared at one revision: no more than a collection may have.
const IDS_PER_REVISION: u64 = limits::INDEXES_MAX as u64;

impl<V: View> Applier<'_, V> {
    /// Sets or removes the rules of a collection.
    pub(in crate::machine) fn set_rules(&mut self, op: RulesOp, caller: Caller) -> Result<Outcome, Fault> {
        let row_key = collection::row_key(op.name.as_str().as_bytes());
        let current = self.collection(&row_key)?;
        if let Err(rejection) = split(self.check_rules(&op, current.as_ref()))? {
            self.record(AuditOp::Rules, None, caller, AuditEffect::Refused((&rejection).into()));
            return Ok(Outcome::Rejected(rejection));
        }
        self.take_revision()?;
        let row = match op.change {
            RulesChange::Remove => None,
            RulesChange::Set(rules) => Some(self.collection_row(&op.name, rules, current.as_ref())?),
        };
        if let Some(current) = &current {
            self.drop_indexes(current, row.as_ref())?;
        }
        self.vars.collections += u64::from(row.is_some());
        self.vars.collections -= u64::from(current.is_some());
        self.forget_collections();
        let encoded = row.as_ref().map(codec::encode);
        self.overlay.replace(&row_key, encoded)?;
        self.record(AuditOp::Rules, None, caller, AuditEffect::Beside);
        Ok(Outcome::RulesSet(row.map(Box::new)))
    }

    /// Whether the collection is as expected, and in no other one and around none.
    fn check_rules(&self, op: &RulesOp, current: Option<&CollectionRow>) -> Tried<()> {
        let removes = op.change == RulesChange::Remove;
        check_expect(&op.expect, current, removes)?;
        if current.is_some() || removes {
            return Ok(());
        }
        for around in candidates(op.name.as_str().as_bytes()) {
            let row_key = collection::row_key(around);
            if self.overlay.peek(&row_key)?.is_some() {
                return Err(Rejection::Overlaps(Box::new(name_of(&row_key)?)).into());
            }
        }
        let (start, end) = collection::within(&op.name);
        match self.overlay.scan(&start, &end, 1)?.first() {
            Some((row_key, _)) => Err(Rejection::Overlaps(Box::new(name_of(row_key)?)).into()),
            None => Ok(()),
        }
    }

    /// The collection with these rules from now on.
    fn collection_row(
        &self,
        name: &CollectionName,
        rules: Rules,
        current: Option<&CollectionRow>,
    ) -> Result<CollectionRow, Fault> {
        let revision = self.vars.revision;
        let (start, end) = collection::keys(name);
        let is_empty = self.overlay.scan(&entry::row_key(&start), &entry::row_key(&end), 1)?.is_empty();
        let mut indexes = Vec::with_capacity(rules.indexes().len());
        for (at, rule) in rules.indexes().iter().enumerate() {
            let kept = current.and_then(|row| {
                let same = row.rules.indexes().iter().position(|before| before == rule)?;
                Some(&row.indexes[same]).filter(|state| !matches!(state.stage, IndexStage::Failed(_)))
            });
            let stage = if is_empty { IndexStage::Ready } else { IndexStage::Building(None) };
            indexes.push(kept.cloned().unwrap_or_else(|| IndexState { id: index_id(revision, at), stage }));
        }
        let create_revision = current.map_or(revision, |row| row.create_revision);
        let version = 1 + current.map_or(0, |row| row.version);
        Ok(CollectionRow { create_revision, mod_revision: revision, version, rules, indexes })
    }

    /// Has those indexes cleared that are not there any more.
    fn drop_indexes(&mut self, before: &CollectionRow, after: Option<&CollectionRow>) -> Result<(), Fault> {
        for state in &before.indexes {
            let stays = after.is_some_and(|row| row.indexes.iter().any(|other| other.id == state.id));
            // One that failed is on the list already, or cleared.
            if !stays && !matches!(state.stage, IndexStage::Failed(_)) {
                self.overlay.insert_absent(index::dropped_key(state.id), Vec::new())?;
            }
        }
        Ok(())
    }

    /// Draws numbers from a sequence.
    pub(in crate::machine) fn numbers(&mut self, op: &NumbersOp, caller: Caller) -> Result<Outcome, Fault> {
        let last = self.last_number(&op.name)?;
        let drawn = last.checked_add(op.count.into());
        let drawn = match drawn {
            _ if !(1..=limits::NUMBERS_MAX).contains(&op.count) => {
                let (count, max) = (op.count, limits::NUMBERS_MAX);
                Err(Rejection::Unsupported(format!("{count} numbers at once; 1 to {max}")))
            }
            Some(drawn) => Ok(drawn),
            None => Err(Rejection::UsedUp),
        };
        match drawn {
            Err(rejection) => {
                self.record(AuditOp::Numbers, None, caller, AuditEffect::Refused((&rejection).into()));
                Ok(Outcome::Rejected(rejection))
            }
            Ok(drawn) => {
                self.take_revision()?;
                self.overlay.replace(&sequence::row_key(&op.name), Some(sequence::encode(drawn)))?;
                self.record(AuditOp::Numbers, None, caller, AuditEffect::Beside);
                Ok(Outcome::Numbers { first: last + 1, last: drawn })
            }
        }
    }
}

/// Whether a collection is as expected.
fn check_expect(expect: &Expect, current: Option<&CollectionRow>, needs_one: bool) -> Result<(), Rejection> {
    let Some(row) = current else {
        if needs_one {
            return Err(Rejection::NotFound);
        }
        check_absent(&expect.tokens)?;
        return if expect.presence == Presence::Present { Err(Rejection::NotFound) } else { Ok(()) };
    };
    check_present(expect, |token| token == row.mod_revision, || row.to_shown())
}

fn index_id(revision: Revision, at: usize) -> u64 {
    revision * IDS_PER_REVISION + at as u64
}

fn name_of(row_key: &[u8]) -> Result<CollectionName, Fault> {
    collection::decode_key(row_key).map_err(|error| Fault::row(row_key, error))
}

//! Guards: a write that is applied only while a token holds a lock.
//!
//! Owns the question. Never changes a row.

use crate::keyspace::lock_queue;
use crate::machine::Applier;
use crate::machine::stop::Tried;
use crate::machine::view::{Fault, Most, View};
use crate::mutants::Mutant;
use crate::types::{Guard, Rejection, Revision};

impl<V: View> Applier<'_, V> {
    /// Whether the token holds the lock; no guard holds always.
    pub(in crate::machine) fn check_guard(&self, guard: Option<&Guard>) -> Tried<()> {
        let Some(guard) = guard else { return Ok(()) };
        let is_held = self.overlay.peek(&lock_queue::holder_key(&guard.lock, guard.token))?.is_some();
        if is_held || Mutant::AnyTokenGuards.acts() {
            return Ok(());
        }
        let holder = self.newest_token(guard)?;
        Err(Rejection::GuardFailed { guard: Box::new(guard.clone()), holder }.into())
    }

    fn newest_token(&self, guard: &Guard) -> Result<Option<Revision>, Fault> {
        // Without a holder there are only the traces of those that were.
        if self.overlay.peek(&lock_queue::head_key(&guard.lock))?.is_none() {
            return Ok(None);
        }
        let (start, end) = lock_queue::holders_of(&guard.lock);
        let newest = self.overlay.scan_page(&start, &end, true, Most::rows(1))?;
        let token = |row_key: &[u8]| lock_queue::decode_holder(row_key).map_err(|error| Fault::row(row_key, error));
        newest.first().map(|(row_key, _)| token(row_key).map(|(_, token)| token)).transpose()
    }
}

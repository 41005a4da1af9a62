//! What applying a batch takes: the bytes that its commands read, write and answer, and what is too much.
//!
//! Owns the counting. What becomes of a command that finds everything taken is said where it is looked at.

use super::Applier;
use super::view::View;
use crate::limits;

/// What a batch has taken so far; the same however batches are grouped into apply calls, so what the overlay happens to
/// hold already does not count less.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    /// Bytes that were counted where they were read, written or answered.
    counted: usize,
    /// Bytes of the lines of audit.
    lines: usize,
    /// Whether only a half is for what is done at present.
    is_halved: bool,
    /// [`super::overlay::Overlay::written_bytes`] before the batch.
    written_before: usize,
}

impl<V: View> Applier<'_, V> {
    /// Begins to count what a batch takes.
    pub(super) fn begin_budget(&mut self) {
        self.budget = Budget { written_before: self.overlay.written_bytes(), ..Budget::default() };
    }

    /// Counts what a command reads or answers.
    pub(super) fn take_bytes(&mut self, count: usize) {
        self.budget.counted = self.budget.counted.saturating_add(count);
        self.taken_in_all = self.taken_in_all.saturating_add(count);
    }

    /// Counts a line of audit, in its encoded form.
    pub(super) fn take_line(&mut self, bytes: usize) {
        self.budget.lines = self.budget.lines.saturating_add(bytes);
        self.taken_in_all = self.taken_in_all.saturating_add(bytes);
    }

    /// What the batch has taken so far.
    pub(super) fn taken(&self) -> usize {
        let Budget { counted, lines, written_before, .. } = self.budget;
        counted.saturating_add(lines).saturating_add(self.overlay.written_bytes() - written_before)
    }

    /// From here on only a half is there, or all of it again.
    pub(super) fn halve_budget(&mut self, is_halved: bool) {
        self.budget.is_halved = is_halved;
    }

    /// Whether what is done at present has taken what is there for it.
    pub(super) fn has_taken_its_part(&self) -> bool {
        let parts = if self.budget.is_halved { 2 } else { 1 };
        self.taken() >= limits::BATCH_EFFECT_BYTES_MAX / parts
    }

    /// Whether the batch has reached its bound.
    pub(super) fn has_taken_all(&self) -> bool {
        self.taken() >= limits::BATCH_EFFECT_BYTES_MAX
    }
}

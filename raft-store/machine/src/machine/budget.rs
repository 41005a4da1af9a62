//! The budget of a batch: the bytes that its commands read, write and answer, and the steps that they take.
//!
//! Owns the counting. The code that looks at the budget decides what becomes of a command that finds it used up.

use super::Applier;
use super::view::View;
use crate::document::Steps;

/// What a batch has taken so far, beside the rows that it writes. What is at hand already does not count less: that may be from
/// a batch before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    /// Bytes that were counted where they were read, written or answered.
    counted: usize,
    /// Bytes of the lines of audit.
    lines: usize,
    /// Whether only a half is for what is done at present.
    is_halved: bool,
}

impl<V: View> Applier<'_, V> {
    /// Counts what a command reads or answers.
    pub(super) fn take_bytes(&mut self, count: usize) {
        self.batch.budget.counted = self.batch.budget.counted.saturating_add(count);
    }

    /// The steps of what is done at present, to go on counting. They count once they are [taken](Self::take_steps).
    pub(super) fn steps_so_far(&self) -> Steps {
        Steps::going_on(self.batch.steps, self.bounds.command_steps)
    }

    /// Counts steps that were taken, also for the batch.
    pub(super) fn take_steps(&mut self, steps: &Steps) {
        let before = Steps::going_on(self.batch.steps, self.bounds.command_steps);
        self.batch.steps = steps.taken();
        self.take_bytes(steps.bytes().saturating_sub(before.bytes()));
    }

    /// Counts steps that were taken without a bound, since what they are for cannot be refused.
    pub(super) fn count_steps(&mut self, taken: &Steps) {
        let steps = self.steps_so_far();
        steps.take(usize::try_from(taken.taken()).unwrap_or(usize::MAX));
        self.take_steps(&steps);
    }

    /// Begins something that has a bound of steps of its own.
    pub(super) fn begin_steps(&mut self) {
        self.batch.steps = 0;
    }

    /// Counts a line of audit, in its encoded form.
    pub(super) fn take_line(&mut self, bytes: usize) {
        self.batch.budget.lines = self.batch.budget.lines.saturating_add(bytes);
    }

    /// What the batch has taken so far.
    pub(super) fn taken(&self) -> usize {
        let Budget { counted, lines, .. } = self.batch.budget;
        counted.saturating_add(lines).saturating_add(self.overlay.written_bytes())
    }

    /// From here on only a half is there, or all of it again.
    pub(super) fn halve_budget(&mut self, is_halved: bool) {
        self.batch.budget.is_halved = is_halved;
    }

    /// Leaves at least half of the bound to the commands that follow, less the bytes written so far. One entry of the work that cannot be refused may
    /// take more than half, and steps are no memory.
    pub(super) fn leave_half(&mut self) {
        let beyond = self.taken().saturating_sub(self.bounds.batch_bytes / 2);
        let counted = &mut self.batch.budget.counted;
        *counted = counted.saturating_sub(beyond);
    }

    /// Whether what is done at present has taken what is there for it.
    pub(super) fn has_taken_its_part(&self) -> bool {
        let parts = if self.batch.budget.is_halved { 2 } else { 1 };
        self.taken() >= self.bounds.batch_bytes / parts
    }

    /// Whether the batch has room for these bytes.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.taken().saturating_add(bytes) <= self.bounds.batch_bytes
    }

    /// Whether the batch has reached its bound.
    pub(super) fn has_taken_all(&self) -> bool {
        self.taken() >= self.bounds.batch_bytes
    }
}

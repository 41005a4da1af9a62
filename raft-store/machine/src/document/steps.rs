//! Steps: what it takes to look at documents and to change them.
//!
//! Owns the count and what each kind of work counts as. Counts what there is to do, before it is done, and never how long it takes:
//! the same work counts the same on every node. A step stands for 5 ns, or some 50 instructions of a development build, in which
//! `scripts/instructions` counts what the dearest commands take: what each kind of work counts as follows from that.

use std::cell::Cell;

use bincode::{Decode, Encode};

use super::json::{Json, Object};
use super::number::Number;
use crate::limits;

/// Bytes of a text that are parsed in one step, beside the values in it.
const PARSED_BYTES: usize = 2;

/// Steps for each value, and for each name, in a text that is parsed: a place for it is made, and given back.
const PARSED_PART: usize = 4;

/// Steps for each of a document that is written as a text again, since it is patched.
const WRITTEN_PART: usize = 2;

/// Steps to hold an element of an array against another value.
const ELEMENT: usize = 2;

/// Elements and members that move up or down in one step.
const MOVED: usize = 4;

/// Bytes of a string that are searched in one step.
const SEARCHED_BYTES: usize = 4;

/// Bytes of strings that are compared in one step.
const COMPARED_BYTES: usize = 64;

/// Bytes of a number that are read in one step. Short ones are read while they are looked at.
const NUMBER_BYTES: usize = 8;

/// Steps to read a time, beside its bytes.
const TIME: usize = 16;

/// Work that was counted so far, and how much there may be.
#[derive(Debug)]
pub struct Steps {
    taken: Cell<u64>,
    most: u64,
}

/// Something takes more steps than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct TooDear {
    /// Most steps allowed.
    pub limit: u64,
    /// Steps up to where it was given up.
    pub actual: u64,
}

impl Steps {
    /// None so far, and at most `most`.
    pub fn up_to(most: u64) -> Self {
        Self::going_on(0, most)
    }

    /// `taken` so far, and at most `most` with those.
    pub fn going_on(taken: u64, most: u64) -> Self {
        Self { taken: Cell::new(taken), most }
    }

    /// Steps without a bound.
    pub fn unbounded() -> Self {
        Self::up_to(u64::MAX)
    }

    /// How many there were.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Bytes that they take of a bound. Steps that would have been too many were not done.
    pub fn bytes(&self) -> usize {
        let done = usize::try_from(self.taken().min(self.most)).unwrap_or(usize::MAX);
        done.saturating_mul(limits::STEP_BYTES)
    }

    /// Gives what was found, unless it took too much: then it means nothing.
    pub fn judge<T>(&self, found: T) -> Result<T, TooDear> {
        let (limit, actual) = (self.most, self.taken());
        if actual > limit { Err(TooDear { limit, actual }) } else { Ok(found) }
    }

    /// Counts the parsing of a text.
    pub fn take_parsing(&self, text: &[u8]) -> Result<(), TooDear> {
        self.take(text.len() / PARSED_BYTES + PARSED_PART * parts_at_most(text));
        self.judge(())
    }

    /// Counts that a document with this text is written again.
    pub(crate) fn take_writing(&self, text: &[u8]) -> Result<(), TooDear> {
        self.take(WRITTEN_PART * parts_at_most(text));
        self.judge(())
    }

    /// Counts that elements are held against a value, or against as many others.
    pub(super) fn take_elements(&self, count: usize) -> bool {
        self.take(count.saturating_mul(ELEMENT))
    }

    /// Counts work that is to be done. Whether it may be; once something may not, nothing may.
    pub(crate) fn take(&self, count: usize) -> bool {
        let taken = self.taken().saturating_add(count as u64);
        self.taken.set(taken);
        taken <= self.most
    }

    /// Counts a search in a text.
    pub(super) fn take_search(&self, text: &str, part: &str) -> bool {
        self.take((text.len() + part.len()) / SEARCHED_BYTES)
    }

    /// Counts a match of a text with a pattern, which looks at each character.
    pub(super) fn take_match(&self, text: &[u8], pattern: &str) -> bool {
        self.take(text.len() + pattern.len())
    }

    /// Counts the reading of a number.
    pub(super) fn take_number(&self, number: &Number<'_>) -> bool {
        self.take(number.as_str().len() / NUMBER_BYTES)
    }

    /// Counts the reading of a time.
    pub(super) fn take_time(&self, text: &str) -> bool {
        self.take(TIME + text.len() / NUMBER_BYTES)
    }

    /// Counts that a scalar is read as something else, which goes through its text a few times.
    pub(crate) fn take_reading(&self, value: &Json<'_>) -> bool {
        match value {
            Json::Number(number) => self.take(number.as_str().len() / PARSED_BYTES),
            Json::String(text) => self.take(text.len() / PARSED_BYTES),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => self.take(0),
        }
    }

    /// Counts the comparison of a scalar with another one.
    pub(crate) fn take_scalar(&self, value: &Json<'_>) -> bool {
        match value {
            Json::Number(number) => self.take_number(number),
            Json::String(text) => self.take(text.len() / COMPARED_BYTES),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => self.take(0),
        }
    }

    /// Counts that members are put in order by their names. Each name is compared about as often as there are levels, and long ones may
    /// differ at their end only.
    pub(super) fn take_sorting(&self, object: &Object<'_>) -> bool {
        let levels = levels(object.len());
        if !self.take(8 + object.len().saturating_mul(2 + 2 * levels)) {
            return false;
        }
        let bytes: usize = object.iter().map(|(name, _)| name.len()).sum();
        self.take(bytes.saturating_mul(1 + levels) / COMPARED_BYTES)
    }

    /// Counts a search for `names` among others that are in order: at each level two are compared.
    pub(super) fn take_looks(&self, names: usize, among: usize) -> bool {
        self.take(names.saturating_mul(1 + levels(among) * 3 / 2))
    }

    /// Counts elements that move up or down.
    pub(super) fn take_moving(&self, elements: usize) -> bool {
        self.take(elements / MOVED)
    }
}

/// About the values and names in a text, and never less: each but the outermost value stands behind one of these. Strings may have them, too,
/// which only makes it more.
fn parts_at_most(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count()
}

/// How often something is halved.
fn levels(count: usize) -> usize {
    count.checked_ilog2().unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_stays_so_and_tells_how_far_it_came() {
        let steps = Steps::going_on(3, 10);
        assert!(steps.take(7));
        assert_eq!(steps.judge("found"), Ok("found"));
        assert!(!steps.take(5));
        assert!(!steps.take(0));
        assert_eq!(steps.judge("found"), Err(TooDear { limit: 10, actual: 15 }));
    }

    #[test]
    fn a_text_counts_by_its_bytes_and_by_the_parts_in_it() {
        for (text, parts) in [("", 0), ("0", 0), (r#"{"a":[0,[1],{"b":2}]}"#, 8), (r#"{"a":"b, [c]"}"#, 4)] {
            let (parsing, writing) = (Steps::unbounded(), Steps::unbounded());
            parsing.take_parsing(text.as_bytes()).expect("there is no bound");
            writing.take_writing(text.as_bytes()).expect("there is no bound");
            let bytes = text.len() / PARSED_BYTES;
            let expected = [bytes + PARSED_PART * parts, WRITTEN_PART * parts].map(|steps| steps as u64);
            assert_eq!([parsing.taken(), writing.taken()], expected, "{text}");
        }
    }

    #[test]
    fn no_bound_is_never_reached() {
        let steps = Steps::unbounded();
        assert!(steps.take(usize::MAX) && steps.take(usize::MAX));
        assert_eq!(steps.judge(()), Ok(()));
    }
}

//! Typed extraction of query parameters, and the collection of faults.
//!
//! Owns the rules for all of them: each at most once but for conditions, none that the route does not know, all faults of a request in one
//! answer. Never knows what a parameter or field is for.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::RangeInclusive;

use quorate_api::{Applied, ErrorCode, InputFault};
use quorate_machine::limits::READ_FAULTS_MAX;
use quorate_node_core::gateway::failure::{Failure, over_limit};
use quorate_node_core::gateway::text;
use quorate_node_core::limits;

use crate::headers::decimal;

/// The one parameter that may be given many times: a condition.
const MANY: &str = "if";

/// The faults found so far, the first [`READ_FAULTS_MAX`] of them. What is read as a part of something larger notes its
/// faults as if it stood alone; the place of the part is kept here.
#[derive(Debug, Default)]
pub struct Faults {
    list: Vec<InputFault>,
    noted: usize,
    unknown: usize,
    too_large: usize,
    /// JSON pointer to the part that is being read.
    place: String,
}

impl Faults {
    /// Notes a fault.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.noted += 1;
        if self.is_full() {
            return;
        }
        let mut pointer = pointer.into();
        pointer.insert_str(0, &self.place);
        self.list.push(InputFault { pointer, detail: detail.into() });
    }

    /// Notes a field or parameter that does not exist.
    pub fn add_unknown(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.unknown += 1;
        self.add(pointer, detail);
    }

    /// Notes something over its limit.
    pub fn add_too_large(&mut self, pointer: impl Into<String>, what: &str, limit: usize, actual: usize) {
        self.too_large += 1;
        self.add(pointer, over_limit(what, limit as u64, Some(actual as u64)));
    }

    /// A number that has to be within bounds; `None` where it is not there, or a fault.
    pub fn within<T: PartialOrd + Copy + fmt::Display>(
        &mut self,
        pointer: &str,
        number: Option<T>,
        bounds: RangeInclusive<T>,
    ) -> Option<T> {
        let number = number?;
        if bounds.contains(&number) {
            return Some(number);
        }
        self.add(pointer, format!("must be a whole number from {} to {}", bounds.start(), bounds.end()));
        None
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.noted == 0
    }

    /// Whether no further fault would be told, so that nothing needs to be read any more.
    pub fn is_full(&self) -> bool {
        self.list.len() >= READ_FAULTS_MAX
    }

    /// Whether something is noted at this place.
    pub fn has(&self, pointer: &str) -> bool {
        self.list.iter().any(|fault| fault.pointer.strip_prefix(&self.place) == Some(pointer))
    }

    /// What is read from now on stands at this place of what is read now. Gives what [`Self::leave`] takes.
    pub fn enter(&mut self, place: fmt::Arguments<'_>) -> usize {
        let before = self.place.len();
        self.place.write_fmt(place).expect("a string takes all text");
        before
    }

    /// Back to where it was before [`Self::enter`].
    pub fn leave(&mut self, before: usize) {
        self.place.truncate(before);
    }

    /// What is complete if nothing was noted. Fails if anything was.
    pub fn complete<T>(self, value: Option<T>) -> Result<T, Failure> {
        self.check()?;
        value.ok_or_else(|| Failure::new(ErrorCode::Internal, Applied::No, "a fault of the request was not noted"))
    }

    /// Fails if anything was noted: as `unknown_field` or `too_large` where that is all that is wrong.
    pub fn check(self) -> Result<(), Failure> {
        let code = match self.noted {
            0 => return Ok(()),
            noted if noted == self.unknown => ErrorCode::UnknownField,
            noted if noted == self.too_large => ErrorCode::TooLarge,
            _ => ErrorCode::InvalidArgument,
        };
        Err(Failure::faults(self.list, code))
    }
}

/// A query string, taken apart. Handlers take what they know; [`Query::finish`] refuses the rest.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
    /// Faults so far; handlers add theirs.
    pub faults: Faults,
}

impl<'a> Query<'a> {
    /// Splits and decodes.
    pub fn parse(text: Option<&'a str>) -> Self {
        let mut query = Self::default();
        let items = || text.unwrap_or("").split('&').filter(|item| !item.is_empty());
        // Nothing is said of each of too many: the answer would be longer than the question.
        if items().nth(limits::QUERY_PARAMETERS_MAX).is_some() {
            let detail =
                format!("more than {} parameters; what is many goes into a body", limits::QUERY_PARAMETERS_MAX);
            query.faults.add("query", detail);
            return query;
        }
        items().for_each(|item| query.push(item));
        query
    }

    fn push(&mut self, item: &'a str) {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let Ok(name) = decode(name).and_then(text::as_text) else {
            self.faults.add("query", "a parameter name is not valid percent-encoded UTF-8");
            return;
        };
        match decode(value) {
            Err(why) => self.faults.add(format!("query:{name}"), why),
            Ok(_) if name != MANY && self.pairs.iter().any(|(known, _)| *known == name) => {
                self.faults.add(format!("query:{name}"), "given more than once");
            }
            Ok(value) => self.pairs.push((name, value)),
        }
    }

    /// Takes a parameter as text; notes a fault where it is none.
    pub fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let bytes = self.bytes(name)?;
        text::as_text(bytes).map_err(|why| self.faults.add(format!("query:{name}"), why)).ok()
    }

    /// Takes a parameter that may be any bytes: a name, or a part of one.
    pub fn bytes(&mut self, name: &str) -> Option<Cow<'a, [u8]>> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.remove(at).1)
    }

    /// Takes all of the parameter that may be there many times, in their order.
    pub fn conditions(&mut self) -> Vec<Cow<'a, str>> {
        std::iter::from_fn(|| self.text(MANY)).collect()
    }

    /// Takes `limit`, the most that a page has; notes a fault where it is out of range.
    pub fn page_limit(&mut self, default: usize) -> usize {
        let limit = self.number("limit").unwrap_or(default as u64);
        if limit == 0 || limit > limits::LIST_ENTRIES_MAX as u64 {
            self.faults.add("query:limit", format!("out of range; give 1 to {}", limits::LIST_ENTRIES_MAX));
        }
        limit.min(limits::LIST_ENTRIES_MAX as u64) as usize
    }

    /// Takes `cursor`; notes a fault where it is none of this route.
    pub fn cursor<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let after = read(&self.text("cursor")?);
        if after.is_none() {
            self.faults.add("query:cursor", "not a cursor of this route; give back the one of the page before");
        }
        after
    }

    /// Takes a number; notes a fault where it is none.
    pub fn number(&mut self, name: &'static str) -> Option<u64> {
        let text = self.text(name)?;
        let number = decimal(&text);
        if number.is_none() {
            self.faults.add(format!("query:{name}"), "not a decimal number");
        }
        number
    }

    /// Takes a switch: `?name`, `?name=true`, `?name=false`.
    pub fn flag(&mut self, name: &'static str) -> bool {
        match self.text(name).as_deref() {
            None | Some("false") => false,
            Some("" | "true") => true,
            Some(_) => {
                self.faults.add(format!("query:{name}"), "neither true nor false");
                false
            }
        }
    }

    /// Reports every fault.
    pub fn finish(self) -> Result<(), Failure> {
        self.faults.check()
    }

    /// Refuses the parameters that are none of these.
    pub fn refuse_others(mut self, known: &[String]) -> Result<(), Failure> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            if known.iter().any(|known| *known == name) {
                continue;
            }
            let name: String = name.chars().take(80).flat_map(char::escape_default).collect();
            let there_are = if known.is_empty() { "none".into() } else { known.join(", ") };
            let detail = format!("no such parameter here; there are: {there_are}");
            self.faults.add_unknown(format!("query:{name}"), detail);
        }
        self.faults.check()
    }
}

/// Decodes a part of a query string, `+` as a space.
fn decode(text: &str) -> Result<Cow<'_, [u8]>, String> {
    if text.contains('+') {
        return text::percent_decode_bytes(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()));
    }
    text::percent_decode_bytes(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_parameters_are_looked_at_than_a_request_may_have() {
        let many = |count: usize| (0..count).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
        let (most, text) = (many(limits::QUERY_PARAMETERS_MAX), many(7_000));
        assert_eq!(Query::parse(Some(&most)).pairs.len(), limits::QUERY_PARAMETERS_MAX);
        assert!(Query::parse(Some(&most)).finish().is_ok());
        let query = Query::parse(Some(&text));
        assert_eq!(query.pairs.len(), 0);
        let failure = format!("{:?}", query.finish().expect_err("too many"));
        assert!(failure.contains("more than 64 parameters") && !failure.contains("p1"), "{failure}");
    }

    #[test]
    fn values_are_decoded() {
        let mut query = Query::parse(Some("prefix=a%2Fb+c%2B&flag&start=%FF+&cursor=%FF"));
        assert_eq!(query.bytes("start").as_deref(), Some(&b"\xFF "[..]));
        assert_eq!(query.text("prefix").as_deref(), Some("a/b c+"));
        assert!(query.flag("flag"));
        assert!(query.faults.is_empty());
        assert_eq!(query.text("cursor"), None);
        let failure = format!("{:?}", query.finish().expect_err("no text"));
        assert!(failure.contains("query:cursor") && failure.contains("not UTF-8"), "{failure}");
    }
}

//! Typed extraction of query parameters, and the collection of faults.
//!
//! Owns the rules for all query strings: each parameter at most once, none that the route does not know, all faults of a
//! request in one answer. Never knows what a parameter is for.

use std::borrow::Cow;

use quorate_client::api::InputFault;

use super::error::Failure;
use super::headers::decimal;
use super::key;

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults {
    list: Vec<InputFault>,
    unknown: usize,
}

impl Faults {
    /// Notes a fault.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.list.push(InputFault { pointer: pointer.into(), detail: detail.into() });
    }

    /// Notes a field or parameter that does not exist.
    pub fn add_unknown(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.unknown += 1;
        self.add(pointer, detail);
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether something is noted at this place.
    pub fn has(&self, pointer: &str) -> bool {
        self.list.iter().any(|fault| fault.pointer == pointer)
    }

    /// Fails if anything was noted: as `unknown_field` where that is all that is wrong.
    pub fn check(self) -> Result<(), Failure> {
        if self.list.is_empty() {
            return Ok(());
        }
        let all_unknown = self.unknown == self.list.len();
        Err(Failure::faults(self.list, all_unknown))
    }
}

/// A query string, taken apart. Handlers take what they know; [`Query::finish`] refuses the rest.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Faults so far; handlers add theirs.
    pub faults: Faults,
}

impl<'a> Query<'a> {
    /// Splits and decodes.
    pub fn parse(text: Option<&'a str>) -> Self {
        let mut query = Self::default();
        for item in text.unwrap_or("").split('&').filter(|item| !item.is_empty()) {
            query.push(item);
        }
        query
    }

    fn push(&mut self, item: &'a str) {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let Ok(name) = decode(name) else {
            self.faults.add("query", "a parameter name is not valid percent-encoded UTF-8");
            return;
        };
        match decode(value) {
            Err(why) => self.faults.add(format!("query:{name}"), why),
            Ok(_) if self.pairs.iter().any(|(known, _)| *known == name) => {
                self.faults.add(format!("query:{name}"), "given more than once");
            }
            Ok(value) => self.pairs.push((name, value)),
        }
    }

    /// Takes a parameter as text.
    pub fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.swap_remove(at).1)
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

    /// Refuses what nobody took, and reports every fault.
    pub fn finish(mut self, known: &str) -> Result<(), Failure> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            let name: String = name.chars().take(80).flat_map(char::escape_default).collect();
            let detail = format!("no such parameter here; there are: {known}");
            self.faults.add_unknown(format!("query:{name}"), detail);
        }
        self.faults.check()
    }
}

/// Decodes a part of a query string, `+` as a space.
fn decode(text: &str) -> Result<Cow<'_, str>, String> {
    if text.contains('+') {
        return key::percent_decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()));
    }
    key::percent_decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_query_is_reported() {
        let mut query = Query::parse(Some("a=1&a=2&b=%zz&c=x&d=yes&e"));
        assert_eq!(query.number("a"), Some(1));
        assert_eq!(query.number("c"), None);
        assert!(!query.flag("d"));
        let failure = query.finish("a, b, c, d").expect_err("five faults");
        let text = format!("{failure:?}");
        for pointer in ["query:a", "query:b", "query:c", "query:d", "query:e"] {
            assert!(text.contains(pointer), "{pointer} is missing in {text}");
        }
    }

    #[test]
    fn values_are_decoded() {
        let mut query = Query::parse(Some("prefix=a%2Fb+c%2B&flag"));
        assert_eq!(query.text("prefix").as_deref(), Some("a/b c+"));
        assert!(query.flag("flag"));
        assert!(query.finish("").is_ok());
    }
}

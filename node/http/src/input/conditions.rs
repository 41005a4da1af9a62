//! `If-Match` and `If-None-Match` (RFC 9110, 13): what must hold of the entry, or what the caller already has.
//!
//! Owns what the tags of `etags` stand for: each is a cas. One that no entry can have is one that does not match: another server's,
//! one that a proxy has marked as compressed, in `If-Match` a weak one.

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use quorate_api::ErrorCode;
use quorate_machine::types::{ClusterMillis, Entry, Expect, Presence};
use quorate_node_core::gateway::failure::Failure;

use crate::headers::{decimal, fault};
use crate::input::etags::{self, Tag, Tags};

/// No entry has this token.
const NO_TOKEN: u64 = 0;
/// So much of a tag is shown to who sent it.
const TAG_SHOWN_CHARS: usize = 40;

/// What the headers of a write ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    /// The condition on the current entry. `If-Match` requires one.
    pub expect: Expect,
    /// The words about a tag in `If-Match` that can match nothing.
    odd: Option<String>,
}

impl Precondition {
    /// Reads both headers. Given together, both have to hold (13.2.2).
    pub fn of(head: &Parts) -> Result<Self, Failure> {
        let Conditions { wanted, known, odd } = Conditions::of(head)?;
        let must_exist = wanted.is_some();
        let expect = match (wanted, known) {
            (None, None) => Expect::ANY,
            (Some(Versions::Any), None) => Expect::PRESENT,
            (Some(Versions::Of(list)), None) => one_of(list),
            (None, Some(Versions::Any)) => Expect::ABSENT,
            (None | Some(Versions::Any), Some(Versions::Of(list))) => none_of(list),
            // There is to be an entry, and there is to be none.
            (Some(_), Some(Versions::Any)) => one_of(Vec::new()),
            (Some(Versions::Of(list)), Some(Versions::Of(known))) => {
                one_of(list.into_iter().filter(|cas| !known.contains(cas)).collect())
            }
        };
        let expect = if must_exist { expect.and_present() } else { expect };
        Ok(Self { expect, odd })
    }

    /// What becomes of a write that was refused: 412 where a header asked for what is not so, whatever the code.
    pub fn failed(&self, failure: Failure) -> Failure {
        let failure = saying_too(failure, self.odd.as_deref());
        match failure.code() {
            ErrorCode::NotFound if self.expect.presence == Presence::Present => failure.of_precondition(),
            ErrorCode::AlreadyExists if self.expect == Expect::ABSENT => failure.of_precondition(),
            _ => failure,
        }
    }
}

fn none_of(list: Vec<u64>) -> Expect {
    // Also where no tag can match it is a condition, which some collections ask for.
    Expect::none_of(if list.is_empty() { vec![NO_TOKEN] } else { list })
}

fn one_of(list: Vec<u64>) -> Expect {
    match list[..] {
        [] => Expect::cas(NO_TOKEN),
        [cas] => Expect::cas(cas),
        _ => Expect::any_of(list),
    }
}

/// Adds what is to be said of a tag to the news that none matched.
fn saying_too(failure: Failure, odd: Option<&str>) -> Failure {
    match odd.filter(|_| failure.code() == ErrorCode::CasMismatch) {
        Some(odd) => {
            let detail = format!("{}; {odd}", failure.detail());
            failure.saying(detail)
        }
        None => failure,
    }
}

/// Some versions of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// Any (`*`).
    Any,
    /// Those with these tokens, each named once; none where no tag named can be one's. In what a reader knows 0 stands for `no entry`.
    Of(Vec<u64>),
}

impl Versions {
    /// Whether the entry is one of them. A locked one shows no token, so it is none.
    pub fn have(&self, entry: Option<&Entry>, clock: ClusterMillis) -> bool {
        match (self, entry) {
            (Self::Any, entry) => entry.is_some(),
            (Self::Of(list), None) => list.contains(&0),
            (Self::Of(list), Some(entry)) => entry.meta.cas_shown_at(clock).is_some_and(|cas| list.contains(&cas)),
        }
    }
}

/// The versions that both headers name: as such the conditions of a read.
#[derive(Debug, Default)]
pub struct Conditions {
    /// `If-Match`: which versions the caller wants.
    pub wanted: Option<Versions>,
    /// `If-None-Match`: which versions the caller has.
    pub known: Option<Versions>,
    /// The words about the first tag in `If-Match` that can match nothing.
    odd: Option<String>,
}

/// What follows from the conditions of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Show what there is.
    Show,
    /// The reader has it.
    NotModified,
    /// It is not what the reader wants.
    Failed,
}

impl Conditions {
    /// Those in the headers.
    pub fn of(head: &Parts) -> Result<Self, Failure> {
        let mut odd = None;
        let wanted = versions(head, &header::IF_MATCH, |tag| {
            odd.get_or_insert_with(|| why_never(tag));
        })?;
        // Here a tag that is no version of the entry is as good as none: nothing is refused over it.
        let known = versions(head, &header::IF_NONE_MATCH, |_| {})?;
        Ok(Self { wanted, known, odd })
    }

    /// The news that the entry is not what the reader wants, and why where no tag could match.
    pub fn failed(&self, failure: Failure) -> Failure {
        saying_too(failure, self.odd.as_deref())
    }

    /// Judges in the order of RFC 9110, 13.2.2. Conditions on an entry that does not exist are passed over (13.2.1): the
    /// answer is 404. Only who says that they know of none is told that this is still so.
    pub fn judge(&self, entry: Option<&Entry>, clock: ClusterMillis) -> Verdict {
        if entry.is_some() && self.wanted.as_ref().is_some_and(|wanted| !wanted.have(entry, clock)) {
            return Verdict::Failed;
        }
        let known = self.known.as_ref().is_some_and(|known| known.have(entry, clock));
        if known { Verdict::NotModified } else { Verdict::Show }
    }
}

/// Why a tag in `If-Match` never matches, and what would.
fn why_never(tag: Tag<'_>) -> String {
    let opaque: String = String::from_utf8_lossy(tag.opaque).chars().take(TAG_SHOWN_CHARS).collect();
    if tag.weak {
        format!(
            "W/\"{opaque}\" in If-Match is a weak tag, as a proxy that compresses answers makes it, and If-Match never takes a weak tag for equal; \
             send the cas of the entry in quotes"
        )
    } else {
        format!("\"{opaque}\" in If-Match is the tag of no entry here; send the cas of the entry in quotes")
    }
}

/// The versions that a header names; `None` without it. `odd` is told of each tag that can match nothing.
fn versions(head: &Parts, name: &HeaderName, mut odd: impl FnMut(Tag<'_>)) -> Result<Option<Versions>, Failure> {
    if !head.headers.contains_key(name) {
        return Ok(None);
    }
    let lines = head.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let tags = match etags::parse(lines).map_err(|why| fault(name, why.to_string()))? {
        Tags::Star => return Ok(Some(Versions::Any)),
        Tags::List(tags) => tags,
    };
    let mut list = Vec::with_capacity(tags.len());
    for tag in tags {
        match cas(name, tag) {
            Some(cas) if list.contains(&cas) => {}
            Some(cas) => list.push(cas),
            None => odd(tag),
        }
    }
    Ok(Some(Versions::Of(list)))
}

/// The token in a tag; `None` where it can match nothing. `If-Match` compares strongly, `If-None-Match` weakly (8.8.3.2).
fn cas(name: &HeaderName, tag: Tag<'_>) -> Option<u64> {
    let can_match = !tag.weak || *name != header::IF_MATCH;
    std::str::from_utf8(tag.opaque).ok().and_then(decimal).filter(|_| can_match)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::tests::head;

    #[test]
    fn a_condition_is_a_list_of_tags_or_a_star() {
        let given = |headers: &[(&str, &str)]| Precondition::of(&head(headers)).ok().map(|given| given.expect);
        let (is, no) = (|text| ("if-match", text), |text| ("if-none-match", text));
        let never = || Some(Expect::cas(NO_TOKEN).and_present());
        let present = |expect: Expect| Some(expect.and_present());
        for (headers, expect) in [
            (vec![], Some(Expect::ANY)),
            (vec![is("*")], Some(Expect::PRESENT)),
            (vec![no("*")], Some(Expect::ABSENT)),
            (vec![is("\"42\"")], present(Expect::cas(42))),
            (vec![is("\"42\", \"42\"")], present(Expect::cas(42))),
            (vec![is("\"1\""), is("\"2\"")], present(Expect::any_of(vec![1, 2]))),
            (vec![no("\"42\"")], Some(Expect::none_of(vec![42]))),
            (vec![no("W/\"4\",\"2\"")], Some(Expect::none_of(vec![4, 2]))),
            (vec![is("W/\"42\", \"7\"")], present(Expect::cas(7))),
            (vec![no("\"x\", \"4\"")], Some(Expect::none_of(vec![4]))),
            (vec![no("\"x\"")], Some(Expect::none_of(vec![NO_TOKEN]))),
            (vec![is("*"), no("*")], never()),
            (vec![is("\"1\""), no("*")], never()),
            (vec![is("*"), no("\"1\"")], present(Expect::none_of(vec![1]))),
            (vec![is("\"1\", \"2\", \"3\""), no("\"2\"")], present(Expect::any_of(vec![1, 3]))),
            (vec![is("\"1\""), no("\"1\"")], never()),
            (vec![is("\"1\""), no("\"x\"")], present(Expect::cas(1))),
            (vec![is("*"), no("\"x\"")], present(Expect::none_of(vec![NO_TOKEN]))),
        ] {
            assert_eq!(given(&headers), expect, "{headers:?}");
        }
        for unknown in ["\"\"", "\"x\"", "W/\"42\"", "\"42-gzip\"", "\"-1\"", "\"007\"", "\"18446744073709551616\""] {
            assert_eq!(given(&[is(unknown)]), never(), "{unknown}");
        }
        let said = |tags| Precondition::of(&head(&[is(tags)])).expect("well formed").odd.unwrap_or_default();
        assert!(said("\"7\", W/\"42\"").starts_with("W/\"42\" in If-Match is a weak tag"), "as it was sent");
        assert!(said("\"42-gzip\"").starts_with("\"42-gzip\" in If-Match is the tag of no entry"));
        assert_eq!((said("\"7\""), said("*")), (String::new(), String::new()));
        for bad in ["42", "\"", "", "*, \"1\"", "\"1\" \"2\""] {
            assert_eq!((given(&[is(bad)]), given(&[no(bad)])), (None, None), "{bad}");
        }
    }
}

//! `If-Match` and `If-None-Match` (RFC 9110): what must hold of the entry, or what the caller already has.
//!
//! Owns what the tags of `etags` stand for: each is a cas. A tag that no answer can have had is refused rather than never
//! matched, since whoever sends it has mixed something up.

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use quorate_store::types::{ClusterMillis, Entry, Expect};

use crate::gateway::failure::Failure;
use crate::http::input::etags::{self, Tag, Tags};
use crate::http::input::headers::{decimal, fault};

/// What a write expects of the entry as it is.
pub fn expected(head: &Parts) -> Result<Expect, Failure> {
    match (versions(head, &header::IF_MATCH)?, versions(head, &header::IF_NONE_MATCH)?) {
        (None, None) => Ok(Expect::Any),
        (Some(_), Some(_)) => {
            Err(fault(&header::IF_MATCH, "If-Match and If-None-Match cannot be given together; choose one"))
        }
        (Some(Versions::Any), None) => Ok(Expect::Present),
        (Some(Versions::Of(list)), None) => Ok(match list[..] {
            [cas] => Expect::Cas(cas),
            _ => Expect::AnyOf(list),
        }),
        (None, Some(Versions::Any)) => Ok(Expect::Absent),
        (None, Some(Versions::Of(list))) => Ok(Expect::NoneOf(list)),
    }
}

/// Some versions of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// Any (`*`).
    Any,
    /// Those with these tokens, each named once. In what a reader knows 0 stands for `no entry`.
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

/// The conditions of a read.
#[derive(Debug, Default)]
pub struct ReadCondition {
    /// `If-Match`: which versions the reader wants.
    pub wanted: Option<Versions>,
    /// `If-None-Match`: which versions the reader has.
    pub known: Option<Versions>,
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

impl ReadCondition {
    /// Those in the headers.
    pub fn of(head: &Parts) -> Result<Self, Failure> {
        Ok(Self { wanted: versions(head, &header::IF_MATCH)?, known: versions(head, &header::IF_NONE_MATCH)? })
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

/// The versions that a header names; `None` without it.
fn versions(head: &Parts, name: &HeaderName) -> Result<Option<Versions>, Failure> {
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
        let cas = cas(name, tag)?;
        if !list.contains(&cas) {
            list.push(cas);
        }
    }
    Ok(Some(Versions::Of(list)))
}

/// The token in a tag. `If-Match` compares strongly, so a weak tag could never match; `If-None-Match` compares weakly.
fn cas(name: &HeaderName, tag: Tag<'_>) -> Result<u64, Failure> {
    if tag.weak && *name == header::IF_MATCH {
        let why = "a weak tag never matches here; give the tag of an answer's ETag as it is, without W/";
        return Err(fault(name, why));
    }
    let cas = std::str::from_utf8(tag.opaque).ok().and_then(decimal);
    cas.ok_or_else(|| fault(name, "the cas in the tag is not a decimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::input::headers::tests::head;

    #[test]
    fn a_condition_is_a_list_of_quoted_decimals_or_a_star() {
        let given = |headers: &[(&str, &str)]| expected(&head(headers)).ok();
        assert_eq!(given(&[]), Some(Expect::Any));
        assert_eq!(given(&[("if-match", "*")]), Some(Expect::Present));
        assert_eq!(given(&[("if-none-match", "*")]), Some(Expect::Absent));
        assert_eq!(given(&[("if-match", "\"42\"")]), Some(Expect::Cas(42)));
        assert_eq!(given(&[("if-match", "\"42\", \"42\"")]), Some(Expect::Cas(42)));
        assert_eq!(given(&[("if-match", "\"1\""), ("if-match", "\"2\"")]), Some(Expect::AnyOf(vec![1, 2])));
        assert_eq!(given(&[("if-none-match", "\"42\"")]), Some(Expect::NoneOf(vec![42])));
        assert_eq!(given(&[("if-none-match", "W/\"4\",\"2\"")]), Some(Expect::NoneOf(vec![4, 2])));
        for bad in ["42", "\"\"", "\"x\"", "W/\"42\"", "\"-1\"", "\"007\"", "\"18446744073709551616\"", "\"", ""] {
            assert_eq!(given(&[("if-match", bad)]), None, "{bad}");
        }
        assert_eq!(given(&[("if-match", "*"), ("if-none-match", "*")]), None);
    }

    #[test]
    fn a_read_is_judged_in_the_order_of_the_standard() {
        use quorate_store::types::{ContentKind, EntryMeta, Value};
        let meta = EntryMeta {
            create_revision: 2,
            mod_revision: 7,
            version: 2,
            cas: 7,
            expires_at: None,
            locked_until: Some(50),
            session: None,
        };
        let entry = Entry { meta, value: Value { kind: ContentKind::Json, data: b"1".to_vec() } };
        let other = "\"3\",\"4\"";
        for (wanted, known, there, missing) in [
            (None, None, Verdict::Show, Verdict::Show),
            (Some("*"), None, Verdict::Show, Verdict::Show),
            (Some("\"3\",\"7\""), None, Verdict::Show, Verdict::Show),
            (Some(other), None, Verdict::Failed, Verdict::Show),
            (Some(other), Some("*"), Verdict::Failed, Verdict::Show),
            (Some("*"), Some("\"7\""), Verdict::NotModified, Verdict::Show),
            (Some("\"7\""), Some(other), Verdict::Show, Verdict::Show),
            (None, Some("*"), Verdict::NotModified, Verdict::Show),
            (None, Some("\"3\", W/\"7\""), Verdict::NotModified, Verdict::Show),
            (None, Some(other), Verdict::Show, Verdict::Show),
            (None, Some("\"0\""), Verdict::Show, Verdict::NotModified),
        ] {
            let headers = [wanted.map(|text| ("if-match", text)), known.map(|text| ("if-none-match", text))];
            let headers: Vec<_> = headers.into_iter().flatten().collect();
            let condition = ReadCondition::of(&head(&headers)).expect("well formed");
            assert_eq!((condition.judge(Some(&entry), 50), condition.judge(None, 50)), (there, missing), "{headers:?}");
        }
        // A locked entry shows no token: whoever has its last version is told of the lock.
        let known = ReadCondition::of(&head(&[("if-none-match", "\"7\"")])).expect("valid");
        assert_eq!(
            (known.judge(Some(&entry), 49), known.judge(Some(&entry), 50)),
            (Verdict::Show, Verdict::NotModified)
        );
    }
}

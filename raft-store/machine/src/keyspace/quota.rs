//! Rows of quotas: `0xB0`, kind, name → [`QuotaRow`]; `0xB1`, kind, name → [`PrincipalUse`] or [`PrefixUse`]: what is counted; `0xB2`
//! → [`QuotaState`].
//!
//! Owns their row keys. Never decides what counts.

use super::{after_prefix, entry, family, named, strip_family};
use crate::codec::CodecError;
use crate::types::QuotaSubject;
#[cfg(doc)]
use crate::types::{PrefixUse, PrincipalUse, QuotaRow, QuotaState};

/// The row key of what holds for all of them.
pub const STATE_KEY: &[u8] = &[family::QUOTA_STATE];

/// Kinds of subjects. On disk, and never change their meaning.
const DEFAULT: u8 = 1;
const PRINCIPAL: u8 = 2;
const PREFIX: u8 = 3;

fn key_of(family: u8, subject: &QuotaSubject) -> Vec<u8> {
    let (kind, name) = match subject {
        QuotaSubject::Default => (DEFAULT, &b""[..]),
        QuotaSubject::Principal(name) => (PRINCIPAL, name.as_bytes()),
        QuotaSubject::Prefix(prefix) => (PREFIX, prefix.as_slice()),
    };
    [&[family, kind][..], name].concat()
}

fn subject_of(row_key: &[u8], family: u8) -> Result<QuotaSubject, CodecError> {
    match strip_family(row_key, family)? {
        [DEFAULT] => Ok(QuotaSubject::Default),
        [PRINCIPAL, name @ ..] => match std::str::from_utf8(name) {
            Ok(name) => Ok(QuotaSubject::Principal(name.to_owned())),
            Err(error) => Err(CodecError::Malformed(format!("a principal: {error}"))),
        },
        [PREFIX, prefix @ ..] => Ok(QuotaSubject::Prefix(prefix.to_vec())),
        other => Err(CodecError::Malformed(format!("a quota of nobody: {}", other.escape_ascii()))),
    }
}

/// The row key of a quota.
pub fn row_key(subject: &QuotaSubject) -> Vec<u8> {
    key_of(family::QUOTA, subject)
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<QuotaSubject, CodecError> {
    subject_of(row_key, family::QUOTA)
}

/// The row key of what is counted for a subject.
pub fn use_key(subject: &QuotaSubject) -> Vec<u8> {
    key_of(family::QUOTA_USE, subject)
}

/// Reverses [`use_key`].
pub fn decode_use_key(row_key: &[u8]) -> Result<QuotaSubject, CodecError> {
    subject_of(row_key, family::QUOTA_USE)
}

/// The bounds `[start, end)` of the quotas of principals.
pub fn principals() -> (Vec<u8>, Vec<u8>) {
    (vec![family::QUOTA, PRINCIPAL], vec![family::QUOTA, PRINCIPAL + 1])
}

/// The bounds `[start, end)` of what principals have.
pub fn uses_of_principals() -> (Vec<u8>, Vec<u8>) {
    (vec![family::QUOTA_USE, PRINCIPAL], vec![family::QUOTA_USE, PRINCIPAL + 1])
}

/// The bounds `[start, end)` of the quotas of all prefixes that begin with one.
pub fn prefixes_within(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let start = key_of(family::QUOTA, &QuotaSubject::Prefix(prefix.to_vec()));
    let end = after_prefix(&start).expect("the family is not the last");
    (start, end)
}

/// The bounds `[start, end)` of the quotas of prefixes up to a name, with it.
pub fn prefixes_up_to(name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (start, _) = prefixes_within(b"");
    let mut end = key_of(family::QUOTA, &QuotaSubject::Prefix(name.to_vec()));
    end.push(0);
    (start, end)
}

/// The bounds `[start, end)` of what is counted for prefixes.
pub fn uses_of_prefixes() -> (Vec<u8>, Vec<u8>) {
    (vec![family::QUOTA_USE, PREFIX], vec![family::QUOTA_USE, PREFIX + 1])
}

/// The bounds `[start, end)` of the rows that count for a prefix, in order: those of entries, then those of tasks.
pub fn counted_rows(prefix: &[u8]) -> [(Vec<u8>, Vec<u8>); 2] {
    let within = |start: Vec<u8>| {
        let end = after_prefix(&start).expect("the family is not the last");
        (start, end)
    };
    [within(entry::row_key(prefix)), within(named::open_start(family::TASK, prefix))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::task;
    use crate::types::{QueueName, TaskId};

    #[test]
    fn row_keys_come_back() {
        for subject in [
            QuotaSubject::Default,
            QuotaSubject::Principal("ann".into()),
            QuotaSubject::Prefix(b"a\0".to_vec()),
            QuotaSubject::Prefix(vec![0xff]),
        ] {
            assert_eq!(decode_key(&row_key(&subject)), Ok(subject.clone()));
            assert_eq!(decode_use_key(&use_key(&subject)), Ok(subject.clone()));
            assert!(decode_key(&use_key(&subject)).is_err());
        }
        assert!(decode_key(&[family::QUOTA]).is_err() && decode_key(&[family::QUOTA, 9]).is_err());
        assert!(
            decode_key(&[family::QUOTA, PRINCIPAL, 0xff]).is_err() && decode_key(&[family::QUOTA, DEFAULT, 1]).is_err()
        );
    }

    #[test]
    fn the_rows_that_count_are_those_of_names_with_the_prefix() {
        let id = TaskId::new("t").expect("an id");
        for prefix in [&b"a"[..], b"a\0", b"ab", b"b", b"a\xff", b"\0"] {
            let [(start, end), (first, last)] = counted_rows(prefix);
            for name in ["a", "a\0", "a\0b", "ab", "abc", "b", "\0", "\0\0", "c"] {
                let counts = name.as_bytes().starts_with(prefix);
                let row = entry::row_key(name.as_bytes());
                assert_eq!(start <= row && row < end, counts, "{name:?} in {prefix:?}");
                let row = task::row_key(&QueueName::new(name).expect("a name"), &id);
                assert_eq!(first <= row && row < last, counts, "the queue {name:?} in {prefix:?}");
            }
        }
    }

    #[test]
    fn the_last_quota_up_to_a_name_is_the_longest_around_it_or_begins_like_that() {
        let (start, end) = prefixes_up_to(b"ab");
        for (prefix, is_within) in [(&b"a"[..], true), (b"ab", true), (b"aa", true), (b"ab\0", false), (b"b", false)] {
            let row = row_key(&QuotaSubject::Prefix(prefix.to_vec()));
            assert_eq!(start <= row && row < end, is_within, "{prefix:?}");
        }
    }
}

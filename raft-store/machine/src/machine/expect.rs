//! The judgement of what a write expects of a version: of an entry, or of the rules of a collection.
//!
//! Owns the order of the two conditions, tokens before presence, and their refusals. Reads no row: callers know the version.

use crate::types::{Expect, Presence, Rejection, Shown, Tokens};

/// Judges a version that is there. `has_token` tells its tokens, and `shown` shows it in a refusal.
pub(super) fn check_present(
    expect: &Expect,
    has_token: impl Fn(u64) -> bool,
    shown: impl FnOnce() -> Shown,
) -> Result<(), Rejection> {
    let has_one = |tokens: &[u64]| tokens.iter().any(|token| has_token(*token));
    match &expect.tokens {
        Tokens::One(token) if !has_token(*token) => {
            Err(Rejection::CasMismatch { expected: Some(*token), current: Some(shown()) })
        }
        Tokens::AnyOf(tokens) if !has_one(tokens) => {
            Err(Rejection::CasMismatch { expected: None, current: Some(shown()) })
        }
        Tokens::NoneOf(tokens) if has_one(tokens) => Err(Rejection::CasListed { current: shown() }),
        _ if expect.presence == Presence::Absent => Err(Rejection::AlreadyExists { current: shown() }),
        _ => Ok(()),
    }
}

/// Judges tokens where no version is there.
pub(super) fn check_absent(tokens: &Tokens) -> Result<(), Rejection> {
    match tokens {
        Tokens::One(token) => Err(Rejection::CasMismatch { expected: Some(*token), current: None }),
        Tokens::AnyOf(_) => Err(Rejection::CasMismatch { expected: None, current: None }),
        Tokens::Any | Tokens::NoneOf(_) => Ok(()),
    }
}

//! The message with which a node ends a stream of events.
//!
//! Owns which ends are for good. What to do with the others, and with those that this version does not know, is to go on elsewhere.

use serde::Deserialize;

use crate::api::{Applied, ErrorCode, Problem, WatchEndCode};
use crate::call::error::Error;

/// Fields as in [`crate::api::WatchEnd`], of which a code of a newer node is left out.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamEnd {
    code: serde_json::Value,
    detail: String,
    #[serde(default, with = "quorate_api::decimal::optional")]
    oldest_revision: Option<u64>,
}

impl StreamEnd {
    /// Why it makes no sense to go on; `None` where another node may serve it.
    pub fn into_error(self) -> Option<Error> {
        let code = match serde_json::from_value(self.code).ok()? {
            WatchEndCode::Compacted => ErrorCode::Compacted,
            WatchEndCode::PermissionDenied => ErrorCode::PermissionDenied,
            WatchEndCode::Unauthenticated => ErrorCode::Unauthenticated,
            WatchEndCode::TooDear => ErrorCode::TooDear,
            _ => return None,
        };
        let mut problem = Box::new(Problem::new(code, Applied::No, self.detail));
        problem.oldest_revision = self.oldest_revision;
        Some(Error::Rejected(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Option<Error> {
        serde_json::from_str::<StreamEnd>(text).expect("an end").into_error()
    }

    #[test]
    fn only_ends_that_are_for_good_are_errors() {
        let compacted = end(r#"{"code":"compacted","detail":"d","oldest_revision":"7"}"#).expect("for good");
        assert_eq!(compacted.problem().and_then(|problem| problem.oldest_revision), Some(7));
        assert_eq!(
            end(r#"{"code":"unauthenticated","detail":"d"}"#).and_then(|e| e.code()),
            Some(ErrorCode::Unauthenticated)
        );
        assert_eq!(end(r#"{"code":"too_dear","detail":"d"}"#).and_then(|e| e.code()), Some(ErrorCode::TooDear));
        for text in [
            r#"{"code":"stopping","detail":"d"}"#,
            r#"{"code":"too_many_requests","detail":"d","revision":"7"}"#,
            r#"{"code":"tea_time","detail":"d","until":5}"#,
        ] {
            assert!(end(text).is_none(), "{text}");
        }
    }
}

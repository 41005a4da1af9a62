//! Term and leader as values of headers.
//!
//! Owns values that change with elections only, so that no answer renders them anew. Never asks who leads.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use http::HeaderValue;

use crate::backend::LeaderHint;

/// Term and leader as header values. They change with elections only, and every answer carries them.
#[derive(Debug, Default)]
pub struct LeaderHeaders(ArcSwapOption<(LeaderHint, HeaderValue, HeaderValue)>);

impl LeaderHeaders {
    /// Term and leader, `none` where there is none.
    pub fn values(&self, hint: LeaderHint) -> (HeaderValue, HeaderValue) {
        if let Some(cached) = &*self.0.load()
            && cached.0 == hint
        {
            return (cached.1.clone(), cached.2.clone());
        }
        let term = HeaderValue::from(hint.term);
        let leader = hint.leader_id.map_or(HeaderValue::from_static("none"), HeaderValue::from);
        self.0.store(Some(Arc::new((hint, term.clone(), leader.clone()))));
        (term, leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_values_follow_the_leadership() {
        let cache = LeaderHeaders::default();
        for (term, leader_id, leader) in [(1, None, "none"), (2, Some(3), "3"), (2, Some(3), "3"), (4, Some(3), "3")] {
            let (shown_term, shown_leader) = cache.values(LeaderHint { term, leader_id });
            assert_eq!((shown_term, shown_leader), (term.into(), HeaderValue::from_static(leader)));
        }
    }
}

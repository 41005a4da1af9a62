//! How much the cluster may hold.
//!
//! Owns the judgement over the size of the state, which is exact and the same on every node at one log index. Never deletes
//! anything: what grows the state is refused before it is proposed, and taken again as soon as there is less of it.

use quorate_machine::machine::Sizes;

use crate::peer::message::Lack;

/// Percent of the quota from which on a node warns.
const WARN_PERCENT: u64 = 80;

/// The bound. Each node goes by its own; a write meets that of the node it comes to and that of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of what is there now, without history; 0 for no bound.
    pub bytes_max: u64,
}

impl Quota {
    /// Why nothing may grow, if so.
    pub fn lack(self, sizes: Sizes) -> Option<Lack> {
        let is_over = self.bytes_max > 0 && sizes.live_bytes >= self.bytes_max;
        is_over.then_some(Lack::Quota { used: sizes.live_bytes, quota: self.bytes_max })
    }

    /// What an operator should know before that.
    pub fn warning(self, sizes: Sizes) -> Option<String> {
        let used = u128::from(sizes.live_bytes) * 100 / u128::from(self.bytes_max.max(1));
        let is_close = self.bytes_max > 0 && used >= u128::from(WARN_PERCENT);
        is_close.then(|| {
            format!(
                "{} of {} bytes of the quota are used ({used} %); from 100 % on only what frees room is taken",
                sizes.live_bytes, self.bytes_max
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(live_bytes: u64) -> Sizes {
        Sizes { entries: 1, live_bytes, history_bytes: u64::MAX }
    }

    #[test]
    fn it_warns_at_eighty_percent_and_refuses_at_a_hundred() {
        let quota = Quota { bytes_max: 1_000 };
        assert_eq!((quota.lack(sizes(799)), quota.warning(sizes(799))), (None, None));
        assert!(quota.warning(sizes(800)).unwrap().contains("800 of 1000 bytes"));
        assert_eq!(quota.lack(sizes(999)), None);
        assert_eq!(quota.lack(sizes(1_000)), Some(Lack::Quota { used: 1_000, quota: 1_000 }));
        let none = Quota { bytes_max: 0 };
        assert_eq!((none.lack(sizes(u64::MAX)), none.warning(sizes(u64::MAX))), (None, None));
    }
}

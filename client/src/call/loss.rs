//! Why a session is lost, in errors and at its handle.

use std::fmt;

/// Why a session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// No renewal was confirmed in time: the cluster may have ended it.
    NotRenewed,
    /// The cluster says that it is over.
    Expired,
    /// It was ended here.
    Ended,
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotRenewed => "no renewal was confirmed in time",
            Self::Expired => "the cluster says that it is over",
            Self::Ended => "it was ended",
        })
    }
}

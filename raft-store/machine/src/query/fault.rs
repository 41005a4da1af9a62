//! A fault of a node's own state, as the error of a query.
//!
//! Owns the type. Never decides what becomes of the node.

use std::sync::Arc;
use std::{fmt, io};

use crate::codec::CodecError;
use crate::machine::Fault;

/// A fault of this node's own disk or state: damage, I/O. Never something a client caused. The node must stop. It shows its cause too.
#[derive(Debug, Clone)]
pub struct StateFault {
    /// The finding, or the attempt.
    detail: Option<String>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl StateFault {
    /// Something was found that cannot be.
    pub fn new(detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), cause: None }
    }

    /// Something was tried, and failed for this cause.
    pub fn because(detail: impl Into<String>, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { detail: Some(detail.into()), cause: Some(Arc::new(cause)) }
    }

    /// Something failed for this cause.
    pub fn caused_by(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { detail: None, cause: Some(Arc::new(cause)) }
    }
}

impl fmt::Display for StateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.detail, &self.cause) {
            (Some(detail), Some(cause)) => write!(f, "{detail}: {cause}"),
            (Some(detail), None) => f.write_str(detail),
            (None, Some(cause)) => write!(f, "{cause}"),
            (None, None) => f.write_str("a fault of the state"),
        }
    }
}

impl std::error::Error for StateFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn std::error::Error + 'static))
    }
}

impl From<Fault> for StateFault {
    fn from(fault: Fault) -> Self {
        Self::caused_by(fault)
    }
}

impl From<io::Error> for StateFault {
    fn from(error: io::Error) -> Self {
        Self::caused_by(error)
    }
}

impl From<CodecError> for StateFault {
    fn from(error: CodecError) -> Self {
        Self::caused_by(error)
    }
}

impl From<StateFault> for io::Error {
    fn from(fault: StateFault) -> Self {
        io::Error::other(fault)
    }
}

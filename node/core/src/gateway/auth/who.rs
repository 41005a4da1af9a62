//! Who asks.
//!
//! Owns no decision: whether the proof still holds is asked each time.

use std::sync::Arc;

use quorate_machine::types::ROOT;

use crate::gateway::auth::proof::Proof;

/// Who asks.
#[derive(Debug, Clone)]
pub enum Who {
    /// Anybody: authentication is off.
    Anybody,
    /// Nobody who said who they are. Served where no more is told than whether the node lives.
    Nobody,
    /// Somebody who proved to be who they are.
    Somebody(Arc<Somebody>),
}

/// Somebody who proved to be who they are. Whether the proof still holds is asked each time.
#[derive(Debug)]
pub struct Somebody {
    /// The name of the user.
    pub name: Arc<str>,
    /// What proves it.
    pub proof: Proof,
}

impl Somebody {
    /// The name of the user.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Who {
    /// Whether nothing is kept from them, whatever the rules are.
    pub fn may_see_all(&self) -> bool {
        match self {
            Self::Anybody => true,
            Self::Nobody => false,
            Self::Somebody(somebody) => *somebody.name == *ROOT,
        }
    }

    /// The name of the user; empty where there is none.
    pub fn name(&self) -> &str {
        match self {
            Self::Anybody | Self::Nobody => "",
            Self::Somebody(somebody) => &somebody.name,
        }
    }
}

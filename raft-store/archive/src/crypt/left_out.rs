//! In place of age's, in a build without it: there is none of either.

use std::fmt;
use std::str::FromStr;

/// For whom something would be encrypted.
#[derive(Clone)]
pub(super) enum Recipient {}

/// A key that would open it.
#[derive(Clone)]
pub(super) enum Identity {}

impl FromStr for Recipient {
    type Err = &'static str;

    fn from_str(_text: &str) -> Result<Self, Self::Err> {
        Err("there is no age here")
    }
}

impl FromStr for Identity {
    type Err = &'static str;

    fn from_str(_text: &str) -> Result<Self, Self::Err> {
        Err("there is no age here")
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Identity {
    pub(super) fn to_public(&self) -> Recipient {
        match *self {}
    }
}

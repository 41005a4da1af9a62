//! How fresh an answer has to be, and how long a request waits for something new.
//!
//! Owns the rules of `consistency`, `min_revision` and `wait_ms`. Never asks how fresh the node is.

use std::time::Duration;

use quorate_machine::types::Revision;
use quorate_node_core::backend::Consistency;
use quorate_node_core::limits;

use crate::input::extract::{Faults, Query};

/// `consistency` and `min_revision`.
pub fn consistency(query: &mut Query<'_>) -> Consistency {
    let wanted = query.text("consistency");
    let min_revision = query.number("min_revision");
    consistency_of(wanted.as_deref(), min_revision, "query:", &mut query.faults)
}

/// Reads the consistency from two fields at this `place`.
pub fn consistency_of(
    wanted: Option<&str>,
    min_revision: Option<Revision>,
    place: &str,
    faults: &mut Faults,
) -> Consistency {
    match (wanted, min_revision) {
        (None, None) => Consistency::Linearizable,
        (None | Some("local"), Some(revision)) => Consistency::AtLeast(revision),
        (Some("linearizable"), None) => Consistency::Linearizable,
        (Some("local"), None) => Consistency::Local,
        (Some("linearizable"), Some(_)) => {
            faults.add(format!("{place}min_revision"), "a linearizable read needs none; leave out one of the two");
            Consistency::Linearizable
        }
        (Some(_), _) => {
            faults.add(format!("{place}consistency"), "neither `linearizable` nor `local`");
            Consistency::Linearizable
        }
    }
}

/// `wait_ms`.
pub fn wait(query: &mut Query<'_>) -> Option<Duration> {
    let millis = query.number("wait_ms")?;
    if millis > limits::WAIT_MS_MAX {
        query.faults.add("query:wait_ms", format!("more than the limit of {}", limits::WAIT_MS_MAX));
    }
    Some(Duration::from_millis(millis))
}

//! Hostile clients among honest ones: what they do, and what honest clients lose by it.
//!
//! Owns the kinds of attacks, the honest clients and the measure. Each attack is a thousand connections, or fewer, that do the same until
//! they are told to stop; they come from loopback addresses other than those of honest clients. Never leaves loopback.

pub mod attacks;
pub mod frames;
pub mod honest;
pub mod measure;
mod user;

pub use attacks::{ATTACKS, Attack, NICENESS, Target, source};
pub use honest::{FROM, Honest};
pub use measure::{Broken, Measure, Measured};
pub use user::create_user;

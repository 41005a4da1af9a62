//! A generator of attacks: everything that can be asked for, by each protocol, in each shape, by each kind of caller.
//!
//! Owns what the combinations are, how each is carried out, and the account of those that were met. An attack that nobody has thought of is
//! made by it as those that somebody has: [`crate::abuse::attacks`] lists these.

mod accepted;
mod combination;
mod coverage;
mod dear;
mod field;
mod gauges;
mod hostile;
mod large;
mod notes;
mod operations;
mod places;
mod selection;
mod trial;
mod wave;

pub use combination::{Caller, Combination, Shape, Sources};
pub use coverage::Coverage;
pub use field::{Amount, Field};
pub use gauges::{Gauges, Rest};
pub use hostile::Size;
pub use notes::Notes;
pub use operations::{Operation, names, operations};
pub use selection::{GENERATED, Selection, begin_of};
pub use trial::{Turn, run};
pub use wave::{Underway, Wave, all, some};

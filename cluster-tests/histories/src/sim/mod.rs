//! A small store in memory that can be broken in many ways, and simulated clients that use it.
//!
//! Owns showing that the checkers work: they accept the sound store whatever the seed, and catch each mutant that they are for.
//! Shares nothing with the product but the contract. Time is virtual and all choices come from the seed, so a run repeats exactly.

mod coordination;
mod mutant;
mod run;
mod store;

pub use mutant::Mutant;
pub use run::simulate;

//! Names of what attacks find in a cluster.
//!
//! Owns these names. Never writes anything there.

/// How all names begin that tenants have: those that requests of the crossing test are about, and these.
pub const PREFIX: &str = "x";
/// Entries with values that are long. No request of the crossing test changes them.
pub const LARGE: &str = "xlarge/";
/// A document that is one long list, for conditions and patches. Searches below `x/` do not come across it.
pub const LIST: &str = "xlist";
/// A lock that somebody holds all the time.
pub const HELD: &str = "x-held";

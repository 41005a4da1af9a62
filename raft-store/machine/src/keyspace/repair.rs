//! The row of the healing that follows the raise to feature level 2: `0xA8` → the first session whose bytes are still to be
//! counted anew, as an encoded [`crate::types::SessionId`].
//!
//! Owns its key. Never decides what is healed: that is the machine's.

use super::family;

/// The row key.
pub const ROW_KEY: &[u8] = &[family::REPAIR];

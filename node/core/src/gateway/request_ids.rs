//! Ids of requests whose callers gave none.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::millis::wall_now;

/// Unix milliseconds (48 bits) and 72 random bits in 20 characters: stored with each write, so short. The time in front
/// puts the rows of one moment next to each other in the request table; nothing depends on it being right.
pub fn fresh_id() -> String {
    let mut bytes: [u8; 15] = rand::random();
    bytes[..6].copy_from_slice(&wall_now().to_be_bytes()[2..]);
    let mut id = String::with_capacity(20);
    URL_SAFE_NO_PAD.encode_string(bytes, &mut id);
    id
}

/// A short id for a request that keeps nothing under it: unique in this process, and most likely elsewhere.
pub fn trace_id() -> String {
    static PROCESS: LazyLock<[u8; 7]> = LazyLock::new(rand::random);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0u8; 12];
    bytes[..7].copy_from_slice(&*PROCESS);
    bytes[7..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes()[3..]);
    let mut id = String::with_capacity(16);
    URL_SAFE_NO_PAD.encode_string(bytes, &mut id);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_are_short_valid_and_different() {
        for (make, length) in [(fresh_id as fn() -> String, 20), (trace_id, 16)] {
            let (one, other) = (make(), make());
            assert!(one.len() == length && one.bytes().all(|byte| byte.is_ascii_graphic()), "{one}");
            assert_ne!(one, other);
        }
    }
}

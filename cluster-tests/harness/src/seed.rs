//! The seed behind every random choice of a test.
//!
//! Owns printing it and taking it back. Never hides one: a run without a printed seed has no random choice.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// A generator from the seed in `QUORATE_SEED`, else from a new one. Prints the line that repeats the run.
pub fn seeded() -> StdRng {
    let seed = match std::env::var("QUORATE_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("QUORATE_SEED is `{text}`; give a number")),
        Err(_) => rand::random::<u64>(),
    };
    println!("random choices: repeat with QUORATE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

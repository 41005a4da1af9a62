//! Medians and their display.
//!
//! Owns nothing but arithmetic.

use std::time::Duration;

/// The median; of an even number the upper one of the middle two, so that it is never flattered.
///
/// # Panics
/// Without values.
pub fn median(values: &[Duration]) -> Duration {
    assert!(!values.is_empty(), "no values, no median");
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Whether this harness, and by that the nodes it starts, was built without optimisation.
pub const DEBUG_BUILD: bool = cfg!(debug_assertions);

/// "12.3 ms, 14.0 ms, ..." in the order given.
pub fn in_millis(values: &[Duration]) -> String {
    let each: Vec<_> = values.iter().map(|value| format!("{:.1} ms", value.as_secs_f64() * 1e3)).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_upper_middle() {
        let values = [4, 1, 3, 2].map(Duration::from_millis);
        assert_eq!(median(&values), Duration::from_millis(3));
        assert_eq!(median(&values[..3]), Duration::from_millis(3));
    }
}

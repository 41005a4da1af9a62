//! How much memory a parser may take.
//!
//! Owns the judgement. Where a program does not install [`Counting`] everything passes: libFuzzer has limits of its own.

pub use quorate_crossing::memory::Counting;
use quorate_crossing::memory::most_during;

/// Does the work, and panics where this thread held more than so many bytes more at any moment of it.
pub fn within<T>(bytes_max: usize, what: &str, work: impl FnOnce() -> T) -> T {
    let (done, most) = most_during(work);
    assert!(most <= bytes_max, "{what} took {most} bytes of memory, at most {bytes_max} are allowed");
    done
}

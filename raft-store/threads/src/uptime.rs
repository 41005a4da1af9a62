//! Time since the machine was started, in which it counts that it was suspended.
//!
//! Owns that clock. `Instant` stands still on Linux while a machine or the host below it is suspended, so whoever reckons from an old reading
//! of a wall clock with it is late by as long. Never set, and never compared with that of another machine.

use std::time::Duration;

/// A moment since the machine was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(Duration);

impl Uptime {
    /// This moment.
    pub fn now() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
        // Elsewhere it counts suspends itself.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call only writes the struct it is given.
        let read = unsafe { libc::clock_gettime(CLOCK, &mut time) };
        assert_eq!(read, 0, "there is such a clock");
        Self(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    /// How long the machine has run.
    #[must_use]
    pub fn of_machine(self) -> Duration {
        self.0
    }

    /// How long after an earlier moment it is; nothing where that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long ago it was.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    /// So much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_differences_are_never_negative() {
        let before = Uptime::now();
        let later = before.after(Duration::from_millis(5));
        assert_eq!(later.since(before), Duration::from_millis(5));
        assert_eq!(before.since(later), Duration::ZERO);
        assert!(Uptime::now() >= before);
        assert!(before.elapsed() < Duration::from_secs(60));
    }
}

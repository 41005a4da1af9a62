//! Named steps at which a test lets a thread die, wait or fail.

/// A failpoint. Release builds have none; in builds with debug assertions it does nothing until a test gives it an action by its name.
macro_rules! failpoint {
    ($($of_fail:tt)*) => {
        if cfg!(debug_assertions) {
            fail::fail_point!($($of_fail)*);
        }
    };
}

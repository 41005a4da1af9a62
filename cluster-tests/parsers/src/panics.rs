//! Panics that happen anywhere in the process while a target is tried.
//!
//! Owns the hook that notes them: a panic in a task of a server shows nowhere else. Only whoever replays notes them; under libFuzzer a
//! panic ends the process by itself.

use std::panic;
use std::sync::{Mutex, Once, PoisonError};

/// `None` while nobody wants them.
static NOTED: Mutex<Option<Vec<String>>> = Mutex::new(None);
static INSTALLED: Once = Once::new();

/// Does the work. Gives the panics meanwhile, which are not printed.
pub fn noting(work: impl FnOnce()) -> Vec<String> {
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| match &mut *NOTED.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(noted) => noted.push(panic.to_string()),
            None => usual(panic),
        }));
    });
    *NOTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    // What it left half done nobody looks at again.
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
    let noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    assert!(outcome.is_ok() || !noted.is_empty(), "a panic that nobody heard of");
    noted
}

/// Those so far, while [`noting`].
pub fn so_far() -> Vec<String> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

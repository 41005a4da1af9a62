//! What is logged, changed while the node runs.
//!
//! Owns the filter that holds now, the one that was configured, and going back to it after a time. Never writes a line.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quorate_threads::watchdog;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Registry, reload};

use super::recent::RecentLines;

/// The filter of a process's log, and the last lines of it. Cheap to clone.
#[derive(Clone)]
pub struct LogControl(Arc<Shared>);

struct Shared {
    handle: reload::Handle<Targets, Registry>,
    filters: Mutex<Filters>,
    recent: RecentLines,
}

struct Filters {
    configured: Targets,
    current: Targets,
    /// Grows with each change: who wants to go back sees by it that somebody else changed the filter meanwhile.
    changes: u64,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilters {
    /// The filter that holds.
    pub current: String,
    /// The one that holds after a start.
    pub configured: String,
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filters().fmt(f)
    }
}

impl LogControl {
    /// The control of a log with this filter, and the layer that filters.
    pub fn new(filter: Targets) -> (Self, reload::Layer<Targets, Registry>) {
        let (layer, handle) = reload::Layer::new(filter.clone());
        let filters = Mutex::new(Filters { configured: filter.clone(), current: filter, changes: 0 });
        (Self(Arc::new(Shared { handle, filters, recent: RecentLines::default() })), layer)
    }

    /// What is logged now.
    pub fn filters(&self) -> LogFilters {
        let filters = self.0.filters.lock();
        LogFilters { current: shown(&filters.current), configured: shown(&filters.configured) }
    }

    /// What is configured.
    pub fn configured(&self) -> Targets {
        self.0.filters.lock().configured.clone()
    }

    /// The last lines.
    pub fn recent(&self) -> &RecentLines {
        &self.0.recent
    }

    /// Logs by this filter from now on; gives the number of the change.
    pub fn set(&self, filter: Targets) -> u64 {
        let mut filters = self.0.filters.lock();
        self.apply(&mut filters, filter)
    }

    /// Logs by this filter from now on, also after whoever asked for another is gone.
    pub fn configure(&self, filter: Targets) {
        let mut filters = self.0.filters.lock();
        filters.configured = filter.clone();
        self.apply(&mut filters, filter);
    }

    /// Logs as configured again, unless somebody changed the filter after this change.
    pub fn reset_after(&self, change: u64) -> bool {
        let mut filters = self.0.filters.lock();
        if filters.changes != change {
            return false;
        }
        let configured = filters.configured.clone();
        self.apply(&mut filters, configured);
        true
    }

    /// [`Self::set`], and back to what is configured after a time.
    pub fn set_for(&self, filter: Targets, time: Duration) {
        let change = self.set(filter);
        let control = self.clone();
        watchdog::spawn(async move {
            tokio::time::sleep(time).await;
            if control.reset_after(change) {
                tracing::info!(filter = control.filters().current, "the log is as configured again");
            }
        });
    }

    fn apply(&self, filters: &mut Filters, filter: Targets) -> u64 {
        // It fails only once the subscriber is gone, which then logs nothing anyway.
        if self.0.handle.reload(filter.clone()).is_ok() {
            // Lines that come by the crate `log` are dropped above this level before anybody formats them.
            log::set_max_level(of_log(LevelFilter::current()));
        }
        filters.current = filter;
        filters.changes += 1;
        filters.changes
    }
}

/// A filter as it is written.
fn shown(filter: &Targets) -> String {
    filter.to_string()
}

fn of_log(level: LevelFilter) -> log::LevelFilter {
    match level.into_level() {
        None => log::LevelFilter::Off,
        Some(tracing::Level::ERROR) => log::LevelFilter::Error,
        Some(tracing::Level::WARN) => log::LevelFilter::Warn,
        Some(tracing::Level::INFO) => log::LevelFilter::Info,
        Some(tracing::Level::DEBUG) => log::LevelFilter::Debug,
        Some(tracing::Level::TRACE) => log::LevelFilter::Trace,
    }
}

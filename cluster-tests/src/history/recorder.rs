//! How a history comes about: a clock and a file that all clients of a run share.
//!
//! Owns the clock, the numbers of operations and the order of lines. A line is in the file at once, so that a run that ends in a
//! panic leaves what it saw.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::file::{Header, History, Line, write_line};
use super::record::{Fault, Micros, Moment, Record};

/// Where the clients of a run write what happened to them.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    path: PathBuf,
    file: Mutex<File>,
    records: AtomicU64,
    processes: AtomicU64,
}

impl Recorder {
    /// Begins a history in this file.
    pub fn begin(path: &Path, header: Header) -> io::Result<Self> {
        let (records, processes) = (AtomicU64::new(0), AtomicU64::new(0));
        let file = Mutex::new(File::create(path)?);
        let shared = Shared { began: Instant::now(), path: path.to_owned(), file, records, processes };
        let recorder = Self { shared: Arc::new(shared) };
        recorder.put(&Line::Header(header));
        Ok(recorder)
    }

    /// The time now.
    pub fn now(&self) -> Micros {
        self.shared.began.elapsed().as_micros() as Micros
    }

    /// The number of a new operation.
    pub fn next_record(&self) -> u64 {
        self.shared.records.fetch_add(1, Ordering::Relaxed)
    }

    /// How many operations have begun.
    pub fn records(&self) -> u64 {
        self.shared.records.load(Ordering::Relaxed)
    }

    /// The number of a new process.
    pub fn next_process(&self) -> u64 {
        self.shared.processes.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes an operation that is over.
    pub fn operation(&self, record: Record) {
        self.put(&Line::Operation(record));
    }

    /// Takes a moment of a watch.
    pub fn moment(&self, moment: Moment) {
        self.put(&Line::Moment(moment));
    }

    /// Takes a fault that is over.
    pub fn fault(&self, fault: Fault) {
        self.put(&Line::Fault(fault));
    }

    /// All faults are over.
    pub fn healed(&self) {
        self.put(&Line::Healed(self.now()));
    }

    /// What was recorded.
    pub fn history(&self) -> io::Result<History> {
        History::load(&self.shared.path)
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Puts a line into the file, whole.
    fn put(&self, line: &Line) {
        let mut bytes = Vec::new();
        write_line(&mut bytes, line).expect("a line of a history has JSON");
        let mut file = self.shared.file.lock().unwrap_or_else(PoisonError::into_inner);
        io::Write::write_all(&mut *file, &bytes).expect("the file of a history can be written");
    }
}

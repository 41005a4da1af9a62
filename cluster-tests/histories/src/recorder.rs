//! How a history comes about: a clock and a file that all clients of a run share.
//!
//! Owns the clock, the numbers of operations and the order of lines. A line is in the file soon, so that a run that ends in a
//! panic leaves what it saw. No client waits for the disk, which the nodes keep busy: that would delay what it measures.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
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
    lines: Lines,
    records: AtomicU64,
    processes: AtomicU64,
}

/// Where lines go.
#[derive(Debug)]
enum Lines {
    /// To a thread that writes this file.
    File(PathBuf, Sender<Entry>),
    /// Nowhere.
    Memory(Mutex<Vec<Line>>),
}

/// What goes to the thread that writes.
#[derive(Debug)]
enum Entry {
    Line(Line),
    /// To be answered once everything before it is in the file.
    Flush(Sender<()>),
}

impl Recorder {
    /// Begins a history in this file.
    pub fn begin(path: &Path, header: Header) -> io::Result<Self> {
        let (lines, queue) = mpsc::channel();
        let file = BufWriter::new(File::create(path)?);
        std::thread::spawn(move || write_all(&queue, file).expect("the file of a history can be written"));
        Ok(Self::with(Lines::File(path.to_owned(), lines), header))
    }

    /// Begins a history that stays in memory. The clock begins now.
    pub fn in_memory(header: Header) -> Self {
        Self::with(Lines::Memory(Mutex::default()), header)
    }

    fn with(lines: Lines, header: Header) -> Self {
        let (records, processes) = (AtomicU64::new(0), AtomicU64::new(0));
        let recorder = Self { shared: Arc::new(Shared { began: Instant::now(), lines, records, processes }) };
        recorder.put(Line::Header(header));
        recorder
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
        self.put(Line::Operation(Box::new(record)));
    }

    /// Takes a moment of a watch.
    pub fn moment(&self, moment: Moment) {
        self.put(Line::Moment(moment));
    }

    /// Takes a fault that is over.
    pub fn fault(&self, fault: Fault) {
        self.put(Line::Fault(fault));
    }

    /// All faults are over.
    pub fn healed(&self) {
        self.put(Line::Healed(self.now()));
    }

    /// What was recorded.
    pub fn history(&self) -> io::Result<History> {
        let (path, lines) = match &self.shared.lines {
            Lines::File(path, lines) => (path, lines),
            Lines::Memory(lines) => {
                return Ok(History::of(lines.lock().expect("nobody panics with it in hand").clone()));
            }
        };
        let (done, written) = mpsc::channel();
        let failed = |_| io::Error::other("the history could not be written");
        lines.send(Entry::Flush(done)).map_err(|_| io::Error::other("nobody writes the history"))?;
        written.recv().map_err(failed)?;
        History::load(path)
    }

    fn put(&self, line: Line) {
        match &self.shared.lines {
            Lines::File(_, lines) => {
                lines.send(Entry::Line(line)).expect("the thread that writes ends after the last client");
            }
            Lines::Memory(lines) => lines.lock().expect("nobody panics with it in hand").push(line),
        }
    }
}

/// Writes what comes until nobody is left who could send more.
fn write_all(queue: &Receiver<Entry>, mut file: BufWriter<File>) -> io::Result<()> {
    loop {
        let entry = match queue.try_recv() {
            Ok(entry) => entry,
            Err(TryRecvError::Disconnected) => return file.flush(),
            Err(TryRecvError::Empty) => {
                file.flush()?;
                let Ok(entry) = queue.recv() else { return Ok(()) };
                entry
            }
        };
        match entry {
            Entry::Line(line) => write_line(&mut file, &line)?,
            Entry::Flush(done) => {
                file.flush()?;
                // Whoever asked may have gone.
                let _ = done.send(());
            }
        }
    }
}

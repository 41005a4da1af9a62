//! Log lines on their way to stderr, which may be a pipe that nobody reads.
//!
//! Owns the queue between those who log and the one thread that writes. Whoever logs never waits: what does not fit is
//! counted and left out, and the first line that fits again says how many are missing. Never decides what is logged.

mod control;
mod debug;
mod recent;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::metrics::{MetricsSource, Sample};

pub use control::{LogControl, LogFilters};
pub use debug::Text;
pub use recent::RecentLines;

/// Most bytes of lines that wait for stderr: some thousand lines.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// What a line takes in the queue beside its bytes.
const LINE_OVERHEAD_BYTES: usize = 64;
/// How long the end of a process waits for whoever reads its log.
const LAST_WAIT: Duration = Duration::from_millis(500);
/// How long the end of a process that must not go on waits.
const LAST_WORDS_MAX: Duration = Duration::from_millis(50);

/// The log of this process.
static LOG: OnceLock<Log> = OnceLock::new();

/// What decides what is logged.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One readable line for each event.
    #[default]
    Text,
    /// One JSON object for each event.
    Json,
}

/// A place for lines. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// There are lines.
    filled: Condvar,
    /// There are none, and none is being written.
    emptied: Condvar,
    written: AtomicU64,
    dropped: AtomicU64,
    /// The line that tells how many are missing.
    missing: fn(u64) -> String,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// A line was taken and is not written yet.
    is_writing: bool,
    /// Lines left out since the last one that fitted.
    missing: u64,
}

impl Queue {
    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len() + LINE_OVERHEAD_BYTES;
        self.lines.push_back(line);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len() + LINE_OVERHEAD_BYTES;
        Some(line)
    }
}

impl Log {
    /// Starts the thread that writes to `out`.
    pub fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        Self::with_gaps(out, |missing| format!("({missing} log lines are missing here: nobody took them)\n"))
    }

    /// Starts it as [`Self::to`] does, with this line wherever lines were left out.
    pub fn with_gaps(mut out: impl Write + Send + 'static, missing: fn(u64) -> String) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            missing,
        });
        let log = Self(Arc::clone(&shared));
        let run = move || {
            loop {
                let line = shared.take();
                // Nobody but the metrics is left to be told of a log that cannot be written.
                let count = if out.write_all(&line).is_ok() { &shared.written } else { &shared.dropped };
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("log-lines".into()).spawn(run)?;
        Ok(log)
    }

    /// Takes a line, or leaves it out. Never waits but for others who do the same.
    pub fn take(&self, line: &[u8]) {
        let mut queue = self.0.queue.lock();
        if queue.bytes + line.len() + LINE_OVERHEAD_BYTES > QUEUE_BYTES_MAX {
            queue.missing += 1;
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if queue.missing > 0 {
            let missing = std::mem::take(&mut queue.missing);
            queue.push((self.0.missing)(missing).into_bytes());
        }
        queue.push(line.to_vec());
        self.0.filled.notify_one();
    }

    /// Waits until everything is written, but not longer than `within`. False where something is left.
    pub fn flush(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut queue = self.0.queue.lock();
        while queue.is_writing || !queue.lines.is_empty() {
            if self.0.emptied.wait_until(&mut queue, until).timed_out() {
                return false;
            }
        }
        true
    }

    /// Lines written and lost so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.written.load(Ordering::Relaxed), self.0.dropped.load(Ordering::Relaxed))
    }
}

impl Shared {
    /// The next line. Whoever comes back for another has written the one before.
    fn take(&self) -> Vec<u8> {
        let mut queue = self.queue.lock();
        queue.is_writing = false;
        loop {
            if let Some(line) = queue.pop() {
                queue.is_writing = true;
                return line;
            }
            self.emptied.notify_all();
            self.filled.wait(&mut queue);
        }
    }
}

/// One event on its way into the log: it comes in one piece.
#[derive(Debug)]
pub struct Line<'l>(&'l Log);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'l> MakeWriter<'l> for Log {
    type Writer = Line<'l>;

    fn make_writer(&'l self) -> Line<'l> {
        Line(self)
    }
}

impl MetricsSource for Log {
    fn sample(&self, out: &mut Vec<Sample>) {
        let (written, dropped) = self.counts();
        out.push(Sample::counter("logging_lines", "Lines written to the log", written));
        let help = "Log lines lost, since whoever reads the log was too slow or could not be written to";
        out.push(Sample::counter("logging_dropped_lines", help, dropped));
    }
}

/// Stderr without the standard library's lock: a thread that is stuck in a write must hold up nobody else.
fn stderr() -> ManuallyDrop<File> {
    // SAFETY: descriptor 2 stays open as long as the process runs, and is never closed by this handle.
    ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) })
}

struct Stderr(ManuallyDrop<File>);

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes stderr the log of this process. Once.
pub fn start(filter: Targets, format: LogFormat) -> io::Result<()> {
    let log = Log::to(Stderr(stderr()))?;
    let log = LOG.get_or_init(|| log).clone();
    let lines = tracing_subscriber::fmt::layer().with_writer(log);
    let (control, filter) = LogControl::new(filter);
    let control = CONTROL.get_or_init(|| control);
    let subscriber = tracing_subscriber::registry().with(filter).with(control.recent().clone());
    match format {
        LogFormat::Text => subscriber.with(lines.with_ansi(false)).init(),
        LogFormat::Json => subscriber.with(lines.json()).init(),
    }
    Ok(())
}

/// The log of this process, once it has begun.
pub fn current() -> Option<Log> {
    LOG.get().cloned()
}

/// What decides what this process logs, once its log has begun.
pub fn control() -> Option<LogControl> {
    CONTROL.get().cloned()
}

/// A line for whoever started this process by hand, beside the log.
pub fn say(line: &str) {
    match LOG.get() {
        Some(log) => log.take(format!("{line}\n").as_bytes()),
        None => eprintln!("{line}"),
    }
}

/// [`say`]; then the end of it, for which the log is waited for a
/// moment.
pub fn say_last(line: &str) {
    say(line);
    flush();
}

/// Lets the log catch up before a graceful end, for a moment.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.flush(LAST_WAIT);
    }
}

/// Lets the log catch up before a sudden end, for faults after which the process must not go on: over in microseconds where stderr
/// is well, and soon enough where it is not, be it a full pipe or a file on a disk that hangs.
pub fn last_words() {
    if let Some(log) = LOG.get() {
        log.flush(LAST_WORDS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::process::{Command, Stdio};

    use super::*;

    /// In a process of its own, which it ends.
    #[test]
    #[ignore = "ends its process; run by the test below"]
    fn a_process_that_ends_suddenly() {
        start("info".parse().unwrap(), LogFormat::Text).unwrap();
        for number in 0..1_000 {
            tracing::info!(number, "before");
        }
        tracing::error!("the last words");
        crate::end_now(7);
    }

    fn sudden_end(stderr: Stdio) -> std::process::Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "logging::tests::a_process_that_ends_suddenly", "--ignored", "--nocapture"]);
        command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap()
    }

    #[test]
    fn the_last_line_before_a_sudden_end_gets_out() {
        let done = sudden_end(Stdio::piped()).wait_with_output().unwrap();
        let text = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), text.lines().count()), (Some(7), 1_001), "{text}");
        assert!(text.ends_with("the last words\n"), "{text}");
    }

    #[test]
    fn a_sudden_end_does_not_wait_for_a_pipe_that_nobody_reads() {
        let (_unread, write) = io::pipe().unwrap();
        // SAFETY: takes no pointers.
        assert!(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } > 0);
        let mut child = sudden_end(Stdio::from(OwnedFd::from(write)));
        let begin = Instant::now();
        let code = loop {
            if let Some(end) = child.try_wait().unwrap() {
                break end.code();
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it waits for ever");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(code, Some(7));
    }

    /// Takes lines only while the gate is open.
    struct Gated(Arc<Mutex<Vec<u8>>>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes nothing, ever.
    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_could_not_be_written_are_counted_as_lost() {
        let log = Log::to(Broken).unwrap();
        log.take(b"one\n");
        log.take(b"two\n");
        assert!(log.flush(Duration::from_secs(10)));
        assert_eq!(log.counts(), (0, 2));
    }

    #[test]
    fn who_logs_never_waits_and_the_lines_left_out_are_counted_and_told() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let log = Log::to(Gated(Arc::clone(&taken))).unwrap();
        let line = vec![b'x'; 1000];
        let gate = taken.lock();
        let lines = 3 * QUEUE_BYTES_MAX / line.len();
        for _ in 0..lines {
            log.take(&line);
        }
        assert!(!log.flush(Duration::from_millis(1)), "nobody reads");
        let (written, dropped) = log.counts();
        assert!(written == 0 && dropped > 0 && dropped < lines as u64, "{written} written, {dropped} dropped");
        drop(gate);
        assert!(log.flush(Duration::from_secs(10)));
        log.take(b"after\n");
        assert!(log.flush(Duration::from_secs(10)));
        let text = String::from_utf8(taken.lock().clone()).unwrap();
        let end = format!("({dropped} log lines are missing here: nobody took them)\nafter\n");
        assert!(text.ends_with(&end), "{}", &text[text.len() - 200..]);
        assert_eq!(log.counts(), (lines as u64 - dropped + 2, dropped));
    }
}

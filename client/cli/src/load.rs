//! `quorate load`: entries from lines of JSON, by bulks of which several are under way.
//!
//! Owns the order of things: chunks are read, sent and counted, and what is acknowledged without a gap goes to the state file.
//! The id of each bulk is made of that of the load and the place of its lines, so a load that is started again sends
//! under the same ids what it does not know to be acknowledged. Never holds more than some chunks.

mod lines;
mod progress;
mod state;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use quorate_client::api::{BulkAnswer, BulkOutcome, ErrorCode, Name, Problem, code_name};
use quorate_client::{Client, Error, RequestId};
use serde_json::json;
use tokio::sync::mpsc;

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, output, parse};

use lines::{Chunk, Fault, KeyField, Lines, Mark, Position};
use progress::Progress;
use state::{Counts, Settings, State};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line is an object with `key` and `value` (or `value_base64`), and `ttl_ms` if it shall expire. With --key-field each line is \
the document itself, and the key is in it. A line that is refused is reported, the others go on; exit code 3 if there was one.

With --resume the load can be stopped and started again, by the same command, and takes effect once: the file remembers how far \
everything is acknowledged, and what was under way is sent again under the ids it had. Nodes remember those for 15 minutes; \
inserts also skip what is there already, and with `--op upsert` a warning says that the state is older. Another input than the one that was \
begun is refused: its first line, or the last one that was loaded, is another. The input may grow meanwhile: a last line that is not whole yet is left until it is.

Several chunks are under way at once, so of two lines with the same key either may be the last; with --parallel 1 all is done in \
order.

Examples:
  quorate load orders.ndjson --prefix orders/ --key-field id
  quorate load backup.ndjson --op upsert --resume backup.state
  zcat parts.ndjson.gz | quorate load - --prefix parts/")]
pub struct Args {
    /// Lines of JSON: a file, or `-` for standard input.
    file: String,
    /// Stands before each key.
    #[arg(short, long, default_value = "", value_name = "PREFIX", value_parser = parse::name)]
    prefix: Name,
    /// Lines are documents; the key is this field of them, a string or a whole number. A path like `customer.id`.
    #[arg(long, value_name = "PATH", value_parser = lines::key_field)]
    key_field: Option<KeyField>,
    /// Whether an entry that is there is left as it is (insert) or overwritten (upsert).
    #[arg(long, value_enum, default_value_t = Mode::Insert)]
    op: Mode,
    /// Most lines of one bulk; it also ends at 1 MiB.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    chunk: u32,
    /// Bulks under way at the same time.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    parallel: u32,
    /// Remembers in this file how far the load is, and goes on from there if it exists.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

/// What is done with each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Create; skip keys that exist.
    Insert,
    /// Create or overwrite.
    Upsert,
}

/// Lines that are reported; of further ones only the number is.
const FAULTS_SHOWN: u64 = 100;
/// Least time between two writings of the state file: each waits for the disk, and an older state only means that more is
/// sent again.
const SAVE_INTERVAL: Duration = Duration::from_millis(250);

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let settings = Settings {
        prefix: args.prefix.to_string(),
        key_field: args.key_field.as_ref().map(|field| field.text.clone()),
        op: format!("{:?}", args.op).to_lowercase(),
        chunk: args.chunk,
    };
    let state = State::open(args.resume.as_deref(), settings, context.shared.request_id.clone())?;
    let length = input_length(&args.file);
    let left = Arc::new(AtomicU64::new(0));
    let mut load = Load::new(context.shared.output, state, length);
    load.state.hold_against(length).map_err(|done| too_short(&args.file, length.unwrap_or(0), done))?;
    if args.op == Mode::Upsert && !load.state.complete && load.state.is_forgotten() {
        say!(
            "warning: {} was written more than 15 minutes ago: what was under way then is written again, over what others wrote since",
            args.resume.as_deref().unwrap_or(Path::new("the state file")).display()
        );
    }
    if load.state.complete && length.is_some() {
        // Nothing is to be sent, if this is the input that was.
        open(&args.file, load.state.at)?;
    } else if !load.state.complete || args.file == "-" {
        let chunks = read(&args, &load.state, left.clone())?;
        // Before anything is sent, so that the id under which it is sent is not lost.
        load.state.save()?;
        load.send_all(&context.client, chunks, args.parallel as usize).await?;
    }
    load.finish(left.load(Ordering::Relaxed))
}

/// Opens the input and reads it on a thread of its own, as far ahead as one chunk.
fn read(args: &Args, state: &State, left: Arc<AtomicU64>) -> Result<mpsc::Receiver<Result<Chunk, Failed>>, Failed> {
    let from = state.at;
    let (input, last) = open(&args.file, from)?;
    let mut lines = Lines::new(input, from, args.prefix.clone(), args.key_field.clone(), args.op, args.chunk as usize);
    if state.is_kept() {
        lines = lines.growing(state.ends.clone(), last.is_some_and(|last| last != b'\n'));
    }
    let (sender, receiver) = mpsc::channel(1);
    // Not a task: nothing waits for a read of standard input when the load has failed.
    std::thread::spawn(move || {
        while let Some(chunk) = lines.chunk().transpose() {
            left.store(lines.left(), Ordering::Relaxed);
            let is_last = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || is_last {
                return;
            }
        }
        left.store(lines.left(), Ordering::Relaxed);
    });
    Ok(receiver)
}

/// The source of the lines.
enum Input {
    File(File),
    Stdin(std::io::Stdin),
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.read(into),
            Self::Stdin(stdin) => stdin.read(into),
        }
    }
}

impl Input {
    /// Skips up to `bytes` bytes; gives how many it skipped.
    fn pass(&mut self, bytes: u64) -> std::io::Result<u64> {
        match self {
            Self::File(file) => {
                let relative = i64::try_from(bytes).map_err(std::io::Error::other)?;
                file.seek(SeekFrom::Current(relative)).map(|_| bytes)
            }
            Self::Stdin(stdin) => std::io::copy(&mut stdin.take(bytes), &mut std::io::sink()),
        }
    }

    /// The next bytes, fewer at the end.
    fn next(&mut self, bytes: u64) -> std::io::Result<Vec<u8>> {
        let mut next = Vec::new();
        self.take(bytes).read_to_end(&mut next)?;
        Ok(next)
    }
}

/// Opens the input behind `at`, and gives the last byte before that. Fails if the part before is not the one that was loaded.
fn open(file: &str, at: Position) -> Result<(Box<dyn Read + Send>, Option<u8>), Failed> {
    let cannot = |error: std::io::Error| Failed::usage(format!("cannot read `{file}`: {error}"));
    let mut input = match file {
        "-" => Input::Stdin(std::io::stdin()),
        path => Input::File(File::open(path).map_err(cannot)?),
    };
    if let Input::File(file_input) = &input {
        let length = file_input.metadata().map_err(cannot)?.len();
        if length < at.offset {
            return Err(too_short(file, length, at.offset));
        }
    }
    let first = at.first.map(|mark| (0, mark.bytes, Some(mark)));
    // A state of an earlier version knows no lines, and yet it matters how the last one ends.
    let last = at.last.map_or((at.offset.saturating_sub(1), at.offset.min(1), None), |mark| {
        (at.offset.saturating_sub(mark.bytes), mark.bytes, Some(mark))
    });
    let (mut passed, mut end) = (0, None);
    for (from, bytes, mark) in first.into_iter().chain([last]) {
        if from < passed {
            // The only line is both.
            continue;
        }
        // A pipe cannot seek: it is read from its beginning.
        if from > passed {
            passed += input.pass(from - passed).map_err(cannot)?;
        }
        let found = input.next(bytes).map_err(cannot)?;
        passed += found.len() as u64;
        if passed < from + bytes {
            return Err(too_short(file, passed, at.offset));
        }
        if mark.is_some_and(|mark| Mark::of(&found) != mark) {
            let which = if from == 0 { "first line".to_owned() } else { format!("line {}", at.line) };
            return Err(Failed::usage(format!(
                "`{file}` is another input than that of the state file: its {which} is not the one that was loaded; without the state \
                 file it is loaded from its beginning"
            )));
        }
        end = found.last().copied();
    }
    Ok((Box::new(input), end))
}

fn too_short(file: &str, length: u64, offset: u64) -> Failed {
    Failed::usage(format!(
        "`{file}` ends after {length} bytes, and the state file says that {offset} are loaded: it is another input"
    ))
}

/// `None` for what has no length, such as a pipe.
fn input_length(file: &str) -> Option<u64> {
    let metadata = std::fs::metadata(file).ok().filter(|metadata| metadata.is_file() && file != "-")?;
    Some(metadata.len())
}

/// A load under way.
struct Load {
    form: Form,
    state: State,
    /// Chunks that are done behind one that is not, by their start.
    ahead: BTreeMap<u64, (Position, Counts)>,
    progress: Progress,
    started: Instant,
    saved: Instant,
    reported: u64,
    unreported: u64,
}

impl Load {
    fn new(form: Form, state: State, length: Option<u64>) -> Self {
        let progress = Progress::new(length, state.at);
        let (started, saved) = (Instant::now(), Instant::now());
        Self { form, state, ahead: BTreeMap::new(), progress, started, saved, reported: 0, unreported: 0 }
    }

    /// Sends chunks until there are no more. After the first that cannot be sent only those under way are waited for.
    async fn send_all(
        &mut self,
        client: &Client,
        mut chunks: mpsc::Receiver<Result<Chunk, Failed>>,
        parallel: usize,
    ) -> Result<(), Failed> {
        let mut under_way = FuturesUnordered::new();
        let (mut open, mut failed) = (true, None);
        loop {
            tokio::select! {
                chunk = chunks.recv(), if open && under_way.len() < parallel => match chunk {
                    Some(Ok(chunk)) => match self.keep_end(&chunk) {
                        Ok(()) => under_way.push(send(client, self.state.load.clone(), chunk)),
                        Err(error) => (open, failed) = (false, failed.or(Some(error))),
                    },
                    Some(Err(error)) => (open, failed) = (false, failed.or(Some(error))),
                    None => open = false,
                },
                Some(sent) = under_way.next() => {
                    if let Err(error) = sent.and_then(|done| self.settle(done)) {
                        (open, failed) = (false, failed.or(Some(error)));
                    }
                }
                else => break,
            }
        }
        self.state.complete = failed.is_none();
        let ahead = self.ahead.len();
        assert!(!self.state.complete || ahead == 0, "{ahead} chunks are ahead of {:?}, and none failed", self.state.at);
        self.state.save()?;
        match failed {
            Some(error) => Err(self.stopped(&error)),
            None => Ok(()),
        }
    }

    /// A chunk that ends only because the input does is made again only if that is known, however the input grows.
    fn keep_end(&mut self, chunk: &Chunk) -> Result<(), Failed> {
        if !chunk.is_short || !self.state.is_kept() {
            return Ok(());
        }
        self.state.ends.insert(chunk.end.offset);
        self.state.save()
    }

    /// Counts a chunk, and moves the place up to which everything is acknowledged.
    fn settle(&mut self, done: ChunkResult) -> Result<(), Failed> {
        self.report(&done.faults)?;
        self.progress.advance(done.end.offset - done.start.offset, done.end.line - done.start.line);
        assert!(done.start.offset >= self.state.at.offset, "{:?} was done before, at {:?}", done.start, self.state.at);
        self.ahead.insert(done.start.offset, (done.end, done.counts));
        while let Some((end, counts)) = self.ahead.remove(&self.state.at.offset) {
            self.state.at = end;
            self.state.counts.add(counts);
        }
        if self.saved.elapsed() >= SAVE_INTERVAL {
            self.state.save()?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn report(&mut self, faults: &[Fault]) -> Result<(), Failed> {
        for Fault { line, key, code, detail } in faults {
            if self.reported >= FAULTS_SHOWN {
                self.unreported += 1;
                continue;
            }
            self.reported += 1;
            let text = match (self.form, key) {
                (Form::Json | Form::Yaml, _) => {
                    let mut fault = json!({"line": line, "code": code, "detail": detail});
                    if let Some((field, key)) = key.as_ref().map(|key| key.in_json("key")) {
                        fault[field] = key.into();
                    }
                    fault.to_string()
                }
                (Form::Text | Form::Table, Some(key)) => format!("line {line}: `{key}`: {detail}"),
                (Form::Text | Form::Table, None) => format!("line {line}: {detail}"),
            };
            self.progress.say(&text);
        }
        Ok(())
    }

    fn counts_text(&self) -> String {
        let Counts { applied, skipped, failed } = self.state.counts;
        format!("applied {applied}, skipped {skipped}, failed {failed}")
    }

    fn stopped(&self, error: &Failed) -> Failed {
        self.progress.clear();
        let next = if self.state.is_kept() {
            "the same command goes on from there".to_owned()
        } else {
            format!(
                "the same command with `--request-id {}` does again what is missing, within 15 minutes",
                self.state.load
            )
        };
        let line = self.state.at.line;
        let so_far =
            format!("everything up to line {line} is done ({}), some of what follows may be", self.counts_text());
        Failed::stopped(format!("{error}\n  so far: {so_far}\n  next: {next}"))
    }

    fn finish(self, left: u64) -> Result<(), Failed> {
        self.progress.clear();
        if left > 0 {
            say!("(the last {left} bytes are no whole line and were left; the same command goes on there)");
        }
        if self.unreported > 0 {
            say!("(and {} more lines failed)", self.unreported);
        }
        let (State { at, counts, load, .. }, elapsed) = (&self.state, self.started.elapsed());
        match self.form.data() {
            Some(form) => output::show(
                form,
                &json!({
                    "load": load.as_str(), "lines": at.line, "applied": counts.applied, "skipped": counts.skipped,
                    "failed": counts.failed, "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                }),
            )?,
            None => {
                let time = output::millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
                output::line(format!("loaded {} lines: {} in {time}", at.line, self.counts_text()))?;
            }
        }
        match counts.failed {
            0 => Ok(()),
            failed => Err(Failed::partly(format!("{failed} of {} lines failed", at.line))),
        }
    }
}

/// What came of a chunk.
struct ChunkResult {
    start: Position,
    end: Position,
    counts: Counts,
    faults: Vec<Fault>,
}

/// Sends a chunk until it is decided. Lines that no node takes are left out then, and the rest goes under another id: which
/// those are depends on the lines alone, so a load that is started again comes by the same ids.
async fn send(client: &Client, load: RequestId, chunk: Chunk) -> Result<ChunkResult, Failed> {
    let Chunk { start, end, mut lines, mut faults, .. } = chunk;
    let mut counts = Counts { failed: faults.len() as u64, ..Counts::default() };
    let mut tries = 0;
    while !lines.is_empty() {
        let id = match tries {
            0 => format!("{load}-{}-{}", start.offset, end.offset),
            _ => format!("{load}-{}-{}-{tries}", start.offset, end.offset),
        };
        let bulk = client.bulk().extend(lines.iter().map(|line| line.op.clone())).failures_only();
        match bulk.request_id(id.parse()?).await {
            Ok(answer) => {
                let BulkAnswer { applied, skipped, failed, .. } = answer;
                counts.add(Counts { applied, skipped, failed });
                faults.extend(failures(&answer, &lines));
                break;
            }
            Err(Error::Rejected(problem)) => {
                let (mut refused, before) = (refused(&problem), lines.len());
                let left = lines.into_iter().enumerate().filter_map(|(n, line)| {
                    let Some(detail) = refused.remove(&n) else { return Some(line) };
                    let code = Some(code_name(problem.code));
                    faults.push(Fault { line: line.number, key: Some(line.key), code, detail });
                    None
                });
                lines = left.collect();
                counts.failed += (before - lines.len()) as u64;
                if lines.len() == before {
                    return Err(Error::Rejected(problem).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        tries += 1;
    }
    Ok(ChunkResult { start, end, counts, faults })
}

/// The lines that a bulk could not do, of its answer.
fn failures(answer: &BulkAnswer, lines: &[lines::Line]) -> Vec<Fault> {
    let failed = answer.results.iter().filter(|item| item.outcome == BulkOutcome::Failed);
    let faults = failed.map(|item| {
        let line = usize::try_from(item.n).ok().and_then(|n| lines.get(n)).map_or(0, |line| line.number);
        let detail = item.detail.clone().unwrap_or_else(|| "refused".to_owned());
        Fault { line, key: Some(item.key.clone()), code: item.code.map(code_name), detail }
    });
    faults.collect()
}

/// For a bulk that was refused as a whole for the sake of some operations: which, and why.
fn refused(problem: &Problem) -> BTreeMap<usize, String> {
    let about_input =
        matches!(problem.code, ErrorCode::InvalidArgument | ErrorCode::UnknownField | ErrorCode::TooLarge);
    let faults = problem.errors.iter().filter(|_| about_input).map_while(|fault| {
        let number = fault.pointer.strip_prefix("/ops/")?.split('/').next()?.parse().ok()?;
        Some((number, fault.detail.clone()))
    });
    faults.collect()
}

//! What this machine could do at most: a log that is only appended to, and an answer over loopback that is only sent back.
//!
//! Owns these two, as plain as they can be. Knows nothing of Quorate: its figures are what those of `scripts/bench` are held against.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Measures the floor below any durable store on this machine, and prints it as JSON: appends that are synced one by one, and in
/// groups of 64; and messages over loopback that are sent back, from so many connections.
#[derive(Parser)]
struct Args {
    /// Where the log goes: a disk, since a sync to memory costs nothing
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Bytes of a record and of a message
    #[arg(long, default_value_t = 320)]
    bytes: usize,
    /// Seconds for each figure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections
    #[arg(long, value_delimiter = ',', default_value = "1,64,256")]
    clients: Vec<usize>,
}

/// Records that are synced together.
const GROUP: usize = 64;
/// Written before anything is measured, so that a sync changes no length of the file.
const FILE_BYTES: usize = 256 << 20;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args).await {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(args: &Args) -> io::Result<Value> {
    let lasts = Duration::from_secs_f64(args.seconds);
    let mut echo = Vec::new();
    for clients in &args.clients {
        let used = used_seconds()?;
        let figures = answered(*clients, args.bytes, lasts).await?;
        let micros = 1e6 * (used_seconds()? - used) / figures.len().max(1) as f64;
        echo.push(json!({"clients": clients, "rate": rate(&figures, lasts), "p50_us": micros_at(&figures, 0.5),
            "p99_us": micros_at(&figures, 0.99), "cpu_us": micros}));
    }
    let mut log = Vec::new();
    for group in [1, GROUP] {
        let synced = appended(&args.dir, args.bytes, group, lasts)?;
        log.push(
            json!({"records": group, "rate": group as f64 * rate(&synced, lasts), "p50_us": micros_at(&synced, 0.5),
            "p99_us": micros_at(&synced, 0.99)}),
        );
    }
    Ok(json!({"bytes": args.bytes, "echo": echo, "log": log}))
}

fn rate(taken: &Histogram<u64>, lasts: Duration) -> f64 {
    taken.len() as f64 / lasts.as_secs_f64()
}

fn micros_at(taken: &Histogram<u64>, part: f64) -> u64 {
    taken.value_at_quantile(part)
}

/// Up to a minute, in microseconds.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("good bounds")
}

/// Seconds of the processor that this process took, servers and clients together.
fn used_seconds() -> io::Result<f64> {
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes the struct it is given.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// How long each append of a group took, in microseconds.
fn appended(dir: &Path, bytes: usize, group: usize, lasts: Duration) -> io::Result<Histogram<u64>> {
    let mut file = tempfile::tempfile_in(dir)?;
    file.write_all(&vec![0; FILE_BYTES])?;
    file.sync_all()?;
    let records = vec![7; bytes * group];
    let (mut taken, mut at) = (histogram(), 0);
    let end = Instant::now() + lasts;
    while Instant::now() < end {
        let begun = Instant::now();
        append(&file, &records, at)?;
        taken.saturating_record(begun.elapsed().as_micros() as u64);
        at = if at + 2 * records.len() > FILE_BYTES { 0 } else { at + records.len() };
    }
    Ok(taken)
}

fn append(file: &File, records: &[u8], at: usize) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, records, at as u64)?;
    file.sync_data()
}

/// How long each message took to come back, in microseconds.
async fn answered(clients: usize, bytes: usize, lasts: Duration) -> io::Result<Histogram<u64>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let to = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(send_back(stream, bytes));
        }
    });
    let over = Arc::new(AtomicBool::new(false));
    let mut asking = Vec::new();
    for _ in 0..clients {
        let mut stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let over = Arc::clone(&over);
        asking.push(tokio::spawn(async move {
            let (mut taken, mut message) = (histogram(), vec![7; bytes]);
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                stream.write_all(&message).await?;
                stream.read_exact(&mut message).await?;
                taken.saturating_record(begun.elapsed().as_micros() as u64);
            }
            Ok::<_, io::Error>(taken)
        }));
    }
    tokio::time::sleep(lasts).await;
    over.store(true, Ordering::Relaxed);
    let mut all = histogram();
    for asked in asking {
        let taken = asked.await.map_err(io::Error::other)??;
        all.add(taken).map_err(io::Error::other)?;
    }
    serving.abort();
    Ok(all)
}

/// Until the client ends.
async fn send_back(mut stream: TcpStream, bytes: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = vec![0; bytes];
    loop {
        stream.read_exact(&mut message).await?;
        stream.write_all(&message).await?;
    }
}

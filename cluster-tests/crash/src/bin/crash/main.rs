//! Crashes of one node's storage, again and again, with a table at the end. See `crash_search`.
//!
//! Owns the command line, and being the process that is recorded or killed.

mod interpose;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use crash_search::event::Event;
use crash_search::life::{Birth, Life, Tell};
use crash_search::note::Note;
use crash_search::store::Fault;
use crash_search::{Broken, judge, kill, power, read_file, tree, write_file};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Loses power at syncs and kills processes at random moments, and judges what is left each time. Ends with 0 where every promise
/// was kept, 1 where one was not: what can be looked at again stands in `QUORATE_HISTORIES` then.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// For how long; half of it for each kind of crash.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Of all choices; a new one each time without it.
    #[arg(long)]
    seed: Option<u64>,
    /// What a recorded life does.
    #[arg(long, default_value_t = 300)]
    steps: u64,
    /// Judges, and directories whose processes are killed, at a time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Is the process that crashes. Started by the others.
    Live {
        /// What it starts from.
        birth: PathBuf,
        /// Records what it does to the file system, and does not end before it is done.
        #[arg(long, requires = "steps")]
        record: Option<PathBuf>,
        /// What it does.
        #[arg(long)]
        steps: Option<u64>,
    },
    /// Judges once more what was kept of a broken run.
    Judge {
        /// The directory.
        kept: PathBuf,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.part {
        Some(Part::Live { birth, record, steps }) => live(birth, record.as_deref(), *steps),
        Some(Part::Judge { kept }) => judge_again(kept),
        None => soak(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

fn live(birth: &Path, record: Option<&Path>, steps: Option<u64>) -> Result<(), Fault> {
    let birth: Birth = read_file(birth)?;
    let root = birth.dir.parent().ok_or("the data directory has no parent")?.to_owned();
    let tell: Tell = if record.is_some() {
        interpose::start(&root);
        Arc::new(|note| interpose::add(Event::Said(note)))
    } else {
        Arc::new(say)
    };
    runtime()?.block_on(async {
        let mut life = Life::begin(birth, tell).await?;
        life.go_on(steps).await?;
        life.end()
    })?;
    record.map_or(Ok(()), |record| write_file(record, &interpose::finish()))
}

/// At once, and whole: what is in the pipe outlives this process.
fn say(note: Note) {
    let said = kill::framed(&note)
        .map(|bytes| std::io::stdout().lock().write_all(&bytes).and_then(|()| std::io::stdout().flush()));
    if !matches!(said, Ok(Ok(()))) {
        // Nobody listens any more, so nobody can judge either.
        std::process::exit(2);
    }
}

fn judge_again(kept: &Path) -> Result<(), Fault> {
    let birth: Birth = read_file(&kept.join("birth"))?;
    let place = crash_search::scratch("again")?;
    let root = place.path().join("root");
    tree::write(&tree::read(&kept.join("image"))?, &root)?;
    let dir = root.join(power::DATA);
    let judged = judge::judge(&dir, birth.seed, &birth.promised, &birth.prints);
    runtime()?.block_on(judged).map(judge_end)
}

fn judge_end(storage: crash_search::store::Storage) {
    storage.close();
    println!("every promise was kept");
}

/// What was tried so far.
#[derive(Default)]
struct Total {
    power: power::Counts,
    lives: u64,
    kill: kill::Counts,
}

fn soak(args: &Args) -> Result<(), Fault> {
    let seed = args.seed.unwrap_or_else(rand::random);
    println!("crash with --seed {seed}");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut dice = StdRng::seed_from_u64(seed);
    let (begun, mut total) = (Instant::now(), Total::default());
    let half = Duration::from_secs(args.minutes * 30);
    let broken = lose_power(args, &program, begun + half, &mut dice, &mut total)?;
    let broken = match broken {
        None => kill_lives(args, &program, begun + 2 * half, &mut dice, &mut total)?,
        broken => broken,
    };
    print_table(&total, begun.elapsed(), broken.as_ref());
    broken.map_or(Ok(()), |broken| Err(broken.to_string()))
}

/// Chains of lives, each started from what a power loss left of the one before.
fn lose_power(
    args: &Args,
    program: &Path,
    until: Instant,
    dice: &mut StdRng,
    total: &mut Total,
) -> Result<Option<Broken>, Fault> {
    const CHAIN: u64 = 6;
    let begun = Instant::now();
    while Instant::now() < until {
        let (program, seed) = (program.to_owned(), dice.random());
        let (steps, threads) = (args.steps, args.threads);
        let effort = power::Effort { program, seed, steps, threads, share: 1.0, until: Some(until) };
        let mut ground = power::Ground::empty();
        for _ in 0..CHAIN {
            let record = power::record(&effort, ground, dice)?;
            total.lives += 1;
            match power::walk(&effort, &record, None, dice, &mut total.power)? {
                Ok(next) => ground = next,
                Err(broken) => return Ok(Some(broken)),
            }
            let power::Counts { boundaries, images, .. } = total.power;
            println!("{:5} s  {boundaries} syncs, {images} images, chain {seed}", begun.elapsed().as_secs());
            if Instant::now() >= until {
                break;
            }
        }
    }
    Ok(None)
}

fn kill_lives(
    args: &Args,
    program: &Path,
    until: Instant,
    dice: &mut StdRng,
    total: &mut Total,
) -> Result<Option<Broken>, Fault> {
    const CYCLES: u64 = 400;
    let begun = Instant::now();
    while Instant::now() < until {
        let effort = |seed| kill::Effort { program: program.to_owned(), seed, cycles: CYCLES, until: Some(until) };
        let efforts: Vec<_> = (0..args.threads).map(|_| effort(dice.random())).collect();
        let (counts, broken) = kill::run_all(&efforts)?;
        total.kill = total.kill.with(counts);
        println!("{:5} s  {} processes killed", begun.elapsed().as_secs(), total.kill.cycles);
        if broken.is_some() {
            return Ok(broken);
        }
    }
    Ok(None)
}

fn print_table(total: &Total, took: Duration, broken: Option<&Broken>) {
    let Total { power, lives, kill } = total;
    println!(
        "\n| minutes | lives recorded | syncs | images judged | acknowledged | processes killed | in recovery | acknowledged | broken |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    println!(
        "| {:.1} | {lives} | {} | {} | {} | {} | {} | {} | {} |",
        took.as_secs_f64() / 60.0,
        power.boundaries,
        power.images,
        power.acked,
        kill.cycles,
        kill.in_recovery,
        kill.acked,
        u64::from(broken.is_some())
    );
    // Each entry that was acknowledged is an operation, once, however often it was found again; each death is a fault.
    let sum = serde_json::json!({
        "program": "crash",
        "operations": power.acked + kill.acked,
        "faults": power.images + kill.cycles,
        "broken": u64::from(broken.is_some()),
    });
    println!("{sum}");
}

//! `kill -9` of a life at a random moment, again and again on the same directory.
//!
//! Owns the killing. Each life begins with judging what the one before has left, so what is killed is often a recovery.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::life::Birth;
use super::note::{Note, Promised};
use super::power::{DATA, remove, runtime};
use super::reference::{Prints, Reference};
use super::store::Fault;
use super::{Broken, keep, scratch, tree, write_file};

/// The longest that a process lives, in microseconds, from its start or from when it has judged what it found.
const LIFE_MICROS_MAX: u64 = 40_000;

/// How much is tried.
#[derive(Debug, Clone)]
pub struct Effort {
    /// The program that lives: see `bin/crash`.
    pub program: PathBuf,
    /// Of everything but the moments of death, which depend on the machine.
    pub seed: u64,
    /// Lives at most.
    pub cycles: u64,
    /// When to stop, done or not.
    pub until: Option<Instant>,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Processes killed.
    pub cycles: u64,
    /// Of those, how many were killed before they were done with opening and judging.
    pub in_recovery: u64,
    /// Entries acknowledged, each once.
    pub acked: u64,
}

/// Kills lives on one directory.
pub fn run(effort: &Effort, counts: &mut Counts) -> Result<Result<(), Broken>, Fault> {
    let mut dice = StdRng::seed_from_u64(effort.seed);
    let runtime = runtime()?;
    let place = scratch("kill")?;
    let root = place.path().join("root");
    std::fs::create_dir_all(root.join(DATA)).map_err(|error| error.to_string())?;
    let mut reference = Reference::new(effort.seed)?;
    let mut promised = Promised::default();
    for _ in 0..effort.cycles {
        if effort.until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        let before = tree::read(&root)?;
        let birth = birth(place.path(), effort.seed, dice.random(), &promised, &reference.prints);
        let death = Death {
            after_recovery: dice.random_ratio(2, 3),
            delay: Duration::from_micros(dice.random_range(0..LIFE_MICROS_MAX)),
        };
        match live_until(effort, &birth, place.path(), death)? {
            Ok(notes) => count(&notes, &mut promised, counts),
            Err(said) => {
                let fault = format!("seed {}, cycle {}: {said}", effort.seed, counts.cycles);
                return Ok(Err(Broken { fault, kept: keep("kill", &before, &birth)? }));
            }
        }
        remove(&birth.scratch)?;
        runtime.block_on(reference.follow(&promised))?;
        promised.prune();
        reference.prune(&promised);
    }
    Ok(Ok(()))
}

fn birth(place: &Path, seed: u64, dice: u64, promised: &Promised, prints: &Prints) -> Birth {
    let (dir, scratch) = (place.join("root").join(DATA), place.join("scratch"));
    Birth { dir, scratch, seed, dice, promised: promised.clone(), prints: prints.clone() }
}

fn count(notes: &[Note], promised: &mut Promised, counts: &mut Counts) {
    counts.cycles += 1;
    counts.in_recovery += u64::from(!notes.iter().any(|note| matches!(note, Note::Opened { .. })));
    for note in notes {
        counts.acked += promised.newly_acked(note);
        promised.hear(note);
    }
}

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
struct Death {
    /// Whether it may first open and judge what it found.
    after_recovery: bool,
    /// How long after that, or after its start.
    delay: Duration,
}

/// Gives what the process said before it was killed, or why it ended by itself.
fn live_until(effort: &Effort, birth: &Birth, place: &Path, death: Death) -> Result<Result<Vec<Note>, String>, Fault> {
    let path = place.join("birth");
    write_file(&path, birth)?;
    let mut command = Command::new(&effort.program);
    command.arg("live").arg(&path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", effort.program.display()))?;
    let mut said = Vec::new();
    if death.after_recovery {
        let stdout = child.stdout.as_mut().ok_or("the process has no pipe")?;
        listen_until_opened(stdout, &mut said).map_err(|error| format!("its pipe: {error}"))?;
    }
    thread::sleep(death.delay);
    let ended = child.try_wait().map_err(|error| error.to_string())?;
    child.kill().map_err(|error| format!("the process cannot be killed: {error}"))?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if let Some(status) = ended {
        return Ok(Err(format!("it ended with {status}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    said.extend(output.stdout);
    Ok(Ok(notes_in(&said)))
}

/// Takes in what it says until it has opened its storage, or ends.
fn listen_until_opened(pipe: &mut impl Read, said: &mut Vec<u8>) -> std::io::Result<()> {
    let mut chunk = [0; 4096];
    while !notes_in(said).iter().any(|note| matches!(note, Note::Opened { .. })) {
        match pipe.read(&mut chunk)? {
            0 => break,
            count => said.extend(&chunk[..count]),
        }
    }
    Ok(())
}

/// The last one may be cut short.
fn notes_in(mut said: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut length = [0; 4];
    while said.read_exact(&mut length).is_ok() {
        let Some((note, rest)) = said.split_at_checked(u32::from_le_bytes(length) as usize) else { break };
        let Ok((note, _)) = bincode::decode_from_slice(note, bincode::config::standard()) else { break };
        notes.push(note);
        said = rest;
    }
    notes
}

/// The form in which a life says something through its pipe.
pub fn framed(note: &Note) -> Result<Vec<u8>, Fault> {
    let body = bincode::encode_to_vec(note, bincode::config::standard()).map_err(|error| error.to_string())?;
    Ok([(body.len() as u32).to_le_bytes().as_slice(), &body].concat())
}

/// Several directories at a time. Gives the first that broke, too.
pub fn run_all(efforts: &[Effort]) -> Result<(Counts, Option<Broken>), Fault> {
    let run_one = |effort: &Effort| {
        let mut counts = Counts::default();
        run(effort, &mut counts).map(|done| (counts, done.err()))
    };
    let done: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = efforts.iter().map(|effort| scope.spawn(move || run_one(effort))).collect();
        threads.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))).collect()
    });
    let (mut total, mut broken) = (Counts::default(), None);
    for one in done {
        let (counts, found) = one?;
        total = total.with(counts);
        broken = broken.or(found);
    }
    Ok((total, broken))
}

impl Counts {
    /// The sum of both.
    #[must_use]
    pub fn with(self, other: Counts) -> Counts {
        Counts {
            cycles: self.cycles + other.cycles,
            in_recovery: self.in_recovery + other.in_recovery,
            acked: self.acked + other.acked,
        }
    }
}

//! Power loss at every sync of a recorded life.
//!
//! Owns the recording, and the walk along a record. The next life starts from what one of the power losses has left, so
//! that recovery is recorded and interrupted too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::disk::{Disk, Tree};
use super::event::Event;
use super::judge::judge;
use super::life::Birth;
use super::loss::Loss;
use super::mutant::Mutant;
use super::note::Promised;
use super::reference::{Prints, Reference};
use super::store::Fault;
use super::{Broken, keep, read_file, scratch, tree, write_file};

/// Name of the data directory within what is recorded.
pub const DATA: &str = "node";

/// How much is tried.
#[derive(Debug, Clone)]
pub struct Effort {
    /// The program that lives: see `bin/crash`.
    pub program: PathBuf,
    /// Of everything.
    pub seed: u64,
    /// What a life does.
    pub steps: u64,
    /// Judges at work at a time.
    pub threads: usize,
    /// The share of the syncs at which power is lost.
    pub share: f64,
    /// When to stop, done or not.
    pub until: Option<Instant>,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Syncs at which power was lost.
    pub boundaries: u64,
    /// What was judged.
    pub images: u64,
    /// Entries acknowledged, each once.
    pub acked: u64,
}

/// A life that was recorded.
pub struct Record {
    /// Of what the entries hold.
    pub seed: u64,
    /// What was on the disk.
    pub base: Tree,
    /// What had been promised before.
    pub promised: Promised,
    /// What happened.
    pub events: Vec<Event>,
    /// What the state had to be.
    pub prints: Arc<Prints>,
}

/// Where the next life starts.
pub struct Ground {
    /// What is on the disk.
    pub base: Tree,
    /// What was promised.
    pub promised: Promised,
}

impl Ground {
    /// A new disk.
    pub fn empty() -> Self {
        Self { base: Tree::new(), promised: Promised::default() }
    }
}

/// Lets a process live on this ground, and records it.
pub fn record(effort: &Effort, ground: Ground, dice: &mut StdRng) -> Result<Record, Fault> {
    let place = scratch("life")?;
    let root = place.path().join("root");
    tree::write(&ground.base, &root)?;
    let seed = effort.seed;
    let prints = prints_of(seed, &ground.promised)?;
    let (dir, scratch) = (root.join(DATA), place.path().join("scratch"));
    let birth = Birth { dir, scratch, seed, dice: dice.random(), promised: ground.promised, prints };
    let (birth_path, record_path) = (place.path().join("birth"), place.path().join("record"));
    write_file(&birth_path, &birth)?;
    let mut command = Command::new(&effort.program);
    command.arg("live").arg(&birth_path).arg("--record").arg(&record_path).args(["--steps", &effort.steps.to_string()]);
    let output = command.output().map_err(|error| format!("{}: {error}", effort.program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("the life ended with {}: {said}", output.status));
    }
    let events: Vec<Event> = read_file(&record_path)?;
    check_record(&ground.base, &events, &root)?;
    let mut promised = birth.promised.clone();
    hear_all(&mut promised, &events);
    let prints = Arc::new(prints_of(seed, &promised)?);
    Ok(Record { seed, base: ground.base, promised: birth.promised, events, prints })
}

/// A record that does not amount to what is really there would prove nothing.
fn check_record(base: &Tree, events: &[Event], root: &Path) -> Result<(), Fault> {
    let mut disk = Disk::holding(base, None);
    events.iter().for_each(|event| disk.play(event));
    let played = disk.after(Loss::NOTHING, &mut StdRng::seed_from_u64(0));
    match tree::difference(&played, &tree::read(root)?) {
        Some(difference) => Err(format!("the record misses something: {difference}")),
        None => Ok(()),
    }
}

fn hear_all(promised: &mut Promised, events: &[Event]) {
    for event in events {
        if let Event::Said(note) = event {
            promised.hear(note);
        }
    }
}

fn prints_of(seed: u64, promised: &Promised) -> Result<Prints, Fault> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut reference = Reference::new(seed)?;
        reference.follow(promised).await?;
        Ok(std::mem::take(&mut reference.prints))
    })
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

/// What a power loss left, and what it must hold.
struct Image {
    what: String,
    tree: Tree,
    promised: Arc<Promised>,
}

/// The first that broke a promise.
type Found = Mutex<Option<(Image, Fault)>>;

/// Loses power at the syncs of a record and judges what is left. Gives the ground for another life. The error is either a
/// broken promise, or that the test itself could not go on.
pub fn walk(
    effort: &Effort,
    record: &Record,
    mutant: Option<Mutant>,
    dice: &mut StdRng,
    counts: &mut Counts,
) -> Result<Result<Ground, Broken>, Fault> {
    let (sender, images) = sync_channel(effort.threads);
    let (images, found) = (Mutex::new(images), Mutex::new(None));
    let ground = thread::scope(|scope| {
        let judges: Vec<_> = (0..effort.threads).map(|_| scope.spawn(|| judge_all(&images, record, &found))).collect();
        let ground = lose_power(effort, record, mutant, dice, (&sender, &found), counts);
        drop(sender);
        for judge in judges {
            judge.join().map_err(|_| "a judge panicked".to_owned())??;
        }
        Ok::<_, Fault>(ground)
    })?;
    match found.into_inner() {
        None => Ok(Ok(ground)),
        Some((image, fault)) => broken(record, mutant, &image, &fault).map(Err),
    }
}

fn broken(record: &Record, mutant: Option<Mutant>, image: &Image, fault: &str) -> Result<Broken, Fault> {
    let fault = format!("seed {}, {}: {fault}", record.seed, image.what);
    if mutant.is_some() {
        return Ok(Broken { fault, kept: PathBuf::new() });
    }
    let (dir, scratch, promised, prints) =
        (PathBuf::new(), PathBuf::new(), (*image.promised).clone(), (*record.prints).clone());
    let birth = Birth { dir, scratch, seed: record.seed, dice: 0, promised, prints };
    Ok(Broken { fault, kept: keep("power", &image.tree, &birth)? })
}

fn lose_power(
    effort: &Effort,
    record: &Record,
    mutant: Option<Mutant>,
    dice: &mut StdRng,
    (images, found): (&SyncSender<Image>, &Found),
    counts: &mut Counts,
) -> Ground {
    let syncs = record.events.iter().filter(|event| matches!(event, Event::SyncEnd { .. })).count();
    let (next_life_at, mut seen) = (dice.random_range(0..syncs.max(1)), 0);
    let mut disk = Disk::holding(&record.base, mutant);
    let mut promised = record.promised.clone();
    let mut ground = None;
    for (at, event) in record.events.iter().enumerate() {
        let is_last = at + 1 == record.events.len();
        let is_next_life = seen == next_life_at && ground.is_none();
        if let Event::SyncEnd { .. } = event {
            seen += 1;
        } else if !is_last {
            take_in(event, &mut promised, &mut disk, counts);
            continue;
        }
        if effort.until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        if disk.is_suspect() && (is_next_life || is_last || dice.random_bool(effort.share)) {
            counts.boundaries += 1;
            let shared = Arc::new(promised.clone());
            for loss in [Loss::ALL_UNSYNCED, Loss::draw(dice)] {
                counts.images += 1;
                let tree = disk.after(loss, dice);
                if is_next_life {
                    ground = Some(Ground { base: tree.clone(), promised: promised.clone() });
                }
                let what = format!("power loss before event {at} of {}, {loss:?}", record.events.len());
                let image = Image { what, tree, promised: Arc::clone(&shared) };
                if found.lock().is_some() || images.send(image).is_err() {
                    // Nobody goes on from here.
                    return Ground::empty();
                }
            }
        }
        take_in(event, &mut promised, &mut disk, counts);
    }
    ground.unwrap_or_else(Ground::empty)
}

fn take_in(event: &Event, promised: &mut Promised, disk: &mut Disk, counts: &mut Counts) {
    if let Event::Said(note) = event {
        counts.acked += promised.newly_acked(note);
        promised.hear(note);
    }
    disk.play(event);
}

fn judge_all(images: &Mutex<Receiver<Image>>, record: &Record, found: &Found) -> Result<(), Fault> {
    let runtime = runtime()?;
    let place = scratch("image")?;
    for number in 0.. {
        // Taken from the others while it waits, which is all that they could do.
        let Ok(image) = images.lock().recv() else { break };
        if found.lock().is_some() {
            // Drains what was sent meanwhile.
            continue;
        }
        // Never the same place twice: where openraft installed a snapshot, a thread is still removing the state before it.
        let root = place.path().join(format!("root-{number}"));
        tree::write(&image.tree, &root)?;
        let judged = runtime.block_on(judge(&root.join(DATA), record.seed, &image.promised, &record.prints));
        match judged {
            Ok(storage) => storage.close(),
            Err(fault) => {
                found.lock().get_or_insert((image, fault));
            }
        }
        remove(&root)?;
    }
    Ok(())
}

/// Where a thread is still removing something there, once more.
pub(super) fn remove(root: &Path) -> Result<(), Fault> {
    for _ in 0..100 {
        match std::fs::remove_dir_all(root) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(_) => thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
    std::fs::remove_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))
}

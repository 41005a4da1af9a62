//! Crashes: a child process appends, votes, truncates and purges, and is killed: at random times, right after the N-th
//! acknowledgement, on entry of the N-th fdatasync, or by a power loss under its file system. Whatever it had
//! acknowledged must be there, and nothing else may be in its place.
//!
//! The child is this same test binary, running [`child`] alone with a directory in its environment.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::disk::Disk;
use crate::log_common::*;
use openraft::storage::RaftLogStorage;

const DIR: &str = "QUORATE_TEST_LOG_DIR";
const SEED: &str = "QUORATE_TEST_LOG_SEED";
const ACKS: &str = "QUORATE_TEST_LOG_DIE_AFTER_ACKS";
const FAILPOINT: &str = "QUORATE_TEST_LOG_FAILPOINT";

/// What the child has said so far, hence what the log must hold.
#[derive(Debug, Default)]
struct Promised {
    /// Index to term of every acknowledged entry that no truncation was begun for.
    entries: BTreeMap<u64, u64>,
    /// Last vote acknowledged.
    vote: u64,
    /// Last entry ever asked to be purged.
    purged: Option<u64>,
}

impl Promised {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "acked" => drop(self.entries.insert(number(1), number(2))),
            "truncating" => drop(self.entries.split_off(&(number(1) + 1))),
            "purging" => self.purged = Some(number(1)),
            "voted" => self.vote = number(1),
            _ => {}
        }
    }

    async fn check(&self, dir: &Path, what: &str) {
        let mut store = open(dir);
        let found: BTreeMap<u64, u64> =
            content(&mut store).await.into_iter().map(|(term, index)| (index, term)).collect();
        let purged = bounds(&mut store).await.0;
        assert!(purged <= self.purged, "{what}: {purged:?} was purged, asked was {:?}", self.purged);
        for (index, term) in self.entries.iter().filter(|(index, _)| purged.is_none_or(|purged| **index > purged)) {
            assert_eq!(found.get(index), Some(term), "{what}: entry {index} was acknowledged in term {term}");
        }
        let vote = vote_term(&mut store).await.unwrap_or(0);
        assert!(vote >= self.vote, "{what}: the vote fell from {} to {vote}", self.vote);
        let range = found.keys().next().zip(found.keys().last());
        assert!(range.is_none_or(|(first, last)| last - first + 1 == found.len() as u64), "{what}: the log has a hole");
    }
}

/// Does nothing in a normal run.
#[tokio::test]
async fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    die_at_failpoint();
    let mut random = number(SEED).unwrap();
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut store = open_small(Path::new(&dir), 1024 * 1024);
    store.set_durable_state_index(u64::MAX);
    let mut term = vote_term(&mut store).await.unwrap_or(0) + 1;
    let mut next = bounds(&mut store).await.1.map_or(0, |last| last + 1);
    let (mut flying, mut acks) = (VecDeque::new(), 0);
    vote(&mut store, term).await;
    println!("voted {term}");
    loop {
        let count = 1 + below(5);
        let ack = submit(&mut store, entries(term, next..next + count, below(20_000) as usize)).await;
        next += count;
        flying.push_back((next - count, count, ack));
        let special = below(40);
        while flying.len() > if special < 3 { 0 } else { 6 } {
            let (first, count, ack) = flying.pop_front().unwrap();
            ack.await.unwrap().unwrap();
            (first..first + count).for_each(|index| println!("acked {index} {term}"));
            acks += 1;
            if Some(acks) == number(ACKS) {
                die();
            }
        }
        match special {
            0 => {
                let (purged, _) = bounds(&mut store).await;
                let keep = (next - 1).saturating_sub(below(10)).max(purged.unwrap_or(0));
                println!("truncating {keep}");
                let keep_id = content(&mut store).await.into_iter().find(|(_, index)| *index == keep);
                if let Some((keep_term, _)) = keep_id {
                    store.truncate_after(Some(id(keep_term, keep))).await.unwrap();
                    next = keep + 1;
                }
                term += 1;
                vote(&mut store, term).await;
                println!("voted {term}");
            }
            1 if next > 100 => {
                let held = content(&mut store).await;
                let (purge_term, purge) = held[held.len() / 2];
                println!("purging {purge}");
                store.purge(id(purge_term, purge)).await.unwrap();
            }
            _ => {}
        }
    }
}

fn die() -> ! {
    // SAFETY: the signal goes to this very process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("SIGKILL is not survived")
}

#[cfg(debug_assertions)]
fn die_at_failpoint() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let Ok(wanted) = std::env::var(FAILPOINT) else { return };
    let (name, count) = wanted.split_once(' ').unwrap();
    let left = AtomicU64::new(count.parse().unwrap());
    let callback = move || {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            die()
        }
    };
    fail::cfg_callback(name, callback).unwrap();
}

#[cfg(not(debug_assertions))]
fn die_at_failpoint() {
    assert!(std::env::var(FAILPOINT).is_err(), "this build has no failpoints");
}

fn command(dir: &Path, seed: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["log_crash::child", "--exact", "--nocapture"]);
    command.env(DIR, dir).env(SEED, seed.to_string()).stdout(Stdio::piped());
    command
}

/// Kills the child, wherever it is, after at most `lines` lines; takes in everything it said.
fn listen(mut child: Child, lines: usize, promised: &mut Promised) -> usize {
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut heard = 0;
    for line in said.by_ref().take(lines) {
        promised.hear(&line);
        heard += 1;
    }
    // The child may be dead already, by its own hand.
    drop(child.kill());
    // What it had written into the pipe before it died counts too.
    for line in said {
        promised.hear(&line);
        heard += 1;
    }
    child.wait().unwrap();
    heard
}

fn seed() -> u64 {
    let seed = std::env::var(SEED).map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("{SEED}={seed}");
    seed
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kills_at_random_times() {
    const ROUNDS: u64 = 25;
    let root = tempfile::tempdir().unwrap();
    let (dir, seed, mut promised) = (root.path().join("node"), seed(), Promised::default());
    for round in 0..ROUNDS {
        let lines = 1 + (seed.wrapping_mul(round * round + 7) % 400) as usize;
        let heard = listen(command(&dir, seed + round).spawn().unwrap(), lines, &mut promised);
        assert!(heard >= lines, "round {round}: the child died early, after {heard} of {lines} lines");
        promised.check(&dir, &format!("seed {seed}, round {round}, {lines} lines")).await;
    }
    assert!(promised.entries.len() > 10, "{promised:?}");
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill_right_after_its_acknowledgement() {
    let root = tempfile::tempdir().unwrap();
    let (dir, seed, mut promised) = (root.path().join("node"), seed(), Promised::default());
    for acks in 1..=10 {
        let child = command(&dir, seed + acks).env(ACKS, acks.to_string()).spawn().unwrap();
        listen(child, usize::MAX, &mut promised);
        promised.check(&dir, &format!("seed {seed}, {acks} acknowledgements")).await;
    }
    assert!(promised.entries.len() >= 10, "{promised:?}");
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill_on_entry_of_a_sync() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        println!("skipped: needs strace");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (dir, seed, mut promised) = (root.path().join("node"), seed(), Promised::default());
    for (call, count) in [
        ("fdatasync", 3),
        ("rename", 1),
        ("fdatasync", 20),
        ("fsync", 2),
        ("fdatasync", 41),
        ("rename", 2),
        ("fsync", 5),
    ] {
        let inject = format!("inject={call}:signal=SIGKILL:when={count}");
        let plain = command(&dir, seed + count);
        let mut traced = Command::new("strace");
        traced.args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
        traced.arg(plain.get_program()).args(plain.get_args()).stdout(Stdio::piped());
        traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let heard = listen(traced.spawn().unwrap(), 20_000, &mut promised);
        assert!(heard < 20_000, "{call} number {count} never came");
        promised.check(&dir, &format!("seed {seed}, {call} number {count}")).await;
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill_at_a_failpoint() {
    const POINTS: [(&str, u64); 8] = [
        ("mark-before-rename", 1),
        ("log-before-write", 30),
        ("log-before-sync", 30),
        ("log-after-sync-before-ack", 30),
        ("log-after-mark-lowered", 1),
        ("log-after-truncate", 1),
        ("mark-before-sync", 4),
        ("log-before-sync", 1),
    ];
    let root = tempfile::tempdir().unwrap();
    let (dir, seed, mut promised) = (root.path().join("node"), seed(), Promised::default());
    for (round, (point, count)) in (0..).zip(POINTS) {
        let child = command(&dir, seed + round).env(FAILPOINT, format!("{point} {count}")).spawn().unwrap();
        // A child that outlives this many lines never came to its point.
        let heard = listen(child, 20_000, &mut promised);
        assert!(heard < 20_000, "{point} was never reached");
        promised.check(&dir, &format!("seed {seed}, {point} for the {count}. time")).await;
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_power_loss() {
    const ROUNDS: u64 = 4;
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::make(root.path()) else {
        println!("skipped: needs root and loop devices");
        return;
    };
    let (seed, mut promised) = (seed(), Promised::default());
    let dir = disk.mount.join("node");
    for round in 0..ROUNDS {
        let unsynced = disk.leave_unsynced();
        let mut child = command(&dir, seed + round).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let lines = 50 + (seed.wrapping_mul(round + 3) % 1_500) as usize;
        said.by_ref().take(lines).for_each(|line| promised.hear(&line));
        disk.cut_power();
        // What the child says from here on does not count, but for what it may have begun.
        drop(child.kill());
        said.filter(|line| !line.starts_with("acked") && !line.starts_with("voted"))
            .for_each(|line| promised.hear(&line));
        child.wait().unwrap();
        disk.remount();
        unsynced.assert_lost();
        promised.check(&dir, &format!("seed {seed}, round {round}")).await;
    }
    assert!(promised.entries.len() > 10, "{promised:?}");
}

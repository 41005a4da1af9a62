//! Scheduled backups: every so often into a directory, of which the last ones are kept.
//!
//! Owns when one is due, its name and which old ones go. Every node that has a directory does this by itself, of its own
//! state, leader or not: so backups need nobody to be in charge of them, an operator says by the configuration which disks
//! they shall be on, and a follower that takes them spares the leader. The name has the node in it, so nodes may share one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_archive::{FileSealing, MacKeys, Recipients, WrittenFile, read_again};
use quorate_machine::types::WallMillis;
use quorate_node_core::millis::{millis, wall_now};
use quorate_store::backup::{BackupEnd, BackupError, BackupReader};
use quorate_store::durable;
use quorate_threads::background;

use super::App;
use super::backup::BackupFor;
use super::pace::Pace;

/// How long after a failure it is tried again, unless the next one is due before.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Between two, whatever the clock says.
const PAUSE: Duration = Duration::from_secs(10);
/// How often a node that joins looks whether it is of a cluster yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Written and read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// What has to be free beyond what writes need, on a disk that is shared with the data: the look at it is a quarter second old.
const SPARE_BYTES: u64 = 64 << 20;
/// Ends the name of a whole backup.
const SUFFIX: &str = ".backup";
/// Behind that where it is encrypted.
const ENCRYPTED: &str = ".age";
/// Ends the name of one that is being written.
const PART: &str = ".part";

/// Where backups go, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSchedule {
    /// The directory; made where it is missing.
    pub dir: PathBuf,
    /// From one to the next.
    pub every: Duration,
    /// How many are kept.
    pub keep: usize,
    /// For whom they are encrypted, if for anybody.
    pub recipients: Recipients,
    /// Keys of the MACs that authenticate them, if any do.
    pub macs: MacKeys,
}

/// Why there is no backup this time. A sentence for people.
#[derive(Debug, thiserror::Error)]
enum NoBackup {
    #[error("{0}")]
    NotReady(String),
    #[error("{} bytes of backup were written when the data disk ran low, which both are on; writes of the cluster come first", .0)]
    NoRoom(u64),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Backup { path: PathBuf, source: BackupError },
}

/// Takes backups until it is dropped.
pub async fn run(app: App, schedule: BackupSchedule) {
    app.backups().ledger().expect_every(schedule.every);
    let prefix = loop {
        match prefix(&app) {
            Some(prefix) => break prefix,
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    // A name from the future is of a clock that was wrong.
    let now = wall_now();
    let (dir, own) = (schedule.dir.clone(), prefix.clone());
    match background::blocking(move || list(&dir, &own)).await.and_then(|listed| listed) {
        Ok(files) => {
            let newest = files.iter().rfind(|file| file.taken_at <= now);
            newest.into_iter().for_each(|newest| app.backups().ledger().note_good(newest.taken_at));
        }
        Err(error) => tracing::warn!(dir = %schedule.dir.display(), %error, "the directory for backups cannot be read"),
    }
    loop {
        tokio::time::sleep(until_due(app.backups().ledger().last_good(), wall_now(), schedule.every)).await;
        let (taker, request, name) = (app.clone(), schedule.clone(), prefix.clone());
        let taken = background::blocking(move || take(&taker, &request, &name)).await;
        let failure = match taken {
            Ok(Ok((path, end))) => {
                tracing::info!(path = %path.display(), rows = end.rows, revision = end.revision, "took a backup");
                // Whatever clocks do, not one right after the other.
                tokio::time::sleep(PAUSE.min(schedule.every)).await;
                continue;
            }
            Ok(Err(failure)) => failure.to_string(),
            Err(error) => error.to_string(),
        };
        app.backups().ledger().note_failed(BackupFor::Directory);
        let age = app.backups().ledger().last_good().map(|at| wall_now().saturating_sub(at) / 1_000);
        let age = age.map_or("there is none".to_owned(), |seconds| format!("{seconds} s old"));
        tracing::warn!(failure, last_good = age, "no backup this time; it is tried again");
        tokio::time::sleep(AGAIN_AFTER.min(schedule.every)).await;
    }
}

/// How long until the next backup is due. A clock that was set back makes it due at once.
fn until_due(last_good: Option<WallMillis>, now: WallMillis, every: Duration) -> Duration {
    let Some(age) = last_good.and_then(|at| now.checked_sub(at)) else { return Duration::ZERO };
    every.saturating_sub(Duration::from_millis(age))
}

/// Takes one, and removes those that are not kept any more.
fn take(app: &App, schedule: &BackupSchedule, prefix: &str) -> Result<(PathBuf, BackupEnd), NoBackup> {
    if let Some(reason) = app.unready_reason() {
        return Err(NoBackup::NotReady(reason));
    }
    let (dir, taken_at) = (&schedule.dir, wall_now());
    durable::create_dir(dir).map_err(at(dir))?;
    let encrypted = if schedule.recipients.is_none() { "" } else { ENCRYPTED };
    let name = name(prefix, taken_at) + encrypted;
    let (path, part) = (dir.join(&name), dir.join(format!("{name}{PART}")));
    let written = write(app, schedule, &part);
    if written.is_err() {
        // The disk may be full: what is there of it must not stay.
        if let Err(error) = fs::remove_file(&part) {
            tracing::warn!(path = %part.display(), %error, "a backup that failed could not be removed");
        }
    }
    let end = written?;
    fs::rename(&part, &path).map_err(at(&path))?;
    durable::sync_dir(dir).map_err(at(dir))?;
    app.backups().ledger().note_completed(BackupFor::Directory);
    app.backups().ledger().note_good(taken_at);
    for old in superfluous(list(dir, prefix).map_err(at(dir))?, taken_at, schedule.keep) {
        fs::remove_file(&old.path).map_err(at(&old.path))?;
    }
    Ok((path, end))
}

/// The backups that are kept no more once one was taken at `now`: the oldest, and before them those of a clock that was ahead.
fn superfluous(files: Vec<Kept>, now: WallMillis, keep: usize) -> Vec<Kept> {
    let (ahead, mut best): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.taken_at > now);
    best.reverse();
    best.extend(ahead);
    best.split_off(keep.min(best.len()))
}

/// Writes a backup durably, and reads it again: a backup that nobody has read is a hope.
fn write(app: &App, schedule: &BackupSchedule, part: &Path) -> Result<BackupEnd, NoBackup> {
    let in_part = |source| NoBackup::Backup { path: part.to_owned(), source };
    let mut sink = BufWriter::with_capacity(PIECE_BYTES, create(part).map_err(at(part))?);
    let mut modest = Modest { sink: &mut sink, app, shares_disk: shares_disk(app, part), written: 0, gave_way: false };
    let done = fill(app, schedule, &mut modest);
    if modest.gave_way {
        return Err(NoBackup::NoRoom(modest.written));
    }
    let (end, written) = done.map_err(in_part)?;
    let file = sink.into_inner().map_err(|error| at(part)(error.into_error()))?;
    file.sync_all().map_err(at(part))?;
    let reading = Reading { file: File::open(part).map_err(at(part))?, app, pace: Pace::begin(app.state().clone()) };
    let source = BufReader::with_capacity(PIECE_BYTES, reading);
    let differs = |wrote: String, read: String| {
        let what = format!("it was written as {wrote} and read as {read}");
        in_part(BackupError::Damaged { at: 0, what })
    };
    if !schedule.recipients.is_none() {
        // It takes a key that the node need not have to see more than that its bytes are there.
        let found = read_again(source, written.bytes).map_err(at(part))?;
        return if found == written { Ok(end) } else { Err(differs(format!("{written:?}"), format!("{found:?}"))) };
    }
    let source = source.take(written.bytes);
    let (_, found) = BackupReader::open(source).and_then(|reader| reader.verify(|_| {})).map_err(in_part)?;
    if found == end { Ok(end) } else { Err(differs(format!("{end:?}"), format!("{found:?}"))) }
}

/// Writes the bytes of a backup, encrypted and authenticated as the schedule says.
fn fill(app: &App, schedule: &BackupSchedule, sink: &mut dyn Write) -> Result<(BackupEnd, WrittenFile), BackupError> {
    let mut sealing = FileSealing::begin(sink, &schedule.recipients, &schedule.macs)?;
    let end = app.backups().back_up(BackupFor::Directory, &mut sealing, &mut |_| {})?;
    Ok((end, sealing.finish()?))
}

/// Stops with the node, and before it takes the room that the cluster's writes need.
struct Modest<'a, W> {
    sink: W,
    app: &'a App,
    shares_disk: bool,
    written: u64,
    gave_way: bool,
}

impl<W: Write> Write for Modest<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        go_on(self.app)?;
        if self.shares_disk && !self.app.space().has_room_beside(SPARE_BYTES) {
            self.gave_way = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = self.sink.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Reads a backup at its pace, and stops with the node.
struct Reading<'a> {
    file: File,
    app: &'a App,
    pace: Pace,
}

impl Read for Reading<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        go_on(self.app)?;
        self.pace.keep();
        let read = self.file.read(into)?;
        self.pace.count(read);
        Ok(read)
    }
}

/// Fails once the node stops, which must not wait for a backup.
fn go_on(app: &App) -> io::Result<()> {
    if app.is_stopping() { Err(io::Error::other("the node is stopping")) } else { Ok(()) }
}

/// Whether a file is on the disk of the data directory. Where that is not known it counts as such.
fn shares_disk(app: &App, part: &Path) -> bool {
    let disk = |path: &Path| fs::metadata(path).map(|known| known.dev()).ok();
    disk(part).is_none() || disk(part) == disk(app.state().state_dir())
}

/// A file that only its owner may read: all of the cluster is in it. Always a new one: a directory that others may write to can have
/// a link of that name, which would lead the backup over another file.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

fn at(path: &Path) -> impl Fn(io::Error) -> NoBackup {
    move |source| NoBackup::Io { path: path.to_owned(), source }
}

/// A whole backup in the directory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    taken_at: WallMillis,
    path: PathBuf,
}

/// How the names of this node's backups begin, once it is of a cluster. A directory may hold those of others, too.
fn prefix(app: &App) -> Option<String> {
    let identity = app.members().identity();
    let cluster = identity.cluster_id?;
    Some(format!("quorate-{:08x}-n{}-", cluster >> 96, identity.node_id))
}

/// The name of a backup; those of one node sort by time.
fn name(prefix: &str, taken_at: WallMillis) -> String {
    format!("{prefix}{taken_at:014}{SUFFIX}")
}

fn taken_at(name: &str, prefix: &str) -> Option<WallMillis> {
    let name = name.strip_suffix(ENCRYPTED).unwrap_or(name);
    let time = name.strip_prefix(prefix)?.strip_suffix(SUFFIX)?;
    (time.len() == 14).then(|| time.parse().ok())?
}

/// The whole backups of a node in a directory, oldest first; what an interrupted one left is removed.
fn list(dir: &Path, prefix: &str) -> io::Result<Vec<Kept>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(taken_at) = taken_at(name, prefix) {
            found.push(Kept { taken_at, path });
        } else if name.strip_suffix(PART).is_some_and(|name| taken_at(name, prefix).is_some()) {
            fs::remove_file(&path)?;
        }
    }
    found.sort();
    Ok(found)
}

/// The words of a schedule, for people.
impl std::fmt::Display for BackupSchedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "every {} s into {}, the last {} kept", millis(self.every) / 1_000, self.dir.display(), self.keep)?;
        match self.recipients.names().collect::<Vec<_>>() {
            none if none.is_empty() => f.write_str(", not encrypted"),
            names => write!(f, ", encrypted for {}", names.join(", ")),
        }?;
        if self.macs.is_none() { Ok(()) } else { f.write_str(", authenticated") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "quorate-0000000a-n1-";
    /// Of another cluster.
    const B: &str = "quorate-0000000b-n1-";

    #[test]
    fn those_of_a_clock_that_was_ahead_go_first_and_the_new_one_never_does() {
        let kept = |times: &[WallMillis]| -> Vec<Kept> {
            times.iter().map(|at| Kept { taken_at: *at, path: PathBuf::from(name(A, *at)) }).collect()
        };
        let gone = |times: &[WallMillis], now, keep| -> Vec<WallMillis> {
            superfluous(kept(times), now, keep).into_iter().map(|file| file.taken_at).collect()
        };
        assert_eq!(gone(&[1, 2, 3], 3, 2), [1]);
        assert!(gone(&[1, 2, 3], 3, 9).is_empty());
        assert_eq!(gone(&[5, 7, 90, 91], 7, 3), [91], "a good backup under a wrong name stays while there is room");
        assert_eq!(gone(&[7, 90, 91], 7, 1), [90, 91]);
    }

    #[test]
    fn a_backup_is_due_so_long_after_the_last_good_one() {
        let every = Duration::from_millis(1_000);
        assert_eq!(until_due(None, 5_000, every), Duration::ZERO);
        assert_eq!(until_due(Some(4_700), 5_000, every), Duration::from_millis(700));
        assert_eq!(until_due(Some(1_000), 5_000, every), Duration::ZERO);
        assert_eq!(until_due(Some(9_000), 5_000, every), Duration::ZERO, "the clock was set back");
    }

    #[test]
    fn a_link_in_the_place_of_a_backup_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let (precious, part) = (dir.path().join("precious"), dir.path().join("b.part"));
        fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, &part).unwrap();
        assert_eq!(create(&part).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        // Nor does one that leads to a place where there is nothing yet.
        fs::remove_file(&precious).unwrap();
        assert!(create(&part).is_err() && !precious.exists());
        fs::remove_file(&part).unwrap();
        create(&part).unwrap();
        assert_eq!(fs::metadata(&part).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_the_backups_of_this_node_are_listed_and_unfinished_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let unfinished = [name(A, 9), name(A, 10) + ENCRYPTED].map(|name| name + PART);
        let all = [name(A, 20), name(A, 3) + ENCRYPTED, name(B, 7), "notes.txt".to_owned()];
        let all = [&all[..], &unfinished].concat();
        all.iter().for_each(|name| fs::write(dir.path().join(name), "x").unwrap());
        let times: Vec<_> = list(dir.path(), A).unwrap().into_iter().map(|kept| kept.taken_at).collect();
        assert_eq!(times, [3, 20]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
        assert_eq!(list(&dir.path().join("missing"), A).unwrap(), []);
    }
}

//! `quorate-node archive`: what an archive holds, whether it is sound, and what of it is needed.
//!
//! Owns the verbs, and what an archive and a point of it are called on the command line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use quorate_archive::{Archive, ArchiveError, Catalogue, Gap, Keys, Location, MacKeys, Reach, Retention, Target};
use quorate_node_core::millis::wall_now;
use quorate_node_replica::app::archive::{read_keys, read_macs};
use quorate_node_replica::rebuild::{Begin, End, Scratch, Source, Wanted, Watcher};
use tokio::runtime::Runtime;

use super::interrupt::{self, Work};
use super::progress::Progress;
use super::{CommandError, time};

/// Written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// About archives.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Lists the bases of an archive, and the points that can be restored, with the gaps between them
    List {
        #[command(flatten)]
        archive: ArchiveArgs,
    },
    /// Reads all of an archive and says whether it is sound; with --restore also whether the state at its end can be restored
    Verify {
        #[command(flatten)]
        archive: ArchiveArgs,
        /// Restore the newest point into a directory that is removed again
        #[arg(long)]
        restore: bool,
        /// Where that directory is made; needs room for the state twice [default: that for temporary files]
        #[arg(long, value_name = "DIR", requires = "restore")]
        scratch: Option<PathBuf>,
    },
    /// Makes a backup of a point of an archive, for `quorate-node backup show`, `list`, `find`, `export` and `restore`
    #[command(after_help = "\
Example:
  quorate-node archive backup --from s3://backups/prod --at 2026-01-31T12:00:00Z before.backup")]
    Backup {
        #[command(flatten)]
        archive: ArchiveArgs,
        #[command(flatten)]
        point: PointArgs,
        /// Where it is worked on; needs room for the state twice [default: that for temporary files]
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// The backup
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Removes what is not needed for the points that are kept; nodes that archive do it by themselves
    Prune {
        #[command(flatten)]
        archive: ArchiveArgs,
        /// Milliseconds for which each point is kept
        #[arg(long, value_name = "MS")]
        keep_ms: u64,
        /// Bases that are kept at least
        #[arg(long, value_name = "N", default_value_t = 2)]
        keep_bases: usize,
        /// Do it: without this it is only said what would go
        #[arg(long)]
        yes: bool,
    },
}

/// Which archive.
#[derive(Debug, clap::Args)]
pub struct ArchiveArgs {
    /// Where it is: s3://BUCKET/PREFIX, gs://…, az://CONTAINER/PREFIX or a directory
    #[arg(long, value_name = "LOCATION")]
    from: String,
    #[command(flatten)]
    opened: OpenedArgs,
}

/// What it takes to read one.
#[derive(Debug, clap::Args)]
pub struct OpenedArgs {
    /// The cluster, 32 hexadecimal digits, where archives of several are there
    #[arg(long, value_name = "ID")]
    pub(super) cluster: Option<String>,
    #[command(flatten)]
    pub(super) keys: KeyArgs,
}

/// The keys of an archive or of a backup.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct KeyArgs {
    /// File with the key of age that opens it, where it is encrypted
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// File with the secret by which nodes authenticate what they write: what has no MAC by it is refused
    #[arg(long, value_name = "FILE")]
    mac_key: Option<PathBuf>,
}

impl KeyArgs {
    /// Whether one was named.
    pub fn is_named(&self) -> bool {
        self.key.is_some() || self.mac_key.is_some()
    }

    fn read(&self) -> Result<(Keys, MacKeys), CommandError> {
        let keys = self.key.as_deref().map(read_keys).transpose()?.unwrap_or_default();
        let macs = self.mac_key.as_deref().map(read_macs).transpose()?.unwrap_or_default();
        Ok((keys, macs))
    }

    /// Opens a backup that may be encrypted, and compares its MAC where there is a key for that.
    pub fn open(&self, backup: &Path) -> Result<Box<dyn Read + Send>, CommandError> {
        let (keys, macs) = self.read()?;
        Ok(quorate_archive::open_file(backup, &keys, &macs)?)
    }
}

/// Which point of it.
#[derive(Debug, Default, clap::Args)]
pub struct PointArgs {
    /// All that was written up to this time of the log's clock, like 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with_all = ["revision", "latest"])]
    at: Option<String>,
    /// All changes up to this revision
    #[arg(long, value_name = "N", conflicts_with = "latest")]
    revision: Option<u64>,
    /// As far as the archive goes, which is also what is taken where no point is named
    #[arg(long)]
    latest: bool,
    /// Begin with the base of this entry, as `quorate-node archive list` shows it, and not with the newest before the point
    #[arg(long, value_name = "ENTRY")]
    base: Option<u64>,
}

impl PointArgs {
    /// Whether one was named.
    pub fn is_named(&self) -> bool {
        self.at.is_some() || self.revision.is_some() || self.latest || self.base.is_some()
    }

    /// The base to begin with.
    pub fn begin(&self) -> Begin {
        self.base.map_or(Begin::Newest, Begin::At)
    }

    /// The point.
    pub fn target(&self) -> Result<Target, CommandError> {
        if let Some(text) = &self.at {
            let parsed: Result<jiff::Timestamp, _> = text.parse();
            let millis = parsed.ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
            let how = "write it with date, time and zone, like 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00";
            return millis
                .map(Target::Time)
                .ok_or_else(|| CommandError::Usage(format!("--at {text} is no time; {how}")));
        }
        Ok(self.revision.map_or(Target::Latest, Target::Revision))
    }
}

/// An archive that was opened, and the runtime that reads it.
pub struct OpenedArchive {
    runtime: Runtime,
    /// The archive.
    pub source: Source,
}

impl OpenedArgs {
    /// Opens it, and looks whether it is there.
    pub fn open(&self, from: &str) -> Result<OpenedArchive, CommandError> {
        let cluster = self.cluster.as_deref().map(cluster_id).transpose()?;
        let location: Location = from.parse().map_err(|error| CommandError::Usage(format!("--from: {error}")))?;
        let (keys, macs) = self.keys.read()?;
        // One thread for the sockets; this one waits for it.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| CommandError::Failed(format!("no thread can be started: {error}")))?;
        let place = location.open_existing()?;
        let archive = runtime.block_on(Archive::find(place, cluster))?.with_macs(macs);
        let source = Source { archive, keys, handle: runtime.handle().clone() };
        Ok(OpenedArchive { runtime, source })
    }
}

fn cluster_id(text: &str) -> Result<u128, CommandError> {
    let read = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    read.ok_or_else(|| {
        CommandError::Usage(format!("--cluster {text} is no id of a cluster: it has 32 hexadecimal digits"))
    })
}

/// Runs the verb.
pub fn run(command: ArchiveCommand) -> Result<(), CommandError> {
    match command {
        ArchiveCommand::List { archive } => list(&archive.opened.open(&archive.from)?),
        ArchiveCommand::Verify { archive, restore, scratch } => {
            verify(&archive.opened.open(&archive.from)?, restore.then_some(scratch))
        }
        ArchiveCommand::Backup { archive, point, scratch, file } => {
            back_up(&archive.opened.open(&archive.from)?, &point, scratch, &file)
        }
        ArchiveCommand::Prune { archive, keep_ms, keep_bases, yes } => {
            let retention = Retention { keep_ms, bases_min: keep_bases };
            prune(&archive.opened.open(&archive.from)?, retention, yes)
        }
    }
}

fn list(OpenedArchive { runtime, source }: &OpenedArchive) -> Result<(), CommandError> {
    let archive = &source.archive;
    let catalogue = runtime.block_on(archive.catalogue())?;
    say!("The archive of cluster {:032x}: {archive}", archive.cluster());
    let (bases, bytes) = (catalogue.bases.len(), catalogue.bytes);
    let bundles = catalogue.segments.iter().filter(|segment| segment.is_bundle()).count();
    let pieces = catalogue.segments.len() - bundles;
    say!("  {bases} bases, {pieces} pieces of the log and {bundles} bundles of pieces, of {bytes} bytes");
    for name in &catalogue.bases {
        let manifest = match runtime.block_on(archive.manifest(name)) {
            Ok(manifest) => manifest,
            // The others may be as they should be: those of before there was a key for MACs have none.
            Err(error) if error.is_of_an_object() => {
                say!("  not to be had: {}", quorate_archive::with_causes(&error));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let sealed = match manifest.is_encrypted() {
            true => format!(", encrypted for {}", manifest.recipients.join(", ")),
            false => String::new(),
        };
        let (wall, revision, index) = (time(name.wall), name.revision, name.index);
        say!(
            "  base of {wall}, revision {revision}, entry {index}: {} bytes by node {}{sealed}",
            manifest.bytes,
            name.node
        );
    }
    let survey = catalogue.survey();
    let (gaps, reaches) = (survey.gaps(), survey.reaches);
    if reaches.is_empty() {
        say!("No point can be restored: there is no whole base.");
    }
    let mut gaps = gaps.into_iter();
    for reach in &reaches {
        say!("Every point can be restored {}", stretch(reach));
        match gaps.next() {
            Some(gap @ Gap { after: Some(_), .. }) => say!("  gap: {gap}"),
            Some(gap) => say!("  gap: {gap}; what is behind them cannot be restored"),
            None => {}
        }
    }
    match runtime.block_on(archive.verified()) {
        Err(error) if error.is_of_an_object() => {
            say!("What the last restore that was tried came to is not taken: {error}");
        }
        Err(error) => return Err(error.into()),
        Ok(None) => say!("No node has tried a restore yet."),
        Ok(Some(tried)) => match tried.fault {
            None => {
                say!(
                    "A restore was tried by node {} at {}, up to revision {}: it is to be had.",
                    tried.node,
                    time(tried.at),
                    tried.revision
                );
                if let Some(locked) = tried.locked {
                    say_locked(&locked);
                }
            }
            Some(fault) => say!("A restore was tried by node {} at {}: {fault}", tried.node, time(tried.at)),
        },
    }
    Ok(())
}

fn say_locked(what: &str) {
    say!("  points before the newest base can be restored with another key alone: {what}");
}

fn stretch(Reach { from, revision, wall, .. }: &Reach) -> String {
    format!("from {}, revision {}, to {}, revision {revision}", time(from.wall), from.revision, time(*wall))
}

fn verify(opened: &OpenedArchive, restore: Option<Option<PathBuf>>) -> Result<(), CommandError> {
    let OpenedArchive { runtime, source } = opened;
    let archive = &source.archive;
    let catalogue = runtime.block_on(archive.catalogue())?;
    let mut faults = Vec::new();
    let mut progress = Progress::new("verifying");
    for (done, name) in catalogue.bases.iter().enumerate() {
        progress.counted("bases", done as u64);
        faults.extend(archive.prove_base(&source.handle, name).1);
    }
    let mut gone = Vec::new();
    for (done, name) in catalogue.segments.iter().enumerate() {
        progress.counted("objects of the log", done as u64);
        match runtime.block_on(archive.prove_segment(name)) {
            Ok(_) => {}
            Err(errors) if errors.iter().all(ArchiveError::is_not_found) => gone.push(name),
            Err(errors) => faults.extend(errors),
        }
    }
    drop(progress);
    // A leader merges and prunes while these are read: what is still named, or missing between others, is lost.
    let later = (!gone.is_empty()).then(|| runtime.block_on(archive.catalogue())).transpose()?;
    let now = later.as_ref().unwrap_or(&catalogue);
    let lost = gone.iter().filter(|name| now.segments.contains(name)).map(|name| format!("{name} is lost"));
    let faults: Vec<_> =
        faults.iter().map(|fault| quorate_archive::with_causes(fault)).chain(lost).chain(gaps(now)).collect();
    faults.iter().for_each(|fault| say!("  {fault}"));
    if faults.is_empty() {
        let (bases, objects) = (catalogue.bases.len(), catalogue.segments.len());
        say!("All {bases} bases and {objects} objects of the log are as they were written.");
    }
    // What is damaged may stand beside the way.
    if let Some(scratch) = restore {
        restore_end(source, scratch.as_deref())?;
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(CommandError::Failed(format!(
            "{archive} has {count} faults; points beyond them can be restored all the same"
        ))),
    }
}

/// Makes the state at the end of an archive, and says what it did without.
fn restore_end(source: &Source, scratch: Option<&Path>) -> Result<(), CommandError> {
    let _work = begin_work(source)?;
    let dir = temporary(scratch)?;
    let End { replay, passed_over, locked } = source.rebuild_end(dir.path(), &mut Shown::new("restoring"))?;
    let at = replay.at();
    say!(
        "The state at its end can be restored: revision {}, {}, digest {:032x}",
        at.revision,
        time(at.wall),
        at.digest
    );
    passed_over.iter().for_each(|fault| say!("  without what cannot be had: {fault}"));
    if let Some(locked) = locked {
        say_locked(&locked);
    }
    Ok(())
}

fn gaps(catalogue: &Catalogue) -> Vec<String> {
    let survey = catalogue.survey();
    match survey.reaches.is_empty() {
        true => vec!["there is no whole base, so nothing can be restored".to_owned()],
        false => survey.gaps().iter().map(Gap::to_string).collect(),
    }
}

/// From now on a signal has this verb remove what it has begun.
pub fn begin_work(source: &Source) -> Result<Work, CommandError> {
    Work::begin(&source.handle).map_err(|error| CommandError::Failed(format!("signals: {error}")))
}

/// A directory that goes when it is dropped.
fn temporary(scratch: Option<&Path>) -> Result<Scratch, CommandError> {
    let home = scratch.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let dir = home.join(format!("quorate-archive-{:016x}", rand::random::<u64>()));
    Ok(Scratch::make(dir, |why| Progress::new("").step(why))?)
}

fn back_up(
    opened: &OpenedArchive,
    point: &PointArgs,
    scratch: Option<PathBuf>,
    file: &Path,
) -> Result<(), CommandError> {
    if file.exists() {
        return Err(CommandError::Usage(format!("{} is there already; name another file", file.display())));
    }
    let mut wanted = opened.source.want(point.target()?, point.begin())?;
    let _work = begin_work(&opened.source)?;
    let dir = temporary(scratch.as_deref())?;
    let wall = make_backup(&opened.source, &mut wanted, dir.path(), file)?;
    say!("{}: {}; it is of {}", file.display(), what_it_is(&wanted), age(wall));
    Ok(())
}

/// A time of the log's clock, and how long ago that is by this machine's.
pub fn age(wall: u64) -> String {
    let seconds = wall_now().saturating_sub(wall) / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{}, {seconds} s ago", time(wall)),
        (0, 0, _) => format!("{}, {minutes} min ago", time(wall)),
        (0, ..) => format!("{}, {hours} h {minutes} min ago", time(wall)),
        _ => format!("{}, {days} d {hours} h ago", time(wall)),
    }
}

/// What a point of an archive is, for people.
pub fn what_it_is(Wanted { manifest, plan, passed_over, .. }: &Wanted) -> String {
    let pieces = plan.segments.len();
    let without = match &passed_over[..] {
        [] => String::new(),
        faults => format!(", without what cannot be had ({})", faults.join("; ")),
    };
    format!("out of the base of {} and {pieces} pieces of the log behind it{without}", time(manifest.wall))
}

/// A file that takes its name once it is whole, and goes when it is dropped before.
struct Part<'f> {
    path: PathBuf,
    file: &'f Path,
}

impl<'f> Part<'f> {
    /// Where to write it: beside the file, under a name that no other try has.
    fn of(file: &'f Path) -> Self {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part-{:08x}", rand::random::<u32>()));
        Self { path: file.with_file_name(name), file }
    }

    fn open(&self) -> io::Result<File> {
        // All of a cluster is in it.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)
    }

    /// It is whole and durable.
    fn finish(self) -> io::Result<()> {
        // Not a rename: it would replace a file that has come meanwhile.
        fs::hard_link(&self.path, self.file)?;
        let directory = self.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Progress::new("").step(&format!("{} could not be removed: {error}", self.path.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Makes a backup of a point, working in `dir`, which is empty.
///
/// Gives the log's wall clock at its end. Nothing is at `file` where it fails.
pub fn make_backup(source: &Source, wanted: &mut Wanted, dir: &Path, file: &Path) -> Result<u64, CommandError> {
    let at_file = |error: io::Error| CommandError::Failed(format!("{}: {error}", file.display()));
    let replay = source.rebuild(wanted, dir, &mut Shown::new("reading the archive"))?;
    let part = Part::of(file);
    let mut sink = interrupt::Until(BufWriter::with_capacity(PIECE_BYTES, part.open().map_err(at_file)?));
    let written = replay.back_up(env!("CARGO_PKG_VERSION"), &mut sink);
    written.map_err(|error| CommandError::Failed(format!("{}: {error}", file.display())))?;
    sink.flush().and_then(|()| sink.0.get_ref().sync_all()).map_err(at_file)?;
    part.finish().map_err(at_file)?;
    let at = replay.at();
    if let Target::Revision(revision) = wanted.target
        && at.revision < revision
    {
        say!(
            "Revision {revision} lies within one change of several revisions; what is restored ends before it, at {}.",
            at.revision
        );
    }
    Ok(at.wall)
}

/// Tells how far it is.
struct Shown(Progress);

impl Shown {
    fn new(what: &'static str) -> Self {
        Self(Progress::new(what))
    }
}

impl Watcher for Shown {
    fn on_base(&mut self, bytes: u64) -> Result<(), String> {
        interrupt::check()?;
        self.0.counted("bytes of the base", bytes);
        Ok(())
    }

    fn on_segment(&mut self, done: usize, of: usize, _bytes: u64) -> Result<(), String> {
        interrupt::check()?;
        self.0.counted(&format!("of {of} pieces of the log"), done as u64);
        Ok(())
    }

    fn on_passed_over(&mut self, fault: &str) {
        self.0.step(&format!("passed over: {fault}"));
    }
}

fn prune(opened: &OpenedArchive, retention: Retention, yes: bool) -> Result<(), CommandError> {
    let OpenedArchive { runtime, source } = opened;
    let archive = &source.archive;
    let verified = runtime.block_on(archive.verified())?;
    if let Some(fault) = verified.as_ref().and_then(|tried| tried.fault.as_ref()) {
        return Err(CommandError::Failed(format!(
            "nothing is removed, since a restore was tried and is not to be had: {fault}. Mend that first; a new try clears it"
        )));
    }
    let catalogue = runtime.block_on(archive.catalogue())?;
    let gone = retention.superfluous(&catalogue, wall_now(), verified.map(|tried| tried.index), usize::MAX);
    gone.bases.iter().for_each(|base| say!("  base of {}, revision {}", time(base.wall), base.revision));
    let (bases, segments) = (gone.bases.len(), gone.segments.len());
    if !yes {
        say!("{bases} bases and {segments} objects of the log are not needed; say --yes to remove them");
        return Ok(());
    }
    for base in &gone.bases {
        runtime.block_on(archive.remove_base(base))?;
    }
    runtime.block_on(archive.remove_segments(&gone.segments))?;
    say!("Removed {bases} bases and {segments} objects of the log.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_once_it_is_whole_and_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("now.backup");
        let names = || fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        // The disk was full, or somebody had enough of it.
        let part = Part::of(&file);
        part.open().unwrap().write_all(b"half").unwrap();
        assert!(!file.exists() && names().len() == 1);
        drop(part);
        assert_eq!(names(), [""; 0]);
        let part = Part::of(&file);
        part.open().unwrap().write_all(b"whole").unwrap();
        part.finish().unwrap();
        assert_eq!((names(), fs::read(&file).unwrap()), (vec!["now.backup".into()], b"whole".to_vec()));
        let late = Part::of(&file);
        late.open().unwrap();
        assert_eq!(late.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!((names().len(), fs::read(&file).unwrap()), (1, b"whole".to_vec()));
    }
}

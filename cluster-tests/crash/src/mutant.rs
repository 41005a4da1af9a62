//! Bugs planted on purpose: syncs that do nothing.
//!
//! Owns which syncs each of them is about. A judge that accepts a storage without one of them proves nothing.

use clap::ValueEnum;

/// A sync that was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mutant {
    /// Of a group in the log: acknowledgements and votes before they are durable.
    Group,
    /// Of a new segment, before it gets its name.
    Segment,
    /// Of the log's directory, after a segment got its name.
    LogDir,
    /// Of the high-water mark: raised, and lowered before a truncation.
    Mark,
    /// Of the mark's first form, before it gets its name.
    FirstMark,
    /// Of the identity marker, before it gets its name.
    Identity,
    /// Of the data directory, after marker, mark and directories got their names.
    DataDir,
    /// Of the state's tables.
    Tables,
    /// Of the file that names the state's tables.
    Manifest,
    /// Of the directory of a state.
    DatabaseDir,
    /// Of the pointer to the live state, before it gets its name.
    Pointer,
    /// Of the state directory, after the pointer got its name.
    StateDir,
    /// Of the small files of a snapshot.
    SnapshotFiles,
    /// Of the directory that snapshots are in, after one got its name.
    SnapshotName,
    /// Of the mark of a state that is not trusted, before it gets its name.
    Quarantine,
}

impl Mutant {
    /// All of them.
    pub fn all() -> &'static [Mutant] {
        Mutant::value_variants()
    }

    /// How it is named on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether a sync of this path, relative to the data directory's parent, does nothing.
    pub fn leaves_out(self, path: &str, data_only: bool) -> bool {
        let path = path.split_once('/').map_or("", |(_, path)| path);
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let in_database = dir.starts_with("state/db-") || dir == "state/new-db";
        let in_snapshot = dir.starts_with("state/snap/");
        match self {
            // The path is that under which the file was opened: who made a segment goes on to write its groups.
            Mutant::Group => data_only && dir == "log" && (name.ends_with(".seg") || name == "segment.unfinished"),
            Mutant::Segment => !data_only && path == "log/segment.unfinished",
            Mutant::LogDir => path == "log",
            Mutant::Mark => path == "log.mark",
            Mutant::FirstMark => path == "log.mark.tmp",
            Mutant::Identity => path == "identity.tmp",
            Mutant::DataDir => path.is_empty(),
            Mutant::Tables => in_database && name.ends_with(".sst"),
            Mutant::Manifest => in_database && name.starts_with("MANIFEST-"),
            Mutant::DatabaseDir => path == "state/new-db" || (dir == "state" && name.starts_with("db-")),
            Mutant::Pointer => path == "state/CURRENT-DB.tmp",
            Mutant::StateDir => path == "state",
            Mutant::SnapshotFiles => in_snapshot && !name.is_empty(),
            Mutant::SnapshotName => path == "state/snap",
            Mutant::Quarantine => path == "quarantine.tmp",
        }
    }
}

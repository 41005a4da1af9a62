//! What a load remembers: its id, and up to where everything is acknowledged.
//!
//! Owns the state file. It is replaced as a whole, so it is always that of one moment; an older one is as good, since what
//! follows is sent again under the same ids.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quorate_client::RequestId;
use serde::{Deserialize, Serialize};

use super::lines::Position;
use crate::fail::Failed;

/// Longest id of a load: the place of a chunk is added to it, and request ids have a limit.
const LOAD_ID_BYTES_MAX: usize = 64;

/// Nodes remember request ids for this time.
const IDS_KNOWN: Duration = Duration::from_secs(15 * 60);

/// What decides which operations are in which chunk. Under the id of a chunk nothing else may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `--prefix`
    pub prefix: String,
    /// `--key-field`
    pub key_field: Option<String>,
    /// `--op`
    pub op: String,
    /// `--chunk`
    pub chunk: u32,
}

/// What became of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Took effect.
    pub applied: u64,
    /// Were there already.
    pub skipped: u64,
    /// Were refused.
    pub failed: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.applied += other.applied;
        self.skipped += other.skipped;
        self.failed += other.failed;
    }
}

/// The state of a load.
#[derive(Debug)]
pub struct State {
    /// Its id.
    pub load: RequestId,
    /// Up to here everything is acknowledged.
    pub at: Position,
    /// Of what is before that.
    pub counts: Counts,
    /// Whether that is the end.
    pub complete: bool,
    /// Where chunks that were sent ended because the input did. If it grows they end there again, since under their ids nothing else
    /// may be sent.
    pub ends: BTreeSet<u64>,
    settings: Settings,
    file: Option<PathBuf>,
    /// When the file was written, where that is known.
    saved: Option<SystemTime>,
}

/// The state as it is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    load: String,
    settings: Settings,
    at: Position,
    counts: Counts,
    complete: bool,
    #[serde(default)]
    ends: BTreeSet<u64>,
    /// When this was written, in seconds of Unix time.
    #[serde(default)]
    saved: Option<u64>,
}

impl State {
    /// Whether nodes no longer know the ids of what was under way when it was written.
    pub fn is_forgotten(&self) -> bool {
        self.saved.is_some_and(|saved| saved.elapsed().is_ok_and(|age| age > IDS_KNOWN))
    }

    /// Holds it against the length of the input, where that is known: what was added to an input that was loaded is still to be
    /// loaded. One that is shorter than what was loaded is another one; gives that.
    pub fn hold_against(&mut self, length: Option<u64>) -> Result<(), u64> {
        match length {
            Some(length) if length < self.at.offset => Err(self.at.offset),
            Some(length) => {
                self.complete &= length == self.at.offset;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The state in the file, or that of a new load under `id` or a random one.
    pub fn open(file: Option<&Path>, settings: Settings, id: Option<RequestId>) -> Result<Self, Failed> {
        if let Some(id) = id.as_ref().filter(|id| id.as_str().len() > LOAD_ID_BYTES_MAX) {
            return Err(Failed::usage(format!(
                "the id of a load has at most {LOAD_ID_BYTES_MAX} characters, not as `{id}`"
            )));
        }
        let new = State {
            load: id.clone().unwrap_or_else(RequestId::random),
            at: Position::default(),
            counts: Counts::default(),
            complete: false,
            ends: BTreeSet::new(),
            settings,
            file: file.map(Path::to_owned),
            saved: None,
        };
        let Some(file) = file else { return Ok(new) };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(new),
            Err(error) => return Err(Failed::usage(format!("cannot read the state file {}: {error}", file.display()))),
        };
        let no_state = |why: String| Failed::usage(format!("{} is not the state of a load: {why}", file.display()));
        let kept: Kept = serde_json::from_str(&text).map_err(|error| no_state(error.to_string()))?;
        let load: RequestId = kept.load.parse().map_err(|error: quorate_client::Error| no_state(error.to_string()))?;
        if kept.settings != new.settings {
            return Err(differs(file, &kept.settings));
        }
        if id.is_some_and(|id| id != load) {
            return Err(Failed::usage(format!(
                "{} is the state of load `{load}`; leave --request-id out",
                file.display()
            )));
        }
        let saved = kept.saved.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(State { load, at: kept.at, counts: kept.counts, complete: kept.complete, ends: kept.ends, saved, ..new })
    }

    /// Whether there is a state file.
    pub fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Replaces the file, and returns when that is on disk.
    pub fn save(&self) -> Result<(), Failed> {
        let Some(file) = &self.file else { return Ok(()) };
        self.write(file)
            .map_err(|error| Failed::other(format!("cannot write the state file {}: {error}", file.display())))
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        let kept = Kept {
            load: self.load.to_string(),
            settings: self.settings.clone(),
            at: self.at,
            counts: self.counts,
            complete: self.complete,
            ends: self.ends.iter().copied().filter(|end| *end > self.at.offset).collect(),
            saved: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(|now| now.as_secs()),
        };
        let mut name = file.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let mut out = File::create(&new)?;
        out.write_all(serde_json::to_string(&kept)?.as_bytes())?;
        out.write_all(b"\n")?;
        out.sync_all()?;
        std::fs::rename(&new, file)?;
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

fn differs(file: &Path, kept: &Settings) -> Failed {
    let Settings { prefix, key_field, op, chunk } = kept;
    let key_field = key_field.as_ref().map(|field| format!(" --key-field {field}")).unwrap_or_default();
    Failed::usage(format!(
        "{} is the state of a load with --prefix '{prefix}'{key_field} --op {op} --chunk {chunk}; it goes on with the same only",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_grew_is_loaded_on_and_one_that_shrank_is_another() {
        let settings = Settings { prefix: String::new(), key_field: None, op: "insert".into(), chunk: 10 };
        let mut state = State::open(None, settings, None).unwrap_or_else(|error| panic!("{error}"));
        (state.at.offset, state.complete) = (100, true);
        assert_eq!((state.hold_against(None), state.complete), (Ok(()), true));
        assert_eq!((state.hold_against(Some(100)), state.complete), (Ok(()), true));
        assert_eq!((state.hold_against(Some(120)), state.complete), (Ok(()), false));
        assert_eq!(state.hold_against(Some(99)), Err(100));
    }
}

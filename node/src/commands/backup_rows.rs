//! What is in a backup, without a cluster.
//!
//! Owns the reading: every block is checked before anything of it is shown, and a backup that is not whole ends with an error, after what
//! was whole. Entries are shown as they were when the backup was taken.

use std::io::Read;

use quorate_api::{EntryView, ExportLine, Name};
use quorate_machine::document::{Criteria, Json, Subject};
use quorate_machine::keyspace::{entry, family};
use quorate_machine::types::{ContentKind, Key};
use quorate_node_core::gateway::entry_view::entry_view;
use quorate_store::backup::{BackupError, BackupHeader, BackupReader};

/// How much there is of each kind.
pub type Counts = Vec<(&'static str, u64)>;

/// What people count.
const KINDS: [(u8, &str); 11] = [
    (family::ENTRY, "entries"),
    (family::COLLECTION, "collections"),
    (family::SEQUENCE, "sequences"),
    (family::SESSION, "sessions"),
    (family::HOLDER, "holders of locks"),
    (family::WAITER, "waiting for locks"),
    (family::BARRIER, "barriers"),
    (family::LATCH, "latches"),
    (family::TASK, "tasks"),
    (family::USER, "users"),
    (family::ROLE, "roles"),
];

/// Why a backup was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// It is not whole.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A row is not what it should be.
    #[error("the row of `{key}` is damaged: {why}")]
    Row {
        /// Of the entry.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// What is to be found makes no sense.
    #[error("the criteria make no sense: {0}")]
    Criteria(String),
}

/// What it is of, and how much of each kind is in it.
pub fn count(source: impl Read) -> Result<(BackupHeader, Counts), BackupError> {
    let mut reader = BackupReader::open(source)?;
    let mut counts = KINDS.map(|(_, kind)| (kind, 0));
    while let Some(rows) = reader.next_block()? {
        for (row_key, _) in rows {
            let kind = KINDS.iter().position(|(family, _)| row_key.first() == Some(family));
            if let Some(kind) = kind {
                counts[kind].1 += 1;
            }
        }
    }
    let counts = counts.into_iter().filter(|(kind, count)| *kind == "entries" || *count > 0);
    Ok((reader.header().clone(), counts.collect()))
}

/// Shows entries of a prefix of which all criteria hold, in the order of their keys, for as long as `visit` wants more.
pub fn each(
    source: impl Read,
    prefix: &Name,
    matching: &[String],
    mut visit: impl FnMut(&EntryView) -> bool,
) -> Result<(), RowsError> {
    let criteria = criteria(matching)?;
    let mut reader = BackupReader::open(source)?;
    let start = entry::row_key(prefix.as_bytes());
    while let Some(rows) = reader.next_block()? {
        let vars = reader.header().vars.clone();
        for (row_key, value) in &rows {
            if !row_key.starts_with(&start) {
                continue;
            }
            let damaged = |why: String| RowsError::Row { key: row_key[1..].escape_ascii().to_string(), why };
            let key = Key::new(&row_key[1..]).map_err(|error| damaged(error.to_string()))?;
            let row = entry::decode(value).map_err(|error| damaged(error.to_string()))?;
            let document = match row.kind {
                ContentKind::Json => Some(Json::parse_stored(row.data).map_err(|error| damaged(error.to_string()))?),
                ContentKind::Bytes => None,
            };
            let subject = Subject {
                key: &key,
                meta: Some(&row.meta),
                is_locked: row.meta.is_locked_at(vars.clock),
                document: document.as_ref(),
                clock: vars.clock,
                wall: vars.wall,
            };
            if row.is_expired_at(vars.clock) || !criteria.hold(&subject) {
                continue;
            }
            let view = entry_view(&key, &row.to_entry(), vars.clock);
            if !visit(&view) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn criteria(matching: &[String]) -> Result<Criteria, RowsError> {
    let text = format!("[{}]", matching.join(","));
    let json = Json::parse(text.as_bytes()).map_err(|error| RowsError::Criteria(error.to_string()))?;
    Criteria::read(&json, "").map_err(|faults| {
        let faults: Vec<_> = faults.into_iter().map(|fault| format!("{}: {}", fault.pointer, fault.detail)).collect();
        RowsError::Criteria(faults.join("; "))
    })
}

/// An entry in a line for people.
pub fn text(entry: &EntryView) -> String {
    let value = match (&entry.value, &entry.value_base64) {
        (Some(json), _) => json.0.get().to_owned(),
        (None, Some(base64)) => format!("base64:{base64}"),
        (None, None) => String::new(),
    };
    format!(
        "{}  {value}  cas {}",
        entry.key,
        entry.cas.map_or_else(|| "none (locked)".to_owned(), |cas| cas.to_string())
    )
}

/// An entry in a line for programs.
pub fn json(entry: &EntryView) -> String {
    serde_json::to_string(entry).expect("an entry has JSON").replace(['\n', '\r'], " ")
}

/// An entry as `quorate import` reads it; `None` for one that ends with its session.
pub fn line(entry: &EntryView) -> Option<String> {
    ExportLine::of(entry).ok().map(|line| line.text())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::BufReader;
    use std::path::Path;

    use quorate_machine::machine::Vars;
    use quorate_machine::types::{EntryMeta, SessionId};
    use quorate_store::backup::BackupWriter;
    use quorate_store::raft::wire::{MembershipRecord, StoredMembershipRecord};

    use super::*;

    const CLOCK: u64 = 1_000;

    fn meta(expires_at: Option<u64>, session: Option<u64>) -> EntryMeta {
        EntryMeta {
            create_revision: 3,
            mod_revision: 4,
            version: 2,
            cas: 5,
            expires_at,
            locked_until: None,
            session: session.map(SessionId),
        }
    }

    fn open(path: &Path) -> BufReader<File> {
        BufReader::new(File::open(path).expect("is there"))
    }

    /// A backup with some entries, and one thing that is none.
    fn backup() -> (tempfile::TempDir, std::path::PathBuf) {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("a.backup");
        let membership = MembershipRecord { configs: Vec::new(), nodes: BTreeMap::new() };
        let header = BackupHeader {
            cluster_id: 7,
            node_id: 1,
            node_version: "0".into(),
            taken_at: 0,
            log_id: None,
            membership: StoredMembershipRecord { log_id: None, membership },
            vars: Vars { revision: 9, clock: CLOCK, ..Vars::default() },
        };
        let mut writer = BackupWriter::new(File::create(&path).expect("a file"), &header).expect("begun");
        let mut put = |key: &[u8], meta: EntryMeta, kind, data: &[u8]| {
            writer.row(&entry::row_key(key), &entry::encode(&meta, kind, data)).expect("written");
        };
        put(b"a", meta(None, None), ContentKind::Bytes, b"\x00");
        put(b"b/\xFE", meta(None, None), ContentKind::Json, b"1");
        put(b"b/\xFF", meta(None, None), ContentKind::Json, b"2");
        put(b"o/1", meta(Some(CLOCK + 5), None), ContentKind::Json, b"{\"n\":\n1.50}");
        put(b"o/2", meta(None, Some(17)), ContentKind::Json, b"{\"n\":2}");
        put(b"o/3", meta(Some(CLOCK), None), ContentKind::Json, b"{\"n\":3}");
        writer.row(&[family::SEQUENCE, b's'], b"x").expect("written");
        writer.finish().expect("whole");
        (home, path)
    }

    fn shown(path: &Path, prefix: &str, matching: &[&str], show: fn(&EntryView) -> Option<String>) -> Vec<String> {
        let matching: Vec<_> = matching.iter().map(|one| (*one).to_owned()).collect();
        let mut lines = Vec::new();
        let read = each(open(path), &Name::from(prefix), &matching, |entry| {
            lines.extend(show(entry));
            true
        });
        read.unwrap_or_else(|error| panic!("{error}"));
        lines
    }

    #[test]
    fn entries_are_shown_as_they_were_and_what_had_expired_is_not() {
        let (_home, path) = backup();
        let lines = shown(&path, "", &[], |entry| Some(text(entry)));
        assert_eq!(lines[1..3], [r"b/\xfe  1  cas 5", r"b/\xff  2  cas 5"]);
        let lines = [&lines[..1], &lines[3..]].concat();
        assert_eq!(lines, ["a  base64:AA==  cas 5", "o/1  {\"n\":\n1.50}  cas 5", "o/2  {\"n\":2}  cas 5"]);
        let found =
            shown(&path, "o/", &[r#"{"field":"n","op":"gt","value":1.6}"#], |entry| Some(entry.key.to_string()));
        assert_eq!(found, ["o/2"]);
        let lines = shown(&path, "", &[], line);
        let expected = [
            r#"{"key":"a","value_base64":"AA=="}"#,
            r#"{"key_base64":"Yi/+","value":1}"#,
            r#"{"key_base64":"Yi//","value":2}"#,
            r#"{"key":"o/1","value":{"n": 1.50},"ttl_ms":5}"#,
        ];
        assert_eq!(lines, expected, "an entry of a session ends with that");
        let (header, counts) = count(open(&path)).expect("whole");
        assert_eq!((header.vars.revision, counts), (9, vec![("entries", 6), ("sequences", 1)]));
    }

    #[test]
    fn what_is_no_whole_backup_or_no_criterion_is_refused() {
        let (home, path) = backup();
        let bytes = std::fs::read(&path).expect("is there");
        let cut = home.path().join("cut");
        std::fs::write(&cut, &bytes[..bytes.len() - 10]).expect("written");
        assert!(each(open(&cut), &Name::default(), &[], |_| true).is_err() && count(open(&cut)).is_err());
        let error =
            each(open(&path), &Name::default(), &["{\"field\":\"n\"}".into()], |_| true).expect_err("no operator");
        assert!(matches!(error, RowsError::Criteria(_)), "{error}");
    }
}

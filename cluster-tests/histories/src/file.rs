//! A whole history, and its form as a file: JSON, one line for each thing that happened.
//!
//! Owns reading and writing it. Never leaves a line out: one that it does not know is an error.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::{Fault, Micros, Moment, Record};

/// What a run was, and what is to be held against it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// What ran.
    pub name: String,
    /// The seed of all its choices.
    pub seed: u64,
    /// How long a leader may take to be replaced, in milliseconds; for so long behind a fault deadlines may stand still, too.
    pub failover_ms: u64,
    /// What is added to the time that a cluster may take to go on, in milliseconds: where the machine has other things to do.
    pub slack_ms: u64,
    /// Successes of each of these kinds that must be there before, during and after the faults, or nothing was proved.
    pub requirements: Vec<Requirement>,
    /// Fewest faults.
    pub faults_min: u64,
}

/// That an operation has to succeed often enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The kind of the operation.
    pub kind: String,
    /// Fewest successes in each phase.
    pub at_least: u64,
}

/// What is known of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// What it was.
    pub header: Header,
    /// All operations, by their number.
    pub records: Vec<Record>,
    /// What watches were shown, in the order of each watch.
    pub moments: Vec<Moment>,
    /// What was done to the cluster.
    pub faults: Vec<Fault>,
    /// When all faults were over.
    pub healed: Option<Micros>,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Header(Header),
    /// An operation.
    Operation(Box<Record>),
    /// A moment of a watch.
    Moment(Moment),
    /// A fault.
    Fault(Fault),
    /// From now on nothing is wrong. Where this is said again, the last one counts.
    Healed(Micros),
}

impl History {
    /// Reads a file. An error names the line.
    pub fn load(path: &Path) -> io::Result<Self> {
        let file = std::fs::File::open(path);
        let file = file.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let lines = io::BufReader::new(file).lines().enumerate().map(|(number, line)| {
            serde_json::from_str(&line?).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}:{}: {error}", path.display(), number + 1))
            })
        });
        Ok(Self::of(lines.collect::<io::Result<Vec<Line>>>()?))
    }

    /// What these lines say.
    pub fn of(lines: Vec<Line>) -> Self {
        let mut history = Self::default();
        lines.into_iter().for_each(|line| history.take(line));
        // What was unknown at first may have been found out later: the last line of an operation counts.
        history.records.reverse();
        history.records.sort_by_key(|record| record.id);
        history.records.dedup_by_key(|record| record.id);
        history
    }

    /// Writes a file.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(std::fs::File::create(path)?);
        let mut put = |line: Line| write_line(&mut out, &line);
        put(Line::Header(self.header.clone()))?;
        let operation = |record| Line::Operation(Box::new(record));
        self.records.iter().cloned().map(operation).try_for_each(&mut put)?;
        self.moments.iter().cloned().map(Line::Moment).try_for_each(&mut put)?;
        self.faults.iter().cloned().map(Line::Fault).try_for_each(&mut put)?;
        self.healed.map(Line::Healed).map_or(Ok(()), put)?;
        out.flush()
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Header(header) => self.header = header,
            Line::Operation(record) => self.records.push(*record),
            Line::Moment(moment) => self.moments.push(moment),
            Line::Fault(fault) => self.faults.push(fault),
            Line::Healed(at) => self.healed = Some(at),
        }
    }

    /// The record of this number.
    pub fn record(&self, id: u64) -> Option<&Record> {
        self.records.binary_search_by_key(&id, |record| record.id).ok().map(|at| &self.records[at])
    }

    /// The moments of each watch, in order.
    pub fn watches(&self) -> std::collections::BTreeMap<u64, Vec<&Moment>> {
        let mut watches = std::collections::BTreeMap::<_, Vec<_>>::new();
        for moment in &self.moments {
            watches.entry(moment.watch).or_default().push(moment);
        }
        watches
    }
}

/// Writes one line.
pub fn write_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Operation, Write as KeyWrite};
    use crate::record::{Decided, Event, Outcome, Seen, Shown, Try, Written};

    #[test]
    fn a_history_is_read_back_as_it_was() {
        let written = Seen::Written(Written { cas: Some(2), create_revision: Some(2), version: Some(1) });
        let outcome = Outcome::Decided(Decided { revision: 2, index: 3, replayed: true, seen: written });
        let operation = Operation::Write(KeyWrite::put("k", "v").cas(7).ttl_ms(5));
        let record = Record {
            id: 0,
            process: 1,
            operation,
            request_id: Some("r".into()),
            call: 5,
            end: 9,
            outcome: outcome.clone(),
            tries: vec![Try { node: 3, call: 5, end: 9, outcome }],
        };
        let event = Event { revision: 2, index: 0, key: "k".into(), entry: None };
        let history = History {
            header: Header {
                name: "n".into(),
                seed: 1,
                failover_ms: 2,
                slack_ms: 0,
                requirements: Vec::new(),
                faults_min: 0,
            },
            records: vec![record],
            moments: vec![Moment { watch: 1, at: 2, shown: Shown::Event(event) }],
            faults: vec![Fault { kind: "kill".into(), node: 1, begin: 10, end: 20 }],
            healed: Some(21),
        };
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("history");
        history.save(&path).expect("it can be written");
        assert_eq!(History::load(&path).expect("it can be read"), history);
        std::fs::write(&path, "{\"header\":{}}\n").expect("it can be written");
        let error = History::load(&path).expect_err("a header has fields").to_string();
        assert!(error.contains(":1: missing field `name`"), "{error}");
    }
}

//! The names of what an archive holds.
//!
//! Owns their form, and reading them back: one listing says which points there are. What a name says is compared with what is
//! inside once that is read.

use std::fmt;
use std::str::FromStr;

use crate::WallMillis;

/// Begins the name of a cluster's part of an archive.
pub(crate) const CLUSTER_PREFIX: &str = "quorate-";
/// Ends the name of what is encrypted.
pub(crate) const ENCRYPTED: &str = ".age";
/// Stands for a revision that is not known.
const UNKNOWN: &str = "x";

/// The directory of a cluster's part.
pub(crate) fn cluster_dir(cluster: u128) -> String {
    format!("{CLUSTER_PREFIX}{cluster:032x}")
}

/// The cluster whose part a directory of this name is.
pub(crate) fn cluster_of(dir: &str) -> Option<u128> {
    let hex = dir.strip_prefix(CLUSTER_PREFIX)?;
    (hex.len() == 32).then(|| u128::from_str_radix(hex, 16).ok())?
}

/// The name of a base, which says where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseName {
    /// The last entry that is in it.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The revision of the state.
    pub revision: u64,
    /// Wall clock of the log there.
    pub wall: WallMillis,
    /// The node that wrote it.
    pub node: u64,
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, term, revision, wall, node } = self;
        write!(f, "{index:020}-{term}-{revision}-{wall}-{node}")
    }
}

impl FromStr for BaseName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let numbers: Vec<u64> = name.split('-').map(number).collect::<Option<_>>().ok_or(())?;
        let [index, term, revision, wall, node] = numbers[..] else { return Err(()) };
        let read = Self { index, term, revision, wall, node };
        // One name for each, so that nothing is taken twice.
        if read.to_string() == name { Ok(read) } else { Err(()) }
    }
}

/// What an object of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// A piece.
    Plain,
    /// A piece that is encrypted.
    Encrypted,
    /// Many pieces as they were written, encrypted or not.
    Bundle,
}

impl Form {
    const ALL: [Self; 3] = [Self::Plain, Self::Encrypted, Self::Bundle];

    /// Ends the name.
    const fn extension(self) -> &'static str {
        match self {
            Self::Plain => ".log",
            Self::Encrypted => ".log.age",
            Self::Bundle => ".bundle",
        }
    }
}

/// The name of an object of the log, a piece or a bundle of pieces, which says what is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// The first entry.
    pub first: u64,
    /// The last entry.
    pub last: u64,
    /// The revision of the state after the last entry, where whoever wrote it knew; of a bundle, the highest that its pieces tell.
    pub revision: Option<u64>,
    /// The least that the wall clock of the log shows after any of its entries. The clock may be walked back, so this is not that after
    /// the first.
    pub wall_min: WallMillis,
    /// Wall clock of the log after the last entry.
    pub wall: WallMillis,
    /// The first 8 bytes of a SHA-256: of a piece that of all its bytes, of a bundle that of its index, which has those of its pieces.
    pub checksum: u64,
    /// What it is.
    pub form: Form,
}

impl SegmentName {
    /// Whether it is a bundle.
    pub fn is_bundle(&self) -> bool {
        self.form == Form::Bundle
    }

    /// Whether it is a bundle that may hold another object: all entries of that are in it.
    pub fn holds(&self, other: &Self) -> bool {
        self.is_bundle() && self != other && self.first <= other.first && other.last <= self.last
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, revision, wall_min, wall, checksum, form } = self;
        let revision = revision.map_or(UNKNOWN.to_owned(), |revision| revision.to_string());
        write!(f, "{first:020}-{last:020}-{revision}-{wall_min}-{wall}-{checksum:016x}{}", form.extension())
    }
}

impl FromStr for SegmentName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let of_form = |form: Form| name.strip_suffix(form.extension()).map(|rest| (rest, form));
        let (rest, form) = Form::ALL.into_iter().find_map(of_form).ok_or(())?;
        let parts: Vec<&str> = rest.split('-').collect();
        let [first, last, revision, wall_min, wall, checksum] = parts[..] else { return Err(()) };
        let number = |part| number(part).ok_or(());
        let read = Self {
            first: number(first)?,
            last: number(last)?,
            revision: if revision == UNKNOWN { None } else { Some(number(revision)?) },
            wall_min: number(wall_min)?,
            wall: number(wall)?,
            checksum: u64::from_str_radix(checksum, 16).map_err(drop)?,
            form,
        };
        let is_sound = read.first <= read.last && read.wall_min <= read.wall;
        if is_sound && read.to_string() == name { Ok(read) } else { Err(()) }
    }
}

fn number(part: &str) -> Option<u64> {
    (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_read_as_they_were_written(
            numbers in any::<(u64, u64, u64, u64, u64, u64)>(), known in any::<bool>(), form in prop::sample::select(Form::ALL.to_vec()),
        ) {
            let (index, term, revision, wall, node, other) = numbers;
            let base = BaseName { index, term, revision, wall, node };
            prop_assert_eq!(base.to_string().parse(), Ok(base));
            let (first, last) = (index.min(term), index.max(term));
            let (revision, wall_min, wall) = (known.then_some(revision), wall.min(other), wall.max(other));
            let segment = SegmentName { first, last, revision, wall_min, wall, checksum: node, form };
            prop_assert_eq!(segment.to_string().parse(), Ok(segment));
        }

        #[test]
        fn nothing_else_is_a_name(text in ".*") {
            prop_assert!(text.parse::<BaseName>().is_err_and(|()| true) || text.contains('-'));
            prop_assert!(text.parse::<SegmentName>().is_err_and(|()| true) || text.contains('-'));
        }
    }

    #[test]
    fn a_name_in_another_form_is_none() {
        let sound =
            SegmentName { first: 3, last: 9, revision: None, wall_min: 6, wall: 7, checksum: 5, form: Form::Plain };
        let text = sound.to_string();
        assert_eq!(text, "00000000000000000003-00000000000000000009-x-6-7-0000000000000005.log");
        let ends = [".log.tmp", ".bundle.age", ".bundles", ""].map(|end| text.replace(".log", end));
        for wrong in [text.replace("-7-", "-07-"), text.replace("-7-", "-+7-")].into_iter().chain(ends) {
            assert!(wrong.parse::<SegmentName>().is_err(), "{wrong}");
        }
        let bundle = SegmentName { form: Form::Bundle, ..sound.clone() };
        assert_eq!(bundle.to_string(), text.replace(".log", ".bundle"));
        let backwards = SegmentName { first: 9, last: 3, ..sound.clone() };
        assert!(backwards.to_string().parse::<SegmentName>().is_err());
        let above_its_end = SegmentName { wall_min: 8, ..sound };
        assert!(above_its_end.to_string().parse::<SegmentName>().is_err());
    }

    #[test]
    fn names_sort_by_entry() {
        let name = |first, last| {
            SegmentName { first, last, revision: None, wall_min: 0, wall: 0, checksum: 0, form: Form::Plain }
                .to_string()
        };
        assert!(name(9, 10) < name(10, 11) && name(999, 1_000) < name(1_000, 1_001));
        let bundle = name(10, 99).replace(".log", ".bundle");
        assert!(name(9, 10) < bundle && name(10, 11) < bundle && bundle < name(11, 12));
    }

    #[test]
    fn a_cluster_is_found_by_its_directory() {
        assert_eq!(cluster_of(&cluster_dir(0xabc)), Some(0xabc));
        assert_eq!(cluster_of("quorate-abc"), None);
        assert_eq!(cluster_of("other"), None);
    }
}

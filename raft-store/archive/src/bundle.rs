//! Many pieces of the log as one object: an index, and the pieces as they were written.
//!
//! Owns those bytes, and the name that follows from them. Never does I/O, and never opens a piece: neither making a bundle nor checking one
//! takes a key.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | one of [`FORMATS`], little endian like the rest |
//! | 4 | bytes of the packed index |
//! | … | the index, deflated: a line for each piece, with its name and its bytes, in order of names |
//! | … | the pieces, in the same order |
//!
//! The checksum in the name of a bundle is that of its index, and the names in there have the checksums of the pieces: all of it can be
//! checked, and damage of one piece harms no other. The same pieces give the same name, whoever makes a bundle of them.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use quorate_machine::versions::Versions;

use crate::segment::{SEGMENT_BYTES_MAX, checksum_of};
use crate::{ArchiveError, Form, SegmentName};

const MAGIC: [u8; 8] = *b"\x89QRBNDL\n";
const FORMATS: Versions = Versions::new(1, 1, 1);
/// Bytes before the index.
pub(crate) const FIXED_BYTES: usize = 16;
/// What damage can make us ask for: an index of half a million pieces.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// The same for a piece: what its entries do not pack away, and its head.
const PIECE_BYTES_MAX: u64 = SEGMENT_BYTES_MAX + (1 << 20);

/// A piece in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its name, as that of an object of its own.
    pub name: SegmentName,
    /// Its bytes.
    pub bytes: u64,
}

/// The pieces of a bundle.
///
/// Invariant: there is one at least, each begins where those before it end or earlier, and they are in order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index(Vec<Part>);

impl Index {
    /// Of pieces in order; `None` where they are not, or do not follow one another.
    pub fn of(parts: Vec<Part>) -> Option<Self> {
        let mut reached = parts.first()?.name.last;
        for part in &parts {
            let Part { name, bytes } = part;
            if name.is_bundle() || *bytes > PIECE_BYTES_MAX || name.first.saturating_sub(1) > reached {
                return None;
            }
            reached = reached.max(name.last);
        }
        parts.is_sorted_by(|one, next| one.name < next.name).then_some(Self(parts))
    }

    /// The pieces.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The name of the bundle.
    pub fn name(&self) -> SegmentName {
        let pieces = || self.0.iter().map(|part| &part.name);
        let furthest = pieces().max_by_key(|piece| piece.last).expect("there is one");
        SegmentName {
            first: self.0[0].name.first,
            last: furthest.last,
            revision: pieces().filter_map(|piece| piece.revision).max(),
            wall_min: pieces().map(|piece| piece.wall_min).min().expect("there is one"),
            wall: furthest.wall,
            checksum: checksum_of(self.lines().as_bytes()),
            form: Form::Bundle,
        }
    }

    fn lines(&self) -> String {
        let mut lines = String::new();
        for Part { name, bytes } in &self.0 {
            writeln!(lines, "{name} {bytes}").expect("a string takes all");
        }
        lines
    }

    /// What stands before the pieces.
    pub fn head(&self) -> io::Result<Vec<u8>> {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
        packer.write_all(self.lines().as_bytes())?;
        let packed = packer.finish()?;
        let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
        let numbers = [FORMATS.writes().to_le_bytes(), length.to_le_bytes()].concat();
        Ok([&MAGIC[..], &numbers[..], &packed[..]].concat())
    }

    /// Bytes of the packed index behind the first [`FIXED_BYTES`].
    pub fn packed_bytes(bundle: &SegmentName, fixed: &[u8]) -> Result<usize, ArchiveError> {
        Self::packed_bytes_of(FORMATS, bundle, fixed)
    }

    fn packed_bytes_of(known: Versions, bundle: &SegmentName, fixed: &[u8]) -> Result<usize, ArchiveError> {
        let fixed: &[u8; FIXED_BYTES] =
            fixed.try_into().map_err(|_| ArchiveError::damaged(bundle, "it is cut short"))?;
        if fixed[..8] != MAGIC {
            return Err(ArchiveError::damaged(bundle, "it does not begin as a bundle"));
        }
        let number = |at: usize| u32::from_le_bytes(*fixed[at..].first_chunk().expect("there are 16 bytes"));
        ArchiveError::check_format(&bundle.to_string(), number(8), known)?;
        match u64::from(number(12)) <= INDEX_BYTES_MAX {
            true => Ok(number(12) as usize),
            false => Err(ArchiveError::damaged(bundle, "it says that its index is larger than any")),
        }
    }

    /// Reads a packed index, and believes nothing of it before it was found whole.
    pub fn unpack(bundle: &SegmentName, packed: &[u8]) -> Result<Self, ArchiveError> {
        let damaged = |what: &str| ArchiveError::damaged(bundle, what);
        let mut lines = String::new();
        let unpacked = DeflateDecoder::new(packed).take(INDEX_BYTES_MAX).read_to_string(&mut lines);
        if unpacked.is_err() || checksum_of(lines.as_bytes()) != bundle.checksum {
            return Err(damaged("its index is not the one that was written"));
        }
        let part = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            Some(Part { name: name.parse().ok()?, bytes: bytes.parse().ok()? })
        };
        let parts: Option<Vec<Part>> = lines.lines().map(part).collect();
        let index = parts.and_then(Self::of).ok_or_else(|| damaged("its index cannot be read"))?;
        match index.name() == *bundle {
            true => Ok(index),
            false => Err(damaged("its name is not that of what is in it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::segment;

    /// The index of pieces of ten bytes.
    fn index(pieces: &[(u64, u64)]) -> Option<Index> {
        Index::of(pieces.iter().map(|(first, last)| Part { name: segment(*first, *last), bytes: 10 }).collect())
    }

    fn read(known: Versions, name: &SegmentName, head: &[u8]) -> Result<Index, ArchiveError> {
        let (fixed, packed) = head.split_at_checked(FIXED_BYTES).unwrap_or((head, &[]));
        let bytes = Index::packed_bytes_of(known, name, fixed)?;
        Index::unpack(name, packed.get(..bytes).unwrap_or(packed))
    }

    #[test]
    fn an_index_is_read_as_it_was_written_and_its_name_says_what_is_in_it() {
        let mut pieces = index(&[(1, 4), (3, 9), (10, 12)]).unwrap().0;
        pieces[1].name.wall_min = 7;
        pieces[2].name.revision = None;
        let index = Index::of(pieces).unwrap();
        let name = index.name();
        assert_eq!((name.first, name.last, name.revision, name.wall_min, name.wall), (1, 12, Some(90), 7, 12_000));
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert_eq!(read(FORMATS, &name, &index.head().unwrap()).unwrap(), index);
    }

    #[test]
    fn pieces_that_do_not_follow_one_another_make_no_bundle() {
        for wrong in [&[][..], &[(1, 4), (6, 9)], &[(5, 9), (1, 4)], &[(1, 4), (1, 4)]] {
            assert_eq!(index(wrong), None, "{wrong:?}");
        }
        let bundle = index(&[(1, 4)]).unwrap().name();
        assert_eq!(Index::of(vec![Part { name: bundle, bytes: 1 }]), None, "no bundle is in another");
        assert_eq!(Index::of(vec![Part { name: segment(1, 4), bytes: u64::MAX }]), None);
    }

    #[test]
    fn every_flipped_bit_and_every_missing_byte_of_an_index_is_refused() {
        let index = index(&[(1, 4), (5, 9)]).unwrap();
        let (name, head) = (index.name(), index.head().unwrap());
        for at in 0..head.len() {
            let mut damaged = head.clone();
            damaged[at] ^= 4;
            assert!(read(FORMATS, &name, &head[..at]).is_err(), "{at} bytes");
            // Bits behind the end of what is packed say nothing.
            assert!(!read(FORMATS, &name, &damaged).is_ok_and(|other| other != index), "byte {at}");
        }
        for wrong in [
            SegmentName { first: 2, ..name.clone() },
            SegmentName { wall: 99_000, ..name.clone() },
            SegmentName { checksum: 1, ..name },
        ] {
            assert!(matches!(read(FORMATS, &wrong, &head), Err(ArchiveError::Damaged { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_build_reads_the_bundles_of_the_release_before_and_refuses_those_behind_its_own() {
        let next = Versions::new(1, 2, 2);
        let index = index(&[(1, 4), (5, 9)]).unwrap();
        let (name, mut head) = (index.name(), index.head().unwrap());
        assert_eq!(read(next, &name, &head).unwrap(), index);
        head[8] = 2;
        assert_eq!(read(next, &name, &head).unwrap(), index);
        assert!(matches!(read(FORMATS, &name, &head), Err(ArchiveError::UnknownFormat { found: 2, .. })));
    }
}

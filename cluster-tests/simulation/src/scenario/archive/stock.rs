//! What bases and pieces lead to by their names alone.
//!
//! Never reads an object.

use quorate_archive::{BaseName, SegmentName};
use quorate_node_replica::rebuild::Begin;

/// Bases and pieces of a log, by their names.
pub(super) struct Stock {
    pub(super) bases: Vec<BaseName>,
    /// In order of their first entries.
    pieces: Vec<SegmentName>,
    /// For each piece, which goes furthest of it and those before it.
    furthest: Vec<usize>,
}

/// How far pieces lead from a base.
pub(super) struct Reached {
    pub(super) index: u64,
    pub(super) revision: u64,
    pub(super) wall: u64,
}

impl Stock {
    pub(super) fn new(bases: Vec<BaseName>, mut pieces: Vec<SegmentName>) -> Self {
        pieces.sort_unstable();
        let mut furthest: Vec<usize> = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            let before = furthest.last().copied().filter(|before| pieces[*before].last > piece.last);
            furthest.push(before.unwrap_or(place));
        }
        Self { bases, pieces, furthest }
    }

    pub(super) fn follow(&self, base: &BaseName) -> Reached {
        let mut reached = Reached { index: base.index, revision: base.revision, wall: base.wall };
        let goes_on = |at: u64| {
            let within_reach = self.pieces.partition_point(|piece| piece.first <= at + 1);
            let furthest = &self.pieces[self.furthest[within_reach.checked_sub(1)?]];
            Some(furthest).filter(|piece| piece.last > at)
        };
        while let Some(next) = goes_on(reached.index) {
            let revision = reached.revision.max(next.revision.unwrap_or(0));
            reached = Reached { index: next.last, revision, wall: next.wall };
        }
        reached
    }

    /// The last entry that any base leads to.
    pub(super) fn end(&self) -> Option<u64> {
        self.bases.iter().map(|base| self.follow(base).index).max()
    }

    /// The last entry that these bases lead to by names.
    pub(super) fn end_from(&self, begin: Begin) -> Option<u64> {
        let is_of_it = |base: &&BaseName| !matches!(begin, Begin::At(entry) if base.index != entry);
        self.bases.iter().filter(is_of_it).map(|base| self.follow(base).index).max()
    }

    /// The entries after each of which the state can be had, from base to base.
    pub(super) fn stretches(&self) -> Vec<(u64, u64)> {
        self.bases.iter().map(|base| (base.index, self.follow(base).index)).collect()
    }

    /// Whether there are pieces behind an entry that is missing.
    pub(super) fn goes_on_behind(&self, end: u64) -> bool {
        self.pieces.iter().any(|piece| piece.first > end + 1)
    }
}

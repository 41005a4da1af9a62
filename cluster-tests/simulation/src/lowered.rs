//! Bounds below those of a node: small values, few entries and quick stories come to them, too.
//!
//! Owns which seeds lower them, and how far. All nodes of a cluster keep to the same ones, over all their starts: what an entry comes to depends
//! on them. Drawn from dice of their own, so that a seed does the rest as it would without.

use quorate_machine::machine::Bounds;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// Two of eight seeds made up by chance lower bounds, those with these remainders. None of them archives: a restore applies within the bounds of
/// a node.
const LOWERED_IN: u64 = 8;
const LOWERED: [u64; 2] = [1, 7];

/// Keeps these dice apart from those of the run.
const APART: u64 = 0x6c6f_7765_7265_6400;

/// The bounds of a cluster that chance makes up. A transaction and a document may take as much as ever: clients that are judged by a model expect
/// none to be refused.
pub fn by_chance(seed: u64) -> Bounds {
    if !LOWERED.contains(&(seed % LOWERED_IN)) {
        return Bounds::default();
    }
    let mut dice = StdRng::seed_from_u64(seed ^ APART);
    Bounds {
        page_rows: pick(&[1, 3, 16, usize::MAX], &mut dice),
        page_bytes: pick(&[1, 1_000, 20_000], &mut dice),
        batch_bytes: pick(&[50_000, 200_000], &mut dice),
        ..Bounds::default()
    }
}

/// Whether the story of groupings has lower bounds in a seed: in every other one, so that two seeds in a row are one of each kind.
pub fn is_lowered_for_groupings(seed: u64) -> bool {
    seed % 2 == 1
}

/// The bounds of the story of groupings.
pub fn for_groupings(seed: u64) -> Bounds {
    if !is_lowered_for_groupings(seed) {
        return Bounds::default();
    }
    let mut dice = StdRng::seed_from_u64(seed ^ APART);
    let txn_bytes = pick(&[20_000, 60_000, 150_000], &mut dice);
    Bounds {
        page_rows: pick(&[8, 64, usize::MAX], &mut dice),
        page_bytes: pick(&[2_000, 6_000, 20_000], &mut dice),
        batch_bytes: pick(&[12_000, 40_000, 120_000], &mut dice),
        ..Bounds::of_txn(txn_bytes)
    }
}

fn pick(from: &[usize], dice: &mut StdRng) -> usize {
    *from.choose(dice).expect("not empty")
}

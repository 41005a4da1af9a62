//! Kinds of power loss: what becomes of what was not synced.
//!
//! Owns the kinds and the tearing of writes. The model of the file system is [`super::disk`].

use rand::RngExt;
use rand::rngs::StdRng;

const BLOCK: usize = 4096;
const SECTOR: usize = 512;

/// Which changes of names survive that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None.
    None,
    /// All.
    All,
    /// In all directories those up to one moment.
    InOrder,
    /// In each directory those up to a moment of its own.
    Each,
}

/// Which writes survive that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// None.
    None,
    /// All.
    All,
    /// Of each file only the later half.
    Later,
    /// Blocks drawn at random, some of them torn.
    Some,
}

/// One kind of power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// What becomes of names.
    pub names: Names,
    /// What becomes of data.
    pub data: Data,
}

impl Loss {
    /// Everything that was not synced goes.
    pub const ALL_UNSYNCED: Loss = Loss { names: Names::None, data: Data::None };
    /// Nothing goes: the process died, not the machine.
    pub const NOTHING: Loss = Loss { names: Names::All, data: Data::All };

    /// Any other kind.
    pub fn draw(dice: &mut StdRng) -> Loss {
        const KINDS: [Loss; 8] = [
            Loss::NOTHING,
            Loss { names: Names::All, data: Data::None },
            Loss { names: Names::None, data: Data::All },
            Loss { names: Names::All, data: Data::Later },
            Loss { names: Names::InOrder, data: Data::Some },
            Loss { names: Names::Each, data: Data::Some },
            Loss { names: Names::All, data: Data::Some },
            Loss { names: Names::Each, data: Data::All },
        ];
        KINDS[dice.random_range(0..KINDS.len())]
    }
}

/// Some blocks of a write, each with this probability, one in eight of them torn.
pub(super) fn scatter(offset: u64, bytes: &[u8], share: f64, content: &mut Vec<u8>, dice: &mut StdRng) {
    let mut at = 0;
    while at < bytes.len() {
        let place = offset as usize + at;
        let end = (at + BLOCK - place % BLOCK).min(bytes.len());
        if dice.random_bool(share) {
            let piece = &bytes[at..end];
            let tear = if dice.random_ratio(1, 8) { torn(place, piece.len(), dice) } else { 0..piece.len() };
            put((place + tear.start) as u64, &piece[tear], content);
        }
        at = end;
    }
}

/// The part of a piece at `place` that came before a sector's end, or after it.
fn torn(place: usize, length: usize, dice: &mut StdRng) -> std::ops::Range<usize> {
    let sectors = BLOCK / SECTOR;
    let at = (dice.random_range(1..sectors) * SECTOR).saturating_sub(place % BLOCK).min(length);
    if dice.random() { 0..at } else { at..length }
}

/// Writes bytes at a place of a file, which grows as it must.
pub(super) fn put(offset: u64, bytes: &[u8], content: &mut Vec<u8>) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

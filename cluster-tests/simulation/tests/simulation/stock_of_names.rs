//! What the names of an archive lead to, as the judge of the program `simulate` has it.
//!
//! Owns no part of the judge.

use quorate_archive::{BaseName, Form, SegmentName};

use crate::stock::Stock;

fn piece(first: u64, last: u64) -> SegmentName {
    let (wall_min, wall, checksum) = (first, last, first);
    SegmentName { first, last, revision: Some(last), wall_min, wall, checksum, form: Form::Plain }
}

#[test]
fn pieces_lead_from_a_base_up_to_the_first_entry_that_none_has() {
    let base = |index| BaseName { index, term: 1, revision: index, wall: index, node: 1 };
    let pieces = [(1, 4), (3, 9), (5, 6), (9, 12), (15, 20)];
    let pieces = pieces.map(|(first, last)| piece(first, last)).to_vec();
    let stock = Stock::new(vec![base(0), base(10), base(13), base(14), base(25)], pieces);
    assert_eq!(stock.stretches(), [(0, 12), (10, 12), (13, 13), (14, 20), (25, 25)]);
    assert_eq!((stock.end(), stock.goes_on_behind(13), stock.goes_on_behind(14)), (Some(25), true, false));
    assert_eq!(Stock::new(Vec::new(), vec![piece(1, 2)]).end(), None);
}

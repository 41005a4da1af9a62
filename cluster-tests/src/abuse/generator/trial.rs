//! One wave after the other, among honest clients.
//!
//! Owns the order: a wave, what honest clients saw of it, and whether everything that it took was given back. Never judges an
//! amount: its caller gets what was measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::coverage::Coverage;
use super::field::Field;
use super::gauges::Gauges;
use super::hostile::Size;
use super::notes::Notes;
use super::wave::Wave;
use crate::abuse::honest::Honest;
use crate::abuse::measure::Measured;

/// How long honest clients are looked at before the first wave.
const QUIET: Duration = Duration::from_secs(2);
/// The time from one look at a wave to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Carries out waves on a cluster among honest clients, adds to the coverage, and reports each wave once it is over. Returns failures in
/// words: faults that nodes answered, and resources that were not given back. Ends with the first wave that leaves something behind: what the next
/// ones take could not be told from it.
pub async fn run(
    field: &Field,
    waves: &[Wave],
    size: &Size,
    honest: &Honest,
    processes: &[u32],
    coverage: &mut Coverage,
    mut tell: impl FnMut(&Wave, &Measured),
) -> Vec<String> {
    let (rest, notes, mut wrong) = (field.rest(QUIET).await, Arc::<Notes>::default(), Vec::new());
    for wave in waves {
        let underway = wave.begin(field, size, &notes);
        let measuring = Measured::over(size.hold, &honest.seen, processes);
        let (measured, most) = tokio::join!(measuring, look_at(field, wave, size, &notes));
        drop(underway);
        tell(wave, &measured);
        coverage.add(wave, &notes, &rest, &most);
        if let Err(left) = field.comes_back(&rest).await {
            wrong.push(format!("{}: not given back: {left}", wave.name));
            break;
        }
    }
    wrong.extend(notes.wrong());
    wrong
}

/// Looks at a wave for as long as it lasts: the most that was seen of each gauge.
async fn look_at(field: &Field, wave: &Wave, size: &Size, notes: &Notes) -> Gauges {
    let (begun, mut most) = (Instant::now(), Gauges::default());
    loop {
        // A node that is busy tells nothing for once.
        if let Ok(seen) = Gauges::of(&field.nodes, field.root()).await {
            most.raise(&seen);
        }
        let is_over = begun.elapsed() >= size.hold && wave.missing(notes).next().is_none();
        if is_over || begun.elapsed() >= size.hold_max {
            return most;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

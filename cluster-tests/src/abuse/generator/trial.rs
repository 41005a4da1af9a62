//! One wave after the other, among honest clients.
//!
//! Owns the order and the time of each: a quiet moment, a wave, what honest clients saw of both, and whether everything that the wave took
//! was given back. Never judges an amount: its caller gets what was measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::accepted::not_taken;
use super::coverage::Coverage;
use super::field::Field;
use super::gauges::{Gauges, Rest};
use super::hostile::Size;
use super::notes::Notes;
use super::wave::Wave;
use crate::abuse::honest::Honest;
use crate::abuse::measure::{Measured, Quiet};

/// How long the gauges are looked at before the first wave.
const REST: Duration = Duration::from_secs(2);
/// The longest quiet moment between two waves.
const QUIET_MAX: Duration = Duration::from_secs(3);
/// The least time for a wave and the moment before it: less shows nothing.
const TURN_MIN: Duration = Duration::from_millis(400);
/// The time from one look at a wave to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The time of each wave of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Each moment without an attack: one before the first wave of a cluster, and one after each.
    pub quiet: Duration,
    /// Each wave.
    pub hold: Duration,
}

impl Turn {
    /// Shares a time among waves, one or more, that are carried out on one or more clusters. A quarter of it is quiet, but no moment is longer
    /// than it has to be.
    pub fn of(time: Duration, waves: usize, clusters: usize) -> Self {
        let [waves, clusters] = [waves, clusters].map(|count| u32::try_from(count).expect("a few hundred"));
        let moments = waves + clusters;
        let time = time.saturating_sub(clusters * REST).max(moments * TURN_MIN);
        let quiet = (time / (4 * moments)).min(QUIET_MAX);
        Self { quiet, hold: (time - moments * quiet) / waves }
    }
}

/// Carries out waves on a cluster among honest clients, adds to the coverage, and reports each wave with the quiet moments around it. Returns
/// failures in words: dear requests that nodes do not take, faults that they answered, and resources that were not given back. Ends with the
/// first wave that leaves something behind, or before all of them if the look at dear requests does: what the next ones take could not be told
/// from it, and no moment after it is quiet.
pub async fn run(
    field: &Field,
    waves: &[Wave],
    size: &Size,
    honest: &Honest,
    processes: &[u32],
    coverage: &mut Coverage,
    mut tell: impl FnMut(&Wave, &Measured, Quiet),
) -> Vec<String> {
    // Measured before anything dear is asked for: watches and searches that are dropped half-way take a moment to be gone.
    let (rest, notes) = (field.rest(REST).await, Arc::<Notes>::default());
    let mut wrong = not_taken(field, waves, size.largest).await;
    if let Err(left) = field.comes_back(&rest).await {
        wrong.push(format!("one dear request of each operation: not given back: {left}"));
        return wrong;
    }
    let mut before = quiet(field, size, honest, processes).await;
    for wave in waves {
        let underway = wave.begin(field, size, &notes);
        let measuring = Measured::over(size.hold, &honest.seen, processes);
        let (measured, most) = tokio::join!(measuring, look_at(field, wave, size, &notes));
        drop(underway);
        coverage.add(wave, &notes, &rest, &most);
        if let Err(left) = field.comes_back(&rest).await {
            tell(wave, &measured, Quiet { before, after: before });
            wrong.push(format!("{}: not given back: {left}", wave.name));
            break;
        }
        let after = quiet(field, size, honest, processes).await;
        tell(wave, &measured, Quiet { before, after });
        before = after;
    }
    wrong.extend(notes.wrong());
    wrong
}

/// Looks at honest clients while nobody attacks: their writes a second.
async fn quiet(field: &Field, size: &Size, honest: &Honest, processes: &[u32]) -> f64 {
    // Nodes are asked for their metrics as often as during a wave, or that would count as its work. What they tell is of no interest here.
    let looks = Rest::over(size.quiet.saturating_sub(LOOK_EVERY), &field.nodes, field.root());
    let (measured, _told) = tokio::join!(Measured::over(size.quiet, &honest.seen, processes), looks);
    measured.writes_per_second
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_no_longer_than_it_may_with_all_quiet_moments() {
        let time = Duration::from_secs(900);
        for (waves, clusters) in [(192_u32, 4_u32), (48, 1), (2, 1), (1, 1)] {
            let Turn { quiet, hold } = Turn::of(time, waves as usize, clusters as usize);
            let all = clusters * REST + (waves + clusters) * quiet + waves * hold;
            assert!(all <= time && all > time - Duration::from_secs(1), "{all:?}");
            assert!(quiet >= Duration::from_secs(1) && quiet <= QUIET_MAX && hold >= quiet, "{quiet:?}, {hold:?}");
        }
        let least = Turn::of(Duration::ZERO, 192, 4);
        assert!(least.quiet == TURN_MIN / 4 && least.hold >= TURN_MIN * 3 / 4, "{least:?}");
    }
}

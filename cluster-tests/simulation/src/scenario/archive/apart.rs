//! A cluster that archives while the clock of its leader is a day off.
//!
//! Owns what must be so of merges then: none takes an entry whose span is not over by the cluster's clock, none is made while the nodes tell that
//! clocks are apart, they go on once they are not, and every point is restored as ever. Never changes what a node does.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use quorate_archive::{Merging, SegmentName};
use rand::RngExt;

use super::super::{Found, Stage};
use super::{Course, Encrypted, Jumps, Plan, piece_of};
use crate::address::HostId;

/// What is merged: a span, at each of whose ends there is a bundle.
const MERGING: Merging = Merging { span_ms: 3_000 };
/// How far the clock is off, nanoseconds.
const DAY: i64 = 86_400_000_000_000;
/// How long it may take until something is merged, and until all nodes know that a clock is off, milliseconds.
const MERGED_WITHIN: u64 = 30_000;
const TOLD_WITHIN: u64 = 10_000;
/// How long a round may go on that is under way by then.
const ROUND_MAX: u64 = 8_000;
/// How long nothing is merged behind that.
const APART: u64 = 12_000;
/// So many pieces have to come meanwhile, or it would prove nothing.
const PIECES_MIN: usize = 20;
/// From one look at the archive to the next.
const LOOK_EVERY: u64 = 50;
/// By so much the log's clock may be behind the one that a merge went by.
const SLACK_MS: u64 = 1_000;

/// Bundles and pieces that were ever there.
#[derive(Default)]
struct Ever {
    bundles: BTreeSet<SegmentName>,
    pieces: usize,
}

impl Stage {
    pub(in super::super) fn archive_apart(&mut self) -> Found {
        let plan = Plan {
            interval: 100,
            base_every: 8_000,
            keep_ms: 3_600_000,
            bases_min: 2,
            hold_bytes: 1 << 30,
            verify_every: None,
            merge_ms: Some(MERGING.span_ms),
            snapshot_every: 1_000,
            keep_log: 200,
            hurts: false,
            jumps: Jumps::One,
            encrypted: Encrypted::Nobody,
        };
        self.world.objects.heal();
        let mut course = self.begin_archiving(plan)?;
        let done = self.go_apart(&mut course);
        self.count_archived(&course);
        done
    }

    fn go_apart(&mut self, course: &mut Course) -> Found {
        let mut ever = Ever::default();
        self.until_merged(course, &mut ever)?;
        let leader = self.leader()?;
        let nanos = if self.dice.random() { DAY } else { -DAY };
        self.say(&format!("the clock of the leader, node {leader}, jumps by {} s", nanos / 1_000_000_000));
        drop(self.world.shift_wall(leader, nanos));
        course.back.push((u64::MAX, vec![leader], nanos));
        self.until_told(course, &mut ever, true)?;
        self.look_on(ROUND_MAX, course, &mut ever)?;
        let (bundles, pieces) = (ever.bundles.len(), ever.pieces);
        self.look_on(APART, course, &mut ever)?;
        let (merged, came) = (ever.bundles.len() - bundles, ever.pieces - pieces);
        if merged > 0 {
            return Err(format!("{merged} bundles were made while all nodes told that a clock is off"));
        }
        if came < PIECES_MIN {
            return Err(format!("{came} pieces, none of which was merged, prove nothing"));
        }
        self.meet("nothing was merged while a clock was a day off");
        self.judge(course, false)?;
        self.say("the clock is right again");
        self.bring_clocks_back(course, u64::MAX);
        self.until_told(course, &mut ever, false)?;
        self.until_merged(course, &mut ever)?;
        course.is_calm.store(true, Ordering::Relaxed);
        self.until_whole(course)?;
        self.judge(course, true)
    }

    /// So many steps, in which nothing is merged too early.
    fn look_on(&mut self, millis: u64, course: &mut Course, ever: &mut Ever) -> Found {
        for _ in 0..millis.div_ceil(LOOK_EVERY) {
            self.go_on(LOOK_EVERY, course)?;
            let names: Vec<SegmentName> = self.world.objects.ever().iter().filter_map(|path| piece_of(path)).collect();
            ever.pieces = names.iter().filter(|name| !name.is_bundle()).count();
            let now = self.world.facts.points().last_key_value().map_or(0, |(_, point)| point.wall);
            for bundle in names.into_iter().filter(SegmentName::is_bundle) {
                let end = (bundle.wall / MERGING.span_ms + 1) * MERGING.span_ms + MERGING.settled_after_ms();
                if !ever.bundles.contains(&bundle) && end > now + SLACK_MS {
                    return Err(format!("{bundle} was made at {now}, and its span is over at {end}"));
                }
                ever.bundles.insert(bundle);
            }
        }
        Ok(())
    }

    /// Waits until there is another bundle.
    fn until_merged(&mut self, course: &mut Course, ever: &mut Ever) -> Found {
        let (before, until) = (ever.bundles.len(), self.world.now + MERGED_WITHIN);
        while ever.bundles.len() == before {
            if self.world.now > until {
                return Err(format!("nothing is merged within {MERGED_WITHIN} ms; {}", self.world.describe()));
            }
            self.look_on(LOOK_EVERY, course, ever)?;
        }
        Ok(())
    }

    /// Waits until all nodes tell that clocks are apart, or none does.
    fn until_told(&mut self, course: &mut Course, ever: &mut Ever, is_apart: bool) -> Found {
        let until = self.world.now + TOLD_WITHIN;
        while !self.world.founders().iter().all(|id| self.tells(*id) == Some(is_apart)) {
            if self.world.now > until {
                return Err(format!("{TOLD_WITHIN} ms later not all nodes say that clocks are apart: {is_apart}"));
            }
            self.look_on(LOOK_EVERY, course, ever)?;
        }
        Ok(())
    }

    /// Whether a node tells that clocks are apart; `None` while it does not run.
    fn tells(&self, id: HostId) -> Option<bool> {
        self.world.parts(id).map(|parts| !parts.app.wall_clocks().warnings().is_empty())
    }
}

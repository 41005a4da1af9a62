//! Faults that openraft once had, each as a story in which ours would show it: mended there before the version in use, and never to come
//! back unnoticed with the next one. `docs/results.md` has the list.
//!
//! Owns what leads up to each. What has to hold at every moment, as that a majority has what is committed, stands in `facts`.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cluster_harness::{Connection, Request};
use openraft::async_runtime::WatchReceiver;
use quorate_store::raft::StoredMembership;
use rand::RngExt;
use rand::seq::IndexedRandom;

use super::{ANSWER_MAX, ENTRIES, Found, GO_ON_MAX, Stage, UP_MAX};
use crate::address::HostId;
use crate::cure::Cure;
use crate::world::World;

/// Writers at once, and the bytes that each writes at a time: few entries in a message, so that followers come forward in small steps.
const WRITERS: usize = 12;
const WRITTEN_BYTES: usize = 150_000;
/// How often other followers are cut off, and how long they stay so, milliseconds.
const CUTS: usize = 8;
const CUT_FOR: std::ops::Range<u64> = 100..500;
/// Longest sync of the leader's disk meanwhile, microseconds.
const SLOW_DISK: u64 = 400_000;
/// Entries that are written while a former leader hears nothing.
const MISSED: usize = 60;
/// How long a write may take while a member that is dead without a word is removed, milliseconds: less than a leader may be silent.
const UNDISTURBED: u64 = 250;
/// How long a node stands still that leadership is handed to, milliseconds, and how long nobody may lead meanwhile.
const STANDS_STILL: u64 = 12_000;
const HANDED_OVER_MAX: u64 = 5_000;
/// What goes beyond the entries that a log keeps in memory.
const BULKY: usize = 40;
const BULKY_BYTES: usize = 1_200_000;
/// Segments of a log that stay whole, the newest.
const WHOLE_SEGMENTS: usize = 8;
/// What a log says of an entry that is not what was written.
const DAMAGE: &str = "raft log";

impl Stage {
    /// Leaders commit what a majority has, however the followers come forward: openraft/1802.
    pub(super) fn acknowledged_in_disorder(&mut self) -> Found {
        self.begin()?;
        let leader = self.leader()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        for number in 0..WRITERS {
            let (is_over, written, connecting) = (is_over.clone(), written.clone(), self.world.connect(leader));
            self.world.spawn(async move {
                let Ok(mut connection) = connecting.await else { return };
                let value = format!("\"{}\"", "w".repeat(WRITTEN_BYTES));
                while !is_over.load(Ordering::Relaxed) {
                    let put = Request::put(&format!("writer/{number}"), value.clone());
                    match connection.exchange(&put).await {
                        Ok(answer) if answer.is_success() => drop(written.fetch_add(1, Ordering::Relaxed)),
                        Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                        Err(_) => return,
                    }
                }
            });
        }
        let followers: Vec<HostId> = self.world.founders().iter().copied().filter(|id| *id != leader).collect();
        self.world.slow_disk(leader, SLOW_DISK);
        for _ in 0..CUTS {
            let two: Vec<HostId> = followers.sample(&mut self.dice, 2).copied().collect();
            let millis = self.dice.random_range(CUT_FOR);
            self.say(&format!("nodes {two:?} hear nothing of node {leader} for {millis} ms"));
            let links = two.iter().flat_map(|id| [(leader, *id), (*id, leader)]).collect();
            let cure = self.world.change_links(links, |link| link.is_cut = true);
            self.steps(millis)?;
            self.world.heal(cure);
            let pause = self.dice.random_range(20..200);
            self.steps(pause)?;
            self.meet("two followers were cut off from a slow leader");
        }
        is_over.store(true, Ordering::Relaxed);
        self.world.heal_all();
        self.operations += written.load(Ordering::Relaxed);
        if written.load(Ordering::Relaxed) == 0 {
            return Err("nothing was written meanwhile: that proves nothing".into());
        }
        self.write_anywhere("after", UP_MAX)?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)
    }

    /// A node whose own change of the members came to nothing goes by those of the snapshot that it is given: openraft/1808.
    pub(super) fn members_of_a_snapshot(&mut self) -> Found {
        self.begin()?;
        let (former, goes) = self.leader_and_another()?;
        let before = effective(&self.world, former);
        self.world.take_vote_from(former, goes);
        self.until(ANSWER_MAX, "the change does not begin", |world| effective(world, former) != before)?;
        let begun =
            effective(&self.world, former).and_then(|members| *members.log_id()).ok_or("no change has begun")?;
        let cure = self.cut_off(former);
        self.say(&format!("node {former} is cut off once entry {} of its log is a change of the members", begun.index));
        let others: Vec<HostId> = self.world.founders().iter().copied().filter(|id| *id != former).collect();
        self.until(GO_ON_MAX, "nobody else leads", |world| world.leader().is_some_and(|id| id != former))?;
        for number in 0..MISSED {
            self.write_anywhere(&format!("missed-{number}"), GO_ON_MAX)?;
        }
        let is_purged = |world: &World, id: HostId| {
            world.parts(id).and_then(|parts| parts.log.purged_index()).is_some_and(|purged| purged > begun.index)
        };
        self.until(UP_MAX, "the others do not purge their logs", |world| {
            others.iter().all(|id| is_purged(world, *id))
        })?;
        let still = effective(&self.world, former).and_then(|members| *members.log_id());
        if still != Some(begun) {
            return Err(format!("node {former} heard of others meanwhile, which proves nothing: {still:?}"));
        }
        self.world.heal(cure);
        self.until(UP_MAX, "it is given no snapshot", |world| is_purged(world, former))?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        let leader = self.leader()?;
        let (found, right) = (effective(&self.world, former), effective(&self.world, leader));
        if found != right {
            return Err(format!("node {former} goes by {found:?}, the others by {right:?}"));
        }
        // With two of five gone it takes all of the others, the former leader too.
        let away: Vec<HostId> = others.iter().copied().filter(|id| *id != goes).take(2).collect();
        away.iter().for_each(|id| drop(self.world.crash(*id, true)));
        self.say(&format!("nodes {away:?} die"));
        self.write(former, "with the former leader", GO_ON_MAX)
    }

    /// A member that is dead without a word, with messages to it under way, is removed, and nobody else is held up: openraft/1810.
    pub(super) fn removed_without_a_word(&mut self) -> Found {
        self.begin()?;
        let (leader, goes) = self.leader_and_another()?;
        self.world.expect_gone(goes);
        self.world.crash(goes, true);
        self.write(leader, "is not heard", GO_ON_MAX)?;
        let removal = self.world.request(leader, Request::new("DELETE", format!("/v1/cluster/members/{goes}")));
        let (mut longest, mut number) = (0, 0);
        while !removal.is_finished() {
            let begun = self.world.now;
            number += 1;
            self.write(leader, &format!("meanwhile {number}"), GO_ON_MAX)?;
            longest = longest.max(self.world.now - begun);
        }
        self.say(&format!("the longest of {number} writes took {longest} ms"));
        let answer = self.answer(removal, ANSWER_MAX)?;
        super::expect(&answer, 200)?;
        if longest > UNDISTURBED {
            return Err(format!("a write took {longest} ms while node {goes} was removed"));
        }
        self.meet("a dead member was removed");
        self.until(UP_MAX, "those who are left do not agree", World::agrees)
    }

    /// Leadership goes to a node that does not come for it, while others go on reading: openraft/1747.
    pub(super) fn handed_to_nobody(&mut self) -> Found {
        self.begin()?;
        let (leader, to) = self.leader_and_another()?;
        let third = super::third(leader, to);
        let is_over = Arc::new(AtomicBool::new(false));
        for id in [leader, third] {
            let (is_over, network) = (is_over.clone(), self.world.client_network());
            self.world.spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let reading = async {
                        let mut connection =
                            Connection::over(network.connect(&crate::world::client_address(id)).await?);
                        connection.exchange(&Request::get("/v1/kv/fill-0")).await
                    };
                    // What is answered is not judged here: a reader that never stops is all that counts.
                    let _read = tokio::time::timeout(Duration::from_millis(500), reading).await;
                    tokio::time::sleep(Duration::from_millis(3)).await;
                }
            });
        }
        self.steps(200)?;
        self.say(&format!("node {to} stands still, and node {leader} hands over to it"));
        self.world.pause(to, STANDS_STILL);
        self.world.hand_over(to);
        self.steps(50)?;
        let written = self.write(third, "without an heir", HANDED_OVER_MAX);
        is_over.store(true, Ordering::Relaxed);
        written?;
        self.meet("leadership went to nobody");
        self.until(STANDS_STILL + UP_MAX, "the nodes do not agree", World::agrees)
    }

    /// The leader cannot read an entry that a follower lacks: it ends at once, and the follower gets it from another: openraft/1795.
    pub(super) fn unreadable_for_a_follower(&mut self) -> Found {
        self.begin()?;
        let (leader, behind) = self.leader_and_another()?;
        let third = super::third(leader, behind);
        self.world.crash(behind, false);
        let value = format!("\"{}\"", "b".repeat(BULKY_BYTES));
        for number in 0..BULKY {
            self.write_value(leader, &format!("bulky-{number}"), value.clone(), UP_MAX)?;
        }
        if self.leader()? != leader {
            return Err("another node leads by now: the story goes another way".into());
        }
        let damaged = damage(&self.world.data_dir(leader).join("log"))?;
        self.say(&format!("{damaged} segments of the log of node {leader} are damaged"));
        self.world.expect_death(leader, DAMAGE);
        self.world.heal(Cure::Start(behind));
        self.until(UP_MAX, "the leader goes on with a log that it cannot read", |world| world.parts(leader).is_none())?;
        self.meet("a leader could not read its log");
        self.write(third, "without the leader", UP_MAX)?;
        self.until(UP_MAX, "the follower does not catch up", |world| {
            let state = |id| world.parts(id).map(|parts| parts.app.state().applied());
            let (one, other) = (state(behind), state(third));
            one.is_some()
                && one.map(|state| (state.at.index, state.digest)) == other.map(|state| (state.at.index, state.digest))
        })?;
        let kept = self.world.parts(behind).map(|parts| parts.log.last_index());
        if kept.is_none_or(|last| last < (ENTRIES + BULKY) as u64) {
            return Err(format!("node {behind} has a log up to {kept:?}"));
        }
        Ok(())
    }

    /// Cuts a node off from all others; clients reach it.
    fn cut_off(&mut self, id: HostId) -> Cure {
        let others = self.world.founders().iter().copied().filter(|other| *other != id);
        let links = others.flat_map(|other| [(id, other), (other, id)]).collect();
        self.world.change_links(links, |link| link.is_cut = true)
    }

    /// Writes at whoever leads, again and again until it succeeds.
    fn write_anywhere(&mut self, key: &str, within: u64) -> Found {
        let until = self.world.now + within;
        loop {
            let leader = self.leader()?;
            match self.write(leader, key, 1_000) {
                Ok(()) => return Ok(()),
                Err(found) if self.world.now >= until => return Err(found),
                Err(_) => {}
            }
        }
    }
}

/// The members that a node goes by.
fn effective(world: &World, at: HostId) -> Option<StoredMembership> {
    let metrics = world.parts(at)?.app.raft().server_metrics();
    let metrics = metrics.borrow_watched();
    Some(metrics.membership_config.as_ref().clone())
}

/// Damages all but the newest segments in each block, and gives how many.
fn damage(log: &Path) -> Result<usize, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", log.display());
    let mut segments: Vec<_> = fs::read_dir(log)
        .map_err(fail)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    segments.sort();
    segments.truncate(segments.len().saturating_sub(WHOLE_SEGMENTS));
    for path in &segments {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(fail)?;
        let bytes = file.metadata().map_err(fail)?.len();
        for at in (0..bytes).step_by(512) {
            file.write_all_at(b"damage", at).map_err(fail)?;
        }
        file.sync_all().map_err(fail)?;
    }
    Ok(segments.len())
}

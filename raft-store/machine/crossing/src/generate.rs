//! Commands that meet something.
//!
//! Owns what is asked for next, given a seed and what there is: mostly of things that are there, with tokens that fit or just
//! do not any more. Never decides what an answer should be.

mod coordination;
mod entries;
mod quotas;
mod tasks;
mod theme;

use std::collections::BTreeMap;

use quorate_machine::access::{Grant, Permission};
use quorate_machine::keyspace::collection;
use quorate_machine::rules::{CollectionName, SequenceName};
use quorate_machine::types::{
    AccessOp, Action, Command, Expect, FaultsOp, Key, Maintenance, MembersOp, NewInvitation, NewToken, NodeDisk,
    NumbersOp, RequestId, RulesChange, RulesOp, SecretHash, TokenId,
};
use quorate_machine::types::{CollectionRow, IndexStage};
use quorate_machine::{level, limits};

use crate::chance::Chance;
use crate::names::{self, Texts};
use crate::picture::Picture;

pub use theme::Theme;

/// What happens next.
#[derive(Debug, Clone)]
pub struct Step {
    /// How far the cluster clock moves before.
    pub clock: u64,
    /// Whether the answer of each command is tried before.
    pub is_rehearsed: bool,
    /// What happens then.
    pub what: What,
}

/// What happens in a step.
#[derive(Debug, Clone)]
pub enum What {
    /// A batch is applied.
    Batch(Vec<Command>),
    /// The state goes on in another cluster.
    Epoch,
}

/// What roles allow.
const PERMISSIONS: [Permission; 5] =
    [Permission::Read, Permission::Write, Permission::Admin, Permission::Backup, Permission::Monitor];

/// Who asks for something: nobody in particular, or somebody.
pub fn owners() -> [String; 3] {
    [String::new(), names::user(0).as_str().to_owned(), names::user(1).as_str().to_owned()]
}

/// What a run has sent so far under request ids.
pub type Sent = BTreeMap<String, Command>;

/// Makes steps of seeds.
pub struct Generator<'t> {
    chance: Chance,
    picture: &'t Picture,
    texts: &'t Texts,
    theme: Theme,
}

/// How far the clock moves in a step, before it is known what else it does.
pub fn clock_step(seed: u64, picture: &Picture) -> u64 {
    let mut chance = Chance::new(seed ^ 0xC10C);
    match chance.weighted(&[76, 9, 5, 9, 1]) {
        0 => 0,
        1 => chance.between(1, 30),
        2 => chance.between(50, 400),
        // To the moment at which something is over, or to just before or behind it.
        3 => {
            let moments = picture.moments();
            let nearer = (chance.below(8) * chance.below(8) / 8) as usize;
            let at = moments.get(nearer).copied().unwrap_or(picture.vars.clock + 1);
            (at + chance.below(3)).saturating_sub(picture.vars.clock + 1)
        }
        _ => *chance.pick(&[1_100, limits::REQUEST_BUCKET_MS - 1, 2 * limits::REQUEST_BUCKET_MS]),
    }
}

/// The step of a seed, in a state whose clock has moved already.
pub fn step(seed: u64, theme: Theme, clock: u64, picture: &Picture, texts: &Texts, sent: &Sent) -> Step {
    let mut generator = Generator { chance: Chance::new(seed), picture, texts, theme };
    let is_rehearsed = generator.chance.percent(25);
    // Hardly ever, where there is nothing to compact; so it is that more often just then.
    let often = if picture.groups == 0 { 40 } else { 600 };
    if generator.chance.below(often) == 0 {
        return Step { clock, is_rehearsed, what: What::Epoch };
    }
    let count = 1 + generator.chance.weighted(&[90, 7, 3]);
    let commands = (0..count).map(|_| generator.command(sent)).collect();
    Step { clock, is_rehearsed, what: What::Batch(commands) }
}

impl Generator<'_> {
    fn command(&mut self, sent: &Sent) -> Command {
        if self.chance.percent(8)
            && let Some(command) = self.chance.maybe(&sent.values().collect::<Vec<_>>())
        {
            return (*command).clone();
        }
        // Little happens without sessions.
        let lacks_sessions = self.picture.sessions.len() < 4 && self.chance.percent(30);
        let action = if lacks_sessions { Action::Session(self.new_session()) } else { self.action() };
        let is_own = matches!(action, Action::Maintain(_));
        let request_id = (!is_own && self.chance.percent(30)).then(|| {
            let id = self.chance.below(60);
            RequestId(format!("r{id}"))
        });
        let principal = match self.chance.weighted(&[80, 13, 7]) {
            0 => String::new(),
            nth => names::user(nth as u64 - 1).as_str().to_owned(),
        };
        let access = self.picture.vars.access;
        let access_revision = (!is_own && access > 0 && self.chance.percent(50))
            .then(|| if self.chance.percent(90) { access } else { access - 1 });
        Command { request_id, principal, action, access_revision }
    }

    /// What is in the middle of something goes on sooner than by mere chance, so that its end is met as well.
    fn going_on(&mut self) -> Option<Action> {
        let (goes_on, ends) = (self.chance.percent(15), self.chance.percent(15));
        let has = |holds: fn(&IndexStage) -> bool| {
            move |row: &CollectionRow| row.indexes.iter().any(|state| holds(&state.stage))
        };
        let is_building = has(|stage| matches!(stage, IndexStage::Building(_)));
        if goes_on && self.picture.collections.values().any(is_building) {
            let rows_max = *self.chance.pick(&[1, 2, 100]);
            return Some(Action::Maintain(Maintenance::Indexes { rows_max }));
        }
        if goes_on && self.picture.quota_state.has_work() {
            return Some(Action::Maintain(Maintenance::Count));
        }
        let (is_at_rest, looks) = (self.picture.groups == 0, self.chance.percent(10));
        if is_at_rest && looks {
            return Some(match self.chance.percent(75) {
                true => Action::Faults(self.faults()),
                false => Action::Maintain(Maintenance::Count),
            });
        }
        let has_failed = has(|stage| matches!(stage, IndexStage::Failed(_)));
        let failed = self.picture.collections.iter().find(|(_, row)| has_failed(row));
        let (name, _) = failed.filter(|_| ends)?;
        Some(Action::Rules(self.rules_of(name.clone())))
    }

    fn action(&mut self) -> Action {
        if let Some(action) = self.going_on() {
            return action;
        }
        match self.chance.weighted(&self.theme.weights()) {
            0 => Action::Write(self.write()),
            1 => Action::Bulk((0..self.chance.between(0, 4)).map(|_| self.write()).collect()),
            2 => Action::Txn(self.txn(0)),
            3 => Action::Where(self.update_where()),
            4 => Action::Claim(self.claim()),
            5 => Action::Rules(self.rules()),
            6 => {
                let count = *self.chance.pick(&[0, 1, 1, 2]);
                Action::Numbers(NumbersOp { name: SequenceName::new("s").expect("it is a name"), count })
            }
            7 => Action::Session(self.session()),
            8 => Action::Lock(self.lock()),
            9 => Action::Barrier(self.barrier()),
            10 => Action::Latch(self.latch()),
            11 => Action::Task(self.task()),
            12 => Action::Access(self.access()),
            13 => Action::Maintain(self.maintenance()),
            14 => Action::Faults(self.faults()),
            15 => Action::Members(self.members()),
            _ => Action::Quota(self.quota()),
        }
    }

    fn rules(&mut self) -> RulesOp {
        let name = CollectionName::new(*self.chance.pick(&names::COLLECTIONS)).expect("it is a name");
        self.rules_of(name)
    }

    fn rules_of(&mut self, name: CollectionName) -> RulesOp {
        let current = self.picture.collections.get(&name).map(|row| row.mod_revision);
        let expect = match self.chance.weighted(&[80, 10, 5, 5]) {
            0 => Expect::ANY,
            1 => Expect::cas(current.unwrap_or(2)),
            2 => Expect::cas(1),
            _ => Expect::ABSENT,
        };
        let change = match self.chance.percent(28) {
            true => RulesChange::Remove,
            // Two entries that are alike cannot stand in a unique index.
            false if self.has_alike(&name) && self.chance.percent(70) => RulesChange::Set(self.texts.rules[0].clone()),
            false => RulesChange::Set(self.chance.pick(&self.texts.rules).clone()),
        };
        RulesOp { name, expect, change }
    }

    /// Whether two entries of a collection have the same value.
    fn has_alike(&self, name: &CollectionName) -> bool {
        let (start, end) = collection::keys(name);
        let within = |key: &Key| (start.as_slice()..end.as_slice()).contains(&key.as_bytes());
        let entries = self.picture.entries.iter().filter(|(key, _)| within(key));
        let mut values: Vec<_> = entries.map(|(_, entry)| &entry.value.data).collect();
        values.sort();
        values.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn access(&mut self) -> AccessOp {
        let nth = self.chance.below(2);
        let id = TokenId(self.chance.below(3));
        match self.chance.weighted(&[4, 2, 4, 3, 4, 2]) {
            0 => {
                let roles = (0..self.chance.below(3)).map(|_| names::role(self.chance.below(2))).collect();
                AccessOp::SetUser { name: names::user(nth), roles }
            }
            1 => AccessOp::RemoveUser(names::user(nth)),
            2 => {
                let permission = *self.chance.pick(&PERMISSIONS);
                let grants = vec![Grant { permission, prefix: self.chance.pick(&names::PREFIXES).as_bytes().to_vec() }];
                AccessOp::SetRole { name: names::role(nth), grants }
            }
            3 => AccessOp::RemoveRole(names::role(nth)),
            4 => {
                let wall = self.picture.vars.wall;
                let expires_at = self.chance.percent(50).then(|| wall + self.chance.below(400));
                let (user, hash) = (names::user(nth), SecretHash([7; 32]));
                AccessOp::AddToken(NewToken { id, user, hash, expires_at, note: "n".into() })
            }
            _ => AccessOp::RemoveToken(id),
        }
    }

    fn members(&mut self) -> MembersOp {
        let id = TokenId(self.chance.below(2));
        let hash = SecretHash([if self.chance.percent(95) { 7 } else { 8 }; 32]);
        let node_id = self.chance.below(3);
        match self.chance.weighted(&[5, 2, 5]) {
            0 => {
                let node_id = self.chance.percent(50).then_some(node_id);
                let is_standby = self.chance.percent(20);
                let for_ms = *self.chance.pick(&[0, 300, 300, 10_000_000, 10_000_000]);
                MembersOp::Invite(NewInvitation { id, hash, node_id, is_standby, for_ms })
            }
            1 => MembersOp::Revoke(id),
            _ => {
                let newcomer = NodeDisk { node_id, incarnation: self.chance.below(2).into() };
                MembersOp::Admit { invitation: id, hash, newcomer, as_standby: self.chance.percent(30) }
            }
        }
    }

    fn maintenance(&mut self) -> Maintenance {
        match self.chance.weighted(&[25, 25, 42, 4, 4]) {
            0 => Maintenance::ExpireDue { limit: *self.chance.pick(&[0, 1, 2, 100]) },
            1 => {
                let newest = self.picture.vars.revision;
                let revision = *self.chance.pick(&[newest, newest.saturating_sub(20), u64::MAX, 1]);
                Maintenance::Compact { revision, groups_max: *self.chance.pick(&[1, 3, 1_000]) }
            }
            2 => Maintenance::Indexes { rows_max: *self.chance.pick(&[1, 1, 2, 100]) },
            3 => Maintenance::Count,
            _ => Maintenance::RaiseLevel { level: *self.chance.pick(&[0, level::KNOWN]) },
        }
    }

    fn faults(&mut self) -> FaultsOp {
        let work = self.chance.maybe(&self.picture.parked).cloned().unwrap_or_else(|| vec![0x70, 1, 2]);
        match self.chance.below(3) {
            0 => FaultsOp::Forget,
            1 => FaultsOp::Retry(work),
            _ => FaultsOp::Drop(work),
        }
    }
}

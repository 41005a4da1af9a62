//! A model check whose model is the code: Stateright tries every run of the real `apply`, up to a number of steps.
//!
//! Owns what may happen next, and which properties are asked for. Clients have a session each, ask for slots of a lock and for an
//! election, write a key guarded by the last token they know, and renew. What they send is applied at once, or is delayed, or
//! comes twice under its request id. Time passes at the leader, which commits it or not; leaders change, and go on from the
//! replicated clock with nothing but what is durable. What one step does and what must hold of it is [`world`]'s. Never part of
//! a node.
//!
//! A run is bounded by its number of steps, which is part of the state: so the check is exhaustive at its bound, however the
//! threads of the checker share the work.

pub mod world;

use quorate_machine::mutants::Mutant;
use stateright::{Model, Property};

use world::{Rule, Seen, World};

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many clients there are.
    pub clients: usize,
    /// How many slots their lock has.
    pub slots: u32,
    /// How many steps a run has.
    pub steps: usize,
    /// A bug to try it with.
    pub mutant: Option<Mutant>,
}

/// What a client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// That its session goes on.
    Renew,
    /// A slot of the lock, or a place in its queue.
    Acquire,
    /// To lead the election.
    Campaign,
    /// A write of the key, guarded by the last token of the lock that it knows.
    Write,
    /// To give that token back.
    Release,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A client asks, and it is applied at once.
    Do(usize, Request),
    /// A client asks, and it stays in flight.
    Delay(usize, Request),
    /// What a client has in flight is applied.
    Deliver(usize),
    /// What was applied last of a client is applied again.
    Repeat(usize),
    /// Time passes at the leader, which commits it.
    Tick,
    /// Time passes at the leader, which commits it with the next command, if it gets that far.
    Wait,
    /// Another leads, or the same one after a restart: only what is durable is left.
    NewLeader,
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(*self)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.is_broken() || world.steps == self.steps {
            return;
        }
        steps.extend([Step::Tick, Step::Wait]);
        if world.has_volatile_clock() {
            steps.push(Step::NewLeader);
        }
        for (at, client) in world.clients.iter().enumerate() {
            steps.extend([Request::Renew, Request::Acquire, Request::Campaign].map(|ask| Step::Do(at, ask)));
            if client.token.is_some() {
                steps.extend([Request::Write, Request::Release].map(|ask| Step::Do(at, ask)));
            }
            match client.in_flight {
                Some(_) => steps.push(Step::Deliver(at)),
                None if client.token.is_some() => {
                    steps.extend([Request::Write, Request::Release].map(|ask| Step::Delay(at, ask)));
                }
                None => steps.push(Step::Delay(at, Request::Renew)),
            }
            if client.applied.is_some() {
                steps.push(Step::Repeat(at));
            }
        }
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        world.steps += 1;
        world.take(*self, step);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most as many tokens are valid as there are slots", |_: &Self, world: &World| {
                world.keeps(Rule::Slots)
            }),
            Property::always("tokens only grow", |_: &Self, world: &World| world.keeps(Rule::Growing)),
            Property::always("no guarded write under an old token", |_: &Self, world: &World| world.keeps(Rule::Guard)),
            Property::always("nothing ends early", |_: &Self, world: &World| world.keeps(Rule::Early)),
            Property::always("one outcome for one request id", |_: &Self, world: &World| world.keeps(Rule::Once)),
            Property::always("nothing faults, and time does not go back", |_: &Self, world: &World| {
                world.keeps(Rule::Sound)
            }),
            Property::sometimes("a lock is handed over", |_: &Self, world: &World| world.has_seen(Seen::HandOver)),
            Property::sometimes("a leader is elected after another", |_: &Self, world: &World| {
                world.has_seen(Seen::Election)
            }),
            Property::sometimes("a session expires", |_: &Self, world: &World| world.has_seen(Seen::Expiry)),
            Property::sometimes("an old token is refused", |_: &Self, world: &World| world.has_seen(Seen::OldToken)),
            Property::sometimes("a repeat is answered from the table", |_: &Self, world: &World| {
                world.has_seen(Seen::Repeat)
            }),
            Property::sometimes("a leader comes while a lock is held", |_: &Self, world: &World| {
                world.has_seen(Seen::NewLeader)
            }),
        ]
    }
}

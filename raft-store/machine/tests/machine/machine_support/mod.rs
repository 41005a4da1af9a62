//! What the machine's tests share: text forms of rows and commands, beside the store that checks itself, which is
//! `quorate-crossing`'s.

pub mod access;
pub mod bounds;
pub mod coordination;
pub mod show;
pub mod tasks;

use quorate_crossing::generate::{self, Sent, Theme, What};
use quorate_crossing::names::Texts;
use quorate_crossing::picture::Picture;
use quorate_crossing::run;
use quorate_machine::types::{Action, Command, Key, Reply, Revision};

pub use quorate_crossing::store::{Store, batch};

/// Takes so many steps of a random run, with those commands that are wanted. `each` is told of each batch and of what came of it.
pub fn wander(
    seed: u64,
    steps: usize,
    wants: impl Fn(&Action) -> bool,
    mut each: impl FnMut(&Store, &[Command], &[Reply], &[(Key, Revision)]),
) -> Store {
    let (mut store, mut sent, texts) = (Store::default(), Sent::new(), Texts::new());
    for seed in run::seeds(seed, steps) {
        let clock = generate::clock_step(seed, &Picture::of(&store));
        store.apply(&[batch(store.vars.clock + clock, &[])]).unwrap();
        let step = generate::step(seed, Theme::Anything, clock, &Picture::of(&store), &texts, &sent);
        let What::Batch(mut commands) = step.what else { continue };
        commands.retain(|command| wants(&command.action));
        let (replies, changed) = store.apply(&[batch(store.vars.clock, &commands)]).unwrap();
        each(&store, &commands, &replies[0], &changed);
        for command in commands {
            sent.extend(command.request_id.clone().map(|id| (id.0, command)));
        }
    }
    store
}

//! The cases, grouped by service.
//!
//! A case is a function that makes calls; it never judges what comes back. One whose questions follow from nothing but the leases and
//! revisions that it was told before is kept as its steps alone, in the file of its group below `etcd/`, and is asked from there again.
//! A new one is written there, each step with `call` and `asked`; `scripts/conformance etcd --write` adds the answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::case::Case;
use crate::compare::kept_groups;
use crate::normal::asked_again;
use crate::transcript::{Group, Step};

mod auth;
mod cluster;
mod compact;
mod delete;
mod election;
mod gateway;
mod lease;
mod lock;
mod maintenance;
mod put;
mod range;
mod txn;
mod watch;

/// A case that takes longer says so.
const SLOW: Duration = Duration::from_secs(4);

type Run = for<'a> fn(&'a mut Case) -> BoxFuture<'a, ()>;

/// How a case is run.
enum Way {
    By(Run),
    /// Each of these is asked again.
    From(Vec<Step>),
}

/// Cases with their names.
type Cases = &'static [(&'static str, Run)];

/// Cases by the names of their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: super::Cases = &[$((stringify!($name), |case| Box::pin($name(case)))),*];
    };
}
use cases;

/// All groups. Those that change how a whole cluster works come last.
const GROUPS: &[(&str, Cases)] = &[
    ("range", range::CASES),
    ("put", put::CASES),
    ("delete", delete::CASES),
    ("txn", txn::CASES),
    ("compact", compact::CASES),
    ("watch", watch::CASES),
    ("lease", lease::CASES),
    ("lock", lock::CASES),
    ("election", election::CASES),
    ("gateway", gateway::CASES),
    ("cluster", cluster::CASES),
    ("maintenance", maintenance::CASES),
    ("auth", auth::CASES),
];

/// The names of all groups.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// Runs the cases whose `group/name` contains `only`, one after the other, each on the next server.
pub async fn run(nodes: &[SocketAddr], only: &str) -> BTreeMap<String, Group> {
    let (mut groups, mut kept) = (BTreeMap::new(), kept_groups());
    for (group, functions) in GROUPS {
        let mut steps = kept.remove(*group).unwrap_or_default();
        let functions: Vec<_> = functions.iter().map(|(name, run)| (name.replace('_', " "), Way::By(*run))).collect();
        steps.retain(|kept, _| functions.iter().all(|(name, _)| name != kept));
        let cases = steps.into_iter().map(|(name, steps)| (name, Way::From(steps))).chain(functions);
        for (n, (name, way)) in cases.enumerate() {
            let node = nodes[n % nodes.len()];
            if !format!("{group}/{name}").contains(only) {
                continue;
            }
            let begun = Instant::now();
            let mut case = Case::start(nodes.to_vec(), node).await;
            match way {
                Way::By(run) => run(&mut case).await,
                Way::From(steps) => ask_again(&mut case, steps).await,
            }
            if begun.elapsed() > SLOW {
                eprintln!("{group}/{name} took {:.1} s", begun.elapsed().as_secs_f64());
            }
            groups.entry((*group).to_owned()).or_insert_with(Group::new).insert(name, case.end().await);
        }
    }
    groups
}

/// Asks what was asked when these steps were kept.
async fn ask_again(case: &mut Case, steps: Vec<Step>) {
    for Step { call, asked, .. } in steps {
        let asked = asked.unwrap_or_else(|| panic!("{call} is an answer alone: such a case needs a function"));
        let asked = asked_again(case.steps(), asked);
        match call.split_once(' ') {
            Some((method, path)) => case.http(method, path, asked).await,
            None => case.call(&call, asked).await,
        };
    }
}

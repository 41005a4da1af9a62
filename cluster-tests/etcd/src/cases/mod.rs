//! The cases, grouped by service.
//!
//! A case is a function that makes calls; it never judges what comes back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::case::Case;
use crate::transcript::Group;

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
    let mut groups = BTreeMap::new();
    for (group, cases) in GROUPS {
        for (n, (name, run)) in cases.iter().enumerate() {
            let (name, node) = (name.replace('_', " "), nodes[n % nodes.len()]);
            if !format!("{group}/{name}").contains(only) {
                continue;
            }
            let begun = Instant::now();
            let mut case = Case::start(nodes.to_vec(), node).await;
            run(&mut case).await;
            if begun.elapsed() > SLOW {
                eprintln!("{group}/{name} took {:.1} s", begun.elapsed().as_secs_f64());
            }
            groups.entry((*group).to_owned()).or_insert_with(Group::new).insert(name, case.end().await);
        }
    }
    groups
}

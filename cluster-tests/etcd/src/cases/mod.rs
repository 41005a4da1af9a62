//! The cases, grouped by service.
//!
//! A case is a function that makes calls; it never judges what comes back. One whose questions follow from nothing but the leases and
//! revisions that it was told before is kept as its steps alone, in the file of its group below `etcd/`, and is asked from there again.
//! A new one is written there, each step with `call` and `asked`; what is to be read of its watches is a step of `answered`, with as many
//! `events` as there are. `scripts/conformance etcd --write` adds the answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::case::Case;
use crate::compare::kept_groups;
use crate::normal::asked_again;
use crate::stream::Stream;
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

/// What the stream of a case that is asked again calls.
const WATCH: &str = "Watch/Watch";

/// Asks what was asked when these steps were kept. All watches are on one stream.
async fn ask_again(case: &mut Case, steps: Vec<Step>) {
    let has_watch = steps.iter().any(|step| step.call == WATCH);
    let mut watch = if has_watch { Some(case.open(WATCH).await) } else { None };
    for Step { call, asked, answered } in steps {
        let asked = asked.map(|asked| asked_again(case.steps(), asked));
        match (watch.as_mut().filter(|_| call == WATCH), asked, answered) {
            (Some(watch), Some(asked), _) => watch.send(case, asked),
            (Some(watch), None, Some(answered)) => read_again(case, watch, &answered).await,
            (None, Some(asked), _) => match call.split_once(' ') {
                Some((method, path)) => drop(case.http(method, path, asked).await),
                None => drop(case.call(&call, asked).await),
            },
            (_, None, _) => panic!("nothing is asked by {call}: such a case needs a function"),
        }
    }
}

/// Reads as much as was read when this was kept: an answer, so many events in however many answers, or nothing.
async fn read_again(case: &mut Case, watch: &mut Stream, kept: &Value) {
    match kept.as_object() {
        None if kept == "nothing" => watch.receive_nothing(case).await,
        Some(fields) if fields.len() == 1 && fields.contains_key("events") => {
            drop(watch.receive_events(case, kept["events"].as_array().map_or(0, Vec::len)).await);
        }
        _ => drop(watch.receive(case).await),
    }
}

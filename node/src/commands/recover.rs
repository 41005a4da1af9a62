//! `quorate-node recover`: a cluster of one node out of a survivor.

use std::path::PathBuf;

use quorate_store::offline::{self, RecoverOptions, Recovered, Survivor};

use super::CommandError;
use super::progress::Progress;

/// Which disk, and that this is really wanted.
#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    /// Data directory of the survivor; no node may run on it
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    /// Yes: the other members are gone for good, and what only they had is lost
    #[arg(long)]
    accept_data_loss: bool,
}

/// Runs the verb.
pub fn run(args: &RecoverArgs) -> Result<(), CommandError> {
    let data_dir = args.data_dir.clone();
    if !args.accept_data_loss && !offline::is_interrupted(&data_dir) {
        let found = offline::survivor(&data_dir)?;
        say!("Nothing was done. This is what the disk has:");
        show(&found);
        return Err(CommandError::Usage(
            "a recovery gives up what only the lost members had, and they can never come back. Compare the disks of all \
             survivors first and take the one whose log reaches furthest (the greatest term, then the greatest entry). If a \
             majority can still be started, start it instead. To go on, say --accept-data-loss"
                .into(),
        ));
    }
    let cluster_id = rand::random();
    let revision_floor = super::revision_floor(cluster_id);
    let options = RecoverOptions { data_dir, cluster_id, revision_floor, incarnation: rand::random() };
    let progress = Progress::new("recovering");
    let done = offline::recover(&options, |said| progress.step(said))?;
    drop(progress);
    report(&options, &done);
    Ok(())
}

fn show(found: &Survivor) {
    let Survivor { identity, applied, last, revision, wall, members, .. } = found;
    let id = |id: &Option<quorate_store::raft::wire::LogIdRecord>| {
        id.map_or("none".to_owned(), |id| format!("{} of term {}", id.index, id.term))
    };
    say!("  node {} of cluster {:032x}, members {members:?}", identity.node_id, identity.cluster_id.unwrap_or(0));
    say!("  last entry in the state  {}, revision {revision}, {}", id(applied), super::time(*wall));
    say!("  last entry in the log    {}", id(last));
}

fn report(options: &RecoverOptions, done: &Recovered) {
    if let Some(before) = &done.survivor {
        show(before);
        let last = done.last.map_or(0, |id| id.index);
        let from = before.applied.map_or(0, |id| id.index + 1);
        say!("Kept: everything this disk had, up to entry {last}, revision {}.", done.revision_before);
        if from <= last {
            say!(
                "Not known: whether entries {from} to {last} were ever acknowledged. They are all kept; some may be writes that \
                 their clients were never told of."
            );
        }
        say!("Lost: writes that were acknowledged after entry {last} by the others alone, if there were any.");
    }
    if let Some(old) = &done.old {
        say!("The old content is in {}; remove it once all is well.", old.display());
    }
    let (epoch, revision) = (done.epoch, done.revision);
    say!("The node is now a cluster of its own, in epoch {epoch}, and goes on at revision {revision}.");
    if done.survivor.is_some() {
        say!("Its cluster is {:032x}; the lost members are refused by it for ever.", options.cluster_id);
    }
    say!("Start it with a join list of itself alone, then others on empty directories with the list of all.");
}

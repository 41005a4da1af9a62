//! `quorate-node restore`: the first node of a new cluster, out of a backup.

use std::path::PathBuf;

use quorate_store::offline::{self, RestoreOptions, Restored};

use super::progress::Progress;
use super::{CommandError, backup};
use crate::config::{Args, Config, DataDir};

/// What to restore, and for which node. The settings are those that the node will be started with.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    settings: Args,
}

/// Runs the verb.
pub fn run(args: RestoreArgs) -> Result<(), CommandError> {
    let config = Config::try_from(args.settings).map_err(|error| CommandError::Usage(error.to_string()))?;
    let DataDir::Given(data_dir) = config.data_dir else {
        return Err(CommandError::Usage("--dev keeps nothing, so there is nothing to restore into".into()));
    };
    let cluster_id = rand::random();
    let options = RestoreOptions {
        from: args.from,
        data_dir,
        node_id: config.node_id,
        peer_addr: config.peer_advertise,
        client_addr: config.client_advertise,
        cluster_id,
        revision_floor: super::revision_floor(cluster_id),
        incarnation: rand::random(),
    };
    let mut progress = Progress::new("restoring");
    let Restored { header, end, revision, epoch } = offline::restore(&options, |done, of| progress.at(done, of))?;
    drop(progress);
    say!("Restored {} rows into {}. The backup:", end.rows, options.data_dir.display());
    backup::show(&header);
    say!("The new cluster {:032x} is in epoch {epoch} and begins at revision {revision}.", options.cluster_id);
    say!("Start node {} with these settings, then the others of its join list on empty directories.", options.node_id);
    Ok(())
}

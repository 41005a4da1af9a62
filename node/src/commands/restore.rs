//! `quorate-node restore`: the first node of a new cluster, out of a backup or of a point of an archive.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use quorate_store::offline::{self, RestoreOptions, Restored};

use super::archive::{self, KeyArgs, OpenedArgs, PointArgs};
use super::progress::Progress;
use super::{CommandError, backup};
use crate::config::{Args, Config, DataDir};

/// What to restore, and for which node. The settings are those that the node will be started with.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// The backup, or where an archive is: s3://BUCKET/PREFIX, gs://…, az://CONTAINER/PREFIX or a directory
    #[arg(long, value_name = "FILE|LOCATION")]
    from: String,
    #[command(flatten)]
    point: PointArgs,
    #[command(flatten)]
    opened: OpenedArgs,
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
        from: args.from.clone().into(),
        data_dir,
        node_id: config.node_id,
        peer_addr: config.peer_advertise,
        client_addr: config.client_advertise,
        cluster_id,
        revision_floor: super::revision_floor(cluster_id),
        incarnation: rand::random(),
    };
    let (restored, what) = match is_archive(&args.from) {
        true => of_archive(&args.from, &args.point, &args.opened, &options)?,
        false if args.point.is_named() || args.opened.cluster.is_some() => {
            return Err(CommandError::Usage(
                "--at, --revision, --latest, --base and --cluster are about an archive, and a backup is of one point alone; leave them out, or \
                 name the archive by --from"
                    .into(),
            ));
        }
        false => (of_backup(&options, &args.opened.keys)?, String::new()),
    };
    let Restored { header, end, revision, epoch } = restored;
    say!("Restored {} rows into {}{what}. The backup:", end.rows, options.data_dir.display());
    backup::show(&header);
    say!("The new cluster {:032x} is in epoch {epoch} and begins at revision {revision}.", options.cluster_id);
    say!("Start node {} with these settings, then the others of its join list on empty directories.", options.node_id);
    Ok(())
}

/// Whether it is a place where an archive is, rather than a file.
fn is_archive(from: &str) -> bool {
    from.contains("://") || Path::new(from).is_dir()
}

fn of_backup(options: &RestoreOptions, keys: &KeyArgs) -> Result<Restored, CommandError> {
    let mut progress = Progress::new("restoring");
    // The restore says why, where it cannot be read.
    if !keys.is_named() && !quorate_archive::is_sealed(&options.from).unwrap_or(false) {
        return Ok(offline::restore(options, |done, of| progress.at(done, of))?);
    }
    // A file that these keys do not open is refused before a directory is made for it.
    let mut source = keys.open(&options.from)?;
    offline::restore_made::<CommandError>(
        options,
        |scratch| {
            let opened = scratch.join("backup");
            // All of a cluster is in it.
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&opened);
            file.and_then(|mut file| io::copy(&mut source, &mut file)).map_err(|error| {
                let (from, to) = (options.from.display(), opened.display());
                CommandError::Failed(format!("{from} cannot be opened into {to}: {error}"))
            })?;
            Ok(opened)
        },
        |done, of| progress.at(done, of),
    )
}

fn of_archive(
    from: &str,
    point: &PointArgs,
    opened: &OpenedArgs,
    options: &RestoreOptions,
) -> Result<(Restored, String), CommandError> {
    let target = point.target()?;
    let opened = opened.open(from)?;
    let mut wanted = opened.source.want(target, point.begin())?;
    let mut wall = 0;
    let mut progress = Progress::new("restoring");
    let made = offline::restore_made::<CommandError>(
        options,
        |scratch| {
            let _work = archive::begin_work(&opened.source)?;
            let (replay, backup) = (scratch.join("replay"), scratch.join("backup"));
            let at_replay = |error| CommandError::Failed(format!("{}: {error}", replay.display()));
            fs::create_dir(&replay).map_err(at_replay)?;
            wall = archive::make_backup(&opened.source, &mut wanted, &replay, &backup)?;
            // Its room may be needed for what is made of it.
            fs::remove_dir_all(&replay).map_err(at_replay)?;
            Ok(backup)
        },
        |done, of| progress.at(done, of),
    );
    Ok((made?, format!(", {}, as of {}", archive::what_it_is(&wanted), archive::age(wall))))
}

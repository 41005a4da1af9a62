//! What the `quorate-node` program does beside running a node.
//!
//! Owns the verbs and their words for people. Never runs while a node does on the same data directory, nor instead of one:
//! without a verb the program is the server.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints a line of an answer.
macro_rules! say {
    ($($words:tt)*) => { $crate::commands::say(format_args!($($words)*)) };
}

mod archive;
mod backup;
mod backup_rows;
mod check;
mod interrupt;
mod pki;
mod progress;
mod recover;
mod restore;

use clap::Subcommand;
use quorate_archive::ArchiveError;
use quorate_node_core::millis::wall_now;
use quorate_node_replica::rebuild::{self, RebuildError};
use quorate_store::offline::OfflineError;

use crate::config::{Args, Auth, Config};

/// Whoever reads may have seen enough and gone (`| head -1`): what was asked for is done all the same.
fn say(line: fmt::Arguments<'_>) {
    let _told = writeln!(io::stdout(), "{line}");
}

/// A verb of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Looks at a configuration without using it
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Looks at backups
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    /// Looks at archives, and what can be restored of them
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Makes the data directory of the first node of a new cluster out of a backup, or of any point of an archive
    Restore(Box<restore::RestoreArgs>),
    /// Makes a cluster of one node out of a survivor, after the others were lost for good
    Recover(recover::RecoverArgs),
    /// Reads all of a data directory and says whether it is sound; changes nothing
    Check(check::CheckArgs),
    /// Makes certificates to try TLS with
    #[command(subcommand)]
    Pki(pki::PkiCommand),
    /// Writes the manual pages of the program and its verbs
    Man {
        /// Where to; made if it is not there
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// About a configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Says everything that is wrong with the settings, or what a node would do with them; reads the files of TLS, and writes nothing
    Check(Box<Args>),
}

/// Why a verb was not done. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// It could not be done, or what was looked at is not sound.
    #[error("{0}")]
    Failed(String),
    /// An archive does not reach the point that was asked for.
    #[error("{0}")]
    NotCovered(String),
}

impl From<RebuildError> for CommandError {
    fn from(error: RebuildError) -> Self {
        match error {
            RebuildError::Unreachable(why) | RebuildError::Locked(why) => Self::NotCovered(why),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(quorate_archive::with_causes(&error))
    }
}

impl From<OfflineError> for CommandError {
    fn from(error: OfflineError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Does it, and says on standard output what was found. `program` is all of the command line, for its manual.
pub fn run(command: Command, program: clap::Command) -> Result<(), CommandError> {
    match command {
        Command::Config(ConfigCommand::Check(args)) => check_config(*args),
        Command::Backup(command) => backup::run(command),
        Command::Archive(command) => archive::run(command),
        Command::Restore(args) => restore::run(*args),
        Command::Recover(args) => recover::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Pki(command) => pki::run(command),
        Command::Man { directory } => write_manual(program, &directory),
    }
}

fn write_manual(program: clap::Command, directory: &Path) -> Result<(), CommandError> {
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(program, directory));
    written.map_err(|error| CommandError::Failed(format!("cannot write to {}: {error}", directory.display())))
}

fn check_config(args: Args) -> Result<(), CommandError> {
    let config = Config::try_from(args).map_err(|error| CommandError::Usage(error.to_string()))?;
    let Config { node_id, client_listen, peer_listen, client_advertise, peer_advertise, join, .. } = &config;
    match join.contains_key(node_id) {
        true => say!("The configuration holds. Node {node_id} of {:?} would", join.keys().collect::<Vec<_>>()),
        false => {
            say!("The configuration holds. Node {node_id}, which joins {:?}, would", join.keys().collect::<Vec<_>>())
        }
    }
    if !config.spare_node_ids.is_empty() {
        say!(
            "  join under one of {:?} instead where the cluster knows node {node_id} by another disk",
            config.spare_node_ids
        );
    }
    if config.standby {
        say!("  have no vote until it takes the place of a voter");
    }
    say!("  listen for clients at {client_listen} and be told to them as {client_advertise}");
    if let Some(socket) = &config.client_socket {
        say!("  listen for clients of this machine at {}, a file of mode {:o}", socket.path.display(), socket.mode);
    }
    say!("  listen for peers at {peer_listen} and be known to them as {peer_advertise}");
    say_doors(&config);
    say!("  keep its data in {}", config.data_dir);
    match &config.backups {
        Some(schedule) => say!("  write a backup {schedule}"),
        None => say!("  write no backups by itself"),
    }
    if let Some(settings) = &config.archive {
        say!("  archive {settings}");
    }
    Ok(())
}

fn say_doors(config: &Config) {
    if let Some(admin) = &config.admin {
        say!(
            "  listen for metrics and administration at {}{}",
            admin.address,
            if admin.is_only { " alone" } else { "" }
        );
    }
    match &config.tls {
        None => say!("  speak plain HTTP with clients"),
        Some(files) => match &files.ca {
            None => say!("  speak TLS with clients, and ask them for no certificate"),
            Some(ca) => say!("  speak TLS with clients, and believe certificates of the CA in {}", ca.display()),
        },
    }
    if !config.cors_origins.is_empty() {
        say!("  let web pages of {} ask it", config.cors_origins.join(", "));
    }
    if let Some(names) = config.hosts.names() {
        let names: String = names.iter().map(|name| format!(", {name}")).collect();
        say!("  be asked by names of loopback, by addresses{names}");
    }
    match config.auth {
        Auth::Off => say!("  do what is asked for whoever asks"),
        Auth::Required => say!("  do nothing for somebody who does not say who they are"),
    }
    if let Some(path) = &config.root_token_file {
        say!("  believe the token of `root` in {}", path.display());
    }
    if let Some(jwt) = &config.jwt {
        say!("  believe tokens that {} signs for {}, by the keys in {}", jwt.issuer, jwt.audience, jwt.source);
        let after = if jwt.user_prefix.is_empty() { String::new() } else { format!(" after `{}`", jwt.user_prefix) };
        say!("  take the names of their users from the claim `{}`{after}", jwt.user_claim);
    }
    if let Some(path) = &config.audit_log {
        say!("  tell what is done and refused in {}", path.display());
    }
    match &config.peer_tls {
        None => say!("  speak plainly with peers"),
        Some(_) => say!("  speak TLS with peers, each side with a certificate"),
    }
}

/// A time of a wall clock, for people.
fn time(millis: u64) -> String {
    rebuild::time(millis)
}

/// Where the revisions of a new epoch begin at least: microseconds since 1970, which grow faster than any cluster writes, and a
/// part of chance, so that two clusters made of one backup share no token, whenever they were made.
fn revision_floor(cluster_id: u128) -> u64 {
    const CHANCE: u128 = 1_000_000_000_000;
    let micros = wall_now().saturating_mul(1_000);
    micros.saturating_add(u64::try_from(cluster_id % CHANCE).expect("less than 2^64"))
}

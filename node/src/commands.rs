//! What the `quorate-node` program does beside running a node.
//!
//! Owns the verbs and their words for people. Never runs while a node does on the same data directory, nor instead of one:
//! without a verb the program is the server.

#![expect(clippy::print_stdout, reason = "a verb is typed by somebody who reads its answer")]

use clap::Subcommand;

use crate::config::{Args, Config};

/// A verb of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Looks at a configuration without using it
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// About a configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Says everything that is wrong with the settings, or what a node would do with them; opens and writes nothing
    Check(Box<Args>),
}

/// Why a verb was not done. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
}

/// Does it, and says on standard output what was found.
pub fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Config(ConfigCommand::Check(args)) => check_config(*args),
    }
}

fn check_config(args: Args) -> Result<(), CommandError> {
    let config = Config::try_from(args).map_err(|error| CommandError::Usage(error.to_string()))?;
    let Config { node_id, client_listen, peer_listen, client_advertise, peer_advertise, join, .. } = &config;
    match join.contains_key(node_id) {
        true => println!("The configuration holds. Node {node_id} of {:?} would", join.keys().collect::<Vec<_>>()),
        false => println!(
            "The configuration holds. Node {node_id}, which joins {:?}, would",
            join.keys().collect::<Vec<_>>()
        ),
    }
    if config.standby {
        println!("  have no vote until it takes the place of a voter");
    }
    println!("  listen for clients at {client_listen} and be told to them as {client_advertise}");
    println!("  listen for peers at {peer_listen} and be known to them as {peer_advertise}");
    println!("  keep its data in {}", config.data_dir);
    Ok(())
}

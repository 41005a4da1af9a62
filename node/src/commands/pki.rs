//! `quorate-node pki`: certificates to try TLS with.
//!
//! Owns the words. The certificates are made by `tls::Authority`. Never overwrites a file.

use std::path::PathBuf;

use clap::Subcommand;

use quorate_store::types::ROOT;

use super::CommandError;
use crate::tls::{Authority, Issued, Lifetime, Subject};

/// About certificates.
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER_HELP)]
pub enum PkiCommand {
    /// Makes a CA in a directory: ca.crt for everybody, ca.key for nobody else
    Init {
        /// The directory, made if it is not there.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// How long it holds.
        #[arg(long, default_value_t = 3_650, value_parser = clap::value_parser!(u32).range(1..=36_500), value_name = "N")]
        days: u32,
    },
    /// Makes the certificate of a node, for both of its ports: node-N.crt and node-N.key
    Node {
        /// The directory of the CA.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The node's number.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
        id: u64,
        /// Names and IP addresses under which clients reach the node, separated by commas.
        #[arg(long, required = true, value_delimiter = ',', value_name = "HOST")]
        host: Vec<String>,
        /// How long it holds.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500), value_name = "N")]
        days: u32,
    },
    /// Makes the certificate of a client, who is then the user of this name: client-NAME.crt and client-NAME.key
    Client {
        /// The directory of the CA.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The user.
        #[arg(long, value_name = "NAME")]
        name: String,
        /// The name `root` is meant: whoever has this certificate may do everything, for as long as it holds.
        #[arg(long)]
        root: bool,
        /// How long it holds.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500), value_name = "N")]
        days: u32,
    },
}

const AFTER_HELP: &str = "\
This CA is for tests and for getting to know Quorate: its key is a plain file, there is no revocation, and nobody looks at who
asks for a certificate. For real use bring certificates of your own CA.

Example:
  quorate-node pki init pki
  quorate-node pki node pki --id 1 --host localhost,127.0.0.1
  quorate-node pki client pki --name app
  quorate-node pki client pki --name root --root --days 1";

/// Runs the verb.
pub fn run(command: PkiCommand) -> Result<(), CommandError> {
    let done = match command {
        PkiCommand::Init { dir, days } => Authority::create(&dir, Lifetime::days(days)).map(|authority| {
            say!("{} is the certificate of the new CA: give it to all nodes and clients.", authority.cert().display());
            say!("Keep {} to yourself: whoever has it can be anybody.", dir.join("ca.key").display());
            say!("This CA is for tests: it has no revocation. For real use bring your own.");
        }),
        PkiCommand::Node { dir, id, host, days } => issue(&dir, &Subject::Node { id, hosts: host }, days),
        PkiCommand::Client { dir, name, root, days } => {
            is_meant(&name, root).and_then(|()| issue(&dir, &Subject::Client(name), days))
        }
    };
    done.map_err(CommandError::Failed)
}

/// A certificate that may do everything is not made by accident.
fn is_meant(name: &str, root: bool) -> Result<(), String> {
    match (name == ROOT, root) {
        (true, false) => Err(format!(
            "whoever has a certificate with the name `{ROOT}` may do everything, and it cannot be revoked; say --root too if that is meant"
        )),
        (false, true) => Err(format!("--root is for the name `{ROOT}`, not for `{name}`")),
        _ => Ok(()),
    }
}

fn issue(dir: &std::path::Path, subject: &Subject, days: u32) -> Result<(), String> {
    let Issued { cert, key } = Authority::open(dir)?.issue(subject, Lifetime::days(days))?;
    say!("{}", cert.display());
    say!("{}", key.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_may_do_everything_is_not_made_by_accident() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().to_owned();
        run(PkiCommand::Init { dir: dir.clone(), days: 1 }).expect("a CA");
        let make = |name: &str, root| {
            let made = run(PkiCommand::Client { dir: dir.clone(), name: name.into(), root, days: 1 });
            made.map_err(|error| error.to_string())
        };
        assert!(make("root", false).is_err_and(|error| error.contains("--root")));
        assert!(!dir.join("client-root.key").exists());
        assert!(make("app", true).is_err_and(|error| error.contains("`app`")));
        make("app", false).expect("made");
        make("root", true).expect("made");
    }
}

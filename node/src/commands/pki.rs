//! `quorate-node pki`: certificates to try TLS with.
//!
//! Owns the words. The certificates are made by `tls::Authority`. Never overwrites a file.

use std::path::PathBuf;

use clap::Subcommand;
use quorate_machine::types::ROOT;
use quorate_node_core::tls::{Authority, Issued, Lifetime, Subject};

use super::CommandError;

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
    /// Revokes a certificate, and writes the list of all that the CA has revoked anew: ca.crl. With no certificate named, only the list
    #[command(group = clap::ArgGroup::new("whose").multiple(false))]
    Revoke {
        /// The directory of the CA.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The node whose certificate it is, that in node-N.crt.
        #[arg(long, group = "whose", value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
        id: Option<u64>,
        /// The user whose certificate it is, that in client-NAME.crt.
        #[arg(long, group = "whose", value_name = "NAME")]
        name: Option<String>,
        /// The certificate, where it is in another file.
        #[arg(long, group = "whose", value_name = "FILE")]
        cert: Option<PathBuf>,
        /// How long the list holds: nodes refuse one that is older when they start, and keep the one that they have.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500), value_name = "N")]
        days: u32,
    },
}

const AFTER_HELP: &str = "\
This CA is for tests and for getting to know Quorate: its key is a plain file, and nobody looks at who asks for a
certificate. For real use bring certificates of your own CA.

Nodes read the list of revoked certificates from --tls-client-crl FILE and --peer-tls-crl FILE, again whenever it changes.

Example:
  quorate-node pki init pki
  quorate-node pki node pki --id 1 --host localhost,127.0.0.1
  quorate-node pki client pki --name app
  quorate-node pki client pki --name root --root --days 1
  quorate-node pki revoke pki --name app";

/// Runs the verb.
pub fn run(command: PkiCommand) -> Result<(), CommandError> {
    let done = match command {
        PkiCommand::Init { dir, days } => Authority::create(&dir, Lifetime::days(days)).map(|authority| {
            say!("{} is the certificate of the new CA: give it to all nodes and clients.", authority.cert().display());
            say!("Keep {} to yourself: whoever has it can be anybody.", dir.join("ca.key").display());
            say!("This CA is for tests. For real use bring your own.");
        }),
        PkiCommand::Node { dir, id, host, days } => issue(&dir, &Subject::Node { id, hosts: host }, days),
        PkiCommand::Client { dir, name, root, days } => {
            is_meant(&name, root).and_then(|()| issue(&dir, &Subject::Client(name), days))
        }
        PkiCommand::Revoke { dir, id, name, cert, days } => {
            let of_subject = id.map(|id| format!("node-{id}.crt")).or(name.map(|name| format!("client-{name}.crt")));
            let cert = cert.or(of_subject.map(|file| dir.join(file)));
            Authority::open(&dir).and_then(|ca| ca.revoke(cert.as_deref(), Lifetime::days(days))).map(|list| {
                say!("{}", list.display());
            })
        }
    };
    done.map_err(CommandError::Failed)
}

/// A certificate that may do everything is not made by accident.
fn is_meant(name: &str, root: bool) -> Result<(), String> {
    match (name == ROOT, root) {
        (true, false) => Err(format!(
            "whoever has a certificate with the name `{ROOT}` may do everything; say --root too if that is meant"
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

//! The settings of TLS and of authentication, and what listening beyond this machine takes.
//!
//! Owns that rule. The files are read here to be checked, and read again when the node starts: nothing of them is kept.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use quorate_node_core::gateway::auth::root::RootToken;
use quorate_node_core::tls::{Port, TlsFiles};

use super::faults::Faults;
use super::{Args, Auth};

/// What of the configuration keeps strangers out.
pub(super) struct Security {
    pub tls: Option<TlsFiles>,
    pub peer_tls: Option<TlsFiles>,
    pub auth: Auth,
    pub root_token_file: Option<PathBuf>,
}

impl Security {
    /// Takes the settings out of the arguments.
    pub fn of(args: &mut Args, node_id: u64, spare_ids: &[u64], faults: &mut Faults) -> Self {
        let (cert, key, ca) = (args.tls_cert.take(), args.tls_key.take(), args.tls_client_ca.take());
        let tls = of_port(Port::Clients, [cert, key, ca], args.tls_client_crl.take(), faults);
        let (cert, key, ca) = (args.peer_tls_cert.take(), args.peer_tls_key.take(), args.peer_tls_ca.take());
        let peer_tls = of_port(Port::Peers(node_id), [cert, key, ca], args.peer_tls_crl.take(), faults);
        judge_spare_ids(spare_ids, peer_tls.as_ref(), faults);
        let (auth, root_token_file) = (args.auth.unwrap_or_default(), args.root_token_file.take());
        judge_auth(auth, root_token_file.as_deref(), tls.as_ref(), faults);
        Self { tls, peer_tls, auth, root_token_file }
    }

    /// Whoever reaches a port that is open to all owns the data.
    pub fn judge_listeners(
        &self,
        client: SocketAddr,
        admin: Option<SocketAddr>,
        peer: SocketAddr,
        faults: &mut Faults,
    ) {
        let mut missing = Vec::new();
        if self.tls.is_none() {
            missing.push("TLS (--tls-cert FILE --tls-key FILE)");
        }
        if self.auth == Auth::Off {
            missing.push("authentication (--auth required)");
        }
        refuse_beyond_loopback("client_listen", client, &missing, faults);
        if let Some(admin) = admin {
            refuse_beyond_loopback("admin_listen", admin, &missing, faults);
        }
        let missing: &[_] = match self.peer_tls {
            None => &["TLS between the nodes (--peer-tls-cert FILE --peer-tls-key FILE --peer-tls-ca FILE)"],
            Some(_) => &[],
        };
        refuse_beyond_loopback("peer_listen", peer, missing, faults);
    }
}

/// The certificate is for every id under which the node may come.
fn judge_spare_ids(spare_ids: &[u64], files: Option<&TlsFiles>, faults: &mut Faults) {
    let Some(files) = files.filter(|files| files.check().is_ok()) else { return };
    for id in spare_ids {
        let as_spare = TlsFiles { port: Port::Peers(*id), ..files.clone() };
        as_spare.check().err().into_iter().flatten().for_each(|fault| faults.add(fault.field, fault.detail));
    }
}

/// Somebody must be able to make the first user.
fn judge_auth(auth: Auth, root_token_file: Option<&Path>, tls: Option<&TlsFiles>, faults: &mut Faults) {
    let believes_certificates = tls.is_some_and(|files| files.ca.is_some());
    match (auth, root_token_file) {
        (Auth::Required, None) if !believes_certificates => faults.add(
            "auth",
            "nobody could make the first user: say --root-token-file FILE, or --tls-client-ca FILE for a certificate with the \
             name `root`",
        ),
        (Auth::Off, Some(_)) => faults.add(
            "root_token_file",
            "nobody is asked for a token while authentication is off: say --auth required, or leave it out",
        ),
        (_, Some(path)) => {
            if let Err(reason) = RootToken::read(path) {
                faults.add("root_token_file", reason);
            }
        }
        (_, None) => {}
    }
}

fn refuse_beyond_loopback(field: &'static str, address: SocketAddr, missing: &[&str], faults: &mut Faults) {
    if address.ip().to_canonical().is_loopback() || missing.is_empty() {
        return;
    }
    let missing = missing.join(" and ");
    faults.add(
        field,
        format!(
            "{address} is not on loopback, and whoever reaches it would own the data: add {missing}, listen on 127.0.0.1, or \
             say --insecure if the network is trusted"
        ),
    );
}

fn of_port(
    port: Port,
    [cert, key, ca]: [Option<PathBuf>; 3],
    crl: Option<PathBuf>,
    faults: &mut Faults,
) -> Option<TlsFiles> {
    let fields = port.fields();
    if crl.is_some() && ca.is_none() {
        let flag = fields[2].replace('_', "-");
        faults.add(
            port.crl_field(),
            format!("says what CAs have revoked, and none is believed here; say --{flag} FILE too"),
        );
    }
    // Peers always show each other certificates.
    let needs_ca = port != Port::Clients;
    let is_given = [cert.is_some(), key.is_some(), ca.is_some()];
    if !is_given.contains(&true) {
        return None;
    }
    let is_needed = [true, true, needs_ca];
    for at in 0..fields.len() {
        if is_needed[at] && !is_given[at] {
            let given = fields.iter().zip(is_given).find(|(_, given)| *given).expect("one is").0;
            let flag = fields[at].replace('_', "-");
            faults
                .add(fields[at], format!("missing, though {given} is there; say --{flag} FILE too, or leave both out"));
        }
    }
    let files = TlsFiles { port, cert: cert?, key: key?, ca, crl };
    if needs_ca && files.ca.is_none() {
        return None;
    }
    if let Err(found) = files.check() {
        found.into_iter().for_each(|fault| faults.add(fault.field, fault.detail));
    }
    Some(files)
}

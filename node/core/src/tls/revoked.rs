//! Certificates that their CA has revoked: the lists of them (CRLs), and the connections that they end.
//!
//! Owns the reading of lists and the register of connections. Whether a certificate is on a list, rustls judges.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};
use tokio_util::sync::CancellationToken;
use x509_cert::crl::{CertificateList, TbsCertList};
use x509_cert::der::Decode;
use x509_cert::der::oid::{AssociatedOid, ObjectIdentifier};
use x509_cert::ext::pkix::{AuthorityKeyIdentifier, CrlNumber};
use x509_cert::name::Name;

use super::certificate::subject_of;
use super::provider;
use super::words::unreadable;

/// Lists, as they were read.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    pub lists: Vec<CertificateRevocationListDer<'static>>,
    /// The CA, number and time of each.
    issues: Vec<Issue>,
    /// When the first of them is to be replaced by a newer one, since 1970; `None` where none of them says.
    pub until: Option<Duration>,
}

/// The facts that tell a list from others of its CA.
#[derive(Debug, Clone)]
struct Issue {
    issuer: Name,
    /// The key of the CA that signed it, where it says so: a new key under the same name begins to count again.
    key: Option<Vec<u8>>,
    /// Its number, where it has one: how many bytes, and those, so that they compare as numbers do.
    number: Option<(usize, Vec<u8>)>,
    /// When it was made, since 1970.
    made: Duration,
}

impl Issue {
    fn of(list: TbsCertList) -> Self {
        let extensions = list.crl_extensions.unwrap_or_default();
        let value = |id: ObjectIdentifier| {
            let found = extensions.iter().find(|extension| extension.extn_id == id);
            found.map(|extension| extension.extn_value.as_bytes())
        };
        let number = value(CrlNumber::OID).and_then(|bytes| CrlNumber::from_der(bytes).ok());
        let number = number.map(|number| number.0.as_bytes().to_vec()).map(|bytes| (bytes.len(), bytes));
        let key = value(AuthorityKeyIdentifier::OID).map(<[u8]>::to_vec);
        Self { issuer: list.issuer, key, number, made: list.this_update.to_unix_duration() }
    }

    fn is_of_the_ca_of(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.key == other.key
    }

    /// Whether it was made before another one of its CA.
    fn is_before(&self, other: &Self) -> bool {
        match (&self.number, &other.number) {
            (Some(own), Some(others)) if own != others => own < others,
            _ => self.made < other.made,
        }
    }
}

/// Reads lists. Each of the authorities must have one, or all that it made would be refused; and none may be so old that it says itself
/// that it does not hold any more.
pub(super) fn read(path: &Path, authorities: &[CertificateDer<'static>], now: Duration) -> Result<Lists, String> {
    let bad = |error: rustls::pki_types::pem::Error| unreadable(&error);
    let found = CertificateRevocationListDer::pem_file_iter(path).map_err(bad)?;
    let lists: Vec<_> = found.collect::<Result<_, _>>().map_err(bad)?;
    if lists.is_empty() {
        return Err("has no list in it; it should begin with -----BEGIN X509 CRL-----".into());
    }
    let (mut issues, mut until) = (Vec::new(), None::<Duration>);
    for list in &lists {
        let list = CertificateList::from_der(list.as_ref())
            .map_err(|error| format!("has a list that cannot be read (it has to be of version 2): {error}"))?;
        if let Some(next) = list.tbs_cert_list.next_update {
            let next = next.to_unix_duration();
            until = Some(until.map_or(next, |until| until.min(next)));
        }
        issues.push(Issue::of(list.tbs_cert_list));
    }
    if until.is_some_and(|until| until <= now) {
        return Err("has a list whose time is over; put a new one of its CA there".into());
    }
    let lists = Lists { lists, issues, until };
    lists.cover(authorities)?;
    Ok(lists)
}

impl Lists {
    /// Whether each of these authorities has a list.
    pub fn cover(&self, authorities: &[CertificateDer<'static>]) -> Result<(), String> {
        for authority in authorities {
            let name = subject_of(authority)?;
            if self.issues.iter().all(|issue| issue.issuer != name) {
                return Err(format!(
                    "has no list of the CA `{name}`, whose certificates would all be refused; add one, if need be an empty one"
                ));
            }
        }
        Ok(())
    }

    /// Whether these lists may take the place of others. A list from before a revocation would bring the certificate back, for anybody who can
    /// write or serve the file.
    pub fn succeed(&self, in_use: &Self) -> Result<(), String> {
        for issue in &self.issues {
            // A CA may have several; the first that is found counts, so each has to be good.
            let mut used = in_use.issues.iter().filter(|used| used.is_of_the_ca_of(issue)).peekable();
            if used.peek().is_some() && used.all(|used| issue.is_before(used)) {
                return Err(format!(
                    "has a list of the CA `{}` that is older than the one in use; put the newest there (only a restart goes back)",
                    issue.issuer
                ));
            }
        }
        Ok(())
    }
}

/// Who judges the certificates of clients and nodes: whether a CA made them and has not revoked them. Only the certificate itself is
/// looked for in the lists, not those between it and the CA. A list that has become too old while it was in use still holds.
pub(super) fn verifier(
    roots: &Arc<RootCertStore>,
    crls: &[CertificateRevocationListDer<'static>],
    may_show_none: bool,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider()));
    let builder = builder.with_crls(crls.iter().cloned()).only_check_end_entity_revocation();
    let builder = if may_show_none { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| error.to_string())
}

/// Whether a certificate was revoked, with those between it and its CA.
fn is_revoked(verifier: &dyn ClientCertVerifier, chain: &[CertificateDer<'_>]) -> bool {
    let Some((own, between)) = chain.split_first() else { return false };
    let judged = verifier.verify_client_cert(own, between, UnixTime::now());
    matches!(judged, Err(Error::InvalidCertificate(CertificateError::Revoked)))
}

/// Connections whose other end has shown a certificate.
#[derive(Debug, Default, Clone)]
pub(super) struct Shown(Arc<Mutex<Register>>);

#[derive(Debug, Default)]
struct Register {
    serial: u64,
    open: BTreeMap<u64, (Vec<CertificateDer<'static>>, CancellationToken)>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct ShownCertificate {
    serial: u64,
    of: Shown,
    revoked: CancellationToken,
}

impl ShownCertificate {
    /// Cancelled once the certificate is revoked.
    pub fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }
}

impl Drop for ShownCertificate {
    fn drop(&mut self) {
        self.of.0.lock().open.remove(&self.serial);
    }
}

impl Shown {
    /// Registers a connection, and then looks whether its certificate is still good: the lists may have been exchanged while hands were
    /// shaken.
    pub fn add(
        &self,
        chain: &[CertificateDer<'_>],
        verifier: &dyn Fn() -> Arc<dyn ClientCertVerifier>,
    ) -> ShownCertificate {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let revoked = CancellationToken::new();
        let serial = {
            let mut register = self.0.lock();
            register.serial += 1;
            let serial = register.serial;
            register.open.insert(serial, (chain.clone(), revoked.clone()));
            serial
        };
        let shown = ShownCertificate { serial, of: self.clone(), revoked };
        if is_revoked(&*verifier(), &chain) {
            shown.revoked.cancel();
        }
        shown
    }

    /// Ends the connections whose certificate is revoked; how many. Each certificate is judged once, however many connections show it.
    pub fn end_revoked(&self, verifier: &dyn ClientCertVerifier) -> usize {
        let open: Vec<_> = self.0.lock().open.values().cloned().collect();
        let mut judged = HashMap::new();
        let mut ended = 0;
        for (chain, revoked) in &open {
            if *judged.entry(chain).or_insert_with(|| is_revoked(verifier, chain)) {
                revoked.cancel();
                ended += 1;
            }
        }
        ended
    }
}

//! A certificate authority in a directory, to try TLS with.
//!
//! Owns what its certificates say, and how their files are called. Never overwrites a file, but for its list of what it has revoked.
//! Keeps its key in a plain file, and is no replacement for the authority of an organisation.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName};
use x509_cert::crl::{CertificateList, RevokedCert};
use x509_cert::der::Decode;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::ext::pkix::CrlNumber;

use super::certificate::{name_of, serial_of};
use super::files::since_1970;
use super::node_verifier::name_of_node;

const CA_CERT: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const CA_CRL: &str = "ca.crl";
/// Longest common name (RFC 5280).
const NAME_BYTES_MAX: usize = 64;
/// Clocks differ: certificates hold from so long before they were made.
const BACKDATED: Duration = Duration::from_secs(3_600);

/// From when to when a certificate holds, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The first moment.
    pub from: Duration,
    /// The last one.
    pub until: Duration,
}

impl Lifetime {
    /// From now on.
    pub fn days(days: u32) -> Self {
        let now = since_1970();
        Self { from: now.saturating_sub(BACKDATED), until: now + Duration::from_secs(u64::from(days) * 24 * 3_600) }
    }
}

/// Whose certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Of a node: for both of its ports.
    Node {
        /// Its number.
        id: u64,
        /// The names and IP addresses under which clients reach it.
        hosts: Vec<String>,
    },
    /// Of a client, who is then the user of this name.
    Client(String),
}

/// Where a certificate was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The authority in a directory.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new one; the directory is made if it is not there.
    pub fn create(dir: &Path, lifetime: Lifetime) -> Result<Self, String> {
        let told = |error: io::Error| format!("{}: {error}", dir.display());
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(told)?;
        // A name of its own, so that certificates of two such authorities are not mistaken for each other.
        let params = ca_params(&format!("Quorate test CA {:08x}", rand::random::<u32>()), Some(lifetime));
        let key = KeyPair::generate().map_err(refused)?;
        let cert = params.self_signed(&key).map_err(refused)?;
        write_pair(dir, CA_CERT, CA_KEY, &cert.pem(), &key)?;
        Ok(Self { dir: dir.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// The one that `create` made in this directory.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let (cert_path, key_path) = (dir.join(CA_CERT), dir.join(CA_KEY));
        let missing = |path: &Path, error: &dyn std::fmt::Display| {
            format!("{}: {error}; `quorate-node pki init {}` makes a CA", path.display(), dir.display())
        };
        let cert = CertificateDer::from_pem_file(&cert_path).map_err(|error| missing(&cert_path, &error))?;
        let key = std::fs::read_to_string(&key_path).map_err(|error| missing(&key_path, &error))?;
        let key = KeyPair::from_pem(&key).map_err(|error| missing(&key_path, &error))?;
        let name = name_of(&cert)?.ok_or_else(|| format!("{} has no name", cert_path.display()))?;
        Ok(Self { dir: dir.to_owned(), issuer: Issuer::new(ca_params(&name, None), key) })
    }

    /// The certificate that others are told to believe.
    pub fn cert(&self) -> PathBuf {
        self.dir.join(CA_CERT)
    }

    /// Makes a certificate.
    pub fn issue(&self, subject: &Subject, lifetime: Lifetime) -> Result<Issued, String> {
        let (stem, mut params) = subject.params()?;
        set_lifetime(&mut params, lifetime);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(refused)?;
        let cert = params.signed_by(&key, &self.issuer).map_err(refused)?;
        write_pair(&self.dir, &format!("{stem}.crt"), &format!("{stem}.key"), &cert.pem(), &key)
    }

    /// Writes the list of what this CA has revoked anew: with a certificate that it made more, if one is named. It holds for so long.
    pub fn revoke(&self, cert: Option<&Path>, lifetime: Lifetime) -> Result<PathBuf, String> {
        let path = self.dir.join(CA_CRL);
        let (mut serials, number) = revoked_before(&path)?;
        if let Some(cert) = cert {
            let found = CertificateDer::from_pem_file(cert).map_err(|error| format!("{}: {error}", cert.display()))?;
            let serial = serial_of(&found)?;
            if !serials.contains(&serial) {
                serials.push(serial);
            }
        }
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let revoked = |serial: Vec<u8>| RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: epoch + lifetime.from,
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: epoch + lifetime.from,
            next_update: epoch + lifetime.until,
            crl_number: (number + 1).into(),
            issuing_distribution_point: None,
            revoked_certs: serials.into_iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).and_then(|list| list.pem()).map_err(refused)?;
        // Whole or not at all: a node may be about to read it.
        let new = self.dir.join(format!("{CA_CRL}.new"));
        std::fs::write(&new, list).map_err(|error| format!("{}: {error}", new.display()))?;
        std::fs::rename(&new, &path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// The serial numbers on the list that there is, and the list's own number.
fn revoked_before(path: &Path) -> Result<(Vec<Vec<u8>>, u64), String> {
    if !path.exists() {
        return Ok((Vec::new(), 0));
    }
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let list = CertificateRevocationListDer::from_pem_file(path).map_err(|error| told(&error))?;
    let list = CertificateList::from_der(list.as_ref()).map_err(|error| told(&error))?.tbs_cert_list;
    let number = list.crl_extensions.into_iter().flatten().find(|extension| extension.extn_id == CrlNumber::OID);
    let number = number.map(|extension| CrlNumber::from_der(extension.extn_value.as_bytes())).transpose();
    let number = number
        .map_err(|error| told(&error))?
        .map_or(0, |number| number.0.as_bytes().iter().fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte)));
    let serial = |revoked: RevokedCert| revoked.serial_number.as_bytes().to_vec();
    Ok((list.revoked_certificates.into_iter().flatten().map(serial).collect(), number))
}

impl Subject {
    /// The first part of the names of its files, and what its certificate says.
    fn params(&self) -> Result<(String, CertificateParams), String> {
        let (stem, name, alternatives, purposes) = match self {
            Self::Node { id, hosts } => {
                let name = name_of_node(*id);
                for host in hosts {
                    let why = "is neither a host name nor an IP address; give each --host as clients write it, without a port";
                    ServerName::try_from(host.as_str()).map_err(|_| format!("`{host}` {why}"))?;
                }
                let alternatives = [&name].into_iter().chain(hosts).cloned().collect();
                let purposes = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
                (format!("node-{id}"), name, alternatives, purposes)
            }
            Self::Client(name) => {
                check_client_name(name)?;
                (format!("client-{name}"), name.clone(), Vec::new(), vec![ExtendedKeyUsagePurpose::ClientAuth])
            }
        };
        let mut params = CertificateParams::new(alternatives).map_err(refused)?;
        params.distinguished_name = common_name(&name);
        params.extended_key_usages = purposes;
        Ok((stem, params))
    }
}

/// It becomes a part of a file's name, and must not pass for a node.
fn check_client_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(is_good) {
        return Err(format!(
            "`{name}` is not a name for a certificate: give 1 to {NAME_BYTES_MAX} of a-z A-Z 0-9 . - _, not beginning with a dot"
        ));
    }
    if name.to_ascii_lowercase().ends_with(".quorate") {
        return Err(format!("`{name}` ends as the names of nodes do; give another"));
    }
    Ok(())
}

fn ca_params(name: &str, lifetime: Option<Lifetime>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if let Some(lifetime) = lifetime {
        set_lifetime(&mut params, lifetime);
    }
    params
}

fn set_lifetime(params: &mut CertificateParams, lifetime: Lifetime) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + lifetime.from;
    params.not_after = epoch + lifetime.until;
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn refused(error: rcgen::Error) -> String {
    format!("the certificate cannot be made: {error}")
}

/// The key first: without it the certificate is of no use.
fn write_pair(dir: &Path, cert: &str, key: &str, pem: &str, pair: &KeyPair) -> Result<Issued, String> {
    let issued = Issued { cert: dir.join(cert), key: dir.join(key) };
    if issued.cert.exists() {
        return Err(in_the_way(&issued.cert));
    }
    write_new(&issued.key, 0o600, &pair.serialize_pem())?;
    write_new(&issued.cert, 0o644, pem)?;
    Ok(issued)
}

fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), String> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => in_the_way(path),
        _ => format!("{}: {error}", path.display()),
    })
}

fn in_the_way(path: &Path) -> String {
    format!("{} is there already, and nothing is overwritten; move it away first", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tls::{Port, TlsFiles};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_for_their_owner_and_nothing_is_overwritten() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("new/pki");
        let authority = Authority::create(&dir, Lifetime::days(1)).expect("a CA");
        assert_eq!((mode(&dir), mode(&dir.join(CA_KEY)), mode(&authority.cert())), (0o700, 0o600, 0o644));
        let before = std::fs::read(dir.join(CA_KEY)).expect("it is there");
        let error = Authority::create(&dir, Lifetime::days(1)).err().expect("there is one");
        assert!(error.contains("nothing is overwritten"), "{error}");
        assert_eq!(std::fs::read(dir.join(CA_KEY)).expect("it is there"), before);
        let subject = Subject::Client("app".into());
        let issued = authority.issue(&subject, Lifetime::days(1)).expect("a certificate");
        assert_eq!((mode(&issued.key), mode(&issued.cert)), (0o600, 0o644));
        assert!(authority.issue(&subject, Lifetime::days(1)).is_err());
        let error = Authority::open(home.path()).err().expect("there is none");
        assert!(error.contains("pki init"), "{error}");
    }

    #[test]
    fn an_authority_that_was_read_again_makes_certificates_that_are_believed() {
        let home = tempfile::tempdir().expect("a directory");
        drop(Authority::create(home.path(), Lifetime::days(1)).expect("a CA"));
        let authority = Authority::open(home.path()).expect("the one before");
        let hosts = vec!["localhost".into(), "::1".into(), "10.0.0.1".into()];
        let issued = authority.issue(&Subject::Node { id: 1, hosts }, Lifetime::days(1)).expect("a certificate");
        let ca = Some(authority.cert());
        let files = TlsFiles { port: Port::Peers(1), cert: issued.cert, key: issued.key, ca, crl: None };
        assert_eq!(files.check(), Ok(()));
        for host in ["a b", "host:7100", ""] {
            let subject = Subject::Node { id: 2, hosts: vec![host.to_owned()] };
            assert!(authority.issue(&subject, Lifetime::days(1)).is_err(), "{host:?}");
        }
        assert!(!home.path().join("node-2.key").exists(), "nothing is left of a refused one");
    }
}

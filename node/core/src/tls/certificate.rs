//! What a certificate says: a name for who shows it, whose it is, and when it ends.
//!
//! Owns the reading of those. Never asked whether a certificate is to be trusted.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::asn1::{PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

/// The object identifier of a common name, 2.5.4.3.
const COMMON_NAME: &str = "2.5.4.3";

fn read(certificate: &CertificateDer<'_>) -> Result<Certificate, String> {
    Certificate::from_der(certificate).map_err(|error| format!("it cannot be read as a certificate: {error}"))
}

/// The moment after which a certificate holds no more, since 1970.
pub fn not_after(certificate: &CertificateDer<'_>) -> Result<Duration, String> {
    Ok(read(certificate)?.tbs_certificate.validity.not_after.to_unix_duration())
}

/// Its number among those of its CA.
pub fn serial_of(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, String> {
    Ok(read(certificate)?.tbs_certificate.serial_number.as_bytes().to_vec())
}

/// Whose certificate it is.
pub fn subject_of(certificate: &CertificateDer<'_>) -> Result<Name, String> {
    Ok(read(certificate)?.tbs_certificate.subject)
}

/// The name that a certificate gives: its first DNS name, else its common name. `None` where it has neither.
pub fn name_of(certificate: &CertificateDer<'_>) -> Result<Option<String>, String> {
    let certificate = read(certificate)?;
    let alternatives = certificate.tbs_certificate.get::<SubjectAltName>();
    let (_, alternatives) = alternatives
        .map_err(|error| format!("its alternative names cannot be read: {error}"))?
        .unwrap_or((false, SubjectAltName(Vec::new())));
    let dns = alternatives.0.into_iter().find_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    Ok(dns.or_else(|| common_name(&certificate)))
}

fn common_name(certificate: &Certificate) -> Option<String> {
    let parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let value = &parts.into_iter().find(|part| part.oid.to_string() == COMMON_NAME)?.value;
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.to_string()),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok().map(|text| text.to_string()),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.to_string()),
        _ => None,
    }
}

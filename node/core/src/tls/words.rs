//! Why a handshake failed or a file cannot be used, in words that say what to do.
//!
//! Owns the words. Never tells what a key is.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// First byte of a connection that begins with TLS: the record type of a handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

/// Whether a connection that begins so may be TLS. A frame of peers may begin so, too; its third byte tells, where that has come.
pub fn may_be_tls(first: &[u8]) -> bool {
    first.first() == Some(&HANDSHAKE_RECORD) && first.get(2).is_none_or(|minor| (1..=4).contains(minor))
}

/// Whether the other end ended the connection with a word on why.
pub fn is_alert(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::AlertReceived(_)))
}

/// Why a handshake failed, from what the stream says.
pub fn failure(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => reason(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "the other end closed the connection".into(),
        None => error.to_string(),
    }
}

/// In words.
pub fn reason(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => "the other end showed no certificate".into(),
        Error::InvalidMessage(_) => "the other end does not speak TLS".into(),
        Error::AlertReceived(alert) => refused(*alert),
        error => error.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext, Revoked,
        UnknownIssuer, UnknownRevocationStatus,
    };
    match error {
        Expired | ExpiredContext { .. } => "the certificate has expired".into(),
        NotValidYet | NotValidYetContext { .. } => "the certificate does not hold yet; compare the clocks".into(),
        Revoked => "the certificate was revoked by its CA".into(),
        UnknownRevocationStatus => {
            "the certificate is of a CA of which there is no list of revoked certificates here".into()
        }
        UnknownIssuer => "the certificate is of a CA that is not known here".into(),
        NotValidForName | NotValidForNameContext { .. } => format!("the certificate is of somebody else: {error}"),
        error => format!("the certificate is refused: {error}"),
    }
}

/// Why a file of certificates, keys or lists could not be read.
pub fn unreadable(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => format!("cannot be read: {error}"),
        error => format!("is not PEM: {error}"),
    }
}

/// What the other end said of us.
fn refused(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "the other end does not know the CA of our certificate".into(),
        AlertDescription::CertificateExpired => "the other end says that our certificate has expired".into(),
        AlertDescription::CertificateRevoked => "the other end says that our certificate was revoked".into(),
        AlertDescription::CertificateRequired => "the other end wants a certificate of us".into(),
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            format!("the other end refuses our certificate ({alert:?})")
        }
        AlertDescription::NoApplicationProtocol => {
            "the other end speaks another protocol; is the port the right one?".into()
        }
        alert => format!("the other end refused: {alert:?}"),
    }
}

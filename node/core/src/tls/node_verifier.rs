//! The judgement over a peer's certificate: of our CA, and of the node that was meant.
//!
//! Owns the name that a node has in its certificate. Never believes a name that the CA did not sign.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::provider;

/// Stands for a node whose number is not known yet; the handshake of the peer protocol says it, and the certificate has to
/// agree then.
const ANY_NODE: &str = "any.quorate";

/// The DNS name of a node in its certificate.
pub fn name_of_node(id: u64) -> String {
    format!("node-{id}.quorate")
}

/// Whom a dialler asks for who does not know which node it will reach.
pub fn any_node() -> ServerName<'static> {
    ServerName::try_from(ANY_NODE).expect("it is a DNS name")
}

/// Whether a certificate is that of a node.
pub fn is_of_node(certificate: &CertificateDer<'_>, id: u64) -> bool {
    let name = ServerName::try_from(name_of_node(id)).expect("it is a DNS name");
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

/// Believes the certificates of one CA.
#[derive(Debug)]
pub(super) struct NodeVerifier {
    pub roots: Arc<RootCertStore>,
    /// Judges whether they were revoked, where there are lists: nodes' certificates are for clients, too.
    pub revocation: Option<Arc<dyn ClientCertVerifier>>,
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        if let Some(revocation) = &self.revocation {
            revocation.verify_client_cert(end_entity, intermediates, now)?;
        }
        if *server_name != any_node() {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

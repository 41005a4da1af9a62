//! What a request brings to prove who asks.
//!
//! Owns the reading of `Authorization` and the comparison of secrets, which takes as long for a wrong one as for the right one. A
//! secret is hashed as it is read and kept nowhere. Never knows whether a proof holds.

use std::sync::Arc;

use http::{HeaderMap, header};
use quorate_machine::types::{SecretHash, TokenId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::connection::origin::Origin;
use crate::gateway::auth::jwt::{JwtVerifier, Verified};
use crate::token_text::TokenText;

/// What is to prove who asks.
#[derive(Debug, Clone)]
pub enum Proof {
    /// A bearer token that is none of the cluster's: the root token, or nothing.
    Root(SecretHash),
    /// A token of the cluster.
    Token {
        /// Its public part.
        id: TokenId,
        /// Of its secret part.
        hash: SecretHash,
    },
    /// The name in a certificate that was verified.
    Certificate(Arc<str>),
    /// A token that somebody else signed, and whose signature holds.
    Signed(Arc<Verified>),
}

/// What a request brings.
#[derive(Debug)]
pub enum Brought {
    /// What can be looked at as it is.
    Proof(Proof),
    /// A bearer token that may be signed by somebody else: its text.
    Signed(String),
}

/// What tokens of the cluster begin with.
pub const TOKEN_MARK: &str = "qt_";

/// Whether two hashes are of one secret. The time that it takes tells nothing.
pub fn is_same(one: &SecretHash, other: &SecretHash) -> bool {
    one.0.ct_eq(&other.0).into()
}

/// The hash of a token that is not of the cluster's form.
pub fn hash_of(token: &str) -> SecretHash {
    SecretHash(Sha256::digest(token.as_bytes()).into())
}

impl Proof {
    /// What a request brings; `None` where it brings nothing. Where it brings two, the token counts.
    ///
    /// # Errors
    /// What is wrong with its header. It never repeats any of it.
    pub fn of(headers: &HeaderMap, origin: &Origin) -> Result<Option<Brought>, &'static str> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = given.next() else {
            return Ok(origin.certificate.clone().map(Self::Certificate).map(Brought::Proof));
        };
        if given.next().is_some() {
            return Err("the header Authorization is given more than once");
        }
        let text = value.to_str().map_err(|_| "the header Authorization is not visible ASCII")?;
        let (scheme, token) = text.split_once(' ').ok_or("the header Authorization is not `Bearer TOKEN`")?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err("the header Authorization is not `Bearer TOKEN`: no other scheme is known");
        }
        let token = token.trim();
        if JwtVerifier::is_of_form(token) {
            return Ok(Some(Brought::Signed(token.to_owned())));
        }
        if !token.starts_with(TOKEN_MARK) {
            return Ok(Some(Brought::Proof(Self::Root(hash_of(token)))));
        }
        let text = TokenText::read(token).ok_or("the token is not whole: it has the form `qt_ID_SECRET`")?;
        Ok(Some(Brought::Proof(Self::Token { id: text.id, hash: text.hash() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::door::Door;
    use crate::net::PeerAddress;
    use http::HeaderName;

    fn origin(certificate: Option<&str>) -> Origin {
        let address = PeerAddress::Network(([127, 0, 0, 1], 1).into());
        Origin { address, certificate: certificate.map(Arc::from), door: Door::Clients }
    }

    fn proof(headers: &[(&str, &str)], certificate: Option<&str>) -> String {
        let pairs = headers.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"))
        });
        match Proof::of(&pairs.collect(), &origin(certificate)) {
            Ok(None) => "nothing".into(),
            Ok(Some(Brought::Proof(Proof::Root(_)))) => "root".into(),
            Ok(Some(Brought::Proof(Proof::Token { id, .. }))) => format!("token {id}"),
            Ok(Some(Brought::Proof(Proof::Certificate(name)))) => format!("certificate {name}"),
            Ok(Some(Brought::Proof(Proof::Signed(_)))) => "nothing is proved yet".into(),
            Ok(Some(Brought::Signed(_))) => "signed".into(),
            Err(why) => why.into(),
        }
    }

    #[test]
    fn a_token_counts_before_a_certificate() {
        assert_eq!(proof(&[], None), "nothing");
        assert_eq!(proof(&[], Some("app")), "certificate app");
        let token = format!("Bearer qt_00ff00ff00ff00ff_{}", "A".repeat(43));
        assert_eq!(proof(&[("authorization", &token)], Some("app")), "token 00ff00ff00ff00ff");
        assert_eq!(proof(&[("authorization", "bEARER   something long")], None), "root");
        assert_eq!(proof(&[("authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.e30.AA")], Some("app")), "signed");
        assert_eq!(proof(&[("authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.e30")], None), "root");
    }

    #[test]
    fn what_is_wrong_is_said_without_repeating_it() {
        for bad in ["Basic cm9vdDpzZWNyZXQ=", "secret", "Bearer qt_secret", "Bearer qt_secret_0123", "Bearer qt__0123"]
        {
            let why = proof(&[("authorization", bad)], Some("app"));
            assert!(why.contains(' ') && !why.contains("secret") && !why.contains("cm9v"), "{why}");
        }
        let twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
        assert!(proof(&twice, None).contains("more than once"));
    }

    #[test]
    fn hashes_are_compared_and_not_shown() {
        let hash = hash_of("abc");
        assert_eq!(format!("{:?}", Proof::Root(hash)), "Root(SecretHash(..))");
        assert!(is_same(&hash, &hash_of("abc")) && !is_same(&hash, &hash_of("abd")));
    }
}

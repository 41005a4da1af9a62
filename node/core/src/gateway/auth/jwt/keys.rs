//! The public keys of whoever signs tokens, and the proof that one of them did.
//!
//! Owns which algorithms there are: RS256, PS256, ES256 and EdDSA (Ed25519). A key is only ever used for the algorithms of its kind, so
//! that nobody has a public key taken for a shared secret; `none` and HMAC are no algorithms here. Never reads a claim.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;

/// Most keys of one set. Whoever signs has two or three.
const KEYS_MAX: usize = 64;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// EdDSA on Ed25519.
    EdDsa,
}

impl Algorithm {
    /// By its name in a header; `None` for all others, `none` and `HS256` among them.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// The part of a key that is public.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A point, uncompressed.
    P256([u8; 65]),
    Ed25519([u8; 32]),
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it is for, where it says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

/// The algorithm of a token's signature, and its key.
#[derive(Debug)]
pub struct SignedBy {
    algorithm: Algorithm,
    /// The id that the token names, if it names one.
    id: Option<String>,
    material: Material,
}

/// All keys of whoever signs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeySet(Vec<Key>);

/// A set as it is written (RFC 7517).
#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys for something else, or of a kind that is not known, are passed over: more kinds come with time.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let written: WrittenSet =
            serde_json::from_slice(text).map_err(|error| format!("is no JSON Web Key Set: {error}"))?;
        if written.keys.len() > KEYS_MAX {
            return Err(format!("has {} keys; at most {KEYS_MAX}", written.keys.len()));
        }
        let keys: Vec<_> = written.keys.into_iter().filter_map(Key::read).collect();
        match keys.is_empty() {
            true => Err("has no key for RS256, PS256, ES256 or EdDSA".to_owned()),
            false => Ok(Self(keys)),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key with this id, or any where a token names none, may have signed so.
    pub fn knows(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        self.fitting(algorithm, id).next().is_some()
    }

    /// Which of those keys signed the message, if one did.
    pub fn signer(&self, algorithm: Algorithm, id: Option<&str>, message: &[u8], signature: &[u8]) -> Option<SignedBy> {
        let key = self.fitting(algorithm, id).find(|key| key.signed(algorithm, message, signature))?;
        Some(SignedBy { algorithm, id: id.map(str::to_owned), material: key.material.clone() })
    }

    /// Whether one of these is that key, and would prove the same token.
    pub fn has(&self, signed_by: &SignedBy) -> bool {
        let mut fitting = self.fitting(signed_by.algorithm, signed_by.id.as_deref());
        fitting.any(|key| key.material == signed_by.material)
    }

    fn fitting<'a>(&'a self, algorithm: Algorithm, id: Option<&'a str>) -> impl Iterator<Item = &'a Key> {
        self.0.iter().filter(move |key| key.is_for(algorithm) && (id.is_none() || key.id.as_deref() == id))
    }
}

impl Key {
    fn read(written: serde_json::Value) -> Option<Self> {
        let written: WrittenKey = serde_json::from_value(written).ok()?;
        let verifies = written.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !verifies || written.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let material = Material::read(&written)?;
        let algorithm = match written.alg.as_deref() {
            None => None,
            // For an algorithm that is not known here it is of no use.
            Some(name) => Some(Algorithm::named(name)?),
        };
        Some(Self { id: written.kid, algorithm, material })
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let is_of_kind = match (&self.material, algorithm) {
            (Material::Rsa { .. }, Algorithm::Rs256 | Algorithm::Ps256)
            | (Material::P256(_), Algorithm::Es256)
            | (Material::Ed25519(_), Algorithm::EdDsa) => true,
            (Material::Rsa { .. } | Material::P256(_) | Material::Ed25519(_), _) => false,
        };
        is_of_kind && self.algorithm.is_none_or(|only| only == algorithm)
    }

    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm) {
            (Material::Rsa { n, e }, Algorithm::Rs256) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Material::Rsa { n, e }, Algorithm::Ps256) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PSS_2048_8192_SHA256, message, signature)
            }
            (Material::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519(key), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            (Material::Rsa { .. } | Material::P256(_) | Material::Ed25519(_), _) => return false,
        };
        verified.is_ok()
    }
}

impl Material {
    fn read(written: &WrittenKey) -> Option<Self> {
        match (written.kty.as_str(), written.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes(written.n.as_deref())?, bytes(written.e.as_deref())?);
                // ring wants numbers without zeros in front, which some write.
                Some(Self::Rsa { n: without_zeros(n), e: without_zeros(e) })
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(written.x.as_deref())?, bytes(written.y.as_deref())?);
                let mut point = [4; 65];
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                point[1..33].copy_from_slice(&x);
                point[33..].copy_from_slice(&y);
                Some(Self::P256(point))
            }
            ("OKP", Some("Ed25519")) => Some(Self::Ed25519(bytes(written.x.as_deref())?.try_into().ok()?)),
            _ => None,
        }
    }
}

fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok()
}

fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

//! Tokens that somebody else signs: JSON Web Tokens of an OpenID Connect provider.
//!
//! Owns the way from the text of such a token to what it proves, and what is remembered of it. A token proves a user's name and names
//! of roles; what those may do is the cluster's to say, and nobody becomes `root` by one.

mod claims;
mod keys;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, RwLock};
use quorate_machine::types::{ROOT, UserName};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::metrics::{MetricsSource, Sample};
use crate::millis::wall_now;

pub use claims::{Claims, LEEWAY_SECONDS};
pub use keys::{Algorithm, KeySet, SignedBy};
pub use source::{JwksSource, SourceError};

/// Tokens that are remembered, so that their signature is looked at once: some hundred bytes each.
const REMEMBERED_MAX: usize = 8_192;

/// How often the keys are asked for, at most, since a token names one that is not known.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Before the first generation of keys.
const NO_GENERATION: u64 = 0;

/// Longest token that is read. One with 64 roles has some kilobytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Which tokens are believed, and what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    /// Who signs them: their claim `iss`.
    pub issuer: String,
    /// For whom they have to be: in their claim `aud`.
    pub audience: String,
    /// Where the keys are.
    pub source: JwksSource,
    /// The claim with the name of the user.
    pub user_claim: String,
    /// What stands before that name in this cluster.
    pub user_prefix: String,
    /// The claim with the names of roles, if any.
    pub roles_claim: Option<String>,
    /// How long a token may be good, from when it was issued to when it expires.
    pub lifetime_max: Duration,
}

/// What a token proved.
#[derive(Debug)]
pub struct Verified {
    claims: Claims,
    signed_by: SignedBy,
    /// The generation of keys among which that key was found last.
    found_in: AtomicU64,
}

impl Verified {
    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.claims.user
    }

    /// The names of its roles, sorted.
    pub fn roles(&self) -> &[String] {
        &self.claims.roles
    }

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        self.claims.is_over(wall_now())
    }
}

/// Why a token is not believed, for who brought it. It repeats nothing of it.
pub type Doubt = &'static str;

/// Verifies tokens.
pub struct JwtVerifier {
    settings: JwtSettings,
    keys: ArcSwap<KeySet>,
    /// Grows with each change of the keys, after it.
    generation: AtomicU64,
    remembered: RwLock<HashMap<[u8; 32], Arc<Verified>>>,
    /// When the keys were last asked for.
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// What went wrong the last time, if it did.
    trouble: Mutex<Option<String>>,
    failures: AtomicU64,
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifier").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a token says of its signature.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

/// A token in its parts, which nobody has proved yet.
struct Parts<'t> {
    algorithm: Algorithm,
    key: Option<String>,
    /// What was signed.
    signed: &'t [u8],
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self, Doubt> {
        const FORM: Doubt = "the token has not the form of a JSON Web Token";
        if text.len() > TOKEN_BYTES_MAX {
            return Err("the token is too long");
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(FORM)?;
        let (header, claims) = signed.split_once('.').ok_or(FORM)?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| FORM);
        let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| FORM)?;
        if header.crit.is_some() {
            return Err("the token asks for an extension that is not known");
        }
        let algorithm = Algorithm::named(&header.alg)
            .ok_or("the token is signed by an algorithm that is not taken: RS256, PS256, ES256 and EdDSA are")?;
        let (claims, signature) = (decoded(claims)?, decoded(signature)?);
        Ok(Self { algorithm, key: header.kid, signed: signed.as_bytes(), claims, signature })
    }
}

impl JwtVerifier {
    /// One that has no keys yet: [`Self::ask`] gets them.
    pub fn new(settings: JwtSettings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            keys: ArcSwap::default(),
            generation: AtomicU64::new(NO_GENERATION + 1),
            remembered: RwLock::default(),
            asked: tokio::sync::Mutex::new(None),
            trouble: Mutex::new(None),
            failures: AtomicU64::new(0),
        })
    }

    /// Whether a bearer token has the form of one of these.
    pub fn is_of_form(token: &str) -> bool {
        token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// What a token proves. `may_ask` gives a permit where its sender may have the keys asked for again, since it names one that is not
    /// known.
    ///
    /// # Errors
    /// Why it proves nothing.
    pub async fn verify<P>(&self, token: &str, may_ask: impl FnOnce() -> Option<P>) -> Result<Arc<Verified>, Doubt> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let known = self.remembered.read().get(&hash).cloned();
        if let Some(verified) = known {
            return if verified.is_over() { Err("the time of the token is over") } else { Ok(verified) };
        }
        let parts = Parts::of(token)?;
        let mut keys = self.keys.load_full();
        if !keys.knows(parts.algorithm, parts.key.as_deref())
            && let Some(_permit) = may_ask()
        {
            self.ask_if_due().await;
            keys = self.keys.load_full();
        }
        if !keys.knows(parts.algorithm, parts.key.as_deref()) {
            return Err(match keys.is_empty() {
                true => "the keys of the issuer are not known yet; ask again",
                false => "the token is signed with a key that is not known",
            });
        }
        let signer = keys.signer(parts.algorithm, parts.key.as_deref(), parts.signed, &parts.signature);
        let signed_by = signer.ok_or("the signature of the token does not hold")?;
        let claims = Claims::read(&parts.claims, &self.settings, wall_now())?;
        let is_name = UserName::new(claims.user.as_str()).is_ok();
        if !is_name || claims.user.eq_ignore_ascii_case(ROOT) {
            return Err("the token names a user who cannot be one here");
        }
        let verified = Arc::new(Verified { claims, signed_by, found_in: AtomicU64::new(NO_GENERATION) });
        self.remember(hash, &keys, &verified);
        Ok(verified)
    }

    /// Whether a token was proved before and is remembered, by its hash: its signature is not looked at again.
    pub fn remembers(&self, hash: &[u8; 32]) -> bool {
        self.remembered.read().contains_key(hash)
    }

    /// Whether the key that signed a token is still one of the issuer's. Asked of each request, and again and again of what goes on.
    pub fn believes(&self, verified: &Verified) -> bool {
        // Read before the keys, which are of this generation then, or of a later one.
        let generation = self.generation.load(Ordering::Acquire);
        if verified.found_in.load(Ordering::Relaxed) == generation {
            return true;
        }
        let is_found = self.keys.load().has(&verified.signed_by);
        if is_found {
            verified.found_in.store(generation, Ordering::Relaxed);
        }
        is_found
    }

    /// Remembers a token, unless the keys changed meanwhile.
    fn remember(&self, hash: [u8; 32], keys: &Arc<KeySet>, verified: &Arc<Verified>) {
        let mut remembered = self.remembered.write();
        if Arc::ptr_eq(keys, &self.keys.load()) {
            if remembered.len() >= REMEMBERED_MAX {
                remembered.clear();
            }
            remembered.insert(hash, Arc::clone(verified));
        }
    }

    /// Asks for the keys, unless that was just done.
    async fn ask_if_due(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|before| before.elapsed() >= ASK_AGAIN) {
            *asked = Some(Instant::now());
            self.ask().await;
        }
    }

    /// Asks for the keys. Those that are known stay where that fails; of other ones all that was remembered is forgotten.
    pub async fn ask(&self) {
        match self.settings.source.keys().await {
            Ok(keys) => {
                *self.trouble.lock() = None;
                self.take(keys);
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let trouble = error.to_string();
                let before = self.trouble.lock().replace(trouble.clone());
                // Once for each trouble, not each time that it is tried again.
                if before.as_ref() != Some(&trouble) {
                    tracing::warn!(error = trouble, source = %self.settings.source, "the keys of the issuer of tokens stay what they were");
                }
            }
        }
    }

    fn take(&self, keys: KeySet) {
        if **self.keys.load() == keys {
            return;
        }
        tracing::info!(keys = keys.len(), source = %self.settings.source, "took the keys of the issuer of tokens");
        let mut remembered = self.remembered.write();
        self.keys.store(Arc::new(keys));
        self.generation.fetch_add(1, Ordering::Release);
        remembered.clear();
    }

    /// Follows the keys for as long as the node runs.
    pub async fn follow(self: Arc<Self>) {
        loop {
            self.ask().await;
            tokio::time::sleep(self.settings.source.every(self.keys.load().is_empty())).await;
        }
    }

    /// What an operator should know.
    pub fn warning(&self) -> Option<String> {
        let trouble = self.trouble.lock().clone();
        trouble.map(|trouble| format!("the keys of the issuer of tokens (--jwt-jwks) cannot be had: {trouble}"))
    }
}

/// The numbers for the metrics: nothing, where no such tokens are believed.
pub struct JwtSamples(pub Option<Arc<JwtVerifier>>);

impl MetricsSource for JwtSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let count = |verifier: &Arc<JwtVerifier>| {
            (verifier.keys.load().len() as u64, verifier.failures.load(Ordering::Relaxed))
        };
        let (keys, failures) = self.0.as_ref().map(count).unwrap_or_default();
        out.push(Sample::gauge("jwt_keys", "Keys of the issuer of tokens that are known", keys));
        out.push(Sample::counter(
            "jwt_key_failures",
            "Times that the keys of the issuer of tokens could not be had",
            failures,
        ));
    }
}

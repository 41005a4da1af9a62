//! Tokens that hold, and all the ways in which one does not.
//!
//! Keys of elliptic curves are made for each test. ring makes none of RSA, so that one stands here; it was made for this file.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::engine::general_purpose::STANDARD;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use quorate_api::ErrorCode;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::connection::origin::Neighbour;
use crate::gateway::auth::authenticator::{AuthSettings, Authenticator};
use crate::gateway::auth::proof::Brought;

const RSA: &str = "MIIEpAIBAAKCAQEAtwM3KTHOmUeJlM1IRTyizT8eRLXmQRp0HTf9tzr80VJVzincVQ0C4gupArCBReEFCTWHtxamjq4XFPps0V97\
    JjFOBmQVhQw17pffdubgM8pYg2NbgcfHdhm/A4FKeciLPn6BdZPYtiX0z64kjFaiocJaEUOg2coLRvxRJRKhFk4EkK3GQrfyHvIz\
    ZOART7I8IYkw1/VOcWvTwDmds/lKusz/oDmCEg8aLJ7+6e/4nSeebvEadzGl6ZNn0gWJtQfcUKTy+fhWIYecLA/tesR04lLvK47t\
    FSfhFIjNxS1TtSuiNabhVhVpZ1xM5t4vZshVbBA6siXcwWW6QN/s90eD9QIDAQABAoIBADbI6SHVTZ3X6ukW/KvxR2D+pI54D1ns\
    09aNVM+dgmIc7h+9qz3wm6zURb9O3BvxjOLhWeOmjayHk9RNVPbmSMS5nLxQCJsf+SMX5qa+3V3TlGScgR+cEOsbMPGZKhTDwl8u\
    Wo26ePSp7xuea0Vxh9S5i+HAJ24ay/5veNEKvxsgNRRGb9nYDjQlEVAZNRCoo7X/CEWkWs+MeBANQxWCSgd7tLS4fCZtOaJXoYMw\
    64d8s7DcYvO8mBqtwtwiF8vt7WR3TRGdwy6Uvl5bUl+OsdAYro+CeG0oeJ7afQARz/vonuqv8BRFTc2ke7eQOwf2cslcYPHn63aA\
    lqHTxHOfR+8CgYEA4EiVggKjM80ZCgOhUV2e/5Ef6zbnbDXzpJRtXh+eFoO4+Zxp7PKKln+Ct98jgdpiOn1q+fc6CR6cEBhpiXl/\
    aiSrCP/gPaWrzKhD9orncmhthsQ8GBwgfQKaWdmN4C4yoGaW7F2l5qUTBX/mHWkGZkIZS41lRqpNZ0f5CW30lLsCgYEA0OSOuRLS\
    dfysra/lq1Yrr3bpFSFtgA23YpwPVL3GcHwIN+Ha6SBpwbxme2WPreFwgu8M1vy72BIJ79Zor97c/f+t3vpPxyiWhzCghZN+6L8W\
    iPBFfYEXVuzxYlsWzWsUS2uUUKY8SvgR8mT+KAdAOzp+0k1AV+TDw/No3YdiFw8CgYEA1xWkkx52Zln89jaPAJmYvhvtkUOA4axH\
    sABLdeU6VPsTbAUNLBdYwoUb1btesMu+Qbs+2OK3PEGnhmPy6cyjXSY3A5Vm9ZeoTsbbDlcdKAFvb7tGqhRnL5tMbHgO7/s9v8dC\
    WwBf9fU+bZq/EltCsNQYr/S0N/Vf73j9IYbZ87sCgYA5Bpwb1BKWWSM+yy0UqBKG9RxOQ3DkK1pr1hStWp1oqcOIleSwDcQxOmBz\
    wVcG7etMIzxLGHWjV9FUoyCzGlEUGg96NrU+tkrZnyHDNW/I1Bmvyn/98hbQCSEga6N+8oN4z2aO2cLN6IjltkJX5RrY0HA8sxAk\
    rnPu820mRMY3awKBgQCYMbNVbYneghODqTt8L9UQgPg59H4JLHRJCSESfNMR0CLwkirFnrK6kwQeKytI5FoRJMom6ELf31Ej6nuz\
    aB79PoaLi1qDLn8OGlbB9GfbKLQ7iygReG5XAgBjm92XuOSyKwMlYwTPd7LC7j/uF/YMboczAch8c3IMrJlzo4ezkQ==";

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "quorate";
const LIFETIME_MAX: Duration = Duration::from_secs(3_600);

fn settings(source: JwksSource) -> JwtSettings {
    JwtSettings {
        issuer: ISSUER.into(),
        audience: AUDIENCE.into(),
        source,
        user_claim: "sub".into(),
        user_prefix: String::new(),
        roles_claim: Some("realm_access.roles".into()),
        lifetime_max: LIFETIME_MAX,
    }
}

/// Somebody who signs tokens.
enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::from_der(&STANDARD.decode(RSA).expect("base64")).expect("a key"))
    }

    fn p256() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self::P256(pair.expect("a key"))
    }

    fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    /// The public key, as a set has it.
    fn public(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": encoded(public.n), "e": encoded(public.e)})
            }
            Self::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": encoded(&point[1..33]), "y": encoded(&point[33..])})
            }
            Self::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "alg": "EdDSA", "x": encoded(pair.public_key())})
            }
        }
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let padding: &dyn ring::signature::RsaEncoding =
                    if algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature).expect("signed");
                signature
            }
            Self::P256(pair) => pair.sign(&random, message).expect("signed").as_ref().to_vec(),
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        format!("{signed}.{}", encoded(self.sign(algorithm, signed.as_bytes())))
    }
}

/// Whether a sender may have the keys asked for again.
fn no() -> Option<()> {
    None
}

fn yes() -> Option<()> {
    Some(())
}

fn now() -> u64 {
    wall_now() / 1_000
}

fn claims(user: &str) -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": user, "exp": now() + 300, "realm_access": {"roles": ["b", "a", "b"]}})
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

fn set_of(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

/// A verifier with these keys in a file, which has them.
async fn verifier_of(keys: &[Value]) -> (tempfile::TempDir, Arc<JwtVerifier>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("jwks.json");
    std::fs::write(&path, set_of(keys)).expect("written");
    let verifier = JwtVerifier::new(settings(JwksSource::File(path)));
    verifier.ask().await;
    (dir, verifier)
}

#[tokio::test]
async fn a_token_of_each_algorithm_proves_a_user_and_roles() {
    for (signer, algorithm) in
        [(Signer::rsa(), "RS256"), (Signer::rsa(), "PS256"), (Signer::p256(), "ES256"), (Signer::ed25519(), "EdDSA")]
    {
        let (_dir, verifier) = verifier_of(&[signer.public("k1")]).await;
        let token = signer.token(&json!({"alg": algorithm, "kid": "k1", "typ": "JWT"}), &claims("ann"));
        assert!(JwtVerifier::is_of_form(&token));
        let verified = verifier.verify(&token, no).await.unwrap_or_else(|why| panic!("{algorithm}: {why}"));
        assert_eq!((verified.user(), verified.roles()), ("ann", &["a".to_owned(), "b".to_owned()][..]));
        // One that names no key is tried with all that fit.
        let nameless = signer.token(&json!({"alg": algorithm}), &claims("bob"));
        assert_eq!(verifier.verify(&nameless, no).await.map(|verified| verified.user().to_owned()), Ok("bob".into()));
        // Each letter of what was signed counts.
        let (signed, signature) = token.rsplit_once('.').expect("parts");
        let other = signer.token(&json!({"alg": algorithm, "kid": "k1"}), &claims("root"));
        let (other, _) = other.rsplit_once('.').expect("parts");
        assert!(verifier.verify(&format!("{other}.{signature}"), no).await.is_err());
        assert!(verifier.verify(&format!("{signed}.{}", encoded([0; 64])), no).await.is_err());
    }
}

#[tokio::test]
async fn what_a_token_says_has_to_hold_here_and_now() {
    let signer = Signer::p256();
    let (_dir, verifier) = verifier_of(&[signer.public("k1")]).await;
    let header = json!({"alg": "ES256", "kid": "k1"});
    let good = claims("ann");
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().expect("an object").remove(name);
        claims
    };
    let (over, hour) = (LEEWAY_SECONDS + 5, LIFETIME_MAX.as_secs());
    let lasting = with(&good, "exp", json!(now() + hour + 2 * over));
    for (bad, why) in [
        (with(&good, "iss", json!("https://other.example")), "another issuer"),
        (without("iss"), "another issuer"),
        (with(&good, "aud", json!("other")), "another audience"),
        (with(&good, "aud", json!(["a", "b"])), "another audience"),
        (without("aud"), "another audience"),
        (with(&good, "exp", json!(now() - over)), "time of the token is over"),
        (with(&good, "exp", json!("soon")), "until when"),
        (without("exp"), "until when"),
        (lasting.clone(), "good for longer"),
        (with(&lasting, "iat", json!(now() - hour)), "good for longer"),
        (with(&lasting, "iat", json!(now() + hour)), "good for longer"),
        (with(&good, "iat", json!("now")), "when it was issued"),
        (with(&good, "nbf", json!(now() + over)), "not good yet"),
        (with(&good, "nbf", json!("0")), "from when on"),
        (with(&good, "sub", json!("")), "name of a user"),
        (with(&good, "sub", json!(7)), "name of a user"),
        (with(&good, "sub", json!("root")), "cannot be one here"),
        (with(&good, "sub", json!("Root")), "cannot be one here"),
        (with(&good, "realm_access", json!({"roles": [1]})), "no list of names"),
        (with(&good, "realm_access", json!({"roles": (0..65).map(|n| n.to_string()).collect::<Vec<_>>()})), "64 roles"),
    ] {
        let refused = verifier.verify(&signer.token(&header, &bad), no).await.expect_err(why);
        assert!(refused.contains(why), "{bad}: {refused}");
    }
    let near = LEEWAY_SECONDS - 10;
    for fine in [
        with(&good, "aud", json!(["other", AUDIENCE])),
        with(&good, "exp", json!(now() - near)),
        with(&good, "exp", json!(now() + hour)),
        with(&good, "iat", json!(now() + near)),
        with(&good, "iat", json!(now() - hour + 400)),
        with(&good, "nbf", json!(now() + near)),
        with(&good, "realm_access", json!({"roles": "a b"})),
        without("realm_access"),
    ] {
        verifier.verify(&signer.token(&header, &fine), no).await.unwrap_or_else(|why| panic!("{fine}: {why}"));
    }
}

#[tokio::test]
async fn nobody_chooses_how_his_own_token_is_proved() {
    let (rsa, p256, stranger) = (Signer::rsa(), Signer::p256(), Signer::p256());
    let public = rsa.public("k1");
    let oct = json!({"kty": "oct", "kid": "k3", "k": encoded("shared secret")});
    let encrypts = json!({"kty": "RSA", "kid": "k4", "use": "enc", "n": public["n"], "e": public["e"]});
    let (_dir, verifier) = verifier_of(&[public.clone(), p256.public("k2"), oct, encrypts]).await;
    let refused = async |token: String| verifier.verify(&token, no).await.expect_err("it proves nothing");
    // Unsigned, or signed by a shared secret, which the public key would be.
    let unsigned = format!("{}.{}.", encoded(json!({"alg": "none"}).to_string()), encoded(claims("ann").to_string()));
    assert!(refused(unsigned).await.contains("not taken"));
    for algorithm in ["HS256", "hs256", "RS512", "ES384", "NONE", ""] {
        let signed = p256.token(&json!({"alg": algorithm, "kid": "k3"}), &claims("ann"));
        assert!(refused(signed).await.contains("not taken"), "{algorithm}");
    }
    // A key of another kind than the algorithm, one for something else, and one that nobody knows.
    for (algorithm, id) in [("ES256", "k1"), ("RS256", "k2"), ("RS256", "k4"), ("EdDSA", "k2"), ("ES256", "k9")] {
        let token = p256.token(&json!({"alg": algorithm, "kid": id}), &claims("ann"));
        assert!(refused(token).await.contains("key that is not known"), "{algorithm} with {id}");
    }
    let token = stranger.token(&json!({"alg": "ES256", "kid": "k2"}), &claims("ann"));
    assert!(refused(token).await.contains("signature"));
    // A key in the token itself is nobody's; and what must be understood is refused.
    let own = json!({"alg": "ES256", "jwk": stranger.public("k2"), "jku": "https://evil.example"});
    assert!(refused(stranger.token(&own, &claims("ann"))).await.contains("signature"));
    let critical = p256.token(&json!({"alg": "ES256", "kid": "k2", "crit": ["b64"]}), &claims("ann"));
    assert!(refused(critical).await.contains("extension"));
    for strange in ["", ".", "..", "eyJ..", "eyJhbGciOiJSUzI1NiJ9.e30", "a.b.c", &"e".repeat(40_000)] {
        assert!(verifier.verify(strange, no).await.is_err(), "{strange}");
    }
}

/// An issuer on the web, which counts how often its keys were asked for.
struct Issuer {
    keys: Arc<Mutex<Result<String, u16>>>,
    asked: Arc<AtomicUsize>,
    uri: http::Uri,
}

impl Issuer {
    async fn start(keys: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let uri =
            format!("http://{}/keys?v=1", listener.local_addr().expect("an address")).parse().expect("an address");
        let (keys, asked) = (Arc::new(Mutex::new(Ok(keys))), Arc::new(AtomicUsize::new(0)));
        let (told, counted) = (Arc::clone(&keys), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (told, counted) = (Arc::clone(&told), Arc::clone(&counted));
                let answer = service_fn(move |request: http::Request<Incoming>| {
                    assert_eq!(request.uri(), "/keys?v=1");
                    counted.fetch_add(1, Ordering::Relaxed);
                    let answer = match &*told.lock() {
                        Ok(keys) => http::Response::new(Full::new(bytes::Bytes::from(keys.clone()))),
                        Err(status) => {
                            http::Response::builder().status(*status).body(Full::default()).expect("a response")
                        }
                    };
                    async move { Ok::<_, std::convert::Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        Self { keys, asked, uri }
    }

    fn source(&self) -> JwksSource {
        JwksSource::Url { uri: self.uri.clone(), ca: None }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn new_keys_are_taken_when_a_token_names_one_and_old_ones_stay_where_the_issuer_fails() {
    let (one, two, stranger) = (Signer::p256(), Signer::p256(), Signer::p256());
    let issuer = Issuer::start(set_of(&[one.public("k1")])).await;
    let verifier = JwtVerifier::new(settings(issuer.source()));
    let token =
        |signer: &Signer, id: &str, user: &str| signer.token(&json!({"alg": "ES256", "kid": id}), &claims(user));
    let first = token(&one, "k1", "ann");
    assert!(verifier.verify(&first, no).await.expect_err("no keys").contains("not known yet"));
    // The first who may has the keys asked for; nobody does so again at once.
    assert!(verifier.verify(&first, yes).await.is_ok());
    assert_eq!(issuer.asked(), 1);
    for _ in 0..20 {
        assert!(verifier.verify(&token(&stranger, "k9", "eve"), yes).await.is_err());
    }
    assert_eq!(issuer.asked(), 1, "a stranger does not have the issuer asked for each token");
    // The issuer turns to another key, with the old one beside it for a while.
    *issuer.keys.lock() = Ok(set_of(&[one.public("k1"), two.public("k2")]));
    *verifier.asked.lock().await = Instant::now().checked_sub(ASK_AGAIN);
    assert!(verifier.verify(&token(&two, "k2", "ann"), yes).await.is_ok());
    assert!(verifier.verify(&first, yes).await.is_ok() && issuer.asked() == 2);
    // It fails, in several ways: what is known stays.
    for broken in [Err(503), Ok("nonsense".to_owned()), Ok(set_of(&[])), Ok(format!("{}{{}}", " ".repeat(300 * 1024)))]
    {
        *issuer.keys.lock() = broken;
        verifier.ask().await;
        assert!(verifier.warning().is_some_and(|warning| warning.contains("--jwt-jwks")));
        assert!(verifier.verify(&token(&two, "k2", "bob"), yes).await.is_ok());
    }
    assert_eq!(verifier.failures.load(Ordering::Relaxed), 4);
    // The old key goes, and with it what was remembered of its tokens.
    *issuer.keys.lock() = Ok(set_of(&[two.public("k2")]));
    verifier.ask().await;
    assert_eq!(verifier.warning(), None);
    assert!(verifier.verify(&first, yes).await.expect_err("its key is gone").contains("not known"));
}

#[tokio::test]
async fn what_a_token_proved_holds_as_long_as_the_key_that_signed_it() {
    let (one, two) = (Signer::p256(), Signer::ed25519());
    let (dir, verifier) = verifier_of(&[one.public("k1"), two.public("k2")]).await;
    let take = async |keys: &[Value]| {
        std::fs::write(dir.path().join("jwks.json"), set_of(keys)).expect("written");
        verifier.ask().await;
    };
    for header in [json!({"alg": "ES256", "kid": "k1"}), json!({"alg": "ES256"})] {
        take(&[one.public("k1"), two.public("k2")]).await;
        let verified = verifier.verify(&one.token(&header, &claims("ann")), no).await.expect("it holds");
        assert!(verifier.believes(&verified));
        // Other keys may come and go.
        take(&[one.public("k1")]).await;
        assert!(verifier.believes(&verified) && verifier.believes(&verified));
        take(&[two.public("k2")]).await;
        assert!(!verifier.believes(&verified));
        // Another key of the same name does not count either.
        take(&[Signer::p256().public("k1")]).await;
        assert!(!verifier.believes(&verified));
        take(&[one.public("k1")]).await;
        assert!(verifier.believes(&verified), "it is back");
    }
}

#[tokio::test]
async fn few_signatures_are_looked_at_for_addresses_that_guess() {
    let (signer, stranger) = (Signer::ed25519(), Signer::ed25519());
    let (_dir, verifier) = verifier_of(&[signer.public("k1")]).await;
    let authenticator = Authenticator::new(AuthSettings::Guarded { root: None, jwt: Some(verifier) }, None);
    let neighbour = |host: u8| Neighbour::from(IpAddr::from([10, 0, 0, host]));
    let ask = async |signer: &Signer, user: &str, host: u8| {
        let token = signer.token(&json!({"alg": "EdDSA", "kid": "k1"}), &claims(user));
        authenticator.proof(Brought::Signed(token), neighbour(host)).await
    };
    let remembered = signer.token(&json!({"alg": "EdDSA", "kid": "k1"}), &claims("ann"));
    let ask_again = async || authenticator.proof(Brought::Signed(remembered.clone()), neighbour(1)).await;
    assert!(ask_again().await.is_ok());
    for _ in 0..10 {
        assert_eq!(ask(&stranger, "eve", 1).await.expect_err("forged").code(), ErrorCode::Unauthenticated);
    }
    assert!(ask(&signer, "bob", 1).await.is_ok(), "who brings something good comes in beside who guesses");
    // More than are looked at in a second. A second may begin between the last of them and the next that is good.
    let mut refused = None;
    for round in 0..50 {
        for _ in 0..150 {
            assert_eq!(ask(&stranger, "eve", 1).await.expect_err("forged").code(), ErrorCode::TooManyRequests);
        }
        refused = ask(&signer, &format!("user-{round}"), 1).await.err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused.expect("its signature is not looked at").code(), ErrorCode::TooManyRequests);
    assert!(ask_again().await.is_ok(), "it is remembered");
    assert!(ask(&signer, "cid", 2).await.is_ok(), "another address");
}

#[tokio::test]
async fn who_brings_a_new_key_while_too_many_do_is_told_to_come_again_and_has_not_failed() {
    let (one, two) = (Signer::ed25519(), Signer::ed25519());
    let (dir, verifier) = verifier_of(&[one.public("k1")]).await;
    let authenticator = Authenticator::new(AuthSettings::Guarded { root: None, jwt: Some(verifier) }, None);
    let from = Neighbour::from(IpAddr::from([10, 0, 0, 1]));
    let token = two.token(&json!({"alg": "EdDSA", "kid": "k2"}), &claims("ann"));
    let ask = async || authenticator.proof(Brought::Signed(token.clone()), from).await;
    let places: Vec<_> = std::iter::from_fn(|| authenticator.ask_for_stranger(from).ok()).collect();
    // More often than an address may fail.
    for _ in 0..20 {
        let refused = ask().await.expect_err("nobody looked");
        assert_eq!(refused.code(), ErrorCode::TooManyRequests, "{}", refused.detail());
        assert!(refused.detail().contains("too many at a time of this address"), "{}", refused.detail());
        assert!(!refused.retry_after().is_zero());
    }
    std::fs::write(dir.path().join("jwks.json"), set_of(&[two.public("k2")])).expect("written");
    drop(places);
    assert!(ask().await.is_ok(), "the address is not slowed down");
}

#[tokio::test]
async fn a_token_is_remembered_and_still_ends() {
    let signer = Signer::ed25519();
    let (_dir, verifier) = verifier_of(&[signer.public("k1")]).await;
    let ends = with(&claims("ann"), "exp", json!(now() - LEEWAY_SECONDS + 2));
    let token = signer.token(&json!({"alg": "EdDSA"}), &ends);
    let verified = verifier.verify(&token, no).await.expect("it holds");
    assert!(Arc::ptr_eq(&verified, &verifier.verify(&token, no).await.expect("it holds")));
    let until = Instant::now() + Duration::from_secs(10);
    while !verified.is_over() {
        assert!(Instant::now() < until, "it never ends");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(verifier.verify(&token, no).await.expect_err("it is over").contains("over"));
}

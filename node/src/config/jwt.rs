//! The settings of tokens that somebody else signs.
//!
//! Owns which of them belong together. A file of keys is read here to be checked; an address is asked once the node runs.

use std::net::IpAddr;
use std::path::PathBuf;

use http::Uri;
use quorate_node_core::gateway::auth::jwt::{JwksSource, JwtSettings, KeySet};
use quorate_node_core::tls;

use super::faults::{DAY_MS, Faults};
use super::{Args, Auth};

/// The claim with the name of the user where nothing else is said. The issuer gives it, and nobody chooses theirs.
const USER_CLAIM: &str = "sub";

/// Stands before names of another claim where nothing else is said: a person may be able to choose such a name, and with it that of a
/// user of the cluster.
const PREFIX_OF_CHOSEN: &str = "oidc:";

/// Takes the settings out of the arguments.
pub(super) fn of(args: &mut Args, auth: Auth, faults: &mut Faults) -> Option<JwtSettings> {
    let given = args.given("jwt_");
    let first = *given.first()?;
    let (issuer, audience, jwks) = (args.jwt_issuer.take(), args.jwt_audience.take(), args.jwt_jwks.take());
    let (ca, user_claim, user_prefix) = (args.jwt_ca.take(), args.jwt_user_claim.take(), args.jwt_user_prefix.take());
    let roles_claim = args.jwt_roles_claim.take();
    if auth == Auth::Off {
        faults.add(
            first,
            "nobody is asked for a token while authentication is off: say --auth required, or leave it out",
        );
    }
    for field in ["jwt_issuer", "jwt_audience", "jwt_jwks"].into_iter().filter(|field| !given.contains(field)) {
        let flag = field.replace('_', "-");
        faults.add(field, format!("missing, though {first} is there; say --{flag} too, or leave all of jwt out"));
    }
    for (field, text) in [
        ("jwt_issuer", &issuer),
        ("jwt_audience", &audience),
        ("jwt_user_claim", &user_claim),
        ("jwt_roles_claim", &roles_claim),
    ] {
        if text.as_deref() == Some("") {
            faults.add(field, "must not be empty");
        }
    }
    let lifetime_max_ms = args.jwt_lifetime_max_ms.unwrap_or(DAY_MS);
    let lifetime_max = faults.millis("jwt_lifetime_max_ms", lifetime_max_ms, 60_000, 365 * DAY_MS);
    let source = source(&jwks?, ca, faults)?;
    let user_claim = user_claim.unwrap_or_else(|| USER_CLAIM.to_owned());
    let prefix = if user_claim == USER_CLAIM { "" } else { PREFIX_OF_CHOSEN };
    Some(JwtSettings {
        issuer: issuer?,
        audience: audience?,
        source,
        user_claim,
        user_prefix: user_prefix.unwrap_or_else(|| prefix.to_owned()),
        roles_claim,
        lifetime_max,
    })
}

fn source(jwks: &str, ca: Option<PathBuf>, faults: &mut Faults) -> Option<JwksSource> {
    let is_https = jwks.starts_with("https://");
    if let (Some(ca), true) = (&ca, is_https)
        && let Err(why) = tls::client_config(ca)
    {
        faults.add("jwt_ca", format!("{}: {why}", ca.display()));
    }
    match (is_https, jwks.starts_with("http://"), ca) {
        (true, _, None) => {
            faults.add(
                "jwt_ca",
                "missing: name the CA of the issuer's certificate; there are no others that a node believes",
            );
            None
        }
        (false, _, Some(_)) => {
            faults.add("jwt_ca", "is for keys at an https:// address; leave it out");
            None
        }
        (false, false, None) => file(jwks.into(), faults),
        (is_https, _, ca) => address(jwks, is_https, ca, faults),
    }
}

fn address(jwks: &str, is_https: bool, ca: Option<PathBuf>, faults: &mut Faults) -> Option<JwksSource> {
    let Ok(uri) = jwks.parse::<Uri>() else {
        faults.add("jwt_jwks", format!("`{jwks}` is no address"));
        return None;
    };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_here =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    if host.is_empty() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        faults.add("jwt_jwks", "give an address with a host and without a user, like https://issuer.example/keys");
        return None;
    }
    if !is_https && !is_here {
        faults.add("jwt_jwks", "whoever is on the way could put keys of their own there: give https://, or a file");
        return None;
    }
    Some(JwksSource::Url { uri, ca })
}

fn file(path: PathBuf, faults: &mut Faults) -> Option<JwksSource> {
    let read = std::fs::read(&path).map_err(|error| format!("cannot be read: {error}"));
    match read.and_then(|text| KeySet::read(&text)) {
        Ok(_) => Some(JwksSource::File(path)),
        Err(why) => {
            faults.add("jwt_jwks", format!("{}: {why}", path.display()));
            None
        }
    }
}

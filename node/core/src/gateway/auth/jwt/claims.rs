//! What a token says, and whether that holds here and now.
//!
//! Owns the claims that count. Whoever reads them knows that they were signed; before that they are never looked at.

use serde_json::Value;

use crate::gateway::auth::jwt::JwtSettings;

/// How far the clocks of whoever signs and of this node may be apart, seconds.
pub const LEEWAY_SECONDS: u64 = 60;

/// Most roles that one token may name.
const ROLES_MAX: usize = 64;

/// What holds for who brings a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The name of the user, with the prefix.
    pub user: String,
    /// Names of roles, sorted; some may be none of the cluster's.
    pub roles: Vec<String>,
    /// Until when, Unix seconds; the leeway comes on top.
    pub expires_at: u64,
}

impl Claims {
    /// Whether the time is over at this wall clock, milliseconds.
    pub fn is_over(&self, wall_ms: u64) -> bool {
        wall_ms / 1_000 >= self.expires_at.saturating_add(LEEWAY_SECONDS)
    }

    /// Reads the claims of a token that was signed.
    ///
    /// # Errors
    /// Why it proves nothing here. It repeats nothing of the token.
    pub fn read(text: &[u8], settings: &JwtSettings, wall_ms: u64) -> Result<Self, &'static str> {
        let claims: Value = serde_json::from_slice(text).map_err(|_| "the claims of the token are no JSON")?;
        let Value::Object(_) = claims else { return Err("the claims of the token are no object") };
        if claims.get("iss").and_then(Value::as_str) != Some(settings.issuer.as_str()) {
            return Err("the token is of another issuer");
        }
        if !is_for(&claims["aud"], &settings.audience) {
            return Err("the token is for another audience");
        }
        let now = wall_ms / 1_000;
        let expires_at = seconds(&claims["exp"]).ok_or("the token does not say until when it is good")?;
        let issued_at = match claims.get("iat") {
            None => now,
            // From the future it would let a token be good for longer.
            Some(at) => seconds(at).ok_or("the token does not say rightly when it was issued")?.min(now),
        };
        let lifetime_max = settings.lifetime_max.as_secs().saturating_add(LEEWAY_SECONDS);
        if expires_at.saturating_sub(issued_at) > lifetime_max {
            return Err("the token is good for longer than tokens may be here (--jwt-lifetime-max-ms)");
        }
        match claims.get("nbf") {
            None => {}
            Some(from) => match seconds(from) {
                None => return Err("the token does not say rightly from when on it is good"),
                Some(from) if from > now.saturating_add(LEEWAY_SECONDS) => return Err("the token is not good yet"),
                Some(_) => {}
            },
        }
        let user = find(&claims, &settings.user_claim).and_then(Value::as_str).filter(|name| !name.is_empty());
        let user = user.ok_or("the token has no claim with the name of a user")?;
        let roles = settings.roles_claim.as_deref().and_then(|claim| find(&claims, claim));
        let claims = Self {
            user: format!("{}{user}", settings.user_prefix),
            roles: roles.map_or(Ok(Vec::new()), names)?,
            expires_at,
        };
        if claims.is_over(wall_ms) {
            return Err("the time of the token is over");
        }
        Ok(claims)
    }
}

/// A time: a number, whole or not.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| (0.0..1e15).contains(number))?;
    // Within bounds by the line above.
    Some(number as u64)
}

fn is_for(audience: &Value, ours: &str) -> bool {
    match audience {
        Value::String(one) => one == ours,
        Value::Array(several) => several.iter().any(|one| one == ours),
        _ => false,
    }
}

/// A claim by its name, or by a path of names with dots, as `realm_access.roles`.
fn find<'c>(claims: &'c Value, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |inside, part| inside.get(part)))
}

/// Names of roles: a list of them, or text with spaces between.
fn names(value: &Value) -> Result<Vec<String>, &'static str> {
    const NONE: &str = "the roles of the token are no list of names";
    let mut names: Vec<String> = match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => {
            let name = |item: &Value| item.as_str().map(str::to_owned).ok_or(NONE);
            list.iter().map(name).collect::<Result<_, _>>()?
        }
        _ => return Err(NONE),
    };
    names.sort();
    names.dedup();
    if names.len() > ROLES_MAX { Err("the token names more than 64 roles") } else { Ok(names) }
}

//! The prefix that confines an agent.
//!
//! Owns the check. Names are the same for everybody who looks at the cluster: nothing is added to them or taken away.

use quorate_client::api::Name;

use crate::refusal::Refusal;

/// What all keys and names begin with.
#[derive(Debug, Clone)]
pub struct Scope(String);

impl Scope {
    pub fn new(prefix: &str) -> Self {
        Self(prefix.to_owned())
    }

    /// Whether there is a limit.
    pub fn limit(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|prefix| !prefix.is_empty())
    }

    pub fn has(&self, name: impl AsRef<[u8]>) -> bool {
        name.as_ref().starts_with(self.0.as_bytes())
    }

    /// A name, if it may be used.
    pub fn name(&self, name: String) -> Result<String, Refusal> {
        if self.has(&name) { Ok(name) } else { Err(self.outside(&name)) }
    }

    /// A key as answers show it, if it may be used.
    pub fn key(&self, shown: &str) -> Result<Name, Refusal> {
        let key = Name::from_shown(shown);
        if self.has(&key) { Ok(key) } else { Err(self.outside(shown)) }
    }

    /// What keys begin with, as answers show it, if it may be used; the whole scope without one.
    pub fn prefix(&self, shown: Option<&str>) -> Result<Name, Refusal> {
        shown.map_or_else(|| Ok(self.0.as_str().into()), |shown| self.key(shown))
    }

    /// That a name may not be used.
    pub fn outside(&self, name: &str) -> Refusal {
        let why = format!("`{name}` is outside of what this agent may use: all keys and names begin with `{}`", self.0);
        Refusal::new("outside_prefix", why).next("use a name that begins so")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_prefix() {
        let scope = Scope::new("team/");
        assert_eq!(scope.name("team/a".into()).expect("inside"), "team/a");
        assert_eq!(scope.prefix(None).expect("the scope"), "team/");
        for outside in ["", "team", "teams/a", "other/team/"] {
            let refused = scope.name(outside.into()).expect_err("outside");
            assert_eq!(refused.code(), "outside_prefix");
            assert!(scope.prefix(Some(outside)).is_err(), "{outside:?}");
        }
        assert_eq!(Scope::new("").prefix(None).expect("all"), "");
        // Whatever it looks like: what counts are the bytes.
        let scope = Scope::new("team\\");
        assert_eq!(scope.key(r"team\\x5c").expect("inside"), Name::from(r"team\\"));
        assert!(scope.key(r"team\xff").is_err());
    }
}

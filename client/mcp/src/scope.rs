//! The prefix that confines an agent.
//!
//! Owns the check. Names are the same for everybody who looks at the cluster: nothing is added to them or taken away.

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

    pub fn has(&self, name: &str) -> bool {
        name.starts_with(&self.0)
    }

    /// A key or a name, if it may be used.
    pub fn name(&self, name: String) -> Result<String, Refusal> {
        if self.has(&name) {
            return Ok(name);
        }
        let why = format!("`{name}` is outside of what this agent may use: all keys and names begin with `{}`", self.0);
        Err(Refusal::new("outside_prefix", why).next("use a name that begins so"))
    }

    /// A prefix, if it may be used; the whole scope without one.
    pub fn prefix(&self, prefix: Option<String>) -> Result<String, Refusal> {
        prefix.map_or_else(|| Ok(self.0.clone()), |prefix| self.name(prefix))
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
            assert!(scope.prefix(Some(outside.into())).is_err(), "{outside:?}");
        }
        assert_eq!(Scope::new("").prefix(None).expect("all"), "");
    }
}

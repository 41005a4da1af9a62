//! Commands about users, roles and tokens, and what applying them answers.
//!
//! Owns their form in the log. Never holds the secret of a token, only its hash; what somebody may do with all this is
//! [`crate::access`]'s.

use std::fmt;
use std::str::FromStr;

use bincode::{Decode, Encode};

use super::{Key, Revision, Waker, WallMillis};
use crate::access::Grant;
use crate::limits;
use crate::rules::{NameError, checked_name, name_traits};

/// The user that there always is, and that may do everything: nobody is given the name.
pub const ROOT: &str = "root";

/// The name of a user: 1 to [`limits::ACCESS_NAME_BYTES_MAX`] bytes of text, and not [`ROOT`].
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode)]
pub struct UserName(String);

/// The name of a role: 1 to [`limits::ACCESS_NAME_BYTES_MAX`] bytes of text.
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode)]
pub struct RoleName(String);

impl UserName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        match checked_name(name.into(), limits::ACCESS_NAME_BYTES_MAX)? {
            name if name == ROOT => Err(NameError::Reserved),
            name => Ok(Self(name)),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RoleName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        checked_name(name.into(), limits::ACCESS_NAME_BYTES_MAX).map(Self)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

name_traits!(UserName);
name_traits!(RoleName);

/// The public number of a token; 16 hexadecimal digits as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct TokenId(pub u64);

/// Some text is not the id of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a token is 16 digits of 0-9 and a-f")]
pub struct NoTokenId;

impl TokenId {
    /// Characters of its text.
    pub const TEXT_BYTES: usize = 16;
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Takes exactly what [`fmt::Display`] gives.
impl FromStr for TokenId {
    type Err = NoTokenId;

    fn from_str(text: &str) -> Result<Self, NoTokenId> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != Self::TEXT_BYTES || !text.bytes().all(is_digit) {
            return Err(NoTokenId);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| NoTokenId)
    }
}

/// SHA-256 of the secret of a token. Neither salt nor many rounds: they are for secrets that people choose, and this one is
/// 256 random bits, which nobody finds by trying.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SecretHash(pub [u8; 32]);

/// Silent: what a token is compared with belongs in no log line.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

/// What is asked about users, roles and tokens.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AccessOp {
    /// Makes a user, or gives one other roles. All of them must exist. The same again changes nothing.
    SetUser {
        /// The user.
        name: UserName,
        /// At most [`limits::USER_ROLES_MAX`], in any order.
        roles: Vec<RoleName>,
    },
    /// Removes a user, and its tokens with it.
    RemoveUser(UserName),
    /// Makes a role, or gives one other grants. The same again changes nothing.
    SetRole {
        /// The role.
        name: RoleName,
        /// At most [`limits::ROLE_GRANTS_MAX`], in any order, each prefix at most [`limits::KEY_BYTES_MAX`].
        grants: Vec<Grant>,
    },
    /// Removes a role that no user has.
    RemoveRole(RoleName),
    /// Gives a user a token. Those of it whose time is over are removed on the occasion.
    AddToken(NewToken),
    /// Removes a token.
    RemoveToken(TokenId),
}

/// A token as its node made it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewToken {
    /// Random, so that no two are alike.
    pub id: TokenId,
    /// Whose it is.
    pub user: UserName,
    /// What its secret is compared with.
    pub hash: SecretHash,
    /// Unix milliseconds from which on it is good for nothing; `None` for never.
    pub expires_at: Option<WallMillis>,
    /// What it is for, for people: at most [`limits::TOKEN_NOTE_BYTES_MAX`].
    pub note: String,
}

/// A user. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct UserRow {
    /// In order, none twice. Each of them exists.
    pub roles: Vec<RoleName>,
    /// Wall clock at which it was made.
    pub created: WallMillis,
    /// Revision at which its roles were last set.
    pub revision: Revision,
}

/// A role. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RoleRow {
    /// In order, none twice.
    pub grants: Vec<Grant>,
    /// Wall clock at which it was made.
    pub created: WallMillis,
    /// Revision at which its grants were last set.
    pub revision: Revision,
}

/// A token. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TokenRow {
    /// Whose it is. Exists.
    pub user: UserName,
    /// What its secret is compared with.
    pub hash: SecretHash,
    /// Unix milliseconds from which on it is good for nothing; `None` for never.
    pub expires_at: Option<WallMillis>,
    /// What it is for, for people.
    pub note: String,
    /// Wall clock at which it was made.
    pub created: WallMillis,
    /// Revision at which it was made.
    pub revision: Revision,
}

impl TokenRow {
    /// Whether its time is over by a wall clock.
    pub fn is_expired_at(&self, wall: WallMillis) -> bool {
        self.expires_at.is_some_and(|at| at <= wall)
    }
}

/// What came of an [`AccessOp`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AccessReply {
    /// The user as it is now.
    User(UserRow),
    /// The role as it is now.
    Role(RoleRow),
    /// The token is there since this wall clock.
    Token(WallMillis),
    /// It was removed, with so many tokens: those of a user, or the one.
    Removed {
        /// How many.
        tokens: u32,
    },
}

/// Why an [`AccessOp`] had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AccessFault {
    /// There is no such user.
    NoUser(UserName),
    /// There is no such role.
    NoRole(RoleName),
    /// There is no such token.
    NoToken(TokenId),
    /// A user has the role. Holds the first.
    RoleInUse(UserName),
    /// Another token has the id.
    TokenExists,
}

impl AccessOp {
    /// Under what its lines of audit stand: a kind, a slash and the name.
    pub fn subject(&self) -> Key {
        let of = |kind: &str, name: &dyn fmt::Display| Waker::Access.of(format!("{kind}/{name}"));
        match self {
            Self::SetUser { name, .. } | Self::RemoveUser(name) => of("user", name),
            Self::SetRole { name, .. } | Self::RemoveRole(name) => of("role", name),
            Self::AddToken(NewToken { id, .. }) | Self::RemoveToken(id) => of("token", id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_token_has_one_text() {
        for id in [0, 0x12ab, u64::MAX].map(TokenId) {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "12", "00000000000012AB", "+0000000000012ab", "00000000000012ab0", "0000000000001 ab"] {
            assert_eq!(text.parse::<TokenId>(), Err(NoTokenId), "{text}");
        }
    }

    #[test]
    fn nobody_is_called_root_and_a_hash_says_nothing() {
        assert_eq!(UserName::new(ROOT), Err(NameError::Reserved));
        assert!(UserName::new("Root").is_ok() && RoleName::new(ROOT).is_ok());
        assert!(RoleName::new("r".repeat(limits::ACCESS_NAME_BYTES_MAX + 1)).is_err());
        assert_eq!(format!("{:?}", SecretHash([7; 32])), "SecretHash(..)");
    }
}

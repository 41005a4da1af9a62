//! Rows of users, roles and tokens: `0x90`, name → [`UserRow`]; `0x91`, name → [`RoleRow`]; `0x92`, id → [`TokenRow`];
//! `0x93`, user, id → nothing: whose a token is; `0x94`, role, user → nothing: who has a role.
//!
//! Owns their row keys. The last two say nothing that the others do not; with them the tokens of a user and the users of a role
//! are found without a walk over all.

use super::{family, named, split_u64, strip_family};
use crate::codec::CodecError;
use crate::types::{RoleName, TokenId, UserName};
#[cfg(doc)]
use crate::types::{RoleRow, TokenRow, UserRow};

/// The row key of a user.
pub fn user_key(name: &UserName) -> Vec<u8> {
    [&[family::USER][..], name.as_str().as_bytes()].concat()
}

/// Reverses [`user_key`].
pub fn decode_user(row_key: &[u8]) -> Result<UserName, CodecError> {
    user_of(strip_family(row_key, family::USER)?)
}

/// The row key of a role.
pub fn role_key(name: &RoleName) -> Vec<u8> {
    [&[family::ROLE][..], name.as_str().as_bytes()].concat()
}

/// Reverses [`role_key`].
pub fn decode_role(row_key: &[u8]) -> Result<RoleName, CodecError> {
    role_of(strip_family(row_key, family::ROLE)?)
}

/// The row key of a token.
pub fn token_key(id: TokenId) -> Vec<u8> {
    [&[family::TOKEN][..], &id.0.to_be_bytes()].concat()
}

/// Reverses [`token_key`].
pub fn decode_token(row_key: &[u8]) -> Result<TokenId, CodecError> {
    match split_u64(strip_family(row_key, family::TOKEN)?)? {
        (id, []) => Ok(TokenId(id)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in the id of a token", rest.len()))),
    }
}

/// The row key of a token of a user.
pub fn user_token_key(user: &UserName, id: TokenId) -> Vec<u8> {
    named::numbered(family::USER_TOKEN, user.as_str().as_bytes(), id.0)
}

/// Reverses [`user_token_key`].
pub fn decode_user_token(row_key: &[u8]) -> Result<(UserName, TokenId), CodecError> {
    let (user, id) = named::split_numbered(row_key, family::USER_TOKEN)?;
    Ok((user_of(&user)?, TokenId(id)))
}

/// The bounds `[start, end)` of the tokens of a user.
pub fn tokens_of(user: &UserName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::USER_TOKEN, user.as_str().as_bytes())
}

/// The row key of a user of a role.
pub fn role_user_key(role: &RoleName, user: &UserName) -> Vec<u8> {
    let user = user.as_str().as_bytes();
    let mut row_key = named::start(family::ROLE_USER, role.as_str().as_bytes(), user.len());
    row_key.extend_from_slice(user);
    row_key
}

/// Reverses [`role_user_key`].
pub fn decode_role_user(row_key: &[u8]) -> Result<(RoleName, UserName), CodecError> {
    let (role, user) = named::split(row_key, family::ROLE_USER)?;
    Ok((role_of(&role)?, user_of(user)?))
}

/// The bounds `[start, end)` of the users of a role.
pub fn users_of(role: &RoleName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::ROLE_USER, role.as_str().as_bytes())
}

fn user_of(bytes: &[u8]) -> Result<UserName, CodecError> {
    UserName::new(text_of(bytes)?).map_err(|error| CodecError::Malformed(format!("a user: {error}")))
}

fn role_of(bytes: &[u8]) -> Result<RoleName, CodecError> {
    RoleName::new(text_of(bytes)?).map_err(|error| CodecError::Malformed(format!("a role: {error}")))
}

fn text_of(bytes: &[u8]) -> Result<&str, CodecError> {
    std::str::from_utf8(bytes).map_err(|error| CodecError::Malformed(format!("a name: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_keys_come_back_and_lie_within_the_bounds_of_their_name_alone() {
        let users = ["a", "a\0", "a\0b", "ab"].map(|name| UserName::new(name).unwrap());
        let roles = ["a", "a\0", "ab"].map(|name| RoleName::new(name).unwrap());
        let id = TokenId(u64::MAX);
        assert_eq!(decode_token(&token_key(id)), Ok(id));
        for user in &users {
            assert_eq!(decode_user(&user_key(user)).as_ref(), Ok(user));
            let row_key = user_token_key(user, id);
            assert_eq!(decode_user_token(&row_key), Ok((user.clone(), id)));
            for other in &users {
                let (start, end) = tokens_of(other);
                assert_eq!(start <= row_key && row_key < end, user == other);
            }
            for role in &roles {
                let row_key = role_user_key(role, user);
                assert_eq!(decode_role(&role_key(role)).as_ref(), Ok(role));
                assert_eq!(decode_role_user(&row_key), Ok((role.clone(), user.clone())));
                for other in &roles {
                    let (start, end) = users_of(other);
                    assert_eq!(start <= row_key && row_key < end, role == other);
                }
            }
        }
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        assert!(decode_user(&[family::USER]).is_err(), "a name without a byte");
        assert!(decode_user(&[&[family::USER][..], b"root"].concat()).is_err());
        assert!(decode_role(&[family::ROLE, 0xff]).is_err(), "no text");
        assert!(decode_token(&[family::TOKEN, 1, 2]).is_err());
        assert!(decode_token(&[&token_key(TokenId(1))[..], &[0]].concat()).is_err());
        assert!(decode_role_user(&[family::ROLE_USER, b'r', 0, 1]).is_err(), "without a user");
    }
}

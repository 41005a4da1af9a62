//! Reads of users, roles and tokens.
//!
//! Owns the answers about them, and the sum of a user's rights. [`crate::access`] decides whether those are enough.

use super::{Moment, Observed, Page, Snapshot};
use crate::access::Rights;
use crate::codec;
use crate::keyspace::{access, family, family_range};
use crate::machine::Fault;
use crate::machine::View;
use crate::types::{RoleName, RoleRow, TokenId, TokenRow, UserName, UserRow};

/// Users, roles and tokens.
impl<S: Snapshot> Moment<S> {
    /// Reads a user.
    pub fn user(&self, name: &UserName) -> Result<Observed<Option<UserRow>>, Fault> {
        self.observe(|moment| moment.decoded(access::user_key(name)))
    }

    /// Reads a role.
    pub fn role(&self, name: &RoleName) -> Result<Observed<Option<RoleRow>>, Fault> {
        self.observe(|moment| moment.decoded(access::role_key(name)))
    }

    /// Reads a token, also one whose time is over.
    pub fn token(&self, id: TokenId) -> Result<Observed<Option<TokenRow>>, Fault> {
        self.observe(|moment| moment.decoded(access::token_key(id)))
    }

    /// All rights of a user; `None` if there is no such user.
    pub fn rights_of(&self, name: &UserName) -> Result<Option<Rights>, Fault> {
        let Some(user) = self.decoded::<UserRow>(access::user_key(name))? else { return Ok(None) };
        let mut grants = Vec::new();
        for role in &user.roles {
            let row = self.decoded::<RoleRow>(access::role_key(role))?;
            let row = row.ok_or_else(|| Fault::Invariant(format!("role {role} of user {name} is missing")))?;
            grants.extend(row.grants);
        }
        Ok(Some(Rights::new(grants)))
    }

    /// Users after this one, in order of names.
    pub fn users(&self, after: Option<&UserName>, limit: usize) -> Result<Observed<Page<(UserName, UserRow)>>, Fault> {
        let after = after.map(access::user_key);
        self.observe(|moment| page(moment, family::USER, after, limit, access::decode_user))
    }

    /// Roles after this one, in order of names.
    pub fn roles(&self, after: Option<&RoleName>, limit: usize) -> Result<Observed<Page<(RoleName, RoleRow)>>, Fault> {
        let after = after.map(access::role_key);
        self.observe(|moment| page(moment, family::ROLE, after, limit, access::decode_role))
    }

    /// Tokens after this one, in order of ids.
    pub fn tokens(&self, after: Option<TokenId>, limit: usize) -> Result<Observed<Page<(TokenId, TokenRow)>>, Fault> {
        let after = after.map(access::token_key);
        self.observe(|moment| page(moment, family::TOKEN, after, limit, access::decode_token))
    }
}

/// Rows of a family behind a row key.
fn page<N, T: bincode::Decode<crate::codec::Written>>(
    moment: &Moment<impl Snapshot>,
    family: u8,
    after: Option<Vec<u8>>,
    limit: usize,
    name: impl Fn(&[u8]) -> Result<N, codec::CodecError>,
) -> Result<Page<(N, T)>, Fault> {
    let (first, end) = family_range(family);
    let start = after.map_or(first, |after| [&after[..], &[0]].concat());
    let mut rows = moment.scan(&start, &end, limit.saturating_add(1))?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let read = |(row_key, row): &(Vec<u8>, Vec<u8>)| Ok((name(row_key)?, codec::decode(row)?));
    Ok(Page { items: rows.iter().map(read).collect::<Result<_, Fault>>()?, more })
}

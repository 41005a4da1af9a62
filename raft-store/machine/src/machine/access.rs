//! Users, roles and tokens: what setting and removing them does.
//!
//! Owns that roles of users exist, that tokens go with their user, and the access revision, by which commands are refused that
//! were authorised by rules of before. Never asks what somebody may do: that is decided before a command is in the log, but for what
//! only the state knows, whose a token is.
//!
//! Golden scripts, in `testscripts/machine`: `access`, `operator_roles`.

use super::stop::{Stop, Tried, split};
use super::view::{Fault, View};
use super::{Applier, Caller};
use crate::access::{Grant, Permission, RequiredPermission, Rights};
use crate::codec;
use crate::keyspace::access;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::limits;
use crate::mutants::Mutant;
use crate::types::{
    AccessFault, AccessOp, AccessReply, Bounded, Command, NewToken, Outcome, Rejection, RoleName, RoleRow, SessionId,
    TokenId, TokenRow, UserName, UserRow, Waker,
};

/// What becomes of an operation that is not refused.
enum Step {
    /// Something changed.
    Done(AccessReply),
    /// All is as asked for already.
    Same(AccessReply),
}

impl<V: View> Applier<'_, V> {
    /// Whether the rules by which a command was authorised still hold. What the cluster does by itself is not asked.
    pub(super) fn is_still_authorised(&self, command: &Command) -> bool {
        command.access_revision.is_none_or(|access_revision| access_revision == self.vars.access)
    }

    /// Whether a caller may give up or change what a session holds under a name: it is their session, or they may administer the name.
    /// Who knows the token alone may not: everybody who may read the lock sees it.
    pub(super) fn may_act_for(&mut self, session: SessionId, name: &str, caller: &Caller) -> Result<bool, Fault> {
        if !caller.is_judged() || Mutant::AnyTokenIsAnybodys.acts() {
            return Ok(true);
        }
        if self.session_row(session)?.is_some_and(|row| row.principal == caller.principal) {
            return Ok(true);
        }
        let rights = self.rights_of(&caller.principal)?;
        Ok(rights.allow(&RequiredPermission::Name(Permission::Admin, name.as_bytes())))
    }

    /// What a user may do in all, by the rules as they are.
    fn rights_of(&self, principal: &str) -> Result<Rights, Fault> {
        let Ok(name) = UserName::new(principal) else { return Ok(Rights::default()) };
        let Some(user) = self.decoded::<UserRow>(&access::user_key(&name))? else { return Ok(Rights::default()) };
        let mut grants = Vec::new();
        for role in &user.roles {
            let row: Option<RoleRow> = self.decoded(&access::role_key(role))?;
            let row = row.ok_or_else(|| Fault::Invariant(format!("role {role} of user {name} is missing")))?;
            grants.extend(row.grants);
        }
        Ok(Rights::new(grants))
    }

    /// Sets or removes a user, a role or a token.
    pub(super) fn set_access(&mut self, op: AccessOp, caller: Caller) -> Result<Outcome, Fault> {
        let (audit, subject) = (audit_op(&op), op.subject());
        // The rows take the revision of the change; a refusal and what changes nothing give it back.
        let revision = self.next_revision()?;
        let tried = match op {
            AccessOp::SetUser { name, roles } => self.set_user(&name, roles, revision),
            AccessOp::RemoveUser(name) => self.remove_user(&name),
            AccessOp::SetRole { name, grants } => self.set_role(&name, grants, revision),
            AccessOp::RemoveRole(name) => self.remove_role(&name),
            AccessOp::AddToken(token) => self.add_token(token, revision),
            AccessOp::RemoveToken(id) => self.remove_token(id),
        };
        match split(tried)? {
            Err(rejection) => Ok(self.refuse_in(audit, Some(subject), caller, rejection)),
            Ok(Step::Same(done)) => Ok(Outcome::Access(Box::new(done))),
            Ok(Step::Done(done)) => {
                self.take_revision()?;
                self.vars.access = self.vars.revision;
                self.record(audit, Some(subject.clone()), caller, AuditEffect::Beside);
                self.wake(Waker::Access.of(""));
                Ok(Outcome::Access(Box::new(done)))
            }
        }
    }

    fn set_user(&mut self, name: &UserName, mut roles: Vec<RoleName>, revision: u64) -> Tried<Step> {
        roles.sort();
        roles.dedup();
        if roles.len() > limits::USER_ROLES_MAX {
            return Err(too_many(Bounded::UserRoles, limits::USER_ROLES_MAX));
        }
        for role in &roles {
            if self.overlay.peek(&access::role_key(role))?.is_none() {
                return Err(refusal(AccessFault::NoRole(role.clone())));
            }
        }
        let row_key = access::user_key(name);
        let before: Option<UserRow> = self.decoded(&row_key)?;
        if let Some(row) = before.as_ref().filter(|row| row.roles == roles) {
            return Ok(Step::Same(AccessReply::User(row.clone())));
        }
        let created = before.as_ref().map_or(self.vars.wall, |row| row.created);
        let roles_before = before.map_or(Vec::new(), |row| row.roles);
        for role in roles_before.iter().filter(|role| !roles.contains(role)) {
            self.overlay.take(&access::role_user_key(role, name))?;
        }
        for role in roles.iter().filter(|role| !roles_before.contains(role)) {
            self.overlay.insert_absent(access::role_user_key(role, name), Vec::new())?;
        }
        let row = UserRow { roles, created, revision };
        self.put_access(&row_key, codec::encode(&row))?;
        Ok(Step::Done(AccessReply::User(row)))
    }

    fn remove_user(&mut self, name: &UserName) -> Tried<Step> {
        let row_key = access::user_key(name);
        let Some(row) = self.decoded::<UserRow>(&row_key)? else {
            return Err(refusal(AccessFault::NoUser(name.clone())));
        };
        for role in &row.roles {
            self.overlay.take(&access::role_user_key(role, name))?;
        }
        let ids = self.tokens_of(name)?;
        for id in &ids {
            self.drop_token(*id, name)?;
        }
        self.overlay.take(&row_key)?;
        Ok(Step::Done(AccessReply::Removed { tokens: ids.len() as u32 }))
    }

    fn set_role(&mut self, name: &RoleName, mut grants: Vec<Grant>, revision: u64) -> Tried<Step> {
        grants.sort();
        grants.dedup();
        if grants.len() > limits::ROLE_GRANTS_MAX {
            return Err(too_many(Bounded::RoleGrants, limits::ROLE_GRANTS_MAX));
        }
        if let Some(bytes) = grants.iter().map(|grant| grant.prefix.len()).max().filter(|b| *b > limits::KEY_BYTES_MAX)
        {
            let why = format!("a prefix of {bytes} bytes; at most {}", limits::KEY_BYTES_MAX);
            return Err(Rejection::Unsupported(why).into());
        }
        let row_key = access::role_key(name);
        let before: Option<RoleRow> = self.decoded(&row_key)?;
        if let Some(row) = before.as_ref().filter(|row| row.grants == grants) {
            return Ok(Step::Same(AccessReply::Role(row.clone())));
        }
        let created = before.map_or(self.vars.wall, |row| row.created);
        let row = RoleRow { grants, created, revision };
        self.put_access(&row_key, codec::encode(&row))?;
        Ok(Step::Done(AccessReply::Role(row)))
    }

    fn remove_role(&mut self, name: &RoleName) -> Tried<Step> {
        let row_key = access::role_key(name);
        if self.overlay.peek(&row_key)?.is_none() {
            return Err(refusal(AccessFault::NoRole(name.clone())));
        }
        let (start, end) = access::users_of(name);
        if let Some((user_key, _)) = self.overlay.scan(&start, &end, 1)?.first() {
            let (_, user) = access::decode_role_user(user_key).map_err(|error| Fault::row(user_key, error))?;
            return Err(refusal(AccessFault::RoleInUse(user)));
        }
        self.overlay.take(&row_key)?;
        Ok(Step::Done(AccessReply::Removed { tokens: 0 }))
    }

    fn add_token(&mut self, token: NewToken, revision: u64) -> Tried<Step> {
        let NewToken { id, user, hash, expires_at, note } = token;
        if note.len() > limits::TOKEN_NOTE_BYTES_MAX {
            let why = format!("a note of {} bytes; at most {}", note.len(), limits::TOKEN_NOTE_BYTES_MAX);
            return Err(Rejection::Unsupported(why).into());
        }
        if self.overlay.peek(&access::user_key(&user))?.is_none() {
            return Err(refusal(AccessFault::NoUser(user)));
        }
        if self.overlay.peek(&access::token_key(id))?.is_some() {
            return Err(refusal(AccessFault::TokenExists));
        }
        let ids = self.tokens_of(&user)?;
        let mut over = Vec::new();
        for &known in &ids {
            if self.token(known)?.is_expired_at(self.vars.wall) {
                over.push(known);
            }
        }
        if ids.len() - over.len() >= limits::USER_TOKENS_MAX {
            return Err(too_many(Bounded::UserTokens, limits::USER_TOKENS_MAX));
        }
        for known in over {
            self.drop_token(known, &user)?;
        }
        let created = self.vars.wall;
        self.overlay.insert_absent(access::user_token_key(&user, id), Vec::new())?;
        let row = TokenRow { user, hash, expires_at, note, created, revision };
        self.put_access(&access::token_key(id), codec::encode(&row))?;
        Ok(Step::Done(AccessReply::Token(created)))
    }

    fn remove_token(&mut self, id: TokenId) -> Tried<Step> {
        let Some(row) = self.decoded::<TokenRow>(&access::token_key(id))? else {
            return Err(refusal(AccessFault::NoToken(id)));
        };
        self.drop_token(id, &row.user)?;
        Ok(Step::Done(AccessReply::Removed { tokens: 1 }))
    }

    /// The tokens of a user: at most [`limits::USER_TOKENS_MAX`].
    fn tokens_of(&self, user: &UserName) -> Result<Vec<TokenId>, Fault> {
        let (start, end) = access::tokens_of(user);
        let rows = self.overlay.scan(&start, &end, usize::MAX)?;
        let id = |(row_key, _): &(Vec<u8>, Vec<u8>)| match access::decode_user_token(row_key) {
            Ok((_, id)) => Ok(id),
            Err(error) => Err(Fault::row(row_key, error)),
        };
        rows.iter().map(id).collect()
    }

    /// A token that is there.
    fn token(&self, id: TokenId) -> Result<TokenRow, Fault> {
        self.decoded(&access::token_key(id))?.ok_or_else(|| Fault::Invariant(format!("token {id} is missing")))
    }

    fn drop_token(&mut self, id: TokenId, user: &UserName) -> Result<(), Fault> {
        self.overlay.take(&access::token_key(id))?;
        self.overlay.take(&access::user_token_key(user, id)).map(drop)
    }

    fn put_access(&mut self, row_key: &[u8], row: Vec<u8>) -> Result<(), Fault> {
        self.overlay.replace(row_key, Some(row)).map(drop)
    }
}

fn refusal(fault: AccessFault) -> Stop {
    Rejection::Access(Box::new(fault)).into()
}

fn too_many(what: Bounded, limit: usize) -> Stop {
    Rejection::TooMany { what, limit: limit as u64 }.into()
}

/// What a line of audit calls it.
fn audit_op(op: &AccessOp) -> AuditOp {
    match op {
        AccessOp::SetUser { .. } => AuditOp::UserSet,
        AccessOp::RemoveUser(_) => AuditOp::UserRemove,
        AccessOp::SetRole { .. } => AuditOp::RoleSet,
        AccessOp::RemoveRole(_) => AuditOp::RoleRemove,
        AccessOp::AddToken(_) => AuditOp::TokenAdd,
        AccessOp::RemoveToken(_) => AuditOp::TokenRemove,
    }
}

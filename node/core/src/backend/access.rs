//! What the HTTP layer asks of the node about users, roles and tokens.
//!
//! Owns the trait and its implementation by the real [`App`]. Never says whether somebody may do something.

use quorate_machine::query::{Page, StateFault};
use quorate_store::access::Rights;
use quorate_store::types::{InvitationRow, Revision, RoleName, RoleRow, TokenId, TokenRow, UserName, UserRow};

use super::Seen;
use crate::app::App;

/// Users, roles and tokens as the HTTP API sees them. See `StateReader` for what each method promises.
pub trait Access {
    /// The revision at which any of them last changed; cheap. Read it before what it is about.
    fn access_revision(&self) -> Revision;
    /// What a user may do in all; `None` where there is no such user.
    fn rights_of(&self, user: &UserName) -> Result<Option<Rights>, StateFault>;
    /// Reads a user.
    fn user(&self, name: &UserName) -> Seen<Option<UserRow>>;
    /// Reads a role.
    fn role(&self, name: &RoleName) -> Seen<Option<RoleRow>>;
    /// Reads a token, also one whose time is over.
    fn token(&self, id: TokenId) -> Seen<Option<TokenRow>>;
    /// Lists users. May take long: runs on a blocking thread.
    fn users(&self, after: Option<&UserName>, limit: usize) -> Seen<Page<(UserName, UserRow)>>;
    /// Lists roles. May take long: runs on a blocking thread.
    fn roles(&self, after: Option<&RoleName>, limit: usize) -> Seen<Page<(RoleName, RoleRow)>>;
    /// Lists tokens. May take long: runs on a blocking thread.
    fn tokens(&self, after: Option<TokenId>, limit: usize) -> Seen<Page<(TokenId, TokenRow)>>;
    /// Lists invitations of newcomers: there are few.
    fn invitations(&self) -> Seen<Vec<(TokenId, InvitationRow)>>;
}

impl Access for App {
    fn access_revision(&self) -> Revision {
        self.state().access_revision()
    }

    fn rights_of(&self, user: &UserName) -> Result<Option<Rights>, StateFault> {
        self.state().rights_of(user)
    }

    fn user(&self, name: &UserName) -> Seen<Option<UserRow>> {
        self.state().user(name)
    }

    fn role(&self, name: &RoleName) -> Seen<Option<RoleRow>> {
        self.state().role(name)
    }

    fn token(&self, id: TokenId) -> Seen<Option<TokenRow>> {
        self.state().token(id)
    }

    fn users(&self, after: Option<&UserName>, limit: usize) -> Seen<Page<(UserName, UserRow)>> {
        self.state().users(after, limit)
    }

    fn roles(&self, after: Option<&RoleName>, limit: usize) -> Seen<Page<(RoleName, RoleRow)>> {
        self.state().roles(after, limit)
    }

    fn tokens(&self, after: Option<TokenId>, limit: usize) -> Seen<Page<(TokenId, TokenRow)>> {
        self.state().tokens(after, limit)
    }

    fn invitations(&self) -> Seen<Vec<(TokenId, InvitationRow)>> {
        self.state().invitations()
    }
}

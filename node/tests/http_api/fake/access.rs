//! What the fake node says of users, roles and tokens: what it was told to.

use std::collections::BTreeMap;

use quorate_machine::access::Rights;
use quorate_machine::query::{Observed, Page, QuotaRead, QuotaUse, StateFault};
use quorate_machine::types::{
    InvitationRow, PrincipalUse, QuotaBounds, QuotaSubject, Revision, RoleName, RoleRow, TokenId, TokenRow, UserName,
    UserRow,
};
use quorate_node_core::backend::Seen;

use super::{Fake, WALL};

/// What there is.
#[derive(Default)]
pub struct Admitted {
    pub revision: Revision,
    pub users: BTreeMap<UserName, UserRow>,
    pub roles: BTreeMap<RoleName, RoleRow>,
    pub tokens: BTreeMap<TokenId, TokenRow>,
    pub invitations: BTreeMap<TokenId, InvitationRow>,
}

impl Fake {
    /// Says what there is from now on: a change of it.
    pub fn admit(&self, tell: impl FnOnce(&mut Admitted)) {
        self.with(|state| {
            tell(&mut state.admitted);
            state.revision += 1;
            state.admitted.revision = state.revision;
        });
        self.changed.notify_waiters();
    }

    /// Lets it be behind by this change, until it asks how far it is.
    #[allow(dead_code, reason = "for one of the programs that this is part of")]
    pub fn hear_of(&self, news: impl FnOnce(&mut Admitted) + Send + 'static) {
        self.with(|state| state.news = Some(Box::new(news)));
    }

    fn admitted<T>(&self, read: impl FnOnce(&Admitted) -> T) -> Seen<T> {
        Ok(self.with(|state| Observed { at: state.at(), wall: WALL, found: read(&state.admitted) }))
    }
}

impl Fake {
    pub fn access_revision(&self) -> Revision {
        self.with(|state| state.admitted.revision)
    }

    pub fn rights_of(&self, user: &UserName) -> Result<Option<Rights>, StateFault> {
        Ok(self.with(|state| {
            let Admitted { users, roles, .. } = &state.admitted;
            let row = users.get(user)?;
            Some(Rights::new(row.roles.iter().flat_map(|role| roles[role].grants.clone())))
        }))
    }

    pub fn user(&self, name: &UserName) -> Seen<Option<UserRow>> {
        self.admitted(|told| told.users.get(name).cloned())
    }

    pub fn role(&self, name: &RoleName) -> Seen<Option<RoleRow>> {
        self.admitted(|told| told.roles.get(name).cloned())
    }

    pub fn token(&self, id: TokenId) -> Seen<Option<TokenRow>> {
        self.admitted(|told| told.tokens.get(&id).cloned())
    }

    pub fn users(&self, after: Option<&UserName>, limit: usize) -> Seen<Page<(UserName, UserRow)>> {
        self.admitted(|told| page(&told.users, after, limit))
    }

    pub fn roles(&self, after: Option<&RoleName>, limit: usize) -> Seen<Page<(RoleName, RoleRow)>> {
        self.admitted(|told| page(&told.roles, after, limit))
    }

    pub fn tokens(&self, after: Option<TokenId>, limit: usize) -> Seen<Page<(TokenId, TokenRow)>> {
        self.admitted(|told| page(&told.tokens, after.as_ref(), limit))
    }

    pub fn invitations(&self) -> Seen<Vec<(TokenId, InvitationRow)>> {
        self.admitted(|told| told.invitations.clone().into_iter().collect())
    }
}

fn page<N: Ord + Clone, R: Clone>(rows: &BTreeMap<N, R>, after: Option<&N>, limit: usize) -> Page<(N, R)> {
    let behind = rows.iter().filter(|(name, _)| after.is_none_or(|after| *name > after));
    let mut items: Vec<_> = behind.map(|(name, row)| (name.clone(), row.clone())).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    Page { items, more }
}

/// Nobody has a quota of their own, and nothing is used.
impl Fake {
    pub fn quota(&self, subject: &QuotaSubject) -> Seen<Option<QuotaRead>> {
        let usual = || {
            let used = QuotaUse::Principal(PrincipalUse::default());
            QuotaRead { row: None, bounds: QuotaBounds::USUAL, used, is_counting: false }
        };
        let found = match subject {
            QuotaSubject::Prefix(_) => None,
            QuotaSubject::Principal(_) | QuotaSubject::Default => Some(usual()),
        };
        self.admitted(|_| found)
    }

    pub fn principal_quotas(&self, _: Option<&str>, _: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>> {
        self.admitted(|_| Page { items: Vec::new(), more: false })
    }

    pub fn prefix_quotas(&self, _: Option<&[u8]>, _: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>> {
        self.admitted(|_| Page { items: Vec::new(), more: false })
    }
}

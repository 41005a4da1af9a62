//! What requests require of their callers.
//!
//! Owns short forms for it. `quorate_machine::requirements` has the requirements of each kind of command.

use quorate_machine::types::Action;

pub use quorate_machine::access::{Permission, RequiredPermission};
pub use quorate_machine::requirements::{Requirement, Visit};

/// What is wanted: names everything that it requires.
pub type Wanted<'a> = &'a (dyn Fn(&mut Visit<'_>) + Sync + 'a);

/// A right on one name.
pub fn on_name(permission: Permission, name: &[u8]) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| visit(Requirement::Permission(RequiredPermission::Name(permission, name)))
}

/// A right on all names with a prefix.
pub fn on_prefix(permission: Permission, prefix: &[u8]) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| visit(Requirement::Permission(RequiredPermission::Prefix(permission, prefix)))
}

/// A right on a range of names.
pub fn on_range<'a>(
    permission: Permission,
    start: &'a [u8],
    end: Option<&'a [u8]>,
) -> impl Fn(&mut Visit<'_>) + Sync + 'a {
    move |visit| visit(Requirement::Permission(RequiredPermission::Range(permission, start, end)))
}

/// What a command requires.
pub fn on_action(action: &Action) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| action.requirements(visit)
}

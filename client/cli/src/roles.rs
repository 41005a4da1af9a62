//! `quorate role`, and how grants are written on a command line.

use clap::Subcommand;
use quorate_client::api::{Grant, Name, Permission, RoleAnswer};

use crate::fail::Failed;
use crate::{Context, output};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a role, or give one other grants in place of those that it had
    #[command(after_help = "\
A grant is a permission, a colon, and the beginning of the names that it is for; nothing behind the colon is for everything.

Permissions:
  read    reads, searches, watches
  write   changes entries, schedules and works on tasks, takes numbers; reads too
  lock    takes locks, leads, meets at barriers and latches; reads too
  admin   all of these, and rules of collections; `admin:` also members, backups, users, roles and tokens
  backup  `backup:` takes backups, and nothing else
  monitor `monitor:` sees status, metrics and members, and nothing else

Examples:
  quorate role set orders write:orders/ lock:orders/ read:stock/
  quorate role set nightly-backups backup:")]
    Set {
        /// Which role.
        name: String,
        /// What those who have it may do, like write:orders/.
        #[arg(value_parser = grant, required = true)]
        grants: Vec<Grant>,
    },
    /// Delete a role; exit code 3 if there is none, or a user has it
    Delete {
        /// Which role.
        name: String,
    },
    /// List the roles
    List,
    /// Show a role; exit code 3 if there is none
    Show {
        /// Which role.
        name: String,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (access, form) = (context.client.access(), context.shared.output);
    match command {
        Command::Set { name, grants } => {
            let answer = context.with_id(access.set_role(&name, grants)).await?;
            output::done(form, &answer, answer.replayed, format!("set: {}", text(&answer)))
        }
        Command::Delete { name } => {
            let answer = context.with_id(access.remove_role(&name)).await?;
            let facts = format!("deleted: {}  revision {}", answer.role, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
        Command::List => {
            output::pages(form, access.roles(), |page| (&page.roles[..], page.cursor.as_deref()), text).await
        }
        Command::Show { name } => match access.role(&name).await? {
            None => Err(Failed::not_found(format!("there is no role `{name}`"))),
            Some(role) => output::answer(form, &role, || text(&role)),
        },
    }
}

fn text(role: &RoleAnswer) -> String {
    format!("{}  {}", role.role, grants_text(&role.grants))
}

/// Grants as they are written.
pub fn grants_text(grants: &[Grant]) -> String {
    if grants.is_empty() {
        return "may do nothing".to_owned();
    }
    let one = |grant: &Grant| format!("{}:{}", permission_name(grant.permission), grant.prefix);
    grants.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// All that there are.
const PERMISSIONS: [Permission; 6] =
    [Permission::Read, Permission::Write, Permission::Lock, Permission::Admin, Permission::Backup, Permission::Monitor];

/// As it is written.
pub fn permission_name(permission: Permission) -> &'static str {
    match permission {
        Permission::Read => "read",
        Permission::Write => "write",
        Permission::Lock => "lock",
        Permission::Admin => "admin",
        Permission::Backup => "backup",
        Permission::Monitor => "monitor",
    }
}

/// Reverses [`grants_text`] for one of them.
fn grant(text: &str) -> Result<Grant, String> {
    const EXPECTED: &str = "expected PERMISSION:PREFIX, like write:orders/ or read:";
    let (permission, prefix) = text.split_once(':').ok_or(EXPECTED)?;
    let permission = self::permission(permission).map_err(|why| format!("{EXPECTED}; {why}"))?;
    Ok(Grant { permission, prefix: Name::from_shown(prefix) })
}

/// Reverses [`permission_name`].
pub fn permission(name: &str) -> Result<Permission, String> {
    let found = PERMISSIONS.into_iter().find(|known| permission_name(*known) == name);
    found.ok_or_else(|| "the permissions are read, write, lock, admin, backup and monitor".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_written_as_they_are_read() {
        for text in ["write:orders/", "read:", "lock:a:b", "admin:", "backup:", "monitor:"] {
            assert_eq!(grants_text(&[grant(text).expect("a grant")]), text);
        }
        for bad in ["", "write", "writes:a", "Write:a", ":a"] {
            assert!(grant(bad).is_err(), "{bad:?}");
        }
        assert_eq!(grants_text(&[]), "may do nothing");
    }
}

//! `quorate user` and `quorate whoami`.

use clap::Subcommand;
use quorate_client::api::{Name, Permission, UserAnswer};

use crate::fail::{CONDITION, Failed};
use crate::roles::{grants_text, permission, permission_name};
use crate::{Context, output, parse};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a user, or give one other roles in place of those that it had
    #[command(after_help = "Example:
  quorate role set orders write:orders/ read:stock/
  quorate user set app orders
  quorate token create app --expires 90d > app.token")]
    Set {
        /// Which user.
        name: String,
        /// Its roles, which must exist; without any it may do nothing.
        roles: Vec<String>,
    },
    /// Delete a user, and its tokens with it; exit code 3 if there is none
    Delete {
        /// Which user.
        name: String,
    },
    /// List the users
    List,
    /// Show a user; exit code 3 if there is none
    Show {
        /// Which user.
        name: String,
    },
    /// Say whether a user may do something; exit code 3 if not
    #[command(after_help = "\
Nothing is done. About others only those may ask who may administer everything; without --user it is about yourself.

Examples:
  quorate user may write orders/o42
  quorate user may read orders/ --prefix --user app")]
    May {
        /// What: read, write, lock, admin, backup, monitor.
        #[arg(value_parser = permission)]
        permission: Permission,
        /// With which key or other name; empty with --prefix for everything.
        #[arg(value_parser = parse::name)]
        name: Name,
        /// With all that begins with the name.
        #[arg(long)]
        prefix: bool,
        /// Who.
        #[arg(long)]
        user: Option<String>,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (access, form) = (context.client.access(), context.shared.output);
    match command {
        Command::Set { name, roles } => {
            let answer = context.with_id(access.set_user(&name, roles)).await?;
            output::done(form, &answer, answer.replayed, format!("set: {}", text(&answer)))
        }
        Command::Delete { name } => {
            let answer = context.with_id(access.remove_user(&name)).await?;
            let tokens = output::count(answer.tokens, "token");
            let facts = format!("deleted: {}  {tokens} with it, revision {}", answer.user, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
        Command::List => {
            output::pages(form, access.users(), |page| (&page.users[..], page.cursor.as_deref()), text).await
        }
        Command::Show { name } => match access.user(&name).await? {
            None => Err(Failed::not_found(format!("there is no user `{name}`"))),
            Some(user) => output::answer(form, &user, || text(&user)),
        },
        Command::May { permission, name, prefix, user } => {
            let answer = match prefix {
                true => access.may_on_prefix(user.as_deref(), permission, &name).await?,
                false => access.may(user.as_deref(), permission, &name).await?,
            };
            let user = answer.user.as_deref().unwrap_or("anybody");
            let verdict = if answer.allowed { "may" } else { "may not" };
            let what = if prefix { format!("all that begins with `{name}`") } else { format!("`{name}`") };
            output::answer(form, &answer, || format!("{user} {verdict} {} {what}", permission_name(permission)))?;
            if answer.allowed { Ok(()) } else { Err(Failed::Ended(CONDITION)) }
        }
    }
}

/// Says who the caller is.
pub async fn run_whoami(context: &Context) -> Result<(), Failed> {
    let answer = context.client.access().who_am_i().await?;
    output::answer(context.shared.output, &answer, || {
        let user = answer.user.as_deref().unwrap_or("nobody in particular");
        format!("{user}  {}", grants_text(&answer.grants))
    })
}

fn text(user: &UserAnswer) -> String {
    let roles = if user.roles.is_empty() { "no roles".to_owned() } else { format!("roles {}", user.roles.join(" ")) };
    format!("{}  {roles}", user.user)
}

//! `quorate user` and `quorate whoami`.

use clap::Subcommand;
use quorate_client::api::UserAnswer;

use crate::Context;
use crate::fail::Failed;
use crate::form::Form;
use crate::output;
use crate::roles::grants_text;

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
}

/// Runs a command on users.
pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (access, form) = (context.client.access(), context.shared.output);
    match command {
        Command::Set { name, roles } => {
            let answer = context.with_id(access.set_user(&name, roles)).await?;
            output::answer(form, &answer, || output::told(format!("set: {}", text(&answer)), false, answer.replayed))
        }
        Command::Delete { name } => {
            let answer = context.with_id(access.remove_user(&name)).await?;
            output::answer(form, &answer, || {
                let tokens = output::count(answer.tokens, "token");
                let facts = format!("deleted: {}  {tokens} with it, revision {}", answer.user, answer.revision);
                output::told(facts, false, answer.replayed)
            })
        }
        Command::List => list(context).await,
        Command::Show { name } => match access.user(&name).await? {
            None => Err(Failed::condition(format!("there is no user `{name}`"))),
            Some(user) => output::answer(form, &user, || text(&user)),
        },
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

async fn list(context: &Context) -> Result<(), Failed> {
    let pages = context.client.access().users();
    let mut page = pages.page().await?;
    loop {
        match context.shared.output.data() {
            Some(Form::Table) => output::items(Form::Table, &page.users)?,
            Some(form) => output::show(form, &page)?,
            None => page.users.iter().try_for_each(|user| output::line(text(user)))?,
        }
        let Some(cursor) = &page.cursor else { return Ok(()) };
        page = pages.page_after(cursor).await?;
    }
}

fn text(user: &UserAnswer) -> String {
    let roles = if user.roles.is_empty() { "no roles".to_owned() } else { format!("roles {}", user.roles.join(" ")) };
    format!("{}  {roles}", user.user)
}

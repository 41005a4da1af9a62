//! `quorate token`.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::api::TokenView;

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, output, parse};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give a user a token, and print it: this once, the cluster keeps only a hash
    ///
    /// Nothing else is printed, so that it may go into a file. Whoever has it is the user.
    #[command(after_help = "Examples:
  quorate token create app --expires 90d
  (umask 077 && quorate token create app --expires 90d --note 'the shop' > app.token)
  quorate --token-file app.token get orders/1")]
    Create {
        /// Whose it is to be.
        user: String,
        /// After how long it is good for nothing any more; without this, it never ends by itself.
        #[arg(long, value_parser = parse::positive_duration, value_name = "TIME")]
        expires: Option<Duration>,
        /// What it is for, for people.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Delete a token by its id; exit code 3 if there is none
    Delete {
        /// Which token: the 16 digits behind `qt_`, as `list` shows them.
        id: String,
    },
    /// List the tokens, without their secrets
    List {
        /// Only those of this user.
        user: Option<String>,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (access, form) = (context.client.access(), context.shared.output);
    match command {
        Command::Create { user, expires, note } => {
            let create = access.create_token(user);
            let create = create
                .given(expires, |create, life| create.expires_in(life))
                .given(note, |create, note| create.note(note))
                .given(context.request_id(), |create, id| create.request_id(id));
            let answer = create.await?;
            output::answer(form, &answer, || answer.token.0.clone())
        }
        Command::Delete { id } => {
            let answer = context.with_id(access.remove_token(&id)).await?;
            let facts = format!("deleted: {}  revision {}", answer.id, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
        Command::List { user } => list(context, user.as_deref()).await,
    }
}

async fn list(context: &Context, user: Option<&str>) -> Result<(), Failed> {
    let pages = context.client.access().tokens();
    let mut page = pages.page().await?;
    loop {
        page.tokens.retain(|token| user.is_none_or(|user| token.user == user));
        output::page(context.shared.output, &page, &page.tokens, text)?;
        let Some(cursor) = &page.cursor else { return Ok(()) };
        page = pages.page_after(cursor).await?;
    }
}

fn text(token: &TokenView) -> String {
    let TokenView { id, user, note, created, expires, expired } = token;
    let end = match (expires, expired) {
        (None, _) => "never expires".to_owned(),
        (Some(at), false) => format!("expires {at}"),
        (Some(at), true) => format!("expired {at}"),
    };
    let note = if note.is_empty() { String::new() } else { format!("  {note}") };
    format!("{id}  {user}  created {created}  {end}{note}")
}

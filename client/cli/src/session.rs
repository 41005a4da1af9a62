//! `quorate session`: sessions that a script keeps alive itself.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::RequestId;
use quorate_client::api::{LockState, SessionHold, SessionView};

use crate::fail::Failed;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, output, parse};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a session and print its id
    ///
    /// Nothing renews it but `quorate session renew`: when it was not renewed for its time to live it ends, and with it all
    /// that hangs on it, such as entries written with --session.
    #[command(after_help = "Examples:
  quorate session create --ttl 1m --label zone=a
  session=$(quorate session create --ttl 30s --owner web-1)
  quorate put services/web-1 '\"10.0.0.7:8080\"' --session \"$session\"
  while quorate session renew \"$session\"; do sleep 10; done")]
    Create {
        /// How long it lives without a renewal, 100ms to 1d.
        #[arg(long, default_value = "10s", value_parser = parse::positive_duration, value_name = "TIME")]
        ttl: Duration,
        /// Whose it is, for people.
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// What else is to be known of it; may be given several times.
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Let a session live for its time from now; exit code 3 if it has ended
    Renew {
        /// Which session.
        id: String,
    },
    /// Renew a session again and again, until it ends or Ctrl-C is pressed; exit code 3 if it has ended
    KeepAlive {
        /// Which session.
        id: String,
    },
    /// Show a session and what hangs on it; exit code 3 if it has ended
    Show {
        /// Which session.
        id: String,
    },
    /// End a session, with all that hangs on it; exit code 3 if it has ended
    End {
        /// Which session.
        id: String,
    },
    /// List all sessions, the oldest first
    List,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (client, form) = (&context.client, context.shared.output);
    match command {
        Command::Create { ttl, owner, labels } => {
            let session = client.session().ttl(ttl).given(owner, |session, owner| session.owner(owner));
            let session = labels.into_iter().fold(session, |session, (name, value)| session.label(name, value));
            let id = context.request_id().unwrap_or_else(RequestId::random);
            let answer = session.create(id).await?;
            output::answer(form, &answer, || answer.session.clone())
        }
        Command::Renew { id } => {
            let answer = client.session_by_id(id).renew().await?;
            let left = output::millis(answer.expires_in_ms);
            output::answer(form, &answer, || format!("renewed: session {}  ends in {left}", answer.session))
        }
        Command::KeepAlive { id } => tokio::select! {
            ended = keep_alive(context, id) => ended,
            // The way to end it, so no failure.
            pressed = tokio::signal::ctrl_c() => {
                pressed.map_err(|error| Failed::other(format!("Ctrl-C cannot be noticed: {error}")))
            }
        },
        Command::Show { id } => match client.session_by_id(&id).get().await? {
            None => Err(Failed::not_found(format!("there is no session {id}, or not any more"))),
            Some(view) if form != Form::Text => output::show(form, &view),
            Some(view) => show(&view),
        },
        Command::End { id } => {
            let answer = context.with_id(client.session_by_id(id).end()).await?;
            let with = output::count(answer.count, "thing");
            let facts = format!("ended: session {}  with {with}, revision {}", answer.session, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
        Command::List => list(context).await,
    }
}

/// Renews when it is time to. Where no node can be reached it is tried on: the cluster says whether it was too late.
async fn keep_alive(context: &Context, id: String) -> Result<(), Failed> {
    let session = context.client.session_by_id(id);
    let mut answer = session.renew().await?;
    loop {
        let left = output::millis(answer.expires_in_ms);
        output::each(context.shared.output, &answer, || {
            format!("renewed: session {}  ends in {left}", answer.session)
        })?;
        tokio::time::sleep(Duration::from_millis(answer.renew_in_ms)).await;
        answer = loop {
            match session.renew().await {
                Ok(answer) => break answer,
                Err(error) if error.is_retryable() => say!("not renewed: {error}"),
                Err(error) => return Err(error.into()),
            }
        };
    }
}

async fn list(context: &Context) -> Result<(), Failed> {
    let (form, pages) = (context.shared.output, context.client.sessions());
    output::pages(form, pages, |page| (&page.sessions[..], page.cursor.as_deref()), row).await
}

fn row(view: &SessionView) -> String {
    let (ttl, left) = (output::millis(view.ttl_ms), output::millis(view.expires_in_ms));
    let labels = view.labels.iter().map(|(name, value)| format!(", {name}={value}")).collect::<String>();
    format!("{}  lives {ttl}, {left} left{labels}", output::session(&view.session, &view.owner))
}

fn show(view: &SessionView) -> Result<(), Failed> {
    output::line(row(view))?;
    output::line(format!("  created {}, {} ago", view.created, output::millis(view.age_ms)))?;
    let Some(holds) = &view.holds else { return Ok(()) };
    holds.locks.iter().try_for_each(|hold| output::line(held("lock", "holds", "token", hold)))?;
    holds.elections.iter().try_for_each(|hold| output::line(held("election", "leads", "term", hold)))?;
    holds.barriers.iter().try_for_each(|name| output::line(format!("  is in barrier {name}")))?;
    let names = holds.names().map_err(|error| Failed::other(format!("a node sent what is not base64: {error}")))?;
    names.iter().try_for_each(|key| output::line(format!("  entry {key}")))
}

fn held(what: &str, verb: &str, token: &str, hold: &SessionHold) -> String {
    match hold.state {
        LockState::Held => format!("  {verb} {what} {}, {token} {}", hold.name, hold.token.unwrap_or_default()),
        LockState::Waiting => format!("  waits for {what} {}, place {}", hold.name, hold.place.unwrap_or_default()),
    }
}

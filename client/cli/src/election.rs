//! `quorate election`: who leads, and what a leader does. What runs while we lead is `election_run`'s.

use clap::Subcommand;
use quorate_client::Leads;
use quorate_client::api::{ElectionAnswer, ElectionSummary, LeaderEvent};

use crate::fail::Failed;
use crate::form::Form;
use crate::parse::{self, Meaning};
use crate::pretty::compact;
use crate::{Context, election_run, output};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while this process leads
    Run(election_run::Args),
    /// List the elections in which somebody leads or stands
    List,
    /// Show who leads and who stands; exit code 3 if nobody leads
    Show {
        /// Which election.
        name: String,
        /// Print only what the leader says of itself.
        #[arg(long)]
        raw: bool,
    },
    /// Show who leads, and each change of it as it happens; ends with Ctrl-C
    ///
    /// Goes on at another node where it has to; no change is left out.
    Observe {
        /// Which election.
        name: String,
        /// End after so many lines.
        #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
    },
    /// Let the leader of a term say something else of itself; exit code 3 if it does not lead
    Proclaim {
        /// Which election.
        name: String,
        /// JSON, `-` or @PATH.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// The term of the leader.
        #[arg(long, env = crate::guarded::TERM_ENV, value_name = "TERM")]
        term: u64,
        /// Take VALUE as text.
        #[arg(long)]
        string: bool,
    },
    /// Take leadership from the leader of a term, or a session out of an election
    ///
    /// The leader is not told, but its guarded writes are refused from now on. Exit code 3 if it does not lead.
    Resign {
        /// Which election.
        name: String,
        /// The term of the leader.
        #[arg(long, value_name = "TERM", required_unless_present = "session")]
        term: Option<u64>,
        /// Whatever this session has there.
        #[arg(long, value_name = "ID", conflicts_with = "term")]
        session: Option<String>,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (client, form) = (&context.client, context.shared.output);
    match command {
        Command::Run(args) => election_run::run(context, args).await,
        Command::List => list(context).await,
        Command::Show { name, raw } => {
            let answer = client.election(name).get().await?;
            show(&answer, form, raw)
        }
        Command::Observe { name, count } => tokio::select! {
            ended = observe(context, &name, count) => ended,
            // The way to end it, so no failure.
            pressed = tokio::signal::ctrl_c() => {
                pressed.map_err(|error| Failed::other(format!("Ctrl-C cannot be noticed: {error}")))
            }
        },
        Command::Proclaim { name, value, term, string } => {
            let value = parse::value(&value, Meaning { string, bytes: false })?;
            let answer = context.with_id(client.election(name).proclaim(term, value)).await?;
            let facts = format!("proclaimed: {}  term {}, revision {}", answer.election, term, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
        Command::Resign { name, term, session } => {
            let election = client.election(name);
            let resign = match (term, session) {
                (Some(term), _) => election.resign(term),
                (None, session) => election.resign_session(&session.expect("clap demands one of the two")),
            };
            let answer = context.with_id(resign).await?;
            if !answer.resigned {
                let detail = format!("the session has nothing to do with the election `{}`", answer.election);
                return Err(Failed::not_found(detail));
            }
            let facts = format!("resigned: {}  revision {}", answer.election, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
    }
}

async fn observe(context: &Context, name: &str, count: Option<u64>) -> Result<(), Failed> {
    let mut observation = context.client.election(name).observe().await?;
    for _ in 0..count.unwrap_or(u64::MAX) {
        match (observation.next().await?, context.shared.output.data()) {
            (Leads::Leader(event), Some(form)) => output::item(form, &event)?,
            (Leads::Nobody(event), Some(form)) => output::item(form, &event)?,
            (Leads::Leader(event), None) => output::line(led(&event))?,
            (Leads::Nobody(event), None) => {
                output::line(format!("{name}: nobody leads  revision {}", event.revision))?;
            }
        }
    }
    Ok(())
}

fn led(event: &LeaderEvent) -> String {
    let who = output::session(&event.session, &event.owner);
    let says = event.value.as_ref().map(|value| format!("  {}", compact(value.0.get()))).unwrap_or_default();
    format!("{}: led by {who}  term {}{says}", event.election, event.term)
}

async fn list(context: &Context) -> Result<(), Failed> {
    let (form, pages) = (context.shared.output, context.client.elections());
    let text = |election: &ElectionSummary| {
        let leader = if election.has_leader { "a leader" } else { "no leader" };
        format!("{}  {leader}, {} standing", election.election, election.candidate_count)
    };
    output::pages(form, pages, |page| (&page.elections[..], page.cursor.as_deref()), text).await
}

fn show(answer: &ElectionAnswer, form: Form, raw: bool) -> Result<(), Failed> {
    let value = answer.leader.as_ref().map(|leader| leader.value.as_ref().map_or("null", |value| value.0.get()));
    match (form, value) {
        (form, _) if !raw && form != Form::Text => output::show(form, answer)?,
        (_, Some(value)) if raw => output::line(value)?,
        _ => in_words(answer)?,
    }
    match &answer.leader {
        Some(_) => Ok(()),
        None => Err(Failed::not_found(format!("nobody leads in `{}`", answer.election))),
    }
}

fn in_words(answer: &ElectionAnswer) -> Result<(), Failed> {
    if let Some(leader) = &answer.leader {
        let (who, since) = (output::session(&leader.session, &leader.owner), output::millis(leader.age_ms));
        let says = leader.value.as_ref().map(|value| format!("  {}", compact(value.0.get()))).unwrap_or_default();
        output::line(format!("{}: led by {who}  term {}, for {since}{says}", answer.election, leader.term))?;
    }
    for candidate in &answer.candidates {
        let (who, since) = (output::session(&candidate.session, &candidate.owner), output::millis(candidate.age_ms));
        output::line(format!("  next is {who}  place {}, stands for {since}", candidate.place))?;
    }
    Ok(())
}

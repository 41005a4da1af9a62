//! `quorate lock`: who holds what, and taking it away. What runs while a lock is held is `lock_run`'s.

use clap::{ArgMatches, FromArgMatches, Subcommand};
use quorate_client::api::{LockAnswer, LockMode, LockSummary};

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, lock_run, output};

/// What to do: `lock NAME -- CMD` is short for `lock run NAME -- CMD`, which a lock with the name of a command needs.
#[derive(Debug)]
pub enum Args {
    /// A command on locks.
    On(Command),
    /// What to run under one.
    Run(lock_run::Args),
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        Command::augment_subcommands(lock_run::Args::augment_args(command))
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .arg_required_else_help(true)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => Command::from_arg_matches(matches).map(Self::On),
            None => lock_run::Args::from_arg_matches(matches).map(Self::Run),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while a lock is held
    Run(lock_run::Args),
    /// List the locks that somebody holds or waits for
    List,
    /// Show who holds a lock and who waits for it
    Show {
        /// Which lock.
        name: String,
    },
    /// Tell whether a token holds a lock; exit code 3 if it does not
    Check {
        /// Which lock.
        name: String,
        /// The fencing token.
        token: u64,
    },
    /// Take a lock from its holder, or a session's place from the queue
    ///
    /// The holder is not told, but its guarded writes are refused from now on. Exit code 3 if the token does not hold it.
    #[command(after_help = "Example:
  quorate lock show nightly
  quorate lock release nightly --token 17")]
    Release {
        /// Which lock.
        name: String,
        /// What this token holds.
        #[arg(long, value_name = "TOKEN", required_unless_present = "session")]
        token: Option<u64>,
        /// Whatever this session has there.
        #[arg(long, value_name = "ID", conflicts_with = "token")]
        session: Option<String>,
    },
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    match args {
        Args::On(command) => perform(context, command).await,
        Args::Run(args) => lock_run::run(context, args).await,
    }
}

async fn perform(context: &Context, command: Command) -> Result<(), Failed> {
    let (client, form) = (&context.client, context.shared.output);
    match command {
        Command::Run(args) => lock_run::run(context, args).await,
        Command::List => list(context).await,
        Command::Show { name } => {
            let lock = client.lock(name).get().await?;
            if form != Form::Text { output::show(form, &lock) } else { show(&lock) }
        }
        Command::Check { name, token } => {
            let answer = client.lock(name).check(token).await?;
            output::answer(form, &answer, || {
                format!("held: {}  token {}, session {}, {}", answer.lock, token, answer.session, mode(answer.mode))
            })
        }
        Command::Release { name, token, session } => {
            let lock = client.lock(name);
            let release = match (token, session) {
                (Some(token), _) => lock.release(token),
                (None, session) => lock.release_session(&session.expect("clap demands one of the two")),
            };
            let answer = context.with_id(release).await?;
            if !answer.released {
                return Err(Failed::not_found(format!(
                    "the session has nothing to do with the lock `{}`",
                    answer.lock
                )));
            }
            let facts = format!("released: {}  revision {}", answer.lock, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
    }
}

async fn list(context: &Context) -> Result<(), Failed> {
    let (form, pages) = (context.shared.output, context.client.locks());
    let text = |lock: &LockSummary| {
        let slots = output::count(lock.slots.into(), "slot");
        let holders = output::count(lock.holder_count, "holder");
        format!("{}  {slots}, {holders}, {} waiting", lock.lock, lock.waiter_count)
    };
    output::pages(form, pages, |page| (&page.locks[..], page.cursor.as_deref()), text).await
}

fn mode(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "exclusive",
        LockMode::Shared => "shared",
    }
}

fn show(lock: &LockAnswer) -> Result<(), Failed> {
    let slots = output::count(lock.slots.into(), "slot");
    let holders = output::count(lock.holder_count, "holder");
    let held = match lock.delay_left_ms {
        0 => String::new(),
        left => format!(", nobody gets it for {}", output::millis(left)),
    };
    output::line(format!("{}  {slots}, {holders}, {} waiting{held}", lock.lock, lock.waiter_count))?;
    for holder in &lock.holders {
        let (who, since) = (output::session(&holder.session, &holder.owner), output::millis(holder.age_ms));
        output::line(format!("  held by {who}  token {}, {}, for {since}", holder.token, mode(holder.mode)))?;
    }
    for waiter in &lock.queue {
        let (who, since) = (output::session(&waiter.session, &waiter.owner), output::millis(waiter.age_ms));
        output::line(format!("  next is {who}  place {}, {}, waits for {since}", waiter.place, mode(waiter.mode)))?;
    }
    Ok(())
}

//! `quorate lock`: who holds what, and taking it away. What runs while a lock is held is `lock_run`'s.

use clap::Subcommand;
use quorate_client::api::{LockAnswer, LockMode};

use crate::Context;
use crate::fail::Failed;
use crate::form::Form;
use crate::lock_run;
use crate::output;

/// A command on locks, or what to run under one: `lock NAME -- CMD` is short for `lock run NAME -- CMD`, which a lock with the name of
/// a command needs.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Option<lock_run::Args>,
}

#[derive(Debug, Subcommand)]
enum Command {
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

/// Runs a command on locks.
pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    match (args.command, args.run) {
        (Some(command), _) => perform(context, command).await,
        (None, Some(args)) => lock_run::run(context, args).await,
        (None, None) => Err(Failed::usage("which lock, and what to do: `quorate lock NAME -- CMD`")),
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
                return Err(Failed::condition(format!(
                    "the session has nothing to do with the lock `{}`",
                    answer.lock
                )));
            }
            output::answer(form, &answer, || {
                let facts = format!("released: {}  revision {}", answer.lock, answer.revision);
                output::told(facts, false, answer.replayed)
            })
        }
    }
}

async fn list(context: &Context) -> Result<(), Failed> {
    let pages = context.client.locks();
    let mut page = pages.page().await?;
    loop {
        for lock in &page.locks {
            output::each(context.shared.output, lock, || {
                let slots = output::count(lock.slots.into(), "slot");
                let holders = output::count(lock.holder_count, "holder");
                format!("{}  {slots}, {holders}, {} waiting", lock.lock, lock.waiter_count)
            })?;
        }
        let Some(cursor) = page.cursor else { return Ok(()) };
        page = pages.page_after(&cursor).await?;
    }
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

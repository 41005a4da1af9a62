//! Completion of names that only the cluster knows: keys, locks, queues and so on.
//!
//! Owns which argument is which kind of name. Asks the cluster of the connection that was said before, else that of the environment or of the
//! current context, and not for long: without an answer there is nothing to complete.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::ValueHint;
use clap::{Command, Parser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use quorate_client::api::Name;
use quorate_client::{Client, Error};

use crate::connection::{Connection, Flags};
use crate::contexts;

/// Who types does not wait for longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// More than these nobody reads.
const SHOWN_MAX: u32 = 200;

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Key,
    Lock,
    Election,
    Session,
    Queue,
    Collection,
    User,
    Role,
    Context,
    File,
}

/// The kind of an argument of a command in a group of commands.
fn kind(group: &str, argument: &str) -> Option<Kind> {
    Some(match (group, argument) {
        ("context", "name") | (_, "context") => Kind::Context,
        ("lock", "name") | (_, "guard_lock") => Kind::Lock,
        ("election", "name") | (_, "guard_election") => Kind::Election,
        ("session", "id") | (_, "session") => Kind::Session,
        ("task", "queue") => Kind::Queue,
        ("collection", "name") => Kind::Collection,
        ("user", "name") | ("token" | "quota", "user") => Kind::User,
        ("role", "name") | ("user", "roles") => Kind::Role,
        (_, "key" | "prefix") => Kind::Key,
        (_, "file" | "ca" | "cert" | "tls_key" | "token_file" | "http_token_file" | "resume") => Kind::File,
        _ => return None,
    })
}

/// The commands, with what completes their arguments. `given`: flags of a connection that were said before, as they are typed.
pub fn with_completions(command: Command, given: &[OsString]) -> Command {
    walk(command, "", &given.into())
}

fn walk(command: Command, group: &str, given: &Arc<[OsString]>) -> Command {
    // All of them, since one that is changed alone would move behind the others.
    let command = command.mut_args(|argument| match kind(group, argument.get_id().as_str()) {
        Some(Kind::File) => argument.value_hint(ValueHint::FilePath),
        Some(kind) => {
            let given = given.clone();
            argument.add(ArgValueCompleter::new(move |begun: &OsStr| names(&given, kind, &begun.to_string_lossy())))
        }
        None => argument,
    });
    command.mut_subcommands(|below| {
        let name = below.get_name().to_owned();
        walk(below, if group.is_empty() { &name } else { group }, given)
    })
}

fn names(given: &[OsString], kind: Kind, begun: &str) -> Vec<CompletionCandidate> {
    let found = match kind {
        Kind::Context => contexts::load().map(|contexts| contexts.all.into_keys().collect()).unwrap_or_default(),
        kind => of_cluster(given, kind, begun).unwrap_or_default(),
    };
    let fitting = found.into_iter().filter(|name| name.starts_with(begun)).take(SHOWN_MAX as usize);
    fitting.map(CompletionCandidate::new).collect()
}

/// `None` where nobody answers.
fn of_cluster(given: &[OsString], kind: Kind, begun: &str) -> Option<Vec<String>> {
    #[derive(Parser)]
    struct Nothing {
        #[command(flatten)]
        flags: Flags,
    }
    let words = [OsString::from("quorate")].into_iter().chain(given.iter().cloned());
    let flags = Nothing::try_parse_from(words).ok()?.flags;
    let client = Connection::new(&flags).ok()?.client().timeout(PATIENCE).build().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(&client, kind, begun)).await });
    asked.ok()?.ok()
}

async fn ask(client: &Client, kind: Kind, begun: &str) -> Result<Vec<String>, Error> {
    let all = |names: Vec<String>| Ok(names);
    match kind {
        Kind::Key => {
            let page = client.list(Name::from_shown(begun)).keys_only().limit(SHOWN_MAX).local().page().await?;
            all(page.entries.into_iter().map(|entry| entry.key.to_string()).collect())
        }
        Kind::Lock => all(client.locks().page().await?.locks.into_iter().map(|lock| lock.lock).collect()),
        Kind::Election => {
            all(client.elections().page().await?.elections.into_iter().map(|election| election.election).collect())
        }
        Kind::Session => {
            all(client.sessions().page().await?.sessions.into_iter().map(|session| session.session).collect())
        }
        Kind::Queue => all(client.task_queues(None).await?.queues.into_iter().map(|queue| queue.queue).collect()),
        Kind::Collection => all(client.collections().await?.collections.into_iter().map(|one| one.name).collect()),
        Kind::User => all(client.access().users().page().await?.users.into_iter().map(|user| user.user).collect()),
        Kind::Role => all(client.access().roles().page().await?.roles.into_iter().map(|role| role.role).collect()),
        Kind::Context | Kind::File => all(Vec::new()),
    }
}

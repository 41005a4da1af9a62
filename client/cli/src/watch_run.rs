//! The command that `quorate watch` runs for each event.
//!
//! Owns what it is told. When it is run is `watch`'s.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use quorate_client::api::{WatchEvent, WatchEventKind};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::Context;
use crate::fail::Failed;
use crate::work::{NotStarted, Work};

/// How long a command may take to end itself when the watch ends.
const GRACE: Duration = Duration::from_secs(5);

/// What happened, in a word.
pub fn verb(event: &WatchEvent) -> &'static str {
    match (event.kind, event.initial) {
        (_, true) => "has",
        (WatchEventKind::Put, false) => "put",
        (WatchEventKind::Delete, false) => "delete",
    }
}

/// Runs it. When this is dropped, as by Ctrl-C, the command and all that it started are ended.
pub async fn run(context: &Context, command: &[OsString], event: &WatchEvent, keep_going: bool) -> Result<(), Failed> {
    let (program, arguments) = command.split_first().expect("there is a command");
    let name = program.display();
    let mut line =
        serde_json::to_vec(event).map_err(|error| Failed::other(format!("an event has no JSON: {error}")))?;
    line.push(b'\n');
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    context.connection.hand_on(command.as_std_mut());
    let cas = event.entry.as_ref().and_then(|entry| entry.cas).map(|cas| cas.to_string()).unwrap_or_default();
    command
        .env("QUORATE_EVENT", verb(event))
        .env("QUORATE_EVENT_KEY", event.key.to_string())
        .env("QUORATE_EVENT_CAS", cas);
    command.env("QUORATE_EVENT_REVISION", event.revision.to_string());
    let mut work = Work::start(command, GRACE, false, None).map_err(|not_started| match not_started {
        NotStarted::Guardian(error) => Failed::other(format!("cannot guard the command: {error}")),
        NotStarted::Command(error) => Failed::other(format!("cannot run `{name}`: {error}")),
    })?;
    let stdin = work.stdin();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // One that does not read it is judged by its exit code.
            let _unread = stdin.write_all(&line).await;
        }
        // Closed by now, so that it reads to the end.
        std::future::pending::<()>().await;
    };
    let status = tokio::select! {
        status = work.wait() => status,
        () = feed => unreachable!("it never ends"),
    };
    let status = status.map_err(|error| Failed::other(format!("cannot wait for `{name}`: {error}")))?;
    work.has_ended();
    if status.success() {
        return Ok(());
    }
    let told = format!("`{name}` failed for `{}` at revision {}: {status}", event.key, event.revision);
    if keep_going {
        say!("{told}");
        return Ok(());
    }
    Err(match status.code() {
        Some(code) => Failed::exit(u8::try_from(code & 0xff).expect("it has eight bits"), told),
        None => Failed::other(told),
    })
}

//! `quorate update KEY -- CMD`: read, change by a command, write on the cas that was read; again while somebody else was faster.
//!
//! Owns the loop and its bound.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use quorate_client::api::Name;
use quorate_client::{Error, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::fail::Failed;
use crate::fence::Fence;
use crate::parse::{self, Meaning};
use crate::{Context, rewrite};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
CMD gets the value on its standard input (nothing where there is no entry, which is then created) and prints the new one. Where it \
fails nothing is written, and its exit code is ours. Where the entry changed meanwhile CMD is run again on what is there now, so it \
should do nothing else; after --tries that is exit code 3. Session and time to live stay.

Examples:
  quorate update stock/apples -- jq -c '.left -= 1'
  quorate update visits --tries 100 -- sh -c 'read n; echo $((n + 1))'")]
pub struct Args {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    #[command(flatten)]
    meaning: Meaning,
    /// At most so often.
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tries: u32,
    #[command(flatten)]
    fence: Fence,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Longest pause before a further try.
const PAUSE_MAX: Duration = Duration::from_millis(50);

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let mut read = context.client.get(&args.key).await?;
    for tried in 1..=args.tries {
        let before = rewrite::bytes(read.as_ref())?;
        let after = changed(context, &args, &before).await?;
        if read.is_some() && after == before {
            return rewrite::tell_unchanged(context, &args.key);
        }
        let value = value(after, args.meaning)?;
        let write = rewrite::on(context, &args.key, read.as_ref(), value, &args.fence)?;
        read = match write.await {
            Ok(answer) => return rewrite::tell(context, &answer),
            Err(Error::Rejected(problem)) if tried == args.tries => {
                let detail = format!("somebody else was faster {tried} times; last: {}", problem.detail);
                return rewrite::current(context, &args.key, Error::Rejected(problem))
                    .await
                    .and(Err(Failed::condition(detail)));
            }
            Err(error) => rewrite::current(context, &args.key, error).await?,
        };
        tokio::time::sleep(PAUSE_MAX.mul_f64(f64::from(tried.min(16)) / 16.0 * rand::random::<f64>())).await;
    }
    unreachable!("clap demands one try, and the last one returns")
}

fn value(mut printed: Vec<u8>, meaning: Meaning) -> Result<Value, Failed> {
    if meaning.bytes {
        return Ok(Value::bytes(printed));
    }
    if printed.ends_with(b"\n") {
        printed.pop();
    }
    if printed.trim_ascii().is_empty() {
        return Err(Failed::usage("the command printed nothing; nothing was written"));
    }
    let text =
        String::from_utf8(printed).map_err(|_| Failed::usage("the command printed no UTF-8; --bytes takes it"))?;
    parse::text_value(&text, meaning, "what the command printed")
}

/// Runs the command on a value.
async fn changed(context: &Context, args: &Args, before: &[u8]) -> Result<Vec<u8>, Failed> {
    let (program, arguments) = args.command.split_first().expect("clap demands a command");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    context.connection.hand_on(command.as_std_mut());
    let cannot = |error: std::io::Error| Failed::other(format!("cannot run `{}`: {error}", program.display()));
    let mut child = command.spawn().map_err(cannot)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let feed = async {
        let Some(mut stdin) = stdin else { return };
        // One that does not read it all is judged by its exit code.
        let _unread = stdin.write_all(before).await;
    };
    let mut printed = Vec::new();
    let read = async {
        match stdout {
            Some(mut stdout) => stdout.read_to_end(&mut printed).await.map(drop),
            None => Ok(()),
        }
    };
    let (_, read) = tokio::join!(feed, read);
    read.map_err(cannot)?;
    let status = child.wait().await.map_err(cannot)?;
    match status.code() {
        Some(0) => Ok(printed),
        Some(code) => {
            let code = u8::try_from(code & 0xff).expect("it has eight bits");
            Err(Failed::exit(code, format!("the command ended with exit code {code}; nothing was written")))
        }
        None => Err(Failed::other(format!("the command ended with {status}; nothing was written"))),
    }
}

//! `quorate latch`.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::api::LatchAnswer;

use crate::fail::Failed;
use crate::{Context, output, parse, waiting};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a latch that opens after so many counts; the same again changes nothing
    #[command(after_help = "Example:
  quorate latch create migrated 3
  ./migrate.sh && quorate latch count-down migrated      # three times, somewhere
  quorate latch wait migrated && ./start.sh")]
    Create {
        /// Which latch.
        name: String,
        /// After how many counts it opens.
        #[arg(default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        count: u64,
    },
    /// Count a latch down; exit code 3 if there is none
    CountDown {
        /// Which latch.
        name: String,
        /// By how much; more than is left is as good as what is left.
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        by: u64,
    },
    /// Wait until a latch is open; exit code 3 if it is not in time, or there is none
    Wait {
        /// Which latch.
        name: String,
        /// How long to wait; without this, for ever.
        #[arg(long, value_parser = parse::duration, value_name = "TIME")]
        wait: Option<Duration>,
    },
    /// Show a latch; exit code 3 if there is none
    Show {
        /// Which latch.
        name: String,
    },
    /// Delete a latch; exit code 3 if there is none
    Delete {
        /// Which latch.
        name: String,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (client, form) = (&context.client, context.shared.output);
    match command {
        Command::Create { name, count } => {
            let answer = context.with_id(client.latch(name).create(count)).await?;
            output::done(form, &answer, answer.replayed, text("made", &answer))
        }
        Command::CountDown { name, by } => {
            let answer = context.with_id(client.latch(name).count_down(by)).await?;
            output::done(form, &answer, answer.replayed, text("counted", &answer))
        }
        Command::Wait { name, wait } => {
            let latch = client.latch(&name);
            let answer = waiting::for_latch(context, &name, latch.wait(wait.unwrap_or(Duration::MAX))).await?;
            if !answer.open {
                return Err(Failed::condition(text("not open in time", &answer)));
            }
            output::answer(form, &answer, || text("open", &answer))
        }
        Command::Show { name } => {
            let answer = client.latch(name).get().await?;
            output::answer(form, &answer, || text(if answer.open { "open" } else { "closed" }, &answer))
        }
        Command::Delete { name } => {
            let answer = context.with_id(client.latch(name).remove()).await?;
            let facts = format!("deleted: {}  revision {}", answer.latch, answer.revision);
            output::done(form, &answer, answer.replayed, facts)
        }
    }
}

fn text(verb: &str, answer: &LatchAnswer) -> String {
    format!("{verb}: {}  {} of {} left", answer.latch, answer.left, answer.count)
}

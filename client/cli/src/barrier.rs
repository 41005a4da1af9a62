//! `quorate barrier`.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::api::{BarrierAnswer, BarrierState};

use crate::fail::Failed;
use crate::refined::Refined;
use crate::signals::Signals;
use crate::{Context, guarded, output, parse, waiting};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait until so many are at the barrier, this command included; exit code 3 if not all came in time
    ///
    /// All that wait go on together; who comes before all of them have gone on is refused, who comes after
    /// that waits for a new round.
    #[command(after_help = "Examples, on three machines:
  quorate barrier wait loaded 3 --wait 5m
  ./load.sh && quorate barrier wait loaded 3 && ./start.sh")]
    Wait {
        /// Which barrier.
        name: String,
        /// How many there must be; all say the same number.
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
        parties: u32,
        /// How long to wait for the others; without this, for ever.
        #[arg(long, value_parser = parse::duration, value_name = "TIME")]
        wait: Option<Duration>,
        /// How long we count as there, at most, once we have died.
        #[arg(long, default_value = "10s", value_parser = parse::positive_duration, value_name = "TIME")]
        ttl: Duration,
    },
    /// Show how many are at a barrier
    Show {
        /// Which barrier.
        name: String,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let (name, parties, wait, ttl) = match command {
        Command::Wait { name, parties, wait, ttl } => (name, parties, wait, ttl),
        Command::Show { name } => {
            let answer = context.client.barrier(&name).await?;
            return output::answer(context.shared.output, &answer, || text(&answer));
        }
    };
    let mut signals = Signals::take()?;
    let session = context.client.session().ttl(ttl).await?;
    let barrier = session.barrier(&name, parties);
    let barrier = barrier.given(wait, |barrier, wait| barrier.wait(wait));
    let entered = tokio::select! {
        entered = waiting::at_barrier(context, &name, parties, barrier.enter()) => entered.map_err(Failed::from),
        number = signals.next() => Err(Signals::ended_by(number)),
    };
    // Who has gone on is not awaited.
    guarded::end_session(&session).await;
    let answer = entered?;
    if answer.state != BarrierState::Open {
        return Err(Failed::condition(format!("{} of {parties} came in time", answer.entered)));
    }
    output::answer(context.shared.output, &answer, || text(&answer))
}

fn text(answer: &BarrierAnswer) -> String {
    let of = answer.parties.map(|parties| format!(" of {parties}")).unwrap_or_default();
    let state = match answer.state {
        BarrierState::Waiting => "waiting",
        BarrierState::Open => "open",
        BarrierState::Empty => "empty",
    };
    format!("{state}: {}  {}{of} there", answer.barrier, answer.entered)
}

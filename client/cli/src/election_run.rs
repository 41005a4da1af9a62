//! `quorate elect`: runs a command while this process leads.

use std::time::{Duration, Instant};

use quorate_client::{Leadership, Session};

use crate::fail::Failed;
use crate::guarded::{self, ELECTION_ENV, Guarded, Stop, TERM_ENV};
use crate::parse::{self, Meaning};
use crate::refined::Refined;
use crate::signals::Signals;
use crate::{Context, waiting};

/// With --forever: rest after a round that was shorter than this, so that a command that fails at once does not spin.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Stands for the election, and runs CMD once it leads. CMD finds the name of the election in QUORATE_ELECTION, the term in \
QUORATE_TERM and the session in QUORATE_SESSION; `quorate put --guarded` writes only while we lead. Signals, the loss of the \
leadership and exit codes are as with `quorate lock`. At a terminal Ctrl-C is for CMD; where it ends by that, --forever ends too.

Examples:
  quorate elect scheduler --value '\"10.0.0.7:8080\"' --forever -- ./scheduler
  quorate election run scheduler -- ./scheduler    # the long form
  quorate election show scheduler        # who leads, who stands")]
pub struct Args {
    /// Which election.
    name: String,
    /// What we say of ourselves once we lead: JSON, `-` or @PATH.
    #[arg(long, value_name = "VALUE")]
    value: Option<String>,
    #[command(flatten)]
    meaning: Text,
    /// Stand again when CMD has ended or the leadership was lost; ends only by a signal.
    #[arg(long, conflicts_with = "wait")]
    forever: bool,
    #[command(flatten)]
    guarded: Guarded,
}

/// How `--value` is meant.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Text {
    /// Take the value as text.
    #[arg(long, requires = "value")]
    string: bool,
}

/// How a round ended.
enum End {
    /// By itself.
    Code(u8),
    /// By a signal that we got, so that there is no further round.
    Signal(Failed),
    /// The leadership was lost, or no node could be reached.
    Lost(Failed),
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let mut signals = Signals::take()?;
    loop {
        let started = Instant::now();
        let end = round(context, &args, &mut signals).await?;
        match end {
            End::Signal(failed) => return Err(failed),
            End::Lost(failed) if args.forever && !signals.was_told_to_end() => say!("{failed}; standing again"),
            End::Lost(failed) => return Err(failed),
            End::Code(_) if args.forever && !signals.was_told_to_end() => {}
            End::Code(0) => return Ok(()),
            End::Code(code) => return Err(Failed::Ended(code)),
        }
        let rest = REST.saturating_sub(started.elapsed());
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            number = signals.next() => return Err(Signals::ended_by(number)),
        }
    }
}

/// Stands, and leads once.
async fn round(context: &Context, args: &Args, signals: &mut Signals) -> Result<End, Failed> {
    let session = match args.guarded.session(context).await {
        Ok(session) => session,
        Err(failed) if failed.may_pass() => return Ok(End::Lost(failed)),
        Err(failed) => return Err(failed),
    };
    let end = lead(context, args, &session, signals).await;
    guarded::end_session(&session).await;
    end
}

async fn lead(context: &Context, args: &Args, session: &Session, signals: &mut Signals) -> Result<End, Failed> {
    let elected = tokio::select! {
        elected = waiting::for_leadership(context, &args.name, session.id(), campaign(args, session)) => elected,
        number = signals.next() => return Ok(End::Signal(Signals::ended_by(number))),
    };
    let leadership = match elected {
        Ok(leadership) => leadership,
        Err(failed) if failed.may_pass() => return Ok(End::Lost(failed)),
        Err(failed) => return Err(failed),
    };
    let term = leadership.guard().token.to_string();
    let names = [(ELECTION_ENV, args.name.clone()), (TERM_ENV, term)];
    match args.guarded.run(context, session, names, signals).await {
        Ok(code) => Ok(End::Code(code)),
        Err(Stop::Lost(loss)) => Ok(End::Lost(Failed::stopped(format!(
            "the leadership in `{}` was lost: {loss}; the command was ended",
            args.name
        )))),
        Err(Stop::Failed(failed)) => Err(failed),
    }
}

async fn campaign(args: &Args, session: &Session) -> Result<Leadership, Failed> {
    let meaning = Meaning { string: args.meaning.string, bytes: false };
    let value = args.value.as_ref().map(|value| parse::value(value, meaning)).transpose()?;
    let campaign = session.elect(&args.name).delay(args.guarded.delay());
    let campaign = campaign
        .given(value, |campaign, value| campaign.value(value))
        .given(args.guarded.wait, |campaign, wait| campaign.wait(wait));
    Ok(campaign.campaign().await?)
}

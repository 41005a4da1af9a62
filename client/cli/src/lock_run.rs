//! `quorate lock`: runs a command while a lock is held.

use quorate_client::{Lock, LockGuard, Session};

use crate::fail::Failed;
use crate::guarded::{self, FENCING_TOKEN_ENV, Guarded, LOCK_ENV, Stop};
use crate::refined::Refined;
use crate::signals::Signals;
use crate::{Context, waiting};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The lock hangs on a session of this process, which it renews while CMD runs, and ends afterwards. CMD finds the name of the lock in \
QUORATE_LOCK, the fencing token in QUORATE_FENCING_TOKEN and the session in QUORATE_SESSION; `quorate` in it reaches the same \
cluster as the same user. Whoever gets the lock later has a greater token; \
`quorate put --guarded` writes only while this one holds. Signals are passed on. When the lock is lost, because no node could be \
reached for too long or `quorate` itself is stopped, CMD gets TERM, and KILL after --grace; nobody else gets the lock before that (--delay). A lock that somebody takes away with `quorate lock release` is not \
noticed, but guarded writes are refused.

Exit codes: that of CMD, and 128 + N if signal N ended it; 3 if the lock was not got in time; 1 if it was lost, and for other errors; \
127 if there is no CMD, 126 if it cannot be run.

Examples:
  quorate lock nightly -- ./report.sh
  quorate lock nightly --wait 0s -- ./report.sh       # exit code 3 if it runs already
  quorate lock encoder --slots 4 -- ffmpeg …          # at most four at once
  quorate lock deploy --max-waiters 1 -- ./deploy.sh  # exit code 3 if another waits already
  quorate lock ledger -- sh -c 'quorate put ledger/closed true --guarded'
  quorate lock run list -- ./report.sh              # a lock with the name of a command
  quorate lock show nightly                         # who holds it, who waits")]
pub struct Args {
    /// Which lock.
    name: String,
    /// Beside others that share; those that do not, exclude all of these.
    #[arg(long, conflicts_with = "slots")]
    shared: bool,
    /// How many may hold it at once; all must say the same number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slots: Option<u32>,
    /// Wait only as one of so many, 1 as the next; exit code 3 if so many wait already.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_waiters: Option<u32>,
    #[command(flatten)]
    guarded: Guarded,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let mut signals = Signals::take()?;
    let session = args.guarded.session(context).await?;
    let done = hold(context, &args, &session, &mut signals).await;
    guarded::end_session(&session).await;
    match done? {
        0 => Ok(()),
        code => Err(Failed::Ended(code)),
    }
}

async fn hold(context: &Context, args: &Args, session: &Session, signals: &mut Signals) -> Result<u8, Failed> {
    let guard = tokio::select! {
        guard = waiting::for_lock(context, &args.name, session.id(), acquire(context, args, session)) => guard?,
        number = signals.next() => return Err(Signals::ended_by(number)),
    };
    let names = [(LOCK_ENV, args.name.clone()), (FENCING_TOKEN_ENV, guard.guard().token.to_string())];
    match args.guarded.run(context, session, names, signals).await {
        Ok(code) => Ok(code),
        Err(Stop::Lost(loss)) => {
            Err(Failed::stopped(format!("the lock `{}` was lost: {loss}; the command was ended", args.name)))
        }
        Err(Stop::Failed(failed)) => Err(failed),
    }
}

async fn acquire(context: &Context, args: &Args, session: &Session) -> Result<LockGuard, Failed> {
    let lock = session.lock(&args.name).delay(args.guarded.delay()).asked(args.shared, Lock::shared);
    let lock = lock.given(args.slots, Lock::slots).given(args.max_waiters, Lock::max_waiters);
    let lock = lock.given(args.guarded.wait, Lock::wait);
    match lock.acquire().await {
        Ok(guard) => Ok(guard),
        Err(error) => Err(waiting::refused(context, &args.name, args.max_waiters, error).await),
    }
}

//! A command that runs while something is held: started, told signals, ended when it is lost.
//!
//! Owns what the command is told, and its exit code. What is held, and how it was got, is `lock_run`'s and `election_run`'s; how a command and
//! all that it starts are ended, `work`'s.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use quorate_client::{Loss, Session};
use tokio::process::Command;

use crate::fail::Failed;
use crate::signals::{SIGNALLED, Signals};
use crate::work::{self, Event, NotStarted, Work};
use crate::{parse, sys};

/// The lock that is held.
pub const LOCK_ENV: &str = "QUORATE_LOCK";
/// Its fencing token. `QUORATE_TOKEN` is something else: the secret that says who asks.
pub const FENCING_TOKEN_ENV: &str = "QUORATE_FENCING_TOKEN";
/// The election in which we lead.
pub const ELECTION_ENV: &str = "QUORATE_ELECTION";
/// The term: its fencing token.
pub const TERM_ENV: &str = "QUORATE_TERM";
/// The session that it hangs on.
pub const SESSION_ENV: &str = "QUORATE_SESSION";

/// For what is left of a command to be gone once it is killed.
pub const TO_KILL: Duration = Duration::from_millis(250);

/// The command is not there.
const NOT_FOUND: u8 = 127;
/// The command cannot be run.
const NOT_RUN: u8 = 126;

/// What both kinds of commands understand.
#[derive(Debug, clap::Args)]
pub struct Guarded {
    /// How long others wait for us, at most, once we have died; like 2s. Longer than the cluster takes to elect a leader.
    #[arg(long, default_value = "10s", value_parser = parse::positive_duration, value_name = "TIME")]
    ttl: Duration,
    /// How long nobody gets it after we have died. Without this, as long as CMD may still be at work then: --grace less a tenth of --ttl.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    delay: Option<Duration>,
    /// How long to wait for it; without this, for ever. 0s: not at all.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    pub wait: Option<Duration>,
    /// How long CMD may take to end itself once it was lost, before it is killed.
    #[arg(long, default_value = "5s", value_parser = parse::duration, value_name = "TIME")]
    grace: Duration,
    /// Who we are, for people; without this, the host and our process id.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Guarded {
    /// How long nobody gets what we held once our session is over, so that two commands are not at work at once: a loss is known a tenth of
    /// the time to live before that, and the command may take its grace from then on. A command whose `quorate` was killed has less of it left.
    pub fn delay(&self) -> Duration {
        let known_before = self.ttl / 10;
        self.delay.unwrap_or_else(|| (self.grace + TO_KILL).saturating_sub(known_before))
    }

    /// How long we may be silent while a command runs: nobody renews meanwhile, so the session is as good as lost.
    fn silence(&self) -> Duration {
        work::longest_silence(self.ttl)
    }

    /// A session of our own.
    pub async fn session(&self, context: &crate::Context) -> Result<Session, Failed> {
        let owner = self.owner.clone().unwrap_or_else(owner);
        Ok(context.client.session().ttl(self.ttl).owner(owner).await?)
    }

    /// Runs the command until it ends, or is ended because the session was lost. `names` is what it is told.
    pub async fn run(
        &self,
        context: &crate::Context,
        session: &Session,
        names: [(&str, String); 2],
        signals: &mut Signals,
    ) -> Result<u8, Stop> {
        let mut work = self.start(context, session, names).map_err(Stop::Failed)?;
        let mut beats = tokio::time::interval(work::beat_every(self.silence()));
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let status = loop {
            tokio::select! {
                _ = beats.tick() => work.beat(),
                event = work.event() => match event {
                    Ok(Event::Ended(status)) => break status,
                    Ok(Event::Stopped) => follow(&mut work, session),
                    Err(error) => return Err(Stop::Failed(Failed::other(format!("cannot wait for the command: {error}")))),
                },
                number = signals.any() => match number {
                    libc::SIGTSTP => pause(&mut work, session),
                    libc::SIGCONT => go_on(&mut work, session),
                    number => work.tell(number),
                },
                loss = session.lost() => return Err(end(&mut work, signals, loss).await),
            }
        };
        if let Some(loss) = session.loss().filter(|_| status.signal().is_some()) {
            // Its guardian ended it, while we were stopped.
            work.end()
                .await
                .map_err(|error| Stop::Failed(Failed::other(format!("cannot end the command: {error}"))))?;
            return Err(Stop::Lost(loss));
        }
        let code = exit_code(status);
        if work.is_at_terminal() && [libc::SIGINT, libc::SIGQUIT].iter().any(|number| i32::from(code) == 128 + number) {
            signals.note_end();
        }
        work.has_ended();
        Ok(code)
    }

    fn start(&self, context: &crate::Context, session: &Session, names: [(&str, String); 2]) -> Result<Work, Failed> {
        let (program, arguments) = self.command.split_first().expect("clap demands a command");
        let mut command = Command::new(program);
        command.args(arguments);
        context.connection.hand_on(command.as_std_mut());
        for name in [LOCK_ENV, FENCING_TOKEN_ENV, ELECTION_ENV, TERM_ENV] {
            command.env_remove(name);
        }
        command.envs(names).env(SESSION_ENV, session.id());
        Work::start(command, self.grace, true, Some(self.silence())).map_err(|not_started| match not_started {
            NotStarted::Guardian(error) => Failed::other(format!("cannot guard the command: {error}")),
            NotStarted::Command(error) => {
                let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
                Failed::exit(code, format!("cannot run `{}`: {error}", program.display()))
            }
        })
    }
}

/// The command was stopped at the terminal: whoever waits for us is to see that, and nobody renews for it meanwhile.
fn follow(work: &mut Work, session: &Session) {
    if sys::may_stop() {
        work.stop();
        sys::tell_own_group(libc::SIGSTOP);
    }
    go_on(work, session);
}

/// We were told to stop. While we do nobody renews, so the work stops first.
fn pause(work: &mut Work, session: &Session) {
    work.stop();
    sys::stop_self();
    go_on(work, session);
}

/// Lets it go on, but not for a moment with what was lost meanwhile.
fn go_on(work: &mut Work, session: &Session) {
    if session.loss().is_some() {
        work.tell(libc::SIGTERM);
    }
    work.go_on();
}

/// Ends it, and takes in what comes meanwhile: whoever told us to end is not forgotten.
async fn end(work: &mut Work, signals: &mut Signals, loss: Loss) -> Stop {
    let ending = work.end();
    tokio::pin!(ending);
    loop {
        tokio::select! {
            ended = &mut ending => return match ended {
                Ok(()) => Stop::Lost(loss),
                Err(error) => Stop::Failed(Failed::other(format!("cannot wait for the end of the command: {error}"))),
            },
            _ = signals.any() => {}
        }
    }
}

/// Why a command did not come to its own end.
pub enum Stop {
    /// What it needs was lost.
    Lost(Loss),
    /// It cannot be run.
    Failed(Failed),
}

/// Host and process id.
fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => format!("pid {}", std::process::id()),
        host => format!("{host} pid {}", std::process::id()),
    }
}

/// As a shell tells it.
fn exit_code(status: ExitStatus) -> u8 {
    let signal = || status.signal().and_then(|signal| u8::try_from(signal).ok()).unwrap_or(0);
    match status.code() {
        Some(code) => u8::try_from(code & 0xff).expect("it has eight bits"),
        None => SIGNALLED + signal(),
    }
}

/// Ends what the work hung on: others go on at once.
pub async fn end_session(session: &Session) {
    if session.loss().is_some() {
        return;
    }
    if let Err(error) = session.end().await {
        say!("warning: session {} was not ended, others wait until it expires: {error}", session.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_we_are_stopped_the_command_has_ended_before_others_go_on() {
        for ttl in [500, 900, 1_000, 1_200, 1_350, 2_000, 5_000, 10_000, 60_000, 600_000].map(Duration::from_millis) {
            let grace = Duration::from_secs(5);
            let guarded = Guarded { ttl, delay: None, wait: None, grace, owner: None, command: Vec::new() };
            // The last renewal was a third of the time ago.
            let others_go_on = ttl - ttl / 3 + guarded.delay();
            assert!(guarded.silence() + grace < others_go_on, "{ttl:?}");
        }
    }
}

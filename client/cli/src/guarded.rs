//! A command that runs while something is held: started, told signals, ended when it is lost.
//!
//! Owns the child process and its exit code. What is held, and how it was got, is `lock`'s and `elect`'s.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use quorate_client::{ENDPOINTS_ENV, Loss, Session};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::fail::Failed;
use crate::parse;

/// The lock that is held.
pub const LOCK_ENV: &str = "QUORATE_LOCK";
/// Its fencing token.
pub const TOKEN_ENV: &str = "QUORATE_TOKEN";
/// The election in which we lead.
pub const ELECTION_ENV: &str = "QUORATE_ELECTION";
/// The term: its fencing token.
pub const TERM_ENV: &str = "QUORATE_TERM";
/// The session that it hangs on.
pub const SESSION_ENV: &str = "QUORATE_SESSION";

/// The command is not there.
const NOT_FOUND: u8 = 127;
/// The command cannot be run.
const NOT_RUN: u8 = 126;
/// What a shell adds to the number of the signal that ended a command.
const SIGNALLED: u8 = 128;

/// What both kinds of commands understand.
#[derive(Debug, clap::Args)]
pub struct Guarded {
    /// How long others wait for us, at most, once we have died; like 2s. Longer than the cluster takes to elect a leader.
    #[arg(long, default_value = "10s", value_parser = parse::positive_duration, value_name = "TIME")]
    ttl: Duration,
    /// How long nobody gets it after we have died.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    pub delay: Option<Duration>,
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
        let mut child = self.start(context, session, names).map_err(Stop::Failed)?;
        let status = tokio::select! {
            status = child.wait(signals) => status.map_err(Stop::Failed)?,
            loss = session.lost() => {
                child.end(self.grace, signals).await.map_err(Stop::Failed)?;
                return Err(Stop::Lost(loss));
            }
        };
        Ok(exit_code(status))
    }

    fn start(
        &self,
        context: &crate::Context,
        session: &Session,
        names: [(&str, String); 2],
    ) -> Result<Running, Failed> {
        let (program, arguments) = self.command.split_first().expect("clap demands a command");
        let mut command = Command::new(program);
        command.args(arguments);
        for name in [LOCK_ENV, TOKEN_ENV, ELECTION_ENV, TERM_ENV] {
            command.env_remove(name);
        }
        command.envs(names).env(SESSION_ENV, session.id()).env(ENDPOINTS_ENV, &context.shared.endpoints);
        // What is typed at a terminal goes to all of the group that is in its foreground, so the child stays in ours.
        let own_group = !std::io::stdin().is_terminal();
        if own_group {
            command.process_group(0);
        }
        end_with_us(&mut command);
        let child = command.spawn().map_err(|error| {
            let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
            Failed::exit(code, format!("cannot run `{}`: {error}", program.display()))
        })?;
        let id = child.id().expect("it was not waited for");
        Ok(Running { child, id: libc::pid_t::try_from(id).expect("a process id fits into pid_t"), own_group })
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

/// The kernel ends the child if we are killed: nobody would renew what it needs.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: prctl is a plain system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
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

struct Running {
    child: Child,
    id: libc::pid_t,
    /// Whether it leads a process group, so that all that it started can be told.
    own_group: bool,
}

impl Running {
    /// Waits for its end; passes on the signals that we get.
    async fn wait(&mut self, signals: &mut Signals) -> Result<ExitStatus, Failed> {
        loop {
            tokio::select! {
                status = self.child.wait() => {
                    return status.map_err(|error| Failed::other(format!("cannot wait for the command: {error}")));
                }
                number = signals.next() => {
                    // At a terminal it gets this one itself.
                    if self.own_group || number != libc::SIGINT {
                        self.tell(number);
                    }
                }
            }
        }
    }

    /// Asks it to end, and kills it if it does not.
    async fn end(&mut self, grace: Duration, signals: &mut Signals) -> Result<(), Failed> {
        self.tell(libc::SIGTERM);
        if tokio::time::timeout(grace, self.wait(signals)).await.is_err() {
            self.tell(libc::SIGKILL);
            self.wait(signals).await?;
        } else if self.own_group {
            // It is gone, but not all that it had started need be.
            self.tell(libc::SIGKILL);
        }
        Ok(())
    }

    fn tell(&self, number: i32) {
        let to = if self.own_group { -self.id } else { self.id };
        // SAFETY: kill takes no pointers. A process that has just ended was not waited for yet, so the id is still its own; a
        // group without it has its id only as long as there is somebody in it.
        unsafe { libc::kill(to, number) };
    }
}

/// Ends what the work hung on: others go on at once.
pub async fn end(session: &Session) {
    if session.loss().is_some() {
        return;
    }
    if let Err(error) = session.end().await {
        eprintln!("warning: session {} was not ended, others wait until it expires: {error}", session.id());
    }
}

/// The signals that are passed on.
pub struct Signals {
    streams: [(i32, Signal); 4],
    told_to_end: bool,
}

impl Signals {
    /// Takes them from now on.
    pub fn take() -> Result<Self, Failed> {
        let stream = |number| match signal(SignalKind::from_raw(number)) {
            Ok(stream) => Ok((number, stream)),
            Err(error) => Err(Failed::other(format!("cannot take signal {number}: {error}"))),
        };
        let [hup, int, quit, term] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM].map(stream);
        Ok(Self { streams: [hup?, int?, quit?, term?], told_to_end: false })
    }

    /// The number of the next one.
    pub async fn next(&mut self) -> i32 {
        let next = self.streams.iter_mut().map(|(number, stream)| {
            Box::pin(async move {
                match stream.recv().await {
                    Some(()) => *number,
                    None => std::future::pending().await,
                }
            })
        });
        let number = futures::future::select_all(next).await.0;
        // HUP asks many programs to read their configuration.
        self.told_to_end |= number != libc::SIGHUP;
        number
    }

    /// Whether there was one that asks to end.
    pub fn was_told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// How it looks if one comes before there is a command to take it.
    pub fn ended_by(number: i32) -> Failed {
        let code = SIGNALLED + u8::try_from(number).expect("signals are small numbers");
        Failed::exit(code, format!("ended by signal {number} while waiting"))
    }
}

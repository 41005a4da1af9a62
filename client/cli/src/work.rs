//! A command in a process group of its own, which ends as a whole: when we say so, and when we die.
//!
//! Owns the group. Its leader is a guardian: this program again, which ignores what ends others and reads a pipe whose other end we
//! hold. Where that closes without a word we are gone, and the guardian ends the group. It also does where we are stopped, and nobody
//! renews what the group needs: we tell it again and again that we are there. Because it leads, the group keeps its id until
//! we have reaped it: no signal reaches strangers. What a command starts in a group or session of its own is beyond this.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child as Guardian, ChildStdin, Command as Program, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::sys::{self, Pid};

/// The first argument of a guardian. No command of the command line is called so.
pub const GUARDIAN: &str = "__guardian";
/// How often is looked whether a group that is being ended is empty.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What the guardian is told: that the command has ended, and that we are there.
const ENDED: u8 = b'.';
const THERE: u8 = b'+';
/// Less is no sign that we were stopped.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Parts of the longest silence: the guardian ends the group when it was told nothing in this many.
const PARTS: u32 = 10;

/// A command that runs.
pub struct Work {
    child: Child,
    id: Pid,
    /// Stops of children, among other news of them.
    news: Signal,
    guardian: Guardian,
    /// The guardian ends the group when this is closed.
    word: Option<ChildStdin>,
    group: Pid,
    grace: Duration,
    is_at_terminal: bool,
}

/// What happened to it.
pub enum Event {
    /// It has ended.
    Ended(ExitStatus),
    /// It was stopped by what was typed, or because it used the terminal from the background.
    Stopped,
}

/// Why it does not run.
pub enum NotStarted {
    /// There is no guardian for it.
    Guardian(std::io::Error),
    /// It cannot be run.
    Command(std::io::Error),
}

impl Work {
    /// Starts it. Once it has to end it has `grace` to do so. `at_terminal`: it gets the foreground where we have it. `silence`: it is
    /// ended where [`Self::beat`] is not called for so long.
    pub fn start(
        mut command: Command,
        grace: Duration,
        at_terminal: bool,
        silence: Option<Duration>,
    ) -> Result<Self, NotStarted> {
        let news = signal(SignalKind::child()).map_err(NotStarted::Guardian)?;
        let mut guardian = guardian(grace, silence).map_err(NotStarted::Guardian)?;
        let group = Pid::try_from(guardian.id()).expect("a process id fits into pid_t");
        let word = guardian.stdin.take();
        let is_at_terminal = at_terminal && sys::is_in_foreground();
        if is_at_terminal {
            sys::give_terminal(group);
        }
        match command.process_group(group).spawn() {
            Ok(child) => {
                let id =
                    Pid::try_from(child.id().expect("it was not waited for")).expect("a process id fits into pid_t");
                Ok(Self { child, id, news, guardian, word, group, grace, is_at_terminal })
            }
            Err(error) => {
                if is_at_terminal {
                    sys::give_terminal(sys::own_group());
                }
                dismiss(guardian, word);
                Err(NotStarted::Command(error))
            }
        }
    }

    /// Tells the guardian that we are there.
    pub fn beat(&mut self) {
        if let Some(word) = &mut self.word {
            // An error: the guardian is gone, and ends nobody.
            let _gone = word.write_all(&[THERE]);
        }
    }

    /// Its standard input, where that is a pipe.
    pub fn stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Its standard error, where that is a pipe.
    pub fn stderr(&mut self) -> Option<tokio::process::ChildStderr> {
        self.child.stderr.take()
    }

    /// The group of all that belongs to it.
    pub fn group(&self) -> Pid {
        self.group
    }

    /// Whether it has the foreground of the terminal.
    pub fn is_at_terminal(&self) -> bool {
        self.is_at_terminal
    }

    /// Waits until something happens to it.
    pub async fn event(&mut self) -> std::io::Result<Event> {
        loop {
            tokio::select! {
                status = self.child.wait() => return status.map(Event::Ended),
                _ = self.news.recv() => {
                    let by = sys::stopped_by(self.id);
                    if matches!(by, Some(libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)) {
                        return Ok(Event::Stopped);
                    }
                }
            }
        }
    }

    /// Waits for its end.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to all of it.
    pub fn tell(&self, number: i32) {
        sys::tell_group(self.group, number);
    }

    /// Stops all of it, whatever it does about that.
    pub fn stop(&mut self) {
        self.tell(libc::SIGSTOP);
        if self.is_at_terminal {
            sys::give_terminal(sys::own_group());
        }
    }

    /// Lets it go on, in the foreground where we are.
    pub fn go_on(&mut self) {
        if sys::is_in_foreground() {
            sys::give_terminal(self.group);
            self.is_at_terminal = true;
        }
        self.tell(libc::SIGCONT);
    }

    /// Ends all of it: asks, and kills what is left after the grace. Returns once nothing is left.
    pub async fn end(&mut self) -> std::io::Result<()> {
        self.tell(libc::SIGTERM);
        // What is stopped cannot end itself.
        self.tell(libc::SIGCONT);
        let until = Instant::now() + self.grace;
        while sys::has_others(self.group, self.group) && Instant::now() < until {
            // Else the guardian would ask a second time: some take that for less patience than we have.
            self.beat();
            // An end of ours reaps the child; the end of another is only seen by looking.
            tokio::select! {
                _ = self.child.wait() => tokio::time::sleep(LOOK_EVERY).await,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        self.tell(libc::SIGKILL);
        self.child.wait().await?;
        self.guardian.wait()?;
        self.word = None;
        Ok(())
    }

    /// It has ended by itself: what it left running goes on.
    pub fn has_ended(mut self) {
        if let Some(mut word) = self.word.take() {
            // An error: the guardian is gone, and ends nobody.
            let _gone = word.write_all(&[ENDED]);
            drop(word);
        }
        // An error: it was reaped. It ends at once otherwise.
        let _reaped = self.guardian.wait();
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The pipe closes now, and unless the guardian was told otherwise it ends the group.
        if self.is_at_terminal {
            sys::give_terminal(sys::own_group());
        }
    }
}

/// The longest silence of ours before a command is ended. Its session or claim lasts this long and is renewed each third of it: the last
/// renewal may be a third old where we are stopped. A busy machine has a second all the same, or three quarters of that time.
pub fn longest_silence(lasts: Duration) -> Duration {
    (lasts / 2).max((lasts * 3 / 4).min(SILENCE_MIN))
}

/// How often to [`Work::beat`] where it is ended after such a silence.
pub fn beat_every(silence: Duration) -> Duration {
    (silence / (2 * PARTS)).max(Duration::from_millis(1))
}

fn guardian(grace: Duration, silence: Option<Duration>) -> std::io::Result<Guardian> {
    let mut guardian = Program::new("/proc/self/exe");
    let millis = |time: Duration| time.as_millis().to_string();
    guardian.args([GUARDIAN, &millis(grace), &millis(silence.unwrap_or_default())]).env_clear();
    guardian.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).current_dir("/");
    sys::pass_over_signals(&mut guardian);
    guardian.spawn()
}

fn dismiss(mut guardian: Guardian, word: Option<ChildStdin>) {
    if let Some(mut word) = word {
        // An error: it is gone already.
        let _gone = word.write_all(&[ENDED]);
    }
    let _reaped = guardian.wait();
}

/// What a guardian does: waits until whoever started it says that the command has ended, is gone, or says nothing for too long.
pub fn guard(grace: &str, silence: &str) {
    let millis = |text: &str| Duration::from_millis(text.parse().unwrap_or(0));
    let (grace, silence) = (millis(grace), millis(silence));
    let part = if silence.is_zero() { Duration::MAX } else { silence / PARTS };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut word = [0];
        while matches!(std::io::stdin().read(&mut word), Ok(1)) && tell.send(word[0]).is_ok() {}
    });
    let mut missed = 0;
    while missed < PARTS {
        let asked = Instant::now();
        match told.recv_timeout(part) {
            Ok(ENDED) => return,
            Ok(_) => missed = 0,
            Err(RecvTimeoutError::Disconnected) => break,
            // We were stopped ourselves, as the whole group is with its terminal.
            Err(RecvTimeoutError::Timeout) if asked.elapsed() > part.saturating_mul(2) => missed = 0,
            Err(RecvTimeoutError::Timeout) => missed += 1,
        }
    }
    let group = sys::own_group();
    sys::tell_own_group(libc::SIGTERM);
    sys::tell_own_group(libc::SIGCONT);
    let until = Instant::now() + grace;
    while sys::has_others(group, group) {
        if Instant::now() >= until {
            // This ends us too.
            sys::tell_own_group(libc::SIGKILL);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

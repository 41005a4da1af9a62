//! One `quorate-node` process.
//!
//! Owns the process, its log file and its signals. Never leaves a process behind: dropping one kills it, and so does the
//! kernel when the test itself is killed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use quorate_store::state::CHECK_GROUPS;
use quorate_threads::watchdog::WATCH_STEPS;

use crate::eventually::sooner_than;

/// What long searches have every process look for, nodes included.
const OF_SEARCHES: [&str; 2] = [CHECK_GROUPS, WATCH_STEPS];

/// A running process, or one whose end was not looked at yet.
#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    log: PathBuf,
    /// Where the log of this run begins in the file, which goes on over restarts.
    log_begin: u64,
}

impl NodeProcess {
    /// Starts a node, of this program or the one of this build, with these arguments and this on top of the environment; its output
    /// is appended to `log`. Where a network namespace is named, it runs in that.
    pub fn start(
        program: Option<&Path>,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
        log: &Path,
        namespace: Option<&Path>,
    ) -> io::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let log_begin = output.metadata()?.len();
        let mut command = command(program.map_or_else(binary, Path::to_owned), arguments);
        command.stdout(output.try_clone()?).stderr(output).envs(environment);
        die_with_parent(&mut command);
        if let Some(namespace) = namespace {
            enter(&mut command, File::open(namespace)?);
        }
        Ok(Self { child: command.spawn()?, log: log.to_owned(), log_begin })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time taken so far, all threads, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.id());
        let stat = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        // Behind the name, which may hold anything but a closing parenthesis at its end: user and system ticks are the
        // twelfth and thirteenth field.
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        let ticks = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("ticks"));
        // SAFETY: sysconf takes no pointers.
        let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        ticks.sum::<f64>() / ticks_a_second as f64
    }

    /// Sends a signal. The child is not reaped before `wait`, so the id cannot be anyone else's.
    pub fn signal(&self, signal: libc::c_int) {
        let id = libc::pid_t::try_from(self.child.id()).expect("a process id fits into pid_t");
        // SAFETY: kill takes no pointers.
        let sent = unsafe { libc::kill(id, signal) };
        assert_eq!(sent, 0, "signal {signal} to process {id}: {}", io::Error::last_os_error());
    }

    /// How it ended, if it did.
    pub fn try_end(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for its end; panics with the end of its log if it goes on.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let ended = sooner_than(within, async || self.try_end().ok_or_else(|| "it still runs".to_owned())).await;
        ended.unwrap_or_else(|_| {
            panic!("process {} still runs after {within:?}; its log ends:\n{}", self.id(), self.log_tail(40))
        })
    }

    /// What it wrote since it was started.
    pub fn log_text(&self) -> String {
        let read = || {
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(self.log_begin))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("({}: {error})", self.log.display()))
    }

    /// The last lines of that.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = self.log_text();
        let all: Vec<_> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // Both fail only when the process has ended and was waited for: then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of memory that a running process has in use.
pub fn memory_of(process: u32) -> u64 {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).expect("a process has memory");
    kib.trim().parse::<u64>().expect("a number") * 1024
}

/// A server program with these arguments.
fn command(program: PathBuf, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // What the shell of a developer says to its own nodes must not reach those of a test.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_a_developer(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

fn is_of_a_developer(variable: &str) -> bool {
    variable.starts_with("QUORATE_") && !OF_SEARCHES.contains(&variable)
}

/// Runs a verb of the server program to its end. Blocks.
pub fn run_to_end(arguments: &[String]) -> Output {
    command(binary(), arguments).output().unwrap_or_else(|error| panic!("quorate-node cannot be run: {error}"))
}

/// "exit code 1" or "signal 9".
pub fn describe(end: ExitStatus) -> String {
    match (end.code(), end.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => format!("{end:?}"),
    }
}

/// Asks the kernel to kill the node when the thread that starts it ends, that is, when the test is killed.
fn die_with_parent(command: &mut Command) {
    // SAFETY: prctl is a plain system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Has the process enter a network namespace before it runs its program.
fn enter(command: &mut Command, namespace: File) {
    // SAFETY: setns is a plain system call on a descriptor that the closure owns; nothing is allocated or locked between fork and
    // exec.
    unsafe {
        command.pre_exec(move || match libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// The server: `QUORATE_NODE`, else the one that cargo built beside this test.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("QUORATE_NODE") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "QUORATE_NODE names {}, which is no file", path.display());
        return path;
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/debug/deps/it-0123 → target/debug/quorate-node
    let found = test.ancestors().skip(1).take(2).map(|dir| dir.join("quorate-node")).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "there is no quorate-node beside {}; run `cargo build --workspace` first, or set QUORATE_NODE",
            test.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_long_search_asks_for_reaches_nodes_and_what_a_developer_does_not() {
        assert!(is_of_a_developer("QUORATE_AUTH") && is_of_a_developer("QUORATE_NODE"));
        assert!(!is_of_a_developer("QUORATE_CHECK_GROUPS") && !is_of_a_developer("QUORATE_WATCH_STEPS"));
        assert!(!is_of_a_developer("PATH"));
    }
}

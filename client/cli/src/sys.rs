//! System calls on process groups, stops and the foreground of a terminal, which the standard library has no words for.
//!
//! Owns every unsafe block of the command line. Decides nothing.

use std::io::{self, IsTerminal};
use std::mem::MaybeUninit;

/// The id of a process or a group.
pub type Pid = libc::pid_t;

/// What is typed at a terminal, and what a shell or a supervisor sends to end or to stop. A process that guards others outlives it.
const PASSED_OVER: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Sends a signal to all of a group.
pub fn tell_group(group: Pid, number: i32) {
    // SAFETY: kill takes no pointers.
    unsafe { libc::kill(-group, number) };
}

/// Sends a signal to all of our own group, ourselves included.
pub fn tell_own_group(number: i32) {
    // SAFETY: kill takes no pointers.
    unsafe { libc::kill(0, number) };
}

/// Stops this process; returns once it was continued.
pub fn stop_self() {
    // SAFETY: neither takes a pointer.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Our own group.
pub fn own_group() -> Pid {
    // SAFETY: getpgrp takes nothing and cannot fail.
    unsafe { libc::getpgrp() }
}

/// Whether somebody is there who could continue us once we have stopped: a parent in our session, such as a shell.
pub fn may_stop() -> bool {
    // SAFETY: none of these takes a pointer.
    unsafe { libc::getsid(libc::getppid()) == libc::getsid(0) }
}

/// Whether standard input is a terminal, and we are in its foreground.
pub fn is_in_foreground() -> bool {
    // SAFETY: tcgetpgrp takes no pointer; where there is no terminal it says -1, which no group is.
    io::stdin().is_terminal() && unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) } == own_group()
}

/// Puts a group into the foreground of the terminal of standard input.
pub fn give_terminal(group: Pid) {
    let (mut blocked, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written before they are read. Who asks from the background is stopped, unless it blocks this signal.
    unsafe {
        libc::sigemptyset(blocked.as_mut_ptr());
        libc::sigaddset(blocked.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), before.as_mut_ptr());
        libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
}

/// The signal by which a child was stopped since this was asked last.
pub fn stopped_by(child: Pid) -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let id = libc::id_t::try_from(child).ok()?;
    // SAFETY: waitid writes the struct, which is valid as zeroes. It does not reap: only stops are asked for.
    unsafe {
        let done = libc::waitid(libc::P_PID, id, info.as_mut_ptr(), libc::WSTOPPED | libc::WNOHANG);
        let info = info.assume_init();
        (done == 0 && info.si_pid() == child).then(|| info.si_status())
    }
}

/// Lets the program that a command will run ignore what ends or stops others.
pub fn pass_over_signals(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: signal is a plain system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for number in PASSED_OVER {
                if libc::signal(number, libc::SIG_IGN) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// From now on what is typed to interrupt does nothing to this process; programs that it runs heed it.
pub fn pass_over_interrupts() {
    extern "C" fn nothing(_: libc::c_int) {}
    for number in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the handler does nothing. A program that is run begins without it, unlike with one that is ignored.
        unsafe { libc::signal(number, nothing as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Whether a group has a living process other than this one.
pub fn has_others(group: Pid, but: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut ids = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse::<Pid>().ok());
    ids.any(|id| id != but && lives_in(id, group))
}

fn lives_in(id: Pid, group: Pid) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    // The name of the program stands in brackets, with whatever is in it.
    let mut fields = text.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let state = fields.next().unwrap_or("X");
    let group_of = fields.nth(1).and_then(|group| group.parse::<Pid>().ok());
    !matches!(state, "Z" | "X") && group_of == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_us_and_no_made_up_others() {
        let me = Pid::try_from(std::process::id()).expect("fits");
        assert!(lives_in(me, own_group()));
        assert!(!lives_in(me, own_group() + 1));
        assert!(has_others(own_group(), 0));
        assert!(!has_others(Pid::MAX, 0), "no group is called so");
    }
}

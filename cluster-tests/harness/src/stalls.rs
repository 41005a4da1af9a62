//! Moments at which this machine stood still: its host ran another one, or fetched memory for it.
//!
//! Owns a thread for each processor that sleeps for a millisecond at a time, before all others in the scheduler, and notes when it comes back
//! late. Nodes measure the processor's time of each step, which goes on while the machine stands still, so what they say of a long step is
//! judged with this. Never excuses a step without having seen the machine stand still for all of what is too much.

use std::collections::VecDeque;
use std::io;
use std::mem::size_of;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use quorate_threads::uptime::Uptime;
use quorate_threads::watchdog::{SAID, STEP_MAX};

/// How long a watching thread sleeps.
const NAP: Duration = Duration::from_millis(1);
/// A nap that is late by less is nothing.
const LATE_MIN: Duration = Duration::from_millis(1);
/// How long before the end of a step a stall still counts: other threads may have interrupted the step in between.
const BEFORE: Duration = Duration::from_millis(200);
/// How many are remembered of each processor.
const REMEMBERED: usize = 10_000;

/// After how much of the machine's time a nap ended, and how late.
type Late = (Duration, Duration);

/// The latest of each processor; empty where nobody may watch.
static WATCHED: OnceLock<Vec<Mutex<VecDeque<Late>>>> = OnceLock::new();

/// Watches from now on, until the process ends. An error says why it cannot: no step is excused then.
pub fn watch() -> io::Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let watched = WATCHED.get_or_init(|| (0..processors).map(|_| Mutex::default()).collect());
    for (processor, late) in watched.iter().enumerate() {
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let place = take_place(processor);
            let may = place.is_ok();
            if begun.send(place).is_ok() && may {
                nap(late);
            }
        });
        has_begun.recv().map_err(|_gone| io::Error::other("the thread ended"))??;
    }
    Ok(())
}

/// Binds this thread to a processor, where it comes before all that are not of real time.
fn take_place(processor: usize) -> io::Result<()> {
    // SAFETY: all zero is a set without a processor.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is this thread's own, and the macro checks its bounds.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the call reads the set, of the size that it is given.
    done(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })?;
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads the parameters.
    done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

fn done(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn nap(late: &Mutex<VecDeque<Late>>) {
    loop {
        let begin = Instant::now();
        std::thread::sleep(NAP);
        let by = begin.elapsed().saturating_sub(NAP);
        if by < LATE_MIN {
            continue;
        }
        let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.len() == REMEMBERED {
            late.pop_front();
        }
        late.push_back((Uptime::now().of_machine(), by));
    }
}

/// Whether a line of a node's log is about a step that would not have been too long on a machine that never stood still.
pub fn excuse(line: &str) -> bool {
    let Some((end, took)) = step_of(line) else { return false };
    let stood = WATCHED.get().map_or(Duration::ZERO, |all| stood_still(all, end));
    let is_excused = took.saturating_sub(stood) <= STEP_MAX;
    if is_excused {
        println!("the machine stood still for {stood:?} shortly before: {line}");
    }
    is_excused
}

/// For how long one of the processors stood still until then, at most.
fn stood_still(all: &[Mutex<VecDeque<Late>>], end: Duration) -> Duration {
    let of_one = |late: &Mutex<VecDeque<Late>>| {
        let late = late.lock().unwrap_or_else(PoisonError::into_inner);
        let near = late.iter().filter(|(at, _)| *at <= end + NAP && *at + BEFORE >= end);
        near.map(|(_, by)| *by).sum()
    };
    all.iter().map(of_one).max().unwrap_or_default()
}

/// When a step that was too long ended, by the time that the machine has run, and what it took. The wall clock of a node may be wrong.
fn step_of(line: &str) -> Option<(Duration, Duration)> {
    if !line.contains(SAID) {
        return None;
    }
    let (before, took) = line.rsplit_once(" took=")?;
    let (_, end) = before.rsplit_once(" uptime=")?;
    Some((duration(end)?, duration(took.trim_end())?))
}

/// A duration as `Debug` writes those of a step.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s')?, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2026-11-29T13:51:05.949652Z ERROR quorate_threads::watchdog: a step kept a thread what=\"/v1/txn\" uptime=7261.5s took=24.74299ms";

    #[test]
    fn a_line_about_a_long_step_tells_when_it_ended_and_what_it_took() {
        let (end, took) = step_of(LINE).expect("it is one");
        assert_eq!(end, Duration::from_millis(7_261_500));
        assert_eq!(took, Duration::from_nanos(24_742_990));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1_500)));
        assert!(
            duration("3µs").is_none() && step_of("2026-11-29T13:51:05Z ERROR a request met a bug took=1ms").is_none()
        );
    }

    #[test]
    fn only_what_the_machine_stood_still_just_before_is_taken_off() {
        let (end, ms) = (step_of(LINE).expect("it is one").0, Duration::from_millis);
        let processor = |late: &[(u64, u64)]| {
            Mutex::new(late.iter().map(|(before, by)| (end - ms(*before), ms(*by))).collect::<VecDeque<_>>())
        };
        let all = [processor(&[(500, 90), (150, 6), (3, 5)]), processor(&[(100, 9)])];
        assert_eq!(stood_still(&all, end), ms(11), "the most of one processor, and nothing from long before");
        assert_eq!(stood_still(&[processor(&[])], end), Duration::ZERO);
        assert!(!excuse(LINE), "nobody watched");
    }
}

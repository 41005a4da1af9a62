//! What the operating system says of this process.
//!
//! Owns the reading of `/proc/self`. Where there is no such thing there are no such numbers.

use std::fs;

use super::sample::{MetricsSource, Sample, Value};
use crate::millis::wall_now;

/// This process.
#[derive(Debug)]
pub(super) struct Process {
    /// Seconds since 1970 at which it began, as good as.
    start: f64,
}

impl Process {
    /// Begins now.
    pub(super) fn new() -> Self {
        Self { start: wall_now() as f64 / 1e3 }
    }
}

impl MetricsSource for Process {
    fn sample(&self, out: &mut Vec<Sample>) {
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            let memory = field(&status, "VmRSS:").and_then(kibibytes);
            let peak = field(&status, "VmHWM:").and_then(kibibytes);
            let threads = field(&status, "Threads:").and_then(|text| text.parse().ok());
            let gauges = [
                ("process_resident_memory_bytes", "Memory this process has in use", memory),
                ("process_resident_memory_peak_bytes", "Most memory this process had in use", peak),
                ("process_threads", "Threads of this process", threads),
            ];
            out.extend(gauges.into_iter().filter_map(|(name, help, value)| Some(Sample::gauge(name, help, value?))));
        }
        let help = "When this process began, seconds since 1970";
        out.push(Sample::seconds("process_start_time_seconds", help, self.start));
        if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_seconds(&stat)) {
            let help = "Processor time this process has taken";
            out.push(Sample { name: "process_cpu_seconds", help, label: None, value: Value::Seconds(seconds) });
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is that of the listing.
            let count = open.count().saturating_sub(1) as u64;
            out.push(Sample::gauge("process_open_fds", "Open file descriptors of this process", count));
        }
        if let Some(most) = most_open_files() {
            out.push(Sample::gauge("process_max_fds", "Most file descriptors this process may open", most));
        }
    }
}

fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn kibibytes(text: &str) -> Option<u64> {
    let kibibytes: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// User and system time: behind the name, which may hold anything but a closing parenthesis at its end, the twelfth and
/// thirteenth field, in ticks.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11);
    let ticks = ticks.next()?.parse::<f64>().ok()? + ticks.next()?.parse::<f64>().ok()?;
    // SAFETY: sysconf takes no pointers.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks_a_second > 0).then(|| ticks / ticks_a_second as f64)
}

fn most_open_files() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call only writes the struct it is given.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (read == 0).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    9 kB\nVmRSS:\t    7 kB\nThreads:\t12\n";
        assert_eq!(field(status, "VmRSS:").and_then(kibibytes), Some(7 * 1024));
        assert_eq!(field(status, "VmHWM:").and_then(kibibytes), Some(9 * 1024));
        assert_eq!((field(status, "Threads:"), field(status, "None:")), (Some("12"), None));
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        // SAFETY: sysconf takes no pointers.
        let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        assert_eq!(cpu_seconds(stat), Some(200.0 / ticks_a_second));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
    }
}

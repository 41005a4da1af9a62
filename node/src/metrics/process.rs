//! What the operating system says of this process.
//!
//! Owns the reading of `/proc/self`. Where there is no such thing there are no such numbers.

use std::fs;

use super::sample::{MetricsSource, Sample};

/// This process.
#[derive(Debug)]
pub(super) struct Process;

impl MetricsSource for Process {
    fn sample(&self, out: &mut Vec<Sample>) {
        if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().and_then(|status| resident_bytes(&status)) {
            out.push(Sample::gauge("process_resident_memory_bytes", "Memory this process has in use", bytes));
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is that of the listing.
            let count = open.count().saturating_sub(1) as u64;
            out.push(Sample::gauge("process_open_fds", "Open file descriptors of this process", count));
        }
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmHWM:\t    9 kB\nVmRSS:\t    7 kB\n"), Some(7 * 1024));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }
}

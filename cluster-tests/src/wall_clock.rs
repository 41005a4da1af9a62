//! Wall clocks of nodes that jump when a test says so.
//!
//! Owns the library that is preloaded into them and the file that each reads its shift from. Never touches the clock of the
//! machine or the monotonic clock of anybody.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The wall clock of one node.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    shift: PathBuf,
}

impl WallClock {
    /// Builds the library in `dir`; the clock is right until it is shifted.
    pub fn new(dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("a directory for the clock can be made");
        let (source, library, shift) = (dir.join("wall_clock.c"), dir.join("wall_clock.so"), dir.join("shift"));
        fs::write(&source, include_str!("wall_clock.c")).expect("the source can be written");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
        let built = built.expect("a C compiler runs: RocksDB was built with it");
        assert!(built.status.success(), "cc: {}", String::from_utf8_lossy(&built.stderr));
        let clock = Self { library, shift };
        fs::write(&clock.shift, 0_i64.to_ne_bytes()).expect("the shift can be written");
        clock
    }

    /// What a process that goes by this clock has in its environment.
    pub fn environment(&self) -> [(String, String); 2] {
        let text = |path: &Path| path.display().to_string();
        [("LD_PRELOAD".into(), text(&self.library)), ("WALL_CLOCK_SECONDS".into(), text(&self.shift))]
    }

    /// Jumps to so many seconds before or after the right time.
    pub fn shift(&self, seconds: i64) {
        use std::os::unix::fs::FileExt;
        // In place: the process has the file mapped.
        let file = fs::OpenOptions::new().write(true).open(&self.shift).expect("the shift is there");
        file.write_all_at(&seconds.to_ne_bytes(), 0).expect("the shift can be written");
    }
}

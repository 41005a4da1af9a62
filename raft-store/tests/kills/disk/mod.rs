//! A disk that can lose its power.
//!
//! Owns a file system of its own and what a power loss takes from it. Never touches any other; leaves nothing mounted. Used by
//! the crash tests of the log and by those of whole clusters.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A small ext4 file system in a file, that can lose everything it did not sync.
pub struct Disk {
    device: String,
    /// Where it is mounted.
    pub mount: PathBuf,
}

impl Disk {
    /// `None` where that takes rights or tools that are not there.
    pub fn make(root: &Path) -> Option<Disk> {
        let (image, mount) = (root.join("disk.img"), root.join("mnt"));
        std::fs::File::create(&image).unwrap().set_len(768 << 20).unwrap();
        std::fs::create_dir(&mount).unwrap();
        run("mkfs.ext4", &["-q", "-F", image.to_str()?])?;
        let device = run("losetup", &["-f", "--show", image.to_str()?])?.trim().to_owned();
        let disk = Disk { device, mount };
        // A long commit interval: the journal must not save by accident what nobody synced.
        run("mount", &["-o", "commit=600", &disk.device, disk.mount.to_str()?])?;
        Some(disk)
    }

    /// Writes what nobody syncs. Has the power loss teeth? Then it is gone afterwards.
    pub fn leave_unsynced(&self) -> Unsynced {
        // A new name each time: ext4 syncs by itself what replaces an old file.
        let file = (0..).map(|number| self.mount.join(format!("unsynced-{number}"))).find(|file| !file.exists());
        let file = file.expect("there are more numbers than files");
        std::fs::write(&file, UNSYNCED).unwrap();
        Unsynced(file)
    }

    /// Drops everything that is not on disk yet, the journal's too. The one sync that is in flight at this moment may
    /// report success for data that is gone: measured with a bare write-and-fdatasync loop, 20 of 150 times, always the
    /// one sync. A machine without power acknowledges nothing, so what is said from here on must not count.
    pub fn cut_power(&self) {
        const EXT4_IOC_SHUTDOWN: libc::c_ulong = 0x8004_587d;
        let no_log_flush = 2_u32;
        let mount = std::fs::File::open(&self.mount).unwrap();
        // SAFETY: the call reads four bytes from the variable.
        let code = unsafe { libc::ioctl(mount.as_raw_fd(), EXT4_IOC_SHUTDOWN, &raw const no_log_flush) };
        assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
    }

    /// Brings it back as the next start of the machine finds it. Nobody may have it open any more.
    pub fn remount(&self) {
        let (mount, probe) = (self.mount.to_str().unwrap(), self.mount.join("probe"));
        for tries_left in (0..RELEASED_TRIES).rev() {
            run("umount", &[mount]).expect("nothing is open on the disk any more");
            run("mount", &["-o", "commit=600", &self.device, mount]).expect("the disk mounts again");
            // A program that another test runs in a mount namespace of its own (`ip netns exec`) keeps the file system alive that
            // has no power, and until it ends that one is mounted again.
            match std::fs::write(&probe, "") {
                Ok(()) => return std::fs::remove_file(&probe).unwrap(),
                Err(error) => assert!(tries_left > 0, "the disk came back without power: {error}"),
            }
            std::thread::sleep(RELEASED_LOOK);
        }
    }
}

/// After so many looks every short-lived mount namespace has ended.
const RELEASED_TRIES: u32 = 1_000;
const RELEASED_LOOK: Duration = Duration::from_millis(20);

const UNSYNCED: &[u8] = b"not synced";

/// A file that must not outlive a power loss.
pub struct Unsynced(PathBuf);

impl Unsynced {
    /// Its name may stay, as any sync commits the journal; what was written must not.
    pub fn assert_lost(self) {
        assert_ne!(std::fs::read(&self.0).unwrap_or_default(), UNSYNCED, "the power loss lost nothing");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mount = CString::new(self.mount.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::umount2(mount.as_ptr(), libc::MNT_DETACH) };
        run("losetup", &["-d", &self.device]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    std::io::stderr().write_all(&output.stderr).unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

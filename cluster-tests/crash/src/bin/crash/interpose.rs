//! Stands between this program and the system: records each call that changes files under one directory.
//!
//! Owns the C functions that it defines: the linker takes them in place of the C library's, for Rust and for RocksDB alike, as
//! both are linked into this program. Each makes the very same system call. Never changes what a call does, but for
//! two: `copy_file_range` and `sendfile` say that they cannot, so that copies come as writes; a sync takes a little
//! longer, so that others write meanwhile.
//!
//! What would go past these functions (a write of the C library to a `FILE`, a mapping of a file) would be missing in the record.
//! That shows: whoever reads a record compares what it amounts to with what is really there.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crash_search::event::Event;
use libc::{iovec, mode_t, off_t, size_t, ssize_t};

/// Set once and for all, so that a process that records nothing pays one load for each call.
static ACTIVE: AtomicBool = AtomicBool::new(false);

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

/// The longest that a sync takes longer, in microseconds.
const SYNC_EXTRA_MICROS: u64 = 400;

struct Recorder {
    /// The directory.
    root: String,
    events: Vec<Event>,
    /// Path of each open file or directory, and whether it can be written.
    open: BTreeMap<c_int, (String, bool)>,
    syncs: u64,
}

/// Records from now on what happens under this directory, which must be absolute.
pub fn start(root: &Path) {
    let root = root.display().to_string();
    *lock() = Some(Recorder { root, events: Vec::new(), open: BTreeMap::new(), syncs: 0 });
    ACTIVE.store(true, Ordering::SeqCst);
}

/// Adds something to the record.
pub fn add(event: Event) {
    if let Some(recorder) = lock().as_mut() {
        recorder.events.push(event);
    }
}

/// Ends the record and gives it.
pub fn finish() -> Vec<Event> {
    ACTIVE.store(false, Ordering::SeqCst);
    lock().take().map_or_else(Vec::new, |recorder| recorder.events)
}

fn lock() -> std::sync::MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes the call and, where it succeeded, lets the recorder see it, so that the order of the record is the order of the calls.
fn call_and_record(call: impl FnOnce() -> c_long, record: impl FnOnce(&mut Recorder, c_long)) -> c_long {
    if !ACTIVE.load(Ordering::SeqCst) {
        return call();
    }
    let mut recorder = lock();
    let result = call();
    if let Some(recorder) = recorder.as_mut().filter(|_| result >= 0) {
        record(recorder, result);
    }
    result
}

impl Recorder {
    /// The path relative to the root, if it lies under it.
    fn resolve(&self, at: c_int, path: &str) -> Option<String> {
        if path.starts_with('/') {
            let path = path.strip_prefix(&self.root)?;
            let path = if path.is_empty() { path } else { path.strip_prefix('/')? };
            return Some(path.trim_end_matches('/').to_owned());
        }
        let (parent, _) = self.open.get(&at)?;
        Some(format!("{parent}/{path}"))
    }

    fn opened(&mut self, fd: c_int, at: c_int, path: &str, flags: c_int) {
        let Some(path) = self.resolve(at, path) else {
            // The number may have been that of a directory which was closed past us.
            self.open.remove(&fd);
            return;
        };
        let writable = flags & libc::O_ACCMODE != libc::O_RDONLY;
        self.open.insert(fd, (path.clone(), writable));
        let (create, truncate) = (flags & libc::O_CREAT != 0, flags & libc::O_TRUNC != 0);
        self.events.push(Event::Open { fd, path, create, truncate });
    }

    fn closed(&mut self, fd: c_int) {
        if self.open.remove(&fd).is_some() {
            self.events.push(Event::Close { fd });
        }
    }

    fn wrote(&mut self, fd: c_int, offset: Option<off_t>, bytes: impl FnOnce() -> Vec<u8>) {
        if !self.open.get(&fd).is_some_and(|(_, writable)| *writable) {
            return;
        }
        let bytes = bytes();
        let offset = offset.unwrap_or_else(|| {
            let end = system(libc::SYS_lseek, [fd.into(), 0, libc::SEEK_CUR.into(), 0, 0]);
            end - bytes.len() as off_t
        });
        self.events.push(Event::Write { fd, offset: offset as u64, bytes });
    }

    fn truncated(&mut self, fd: c_int, length: off_t) {
        if self.open.contains_key(&fd) {
            self.events.push(Event::Truncate { fd, length: length as u64 });
        }
    }

    fn renamed(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.resolve(-1, from), self.resolve(-1, to)) {
            self.events.push(Event::Rename { from, to });
        }
    }

    fn linked(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.resolve(-1, from), self.resolve(-1, to)) {
            self.events.push(Event::Link { from, to });
        }
    }

    fn removed(&mut self, at: c_int, path: &str) {
        if let Some(path) = self.resolve(at, path) {
            self.events.push(Event::Remove { path });
        }
    }

    fn made_dir(&mut self, at: c_int, path: &str) {
        if let Some(path) = self.resolve(at, path) {
            self.events.push(Event::MakeDir { path });
        }
    }
}

fn system(number: c_long, arguments: [c_long; 5]) -> c_long {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the arguments are those that the caller gave to the C function of this very system call, whose
    // demands on them are the same; the C library's `syscall` sets `errno` as that function would.
    unsafe { libc::syscall(number, a, b, c, d, e) }
}

fn text(path: *const c_char) -> String {
    // SAFETY: only called with a path that the system has just accepted, so it is readable and ends with a zero byte.
    let path = unsafe { CStr::from_ptr(path) };
    std::ffi::OsStr::from_bytes(path.to_bytes()).to_string_lossy().into_owned()
}

fn copy_of(bytes: *const c_void, count: usize) -> Vec<u8> {
    // SAFETY: only called with what the system has just read this many bytes from.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }.to_vec()
}

fn gathered(parts: *const iovec, count: c_int, mut length: usize) -> Vec<u8> {
    // SAFETY: only called with an array that the system has just read, so it holds `count` parts.
    let parts = unsafe { std::slice::from_raw_parts(parts, count as usize) };
    let mut bytes = Vec::with_capacity(length);
    for part in parts {
        let taken = part.iov_len.min(length);
        bytes.extend(copy_of(part.iov_base, taken));
        length -= taken;
    }
    bytes
}

fn open_at(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let call = || system(libc::SYS_openat, [at.into(), path as c_long, flags.into(), mode.into(), 0]);
    call_and_record(call, |recorder, fd| recorder.opened(fd as c_int, at, &text(path), flags)) as c_int
}

fn sync(fd: c_int, call: c_long) -> c_int {
    let begun = ACTIVE.load(Ordering::SeqCst).then(|| begin_sync(fd, call == libc::SYS_fdatasync)).flatten();
    let result = system(call, [fd.into(), 0, 0, 0, 0]);
    if let Some(number) = begun.filter(|_| result == 0) {
        // Not a multiple of anything, and the same for each run.
        std::thread::sleep(Duration::from_micros(number.wrapping_mul(2_654_435_761) % SYNC_EXTRA_MICROS));
        add(Event::SyncEnd { number });
    }
    result as c_int
}

/// Not under the lock while the sync runs: others go on writing.
fn begin_sync(fd: c_int, data_only: bool) -> Option<u64> {
    let mut recorder = lock();
    let recorder = recorder.as_mut().filter(|recorder| recorder.open.contains_key(&fd))?;
    recorder.syncs += 1;
    let number = recorder.syncs;
    recorder.events.push(Event::SyncBegin { fd, number, data_only });
    Some(number)
}

/// Defines C functions of the same body under several names.
macro_rules! stand_in {
    ([$($name:ident),+] $arguments:tt -> $result:ty $body:block) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name $arguments -> $result $body
        )+
    };
}

// The C functions take the mode as a variable argument; on the platforms that we build for it comes in the same register.
stand_in!([open, open64] (path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(libc::AT_FDCWD, path, flags, mode)
});
stand_in!([openat, openat64] (at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(at, path, flags, mode)
});
stand_in!([creat, creat64] (path: *const c_char, mode: mode_t) -> c_int {
    open_at(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode)
});
stand_in!([close] (fd: c_int) -> c_int {
    call_and_record(|| system(libc::SYS_close, [fd.into(), 0, 0, 0, 0]), |recorder, _| recorder.closed(fd)) as c_int
});
stand_in!([write] (fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    let call = || system(libc::SYS_write, [fd.into(), bytes as c_long, count as c_long, 0, 0]);
    call_and_record(call, |recorder, done| recorder.wrote(fd, None, || copy_of(bytes, done as usize))) as ssize_t
});
stand_in!([writev] (fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let call = || system(libc::SYS_writev, [fd.into(), parts as c_long, count.into(), 0, 0]);
    call_and_record(call, |recorder, done| recorder.wrote(fd, None, || gathered(parts, count, done as usize)))
        as ssize_t
});
stand_in!([pwrite, pwrite64] (fd: c_int, bytes: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    let call = || system(libc::SYS_pwrite64, [fd.into(), bytes as c_long, count as c_long, offset, 0]);
    call_and_record(call, |recorder, done| recorder.wrote(fd, Some(offset), || copy_of(bytes, done as usize)))
        as ssize_t
});
stand_in!([pwritev, pwritev64] (fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    let call = || system(libc::SYS_pwritev, [fd.into(), parts as c_long, count.into(), offset, 0]);
    call_and_record(call, |recorder, done| {
        recorder.wrote(fd, Some(offset), || gathered(parts, count, done as usize));
    }) as ssize_t
});
stand_in!([ftruncate, ftruncate64] (fd: c_int, length: off_t) -> c_int {
    let call = || system(libc::SYS_ftruncate, [fd.into(), length, 0, 0, 0]);
    call_and_record(call, |recorder, _| recorder.truncated(fd, length)) as c_int
});
stand_in!([fsync] (fd: c_int) -> c_int {
    sync(fd, libc::SYS_fsync)
});
stand_in!([fdatasync] (fd: c_int) -> c_int {
    sync(fd, libc::SYS_fdatasync)
});
stand_in!([rename] (from: *const c_char, to: *const c_char) -> c_int {
    let here = c_long::from(libc::AT_FDCWD);
    let call = || system(libc::SYS_renameat2, [here, from as c_long, here, to as c_long, 0]);
    call_and_record(call, |recorder, _| recorder.renamed(&text(from), &text(to))) as c_int
});
stand_in!([link] (from: *const c_char, to: *const c_char) -> c_int {
    link_at(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0)
});
stand_in!([linkat] (at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_int) -> c_int {
    link_at(at, from, to_at, to, flags)
});
stand_in!([unlink] (path: *const c_char) -> c_int {
    remove_at(libc::AT_FDCWD, path, 0)
});
stand_in!([rmdir] (path: *const c_char) -> c_int {
    remove_at(libc::AT_FDCWD, path, libc::AT_REMOVEDIR)
});
stand_in!([unlinkat] (at: c_int, path: *const c_char, flags: c_int) -> c_int {
    remove_at(at, path, flags)
});
stand_in!([mkdir] (path: *const c_char, mode: mode_t) -> c_int {
    make_dir_at(libc::AT_FDCWD, path, mode)
});
stand_in!([mkdirat] (at: c_int, path: *const c_char, mode: mode_t) -> c_int {
    make_dir_at(at, path, mode)
});
stand_in!([copy_file_range] (
    _from: c_int, _from_at: *mut off_t, _to: c_int, _to_at: *mut off_t, _count: size_t, _flags: c_uint
) -> ssize_t {
    refuse(libc::ENOSYS)
});
stand_in!([sendfile, sendfile64] (_to: c_int, _from: c_int, _at: *mut off_t, _count: size_t) -> ssize_t {
    refuse(libc::EINVAL)
});

fn link_at(at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_int) -> c_int {
    let call = || system(libc::SYS_linkat, [at.into(), from as c_long, to_at.into(), to as c_long, flags.into()]);
    call_and_record(call, |recorder, _| recorder.linked(&text(from), &text(to))) as c_int
}

fn remove_at(at: c_int, path: *const c_char, flags: c_int) -> c_int {
    let call = || system(libc::SYS_unlinkat, [at.into(), path as c_long, flags.into(), 0, 0]);
    call_and_record(call, |recorder, _| recorder.removed(at, &text(path))) as c_int
}

fn make_dir_at(at: c_int, path: *const c_char, mode: mode_t) -> c_int {
    let call = || system(libc::SYS_mkdirat, [at.into(), path as c_long, mode.into(), 0, 0]);
    call_and_record(call, |recorder, _| recorder.made_dir(at, &text(path))) as c_int
}

fn refuse(code: c_int) -> ssize_t {
    // SAFETY: the C library gives each thread an `errno` of its own, always there.
    unsafe { *libc::__errno_location() = code };
    -1
}

//! Time and chance of a simulation.
//!
//! Owns what the program asks the system for that would differ from run to run: clocks and random bytes. Both are
//! answered here in place of the C library, so that no code of the product has to know: on a thread that simulates from the
//! virtual time and the seed, on every other by the system. Nothing else of the system is replaced. Some libraries, those of age among
//! them, ask for random bytes by the number of the call.

use std::arch::asm;
use std::cell::Cell;

use libc::{c_int, c_long, c_uint, c_void, clockid_t, size_t, ssize_t, timespec};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// The wall clock at virtual time 0, in nanoseconds since 1970. Any day is as good.
const WALL_BEGAN: i128 = 1_800_000_000 * 1_000_000_000;

/// Nanoseconds of the monotonic clock at virtual time 0: machines have run for a while when a program starts.
const BEGAN: u64 = 1_000_000_000_000;

#[derive(Clone, Copy)]
struct Face {
    /// The runtime's clock when it was made, and the virtual time then.
    began: Option<(Instant, u64)>,
    /// Nanoseconds by which the wall clock is off.
    wall_offset: i64,
}

thread_local! {
    static SIMULATES: Cell<bool> = const { Cell::new(false) };
    static FACE: Cell<Face> = const { Cell::new(Face { began: None, wall_offset: 0 }) };
    /// Virtual time where no runtime can be asked, nanoseconds.
    static NOW: Cell<u64> = const { Cell::new(BEGAN) };
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
    static DICE: Cell<u64> = const { Cell::new(0) };
}

/// From now on, this thread's clocks stand still unless they are moved, and its random bytes come from the seed.
pub fn simulate(seed: u64) {
    SIMULATES.set(true);
    DICE.set(seed ^ 0x5851_F42D_4C95_7F2D);
}

/// The clocks of one host.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    began: (Instant, u64),
    wall_offset: i64,
}

impl HostClock {
    /// Of a runtime that was just made while the virtual time was `now` nanoseconds; `first` is what its clock says.
    pub fn new(first: Instant, now: u64) -> Self {
        Self { began: (first, BEGAN + now), wall_offset: 0 }
    }

    /// Moves its wall clock.
    pub fn shift_wall(&mut self, nanos: i64) {
        self.wall_offset = self.wall_offset.saturating_add(nanos);
    }

    /// With this wall clock.
    pub fn with_wall_offset(mut self, nanos: i64) -> Self {
        self.wall_offset = nanos;
        self
    }

    /// Shows this host's clocks to whatever runs next on this thread.
    pub fn show(&self) {
        FACE.set(Face { began: Some(self.began), wall_offset: self.wall_offset });
    }
}

/// Gives the time that a right wall clock shows at so many milliseconds of virtual time; milliseconds, too.
pub fn right_wall(now: u64) -> u64 {
    (WALL_BEGAN / 1_000_000) as u64 + now
}

/// What a thread has of the simulation, for another one that goes on in its place.
#[derive(Clone, Copy)]
pub struct Carried {
    face: Face,
    now: u64,
    dice: u64,
}

/// Takes it from this thread.
pub fn carry() -> Carried {
    Carried { face: FACE.get(), now: NOW.get(), dice: DICE.get() }
}

impl Carried {
    /// Gives it to this thread.
    pub fn put(self) {
        SIMULATES.set(true);
        FACE.set(self.face);
        NOW.set(self.now);
        DICE.set(self.dice);
    }
}

/// Shows the simulator's own clock again, which says `now` nanoseconds of virtual time.
pub fn hide(now: u64) {
    FACE.set(Face { began: None, wall_offset: 0 });
    NOW.set(BEGAN + now);
}

fn monotonic() -> u64 {
    let Some((first, at)) = FACE.get().began else { return NOW.get() };
    // The runtime's clock asks the system, too, where there is no runtime to ask.
    if IS_ASKING.replace(true) {
        return NOW.get();
    }
    let now = match Handle::try_current() {
        Ok(_) => at + u64::try_from((Instant::now() - first).as_nanos()).expect("no simulation takes 500 years"),
        Err(_) => NOW.get(),
    };
    IS_ASKING.set(false);
    NOW.set(now);
    now
}

fn next_random() -> u64 {
    let state = DICE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    DICE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// In place of the C library's.
///
/// # Safety
/// As there: `time` points to room for a `timespec`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let nanos = match clock {
        _ if !SIMULATES.get() => None,
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => {
            let since_start = i128::from(monotonic() - BEGAN) + i128::from(FACE.get().wall_offset);
            Some((WALL_BEGAN + since_start) as u64)
        }
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_BOOTTIME => {
            Some(monotonic())
        }
        _ => None,
    };
    match nanos {
        Some(nanos) => {
            let (seconds, rest) = ((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64);
            // SAFETY: the caller says that there is room.
            unsafe { time.write(timespec { tv_sec: seconds, tv_nsec: rest }) };
            0
        }
        // SAFETY: the same call with the same arguments.
        None => unsafe { syscall(libc::SYS_clock_gettime, clock.into(), time as c_long, 0, 0, 0, 0) as c_int },
    }
}

/// In place of the C library's.
///
/// # Safety
/// As there: `buffer` points to room for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    if !SIMULATES.get() {
        // SAFETY: the same call with the same arguments.
        return unsafe {
            syscall(libc::SYS_getrandom, buffer as c_long, length as c_long, flags.into(), 0, 0, 0) as ssize_t
        };
    }
    for place in 0..length {
        // SAFETY: the caller says that there is room.
        unsafe { buffer.cast::<u8>().add(place).write(next_random() as u8) };
    }
    length as ssize_t
}

/// The system itself. Gives a negative error number where it refuses.
///
/// # Safety
/// What is given is what the call takes.
#[cfg(target_arch = "x86_64")]
unsafe fn system(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let result;
    // SAFETY: the caller's arguments are where the system looks for them, and it changes no other register than those that are named.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
             lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// As above.
///
/// # Safety
/// What is given is what the call takes.
#[cfg(target_arch = "aarch64")]
unsafe fn system(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let result;
    // SAFETY: the caller's arguments are where the system looks for them, and it changes no other register than that of its result.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
             options(nostack));
    }
    result
}

/// In place of the C library's. What it takes varies with the call, six at most; on the platforms that we build for, each comes where it would
/// if it were always given, and what was not given is passed on unread. Allocators call it before the program begins: nothing here needs
/// more than the stack.
///
/// # Safety
/// As there: what is given is what the call takes.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_getrandom && SIMULATES.get() {
        // SAFETY: the caller says that there is room for `b` bytes at `a`.
        return unsafe { getrandom(a as *mut c_void, b as size_t, c as c_uint) } as c_long;
    }
    // SAFETY: the same call with the same arguments.
    let result = unsafe { system(number, [a, b, c, d, e, f]) };
    if (-4_095..0).contains(&result) {
        // SAFETY: the C library gives each thread an `errno` of its own, always there.
        unsafe { *libc::__errno_location() = -result as c_int };
        return -1;
    }
    result
}

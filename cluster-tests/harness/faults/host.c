/* What the machine of a node does to it, as a test says so: a disk that is slow, fails, runs full or takes only parts of writes,
 * and a wall clock that jumps. Preloaded into the process.
 *
 * The page of numbers that rules it is a file that both sides have mapped, so a test may change it at any time. Only what lies
 * below the data directory is hurt. Each call goes on to the kernel by itself, so nothing here can end in itself. The
 * monotonic clock stays what it is: sleeping threads wait by the kernel's clock, so a process with another one is not what
 * any real machine is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The same order as `Field` in src/host.rs. */
struct page {
    _Atomic int64_t wall_shift_us;    /* how far the wall clock is ahead */
    _Atomic int64_t sync_delay_us;    /* each sync takes so much longer */
    _Atomic int64_t sync_jitter_us;   /* and up to so much more */
    _Atomic int64_t write_delay_us;   /* each write takes so much longer */
    _Atomic int64_t sync_failures;    /* so many syncs fail yet; below zero: all */
    _Atomic int64_t write_failures;   /* the same of writes */
    _Atomic int64_t room_limited;     /* whether `room_bytes` counts */
    _Atomic int64_t room_bytes;       /* bytes that files may grow by yet */
    _Atomic int64_t short_every;      /* one in so many writes takes only its first half; 0: none */
    _Atomic int64_t log_spared;       /* whether no write and no sync of the log fails */
    /* What happened so far. */
    _Atomic int64_t syncs;
    _Atomic int64_t writes;
    _Atomic int64_t failed;
    _Atomic int64_t refused;
    _Atomic int64_t shortened;
    _Atomic int64_t clock_looks;
};

#define FILES 65536

static struct page *page;
static char data_dir[PATH_MAX];
static size_t data_dir_length;
/* Of each descriptor: whether it was opened below the data directory, and there in the log's part of it. */
enum { ELSEWHERE, DATA, LOG };
static _Atomic unsigned char kind_of[FILES];

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("HOST_PAGE"), *dir = getenv("HOST_DATA");
    if (!path || !dir || strlen(dir) >= sizeof data_dir) {
        abort();
    }
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        abort();
    }
    syscall(SYS_close, file);
    strcpy(data_dir, dir);
    data_dir_length = strlen(data_dir);
    page = mapped;
}

static int64_t now_us(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void wait_us(int64_t micros) {
    if (micros > 0) {
        struct timespec wait = {.tv_sec = micros / 1000000, .tv_nsec = micros % 1000000 * 1000};
        syscall(SYS_nanosleep, &wait, NULL);
    }
}

static int fail(int error, _Atomic int64_t *count) {
    (*count)++;
    errno = error;
    return -1;
}

/* Takes one of the failures that are left. */
static int fails(int file, _Atomic int64_t *failures) {
    if (page->log_spared && kind_of[file] == LOG) {
        return 0;
    }
    int64_t left = *failures;
    while (left > 0 && !atomic_compare_exchange_weak(failures, &left, left - 1)) {
    }
    return left != 0;
}

/* ---- which files ---- */

static int kind_at(int dir, const char *path) {
    if (path[0] != '/') {
        return dir >= 0 && dir < FILES ? kind_of[dir] : ELSEWHERE;
    }
    if (strncmp(path, data_dir, data_dir_length) != 0 || (path[data_dir_length] != '/' && path[data_dir_length])) {
        return ELSEWHERE;
    }
    /* `log`, what is in it, and `log.mark`. */
    const char *rest = path + data_dir_length;
    return strncmp(rest, "/log", 4) == 0 && strchr("/.", rest[4]) ? LOG : DATA;
}

/* Numbers of descriptors are used again, some of them for sockets, behind the back of `close` below. */
static int is_data_file(int file, struct stat *found) {
    return page && file >= 0 && file < FILES && kind_of[file] && fstat(file, found) == 0 && S_ISREG(found->st_mode);
}

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    int below = page ? kind_at(dir, path) : ELSEWHERE;
    struct stat found;
    if (below && (flags & O_CREAT) && page->room_limited && page->room_bytes <= 0 && fstatat(dir, path, &found, 0) != 0) {
        return fail(ENOSPC, &page->refused);
    }
    int file = (int)syscall(SYS_openat, dir, path, flags, mode);
    if (file >= 0 && file < FILES) {
        kind_of[file] = (unsigned char)below;
    }
    return file;
}

#define OPEN(dir, path, flags)                                                                                         \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }                                                                                                                  \
    return open_at(dir, path, flags, mode)

int open(const char *path, int flags, ...) { OPEN(AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPEN(AT_FDCWD, path, flags); }
int openat(int dir, const char *path, int flags, ...) { OPEN(dir, path, flags); }
int openat64(int dir, const char *path, int flags, ...) { OPEN(dir, path, flags); }

int close(int file) {
    if (file >= 0 && file < FILES) {
        kind_of[file] = 0;
    }
    return (int)syscall(SYS_close, file);
}

/* ---- room ---- */

/* Takes room for growth, all or nothing. */
static int take_room(int64_t bytes) {
    if (!page->room_limited || bytes <= 0) {
        return 1;
    }
    int64_t left = page->room_bytes;
    do {
        if (left < bytes) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&page->room_bytes, &left, left - bytes));
    return 1;
}

static void give_room(int64_t bytes) {
    if (page->room_limited && bytes > 0) {
        page->room_bytes += bytes;
    }
}

/* What removing a name gives back. */
static int64_t bytes_of(int dir, const char *path) {
    struct stat found;
    int is_last = fstatat(dir, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1;
    return is_last ? found.st_size : 0;
}

int unlink(const char *path) {
    int64_t bytes = page && kind_at(AT_FDCWD, path) ? bytes_of(AT_FDCWD, path) : 0;
    int result = (int)syscall(SYS_unlink, path);
    if (result == 0 && page) {
        give_room(bytes);
    }
    return result;
}

int unlinkat(int dir, const char *path, int flags) {
    int64_t bytes = page && kind_at(dir, path) ? bytes_of(dir, path) : 0;
    int result = (int)syscall(SYS_unlinkat, dir, path, flags);
    if (result == 0 && page) {
        give_room(bytes);
    }
    return result;
}

static int truncate_to(int file, off_t length) {
    struct stat found;
    int64_t shrinks = is_data_file(file, &found) ? found.st_size - length : 0;
    int result = (int)syscall(SYS_ftruncate, file, length);
    if (result == 0 && page) {
        give_room(shrinks);
    }
    return result;
}

int ftruncate(int file, off_t length) { return truncate_to(file, length); }
int ftruncate64(int file, off64_t length) { return truncate_to(file, length); }

/* Room that is reserved behind the end of a file is taken when it is written. */
static int allocate(int file, int mode, off_t offset, off_t length) {
    struct stat found;
    if (is_data_file(file, &found) && page->room_limited) {
        int64_t growth = offset + length - found.st_size;
        int has_room = (mode & FALLOC_FL_KEEP_SIZE) ? page->room_bytes >= growth : take_room(growth);
        if (!has_room) {
            return fail(ENOSPC, &page->refused);
        }
    }
    return (int)syscall(SYS_fallocate, file, mode, offset, length);
}

int fallocate(int file, int mode, off_t offset, off_t length) { return allocate(file, mode, offset, length); }
int fallocate64(int file, int mode, off64_t offset, off64_t length) { return allocate(file, mode, offset, length); }
int posix_fallocate(int file, off_t offset, off_t length) { return allocate(file, 0, offset, length) ? errno : 0; }
int posix_fallocate64(int file, off64_t offset, off64_t length) { return allocate(file, 0, offset, length) ? errno : 0; }

/* Shows no more room than there is left. */
static void limit(const char *path, unsigned long block, fsblkcnt_t *free, fsblkcnt_t *available) {
    if (!page || !page->room_limited || !kind_at(AT_FDCWD, path) || block == 0) {
        return;
    }
    int64_t room = page->room_bytes;
    fsblkcnt_t left = room > 0 ? (fsblkcnt_t)room / block : 0;
    *free = *free < left ? *free : left;
    *available = *available < left ? *available : left;
}

int statvfs(const char *path, struct statvfs *found) {
    static int (*real)(const char *, struct statvfs *);
    if (!real) {
        real = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    }
    int result = real(path, found);
    if (result == 0) {
        limit(path, found->f_frsize, &found->f_bfree, &found->f_bavail);
    }
    return result;
}

int statvfs64(const char *path, struct statvfs64 *found) {
    /* The same structure on machines of 64 bits. */
    return statvfs(path, (struct statvfs *)found);
}

/* ---- writes and syncs ---- */

/* What a write may take of its bytes: all, its first half in whole blocks, or nothing. */
static ssize_t admit(int file, size_t bytes, off_t offset, int is_append) {
    struct stat found;
    if (bytes == 0 || !is_data_file(file, &found)) {
        return (ssize_t)bytes;
    }
    int64_t number = ++page->writes;
    wait_us(page->write_delay_us);
    if (fails(file, &page->write_failures)) {
        return fail(EIO, &page->failed);
    }
    int64_t every = page->short_every;
    int is_direct = (fcntl(file, F_GETFL) & O_DIRECT) != 0;
    size_t half = is_direct ? bytes / 2 / 4096 * 4096 : bytes / 2;
    if (every > 0 && number % every == 0 && half > 0) {
        page->shortened++;
        bytes = half;
    }
    int64_t end = is_append ? found.st_size + (int64_t)bytes : offset + (int64_t)bytes;
    if (!take_room(end - found.st_size)) {
        return fail(ENOSPC, &page->refused);
    }
    return (ssize_t)bytes;
}

ssize_t write(int file, const void *from, size_t bytes) {
    ssize_t admitted = admit(file, bytes, 0, 1);
    return admitted < 0 ? -1 : syscall(SYS_write, file, from, (size_t)admitted);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset) {
    ssize_t admitted = admit(file, bytes, offset, 0);
    return admitted < 0 ? -1 : syscall(SYS_pwrite64, file, from, (size_t)admitted, offset);
}

ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t offset) { return pwrite(file, from, bytes, offset); }

/* Directories are synced, too. */
static int before_sync(int file) {
    if (!page || file < 0 || file >= FILES || !kind_of[file]) {
        return 0;
    }
    page->syncs++;
    int64_t jitter = page->sync_jitter_us;
    wait_us(page->sync_delay_us + (jitter > 0 ? now_us() * 7919 % jitter : 0));
    return fails(file, &page->sync_failures) ? fail(EIO, &page->failed) : 0;
}

int fsync(int file) { return before_sync(file) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return before_sync(file) ? -1 : (int)syscall(SYS_fdatasync, file); }

/* ---- wall clock ---- */

static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && page && is_wall(clock)) {
        page->clock_looks++;
        int64_t nanos = (int64_t)now->tv_nsec + page->wall_shift_us % 1000000 * 1000;
        int64_t carry = nanos < 0 ? -1 : nanos >= 1000000000 ? 1 : 0;
        now->tv_sec += page->wall_shift_us / 1000000 + carry;
        now->tv_nsec = (long)(nanos - carry * 1000000000);
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec wall;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &wall);
    if (result == 0) {
        now->tv_sec = wall.tv_sec;
        now->tv_usec = wall.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *into) {
    struct timespec wall;
    time_t now = clock_gettime(CLOCK_REALTIME, &wall) == 0 ? wall.tv_sec : (time_t)-1;
    if (into) {
        *into = now;
    }
    return now;
}

/* Fails or kills a process at its k-th write, open, rename, fsync or unlink below a folder. A hard
 * link counts as a rename.
 *
 * Loaded with LD_PRELOAD and armed by environment variables, which are read at every call, so that
 * a fork of a process that has loaded everything can be armed:
 *   FAULT_FOLDER  only calls on paths below it count
 *   FAULT_COUNTS  a file of 8 int64: calls by operation, and in the last place how often it fired
 *   FAULT_AT      "OPERATION K KIND": write|open|rename|fsync|unlink, from 1 on, EIO|ENOSPC|KILL|TERM
 * ENOSPC lasts from the k-th call on, as a full disk does: for writes, and for opens that create.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, OPEN, RENAME, FSYNC, UNLINK, FIRED = 7 };
static const char *NAMES[] = {"write", "open", "rename", "fsync", "unlink"};

static int64_t *counts(void) {
    static int64_t *mapped = NULL;
    if (!mapped) {
        const char *path = getenv("FAULT_COUNTS");
        if (!path) return NULL;
        int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
        if (file < 0) return NULL;
        void *found = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        syscall(SYS_close, file);
        if (found == MAP_FAILED) return NULL;
        mapped = found;
    }
    return mapped;
}

static int below(const char *folder, int at, const char *path) {
    char base[4096] = "", whole[8192];
    if (path[0] != '/') {
        char link[64];
        if (at == AT_FDCWD) strcpy(link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
        path = whole;
    }
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* What is to happen to this call: 0 nothing, 'F' fails with errno set, 'K' kill, 'T' terminate. */
static int fault(int operation, int at, const char *path, int creates) {
    const char *folder = getenv("FAULT_FOLDER");
    if (!folder) return 0;
    int before = errno;
    int64_t *seen = counts();
    char name[16], kind[16];
    long k = 0;
    const char *armed = getenv("FAULT_AT");
    if (!seen || !below(folder, at, path)) { errno = before; return 0; }
    int64_t now = __atomic_add_fetch(&seen[operation], 1, __ATOMIC_SEQ_CST);
    errno = before;
    if (!armed || sscanf(armed, "%15s %ld %15s", name, &k, kind) != 3) return 0;
    if (strcmp(name, NAMES[operation])) return 0;
    if (!strcmp(kind, "ENOSPC") ? now < k || !creates : now != k) return 0;
    __atomic_add_fetch(&seen[FIRED], 1, __ATOMIC_SEQ_CST);
    if (!strcmp(kind, "KILL")) return 'K';
    if (!strcmp(kind, "TERM")) { kill(getpid(), SIGTERM); return 0; }
    errno = !strcmp(kind, "ENOSPC") ? ENOSPC : EIO;
    return 'F';
}

static int fault_of_file(int operation, int file) {
    if (!getenv("FAULT_FOLDER")) return 0;
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n <= 0 || path[0] != '/') return 0;
    path[n] = 0;
    return fault(operation, AT_FDCWD, path, 1);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A write that fails or is killed has written half of its bytes. */
#define WRITES(file, call, half) \
    switch (fault_of_file(WRITE, file)) { \
        case 'F': { int e = errno; if (half) {} errno = e; return -1; } \
        case 'K': if (half) {} die(); \
    } \
    return call

ssize_t write(int file, const void *data, size_t n) {
    REAL(write);
    WRITES(file, real(file, data, n), real(file, data, n / 2));
}
ssize_t pwrite64(int file, const void *data, size_t n, off64_t at) {
    REAL(pwrite64);
    WRITES(file, real(file, data, n, at), real(file, data, n / 2, at));
}
ssize_t pwrite(int file, const void *data, size_t n, off_t at) { return pwrite64(file, data, n, at); }
ssize_t writev(int file, const struct iovec *parts, int n) {
    REAL(writev);
    WRITES(file, real(file, parts, n), 0);
}

#define OPENS(at, path, flags, call) \
    va_list rest; \
    va_start(rest, flags); \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
    va_end(rest); \
    switch (fault(OPEN, at, path, flags & O_CREAT)) { \
        case 'F': return -1; \
        case 'K': die(); \
    } \
    return call

int open64(const char *path, int flags, ...) { REAL(open64); OPENS(AT_FDCWD, path, flags, real(path, flags, mode)); }
int open(const char *path, int flags, ...) { REAL(open); OPENS(AT_FDCWD, path, flags, real(path, flags, mode)); }
int openat64(int at, const char *path, int flags, ...) { REAL(openat64); OPENS(at, path, flags, real(at, path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) { REAL(openat); OPENS(at, path, flags, real(at, path, flags, mode)); }

#define ONE(operation, at, path, call) \
    switch (fault(operation, at, path, 1)) { \
        case 'F': return -1; \
        case 'K': die(); \
    } \
    return call

int rename(const char *from, const char *to) { REAL(rename); ONE(RENAME, AT_FDCWD, to, real(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { REAL(renameat); ONE(RENAME, b, to, real(a, from, b, to)); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    REAL(renameat2);
    ONE(RENAME, b, to, real(a, from, b, to, flags));
}
int link(const char *from, const char *to) { REAL(link); ONE(RENAME, AT_FDCWD, to, real(from, to)); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    REAL(linkat);
    ONE(RENAME, b, to, real(a, from, b, to, flags));
}
int unlink(const char *path) { REAL(unlink); ONE(UNLINK, AT_FDCWD, path, real(path)); }
int rmdir(const char *path) { REAL(rmdir); ONE(UNLINK, AT_FDCWD, path, real(path)); }
int unlinkat(int at, const char *path, int flags) { REAL(unlinkat); ONE(UNLINK, at, path, real(at, path, flags)); }

#define SYNCS(call) \
    switch (fault_of_file(FSYNC, file)) { \
        case 'F': return -1; \
        case 'K': die(); \
    } \
    return call

int fsync(int file) { REAL(fsync); SYNCS(real(file)); }
int fdatasync(int file) { REAL(fdatasync); SYNCS(real(file)); }

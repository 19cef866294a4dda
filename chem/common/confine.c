/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#include "chem/common/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { ARCH = (int)AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCH = (int)AUDIT_ARCH_AARCH64 };
#else
enum { ARCH = 0 }; /* no filter: system calls have other numbers there */
#endif

/* ---- seccomp ---- */

/* Allowed with any arguments. Frequent calls come first. */
static const int allowed[] = {
    __NR_read,         __NR_write,           __NR_mmap,           __NR_munmap,       __NR_brk,          __NR_madvise,
    __NR_mprotect,     __NR_mremap,          __NR_setitimer,      __NR_wait4,        __NR_close,        __NR_getppid,
    __NR_rt_sigreturn, __NR_clock_gettime,   __NR_pipe2,          __NR_prctl,        __NR_exit_group,   __NR_exit,
    __NR_futex,        __NR_set_robust_list, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_sigaltstack,  __NR_restart_syscall,
    __NR_getrandom,    __NR_getpid,          __NR_gettid,         __NR_fstat,        __NR_newfstatat,   __NR_lseek,
    __NR_pread64,      __NR_readv,           __NR_writev,         __NR_dup,          __NR_dup3,         __NR_ppoll,
    __NR_getdents64,   __NR_faccessat,       __NR_readlinkat,     __NR_getcwd,       __NR_clock_getres, __NR_clock_nanosleep,
    __NR_nanosleep,    __NR_gettimeofday,    __NR_times,          __NR_getrusage,    __NR_sched_yield,  __NR_sched_getaffinity,
    __NR_uname,        __NR_sysinfo,         __NR_getuid,         __NR_geteuid,      __NR_getgid,       __NR_getegid,
    __NR_waitid,
#ifdef __NR_statx
    __NR_statx,
#endif
#ifdef __NR_rseq
    __NR_rseq,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
#ifdef __NR_fork /* calls that only older architectures have */
    __NR_fork,         __NR_vfork,           __NR_pipe,           __NR_dup2,         __NR_poll,         __NR_stat,
    __NR_lstat,        __NR_access,          __NR_readlink,       __NR_time,         __NR_arch_prctl,
#endif
};

/* Allowed only with this value of an argument; -1: the pid of the confined process. F_SETOWN and F_SETSIG would let it
 * send signals to others. */
static const struct {
    int call, arg, value;
} exact[] = {
    { __NR_tgkill, 0, -1 },     { __NR_fcntl, 1, F_DUPFD }, { __NR_fcntl, 1, F_DUPFD_CLOEXEC }, { __NR_fcntl, 1, F_GETFD },
    { __NR_fcntl, 1, F_SETFD }, { __NR_fcntl, 1, F_GETFL }, { __NR_fcntl, 1, F_SETFL },
};

/* Allowed only if none of these bits is set in an argument. */
static const struct {
    int call, arg;
    uint32_t bits;
} limited[] = {
    { __NR_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC },
#ifdef __NR_open
    { __NR_open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC },
#endif
    { __NR_clone, 0,
      CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_PARENT },
};

enum {
    N_ALLOWED = sizeof allowed / sizeof *allowed,
    N_LIMITED = sizeof limited / sizeof *limited,
    N_EXACT = sizeof exact / sizeof *exact
};

typedef struct program {
    struct sock_filter line[7 + 2 * N_ALLOWED + 5 * N_LIMITED + 5 * N_EXACT];
    unsigned short n;
} program;

static void add(program *p, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
    p->line[p->n++] = (struct sock_filter){ (uint16_t)op, (uint8_t)yes, (uint8_t)no, k };
}

static void load(program *p, size_t at) { add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0); }
static void give(program *p, uint32_t what) { add(p, BPF_RET | BPF_K, what, 0, 0); }

static int filter_calls(void)
{
    enum { EQUAL = BPF_JMP | BPF_JEQ | BPF_K, ANY_BIT = BPF_JMP | BPF_JSET | BPF_K, NOT_BELOW = BPF_JMP | BPF_JGE | BPF_K };
    const uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS, refused = SECCOMP_RET_ERRNO | EACCES, x32 = 0x40000000;
    program p = { .n = 0 };
    struct sock_fprog whole;

    load(&p, offsetof(struct seccomp_data, arch));
    add(&p, EQUAL, (uint32_t)ARCH, 1, 0);
    give(&p, unknown);
    load(&p, offsetof(struct seccomp_data, nr));
    add(&p, NOT_BELOW, x32, 0, 1);
    give(&p, unknown);
    for (int i = 0; i < N_ALLOWED; i++) {
        add(&p, EQUAL, (uint32_t)allowed[i], 0, 1);
        give(&p, SECCOMP_RET_ALLOW);
    }
    for (int i = 0; i < N_EXACT; i++) {
        add(&p, EQUAL, (uint32_t)exact[i].call, 0, 4);
        load(&p, offsetof(struct seccomp_data, args) + 8 * (size_t)exact[i].arg);
        add(&p, EQUAL, exact[i].value < 0 ? (uint32_t)getpid() : (uint32_t)exact[i].value, 0, 1);
        give(&p, SECCOMP_RET_ALLOW);
        load(&p, offsetof(struct seccomp_data, nr));
    }
    for (int i = 0; i < N_LIMITED; i++) { /* the low half of the argument: little-endian */
        add(&p, EQUAL, (uint32_t)limited[i].call, 0, 4);
        load(&p, offsetof(struct seccomp_data, args) + 8 * (size_t)limited[i].arg);
        add(&p, ANY_BIT, limited[i].bits, 0, 1);
        give(&p, refused);
        give(&p, SECCOMP_RET_ALLOW);
    }
    give(&p, unknown);
    whole = (struct sock_fprog){ p.n, p.line };
    return ARCH != 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) == 0;
}

/* ---- Landlock: numbers and structures of its interface, because older headers lack the newer ones ---- */

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, ASK_VERSION = 1, PATH_BENEATH = 1 };
enum { READ_FILE = 1 << 2, READ_FOLDER = 1 << 3 };

struct ruleset {
    uint64_t files, net, scoped;
};

struct beneath {
    uint64_t access;
    int32_t folder;
} __attribute__((packed));

/* Withdraws all rights that the kernel's version supports. */
static struct ruleset rights(long version)
{
    int n_files = 13;

    if (version >= 5)
        n_files = 16;
    else if (version >= 2)
        n_files = version >= 3 ? 15 : 14;
    return (struct ruleset){ (UINT64_C(1) << n_files) - 1, version >= 4 ? 3 : 0, version >= 6 ? 3 : 0 };
}

static void allow_reading(int set, const char *folder)
{
    struct beneath b = { READ_FILE | READ_FOLDER, open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) };

    if (b.folder < 0)
        return;
    (void)syscall(ADD_RULE, set, PATH_BENEATH, &b, 0); /* if refused, the folder stays inaccessible */
    (void)close(b.folder);
}

static int close_files(const char *const *folders)
{
    const long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    const struct ruleset all = rights(version);
    size_t size = 8; /* bytes of the struct that this version knows */
    int set, done;

    if (version < 1)
        return 0;
    if (version >= 4)
        size = version >= 6 ? 24 : 16;
    set = (int)syscall(CREATE_RULESET, &all, size, 0); /* -1: the calls below fail */
    for (int i = 0; folders[i] != NULL; i++)
        allow_reading(set, folders[i]);
    done = syscall(RESTRICT_SELF, set, 0) == 0;
    (void)close(set);
    return done;
}

int ch_confine(const char *const *folders)
{
    const struct rlimit none = { 0, 0 };
    int in_force = 0;

    if (setrlimit(RLIMIT_FSIZE, &none) == 0)
        in_force |= CH_CONFINED_GROWTH;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return in_force;
    if (close_files(folders))
        in_force |= CH_CONFINED_FILES;
    if (filter_calls()) /* last, because it forbids the calls above */
        in_force |= CH_CONFINED_CALLS;
    return in_force;
}

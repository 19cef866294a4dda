/* tests/golden/refused_places.h - makes each call of SQLite, an arena or another room fail once, by its place in the code: in one run
 * when the run first reaches that place, in another when it reaches it again. In a loop, the first pass may do without what it asked for
 * where a later one ends the run.
 *
 * Link it with -rdynamic, -Wl,--wrap of what asks for memory and of the functions of refused_functions.inc, and include it once. Call
 * functions_read first, then refusing before each run. With SHOW=1 in the environment the tests print every place. Functions of the
 * pipeline have tests of their own. */
#ifndef REFUSED_PLACES_H
#define REFUSED_PLACES_H

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/file.h"
#include "pipeline/store/db.h"
#include "tests/unit/entries.h"
#include "tests/told.h"
#include "tests/unit/held.h"

/* ---- whose code a place is ---- */

typedef struct function {
    uintptr_t at;
    bool ours;     /* it is of stages or the library, or static and behind one that is */
    uint32_t hash; /* of its name */
} function;

static function *functions; /* all that are seen by other files, by address */
static size_t n_functions;

static int compare_functions(const void *a, const void *b)
{
    const function *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool is_ours(const char *name)
{
    return strncmp(name, "molsieve_", 9) == 0 || (strncmp(name, "st_", 3) == 0 && strcmp(name, "st_run_command") != 0);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash >> 8;
}

/* The linker's table of this program, to look places up in; dladdr, which walks through it, takes longer than all else here. */
static void functions_read(void)
{
    Dl_info here = { 0 };
    pl_arena *mem = pl_arena_new(1 << 20);
    pl_bytes file = { 0 };
    const Elf64_Ehdr *head;
    const Elf64_Shdr *part;

    assert_true(dladdr((const void *)(uintptr_t)functions_read, &here) != 0 || here.dli_fbase == NULL);
    assert_int_equal(pl_file_read(&file, "/proc/self/exe", mem, NULL), PL_OK);
    head = (const Elf64_Ehdr *)(const void *)file.data;
    part = (const Elf64_Shdr *)(const void *)(file.data + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(file.data + part[i].sh_offset);
        size_t n = part[i].sh_type == SHT_SYMTAB ? part[i].sh_size / sizeof *symbol : 0;
        const char *name = (const char *)file.data + part[part[i].sh_link].sh_offset;
        functions = n > 0 ? calloc(n, sizeof *functions) : functions;
        for (size_t k = 0; k < n; k++)
            if (ELF64_ST_TYPE(symbol[k].st_info) == STT_FUNC && ELF64_ST_BIND(symbol[k].st_info) == STB_GLOBAL &&
                symbol[k].st_value != 0)
                functions[n_functions++] = (function){ (uintptr_t)here.dli_fbase + symbol[k].st_value,
                                                       is_ours(name + symbol[k].st_name), hash_of(name + symbol[k].st_name) };
    }
    pl_arena_free(mem);
    assert_true(n_functions > 1000);
    qsort(functions, n_functions, sizeof *functions, compare_functions);
}

static const function *function_of(uintptr_t place)
{
    size_t low = 0, high = n_functions;

    while (high - low > 1) {
        const size_t mid = (low + high) / 2;
        if (functions[mid].at <= place)
            low = mid;
        else
            high = mid;
    }
    return &functions[low];
}

static bool is_counted(const void *place) { return n_functions > 0 && function_of((uintptr_t)place)->ours; }

/* ---- parts of a test ---- */

static int part, n_parts;

/* The program's words, as `2 8`: part 2 of 8. scripts/mutate has no time for a test as long as all of them. */
static inline void part_read(int argc, char **argv)
{
    part = argc == 3 ? atoi(argv[1]) : 0;
    n_parts = argc == 3 ? atoi(argv[2]) : 0;
    if (part < 1 || part > n_parts) {
        (void)fprintf(stderr, "usage: %s PART PARTS, with PARTS as in tests/stages.cmake, such as 2 8\n", argv[0]);
        exit(2);
    }
}

/* Whether the k-th of n things is of this part. */
static inline bool is_of_part(size_t k, size_t n) { return k * (size_t)n_parts / n + 1 == (size_t)part; }

/* ---- places: the addresses behind calls ---- */

/* Places that a run or a command does without: as many as were counted with gcc 12. Others put code together differently, so that one place may be two. */
#if __GNUC__ == 12 && !defined(__SANITIZE_ADDRESS__)
enum { PLACES_MORE = 0 };
#else
enum { PLACES_MORE = 20 };
#endif

enum { PLACES_MAX = 1 << 13 };

static struct {
    uintptr_t at;      /* 0: none */
    uint16_t once : 1, /* it was refused when a run came to it */
        twice : 1;     /* and when one came to it again */
    int run;           /* the last that came to it */
} seen[PLACES_MAX];    /* in a table by hash */
static int n_seen, this_run;
static int share, n_shares; /* of the functions with places; 0: all */
static atomic_bool armed;
static const void *where;        /* the place that was refused */
static int pass;                 /* 0: when the run came to it, 1: when it came to it again */
static const char *_Atomic what; /* was refused in this run; NULL: nothing */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static size_t told[2]; /* bytes of standard output and of standard error when it was refused */

/* Whether this run is at a place that no run was refused, or again at one that no run was refused again. */
static bool is_new(uintptr_t place)
{
    size_t i = (place * 0x9e3779b97f4a7c15u) >> 51;
    bool again;

    while (seen[i].at != 0 && seen[i].at != place)
        i = (i + 1) % PLACES_MAX;
    if (seen[i].at == 0) {
        assert_true(n_seen < PLACES_MAX / 2);
        seen[i].at = place;
        n_seen++;
    }
    again = seen[i].run == this_run;
    seen[i].run = this_run;
    if (n_shares > 0 && function_of(place)->hash % (uint32_t)n_shares != (uint32_t)share)
        return false;
    if (again ? seen[i].twice : seen[i].once)
        return false;
    pass = again;
    if (again)
        seen[i].twice = true;
    else
        seen[i].once = true;
    return true;
}

static size_t bytes_told(int fd)
{
    struct stat s;

    (void)fflush(stdout);
    assert_int_equal(fstat(fd, &s), 0);
    return (size_t)s.st_size;
}

/* A run begins, in which the first new place is refused. */
static void refusing(void)
{
    what = NULL;
    where = NULL;
    this_run++;
    atomic_store(&armed, true);
}

static bool refuse(const void *place, const char *kind)
{
    bool yes = false;

    if (!atomic_load(&armed) || what != NULL || !is_counted(place))
        return false;
    while (atomic_flag_test_and_set(&busy))
        ;
    if (what == NULL && is_new((uintptr_t)place)) {
        what = kind;
        where = place;
        yes = true;
        told[0] = bytes_told(STDOUT_FILENO);
        told[1] = bytes_told(STDERR_FILENO);
    }
    atomic_flag_clear(&busy);
    return yes;
}

#define HERE __builtin_return_address(0)

_Static_assert(PL_EIO == 6, "as in FUNCTION");
int refused_here(const void *const *frame, int err);

/* err: the place of the pl_error among the arguments, of which FUNCTION stored the first six below the frame. */
int refused_here(const void *const *frame, int err)
{
    if (!refuse(frame[1], "it was refused"))
        return 0;
    (void)pl_fail((pl_error *)(uintptr_t)(err < 6 ? frame[-1 - err] : frame[2 + err - 6]), PL_EIO, "it was refused");
    return 1;
}

/* A function that returns PL_EIO without being called where refused_here says so. It keeps all registers that may have arguments. */
#define FUNCTION(name, err)                                                                                                 \
    __asm__(".text\n.globl __wrap_" #name "\n.type __wrap_" #name ", @function\n__wrap_" #name ":\n"                        \
            "push %rbp\nmov %rsp, %rbp\nsub $112, %rsp\nmov %rdi, -8(%rbp)\nmov %rsi, -16(%rbp)\nmov %rdx, -24(%rbp)\n"     \
            "mov %rcx, -32(%rbp)\nmov %r8, -40(%rbp)\nmov %r9, -48(%rbp)\nmov %rax, -56(%rbp)\nmovsd %xmm0, -64(%rbp)\n"    \
            "movsd %xmm1, -72(%rbp)\nmovsd %xmm2, -80(%rbp)\nmovsd %xmm3, -88(%rbp)\n"                                      \
            "mov %rbp, %rdi\nmov $" #err ", %esi\ncall refused_here@PLT\n"                                                  \
            "test %eax, %eax\njnz 1f\nmov -8(%rbp), %rdi\nmov -16(%rbp), %rsi\nmov -24(%rbp), %rdx\nmov -32(%rbp), %rcx\n"  \
            "mov -40(%rbp), %r8\nmov -48(%rbp), %r9\nmov -56(%rbp), %rax\nmovsd -64(%rbp), %xmm0\nmovsd -72(%rbp), %xmm1\n" \
            "movsd -80(%rbp), %xmm2\nmovsd -88(%rbp), %xmm3\nleave\njmp __real_" #name "@PLT\n1:\nmov $6, %eax\nleave\nret\n");

#include "golden/refused_functions.inc"

void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);
pl_arena *__real_pl_arena_new(size_t block_bytes);
pl_arena *__wrap_pl_arena_new(size_t block_bytes);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return refuse(HERE, "memory") ? NULL : __real_pl_arena_get(mem, n, size);
}

pl_arena *__wrap_pl_arena_new(size_t block_bytes) { return refuse(HERE, "memory") ? NULL : __real_pl_arena_new(block_bytes); }

bool __real_pl_db_next(sqlite3_stmt *st, pl_code *code, pl_error *err);
bool __wrap_pl_db_next(sqlite3_stmt *st, pl_code *code, pl_error *err);

bool __wrap_pl_db_next(sqlite3_stmt *st, pl_code *code, pl_error *err)
{
    if (*code != PL_OK || !refuse(HERE, "it was refused"))
        return __real_pl_db_next(st, code, err);
    *code = pl_fail(err, PL_EIO, "it was refused");
    return false;
}

int memory_refused_here(const void *const *frame);
int memory_refused_here(const void *const *frame) { return refuse(frame[1], "memory"); }

int text_refused_here(const void *const *frame);

/* The text lacks its second half from now on. */
int text_refused_here(const void *const *frame)
{
    pl_text *t = (pl_text *)(uintptr_t)frame[-1];

    if (t->refused || !refuse(frame[1], "memory"))
        return 0;
    t->refused = true;
    t->len /= 2;
    if (t->s != NULL)
        t->s[t->len] = '\0';
    return 1;
}

/* A function that returns NULL or false, as it does without memory, where `refused` says so. It may have any arguments. */
#define MEMORY(name, refused)                                                                                            \
    __asm__(".text\n.globl __wrap_" #name "\n.type __wrap_" #name ", @function\n__wrap_" #name ":\n"                     \
            "push %rbp\nmov %rsp, %rbp\nsub $128, %rsp\nmov %rdi, -8(%rbp)\nmov %rsi, -16(%rbp)\nmov %rdx, -24(%rbp)\n"  \
            "mov %rcx, -32(%rbp)\nmov %r8, -40(%rbp)\nmov %r9, -48(%rbp)\nmov %rax, -56(%rbp)\nmovsd %xmm0, -64(%rbp)\n" \
            "movsd %xmm1, -72(%rbp)\nmovsd %xmm2, -80(%rbp)\nmovsd %xmm3, -88(%rbp)\nmovsd %xmm4, -96(%rbp)\n"           \
            "movsd %xmm5, -104(%rbp)\nmovsd %xmm6, -112(%rbp)\nmovsd %xmm7, -120(%rbp)\n"                                \
            "mov %rbp, %rdi\ncall " #refused "@PLT\ntest %eax, %eax\njnz 1f\n"                                           \
            "mov -8(%rbp), %rdi\nmov -16(%rbp), %rsi\nmov -24(%rbp), %rdx\nmov -32(%rbp), %rcx\nmov -40(%rbp), %r8\n"    \
            "mov -48(%rbp), %r9\nmov -56(%rbp), %rax\nmovsd -64(%rbp), %xmm0\nmovsd -72(%rbp), %xmm1\n"                  \
            "movsd -80(%rbp), %xmm2\nmovsd -88(%rbp), %xmm3\nmovsd -96(%rbp), %xmm4\nmovsd -104(%rbp), %xmm5\n"          \
            "movsd -112(%rbp), %xmm6\nmovsd -120(%rbp), %xmm7\nleave\njmp __real_" #name                                 \
            "@PLT\n1:\nxor %eax, %eax\nleave\nret\n");

MEMORY(pl_sprintf, memory_refused_here)
MEMORY(pl_strdup, memory_refused_here)
MEMORY(pl_strndup, memory_refused_here)
MEMORY(pl_text_ok, text_refused_here)
MEMORY(calloc, memory_refused_here)
MEMORY(malloc, memory_refused_here)
MEMORY(realloc, memory_refused_here)

/* Of the function that the linker exports before a place: what is static is called as that before it. */
static const char *name_of(const void *place)
{
    Dl_info at = { 0 };

    if (place == NULL)
        return "nothing was refused";
    return dladdr(place, &at) != 0 && at.dli_sname != NULL ? at.dli_sname : "?";
}

/* ---- messages ---- */

/* How often the program told something after the refusal; lists of problems, which begin with a place, end with one line that counts. */
static inline int n_told(const said *s)
{
    int n = 0;

    for (const char *at = pl_text_str(&s->err) + told[1]; (at = strstr(at, "molsieve: ")) != NULL; at++)
        n++;
    return n;
}

/* ---- what a command leaves behind ---- */

/* Starts the program again, with one heap for all threads and nothing kept for each, so that what is used is what was not given back. */
static inline void count_memory(char **argv)
{
    if (getenv("GLIBC_TUNABLES") == NULL) {
        assert_int_equal(setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1), 0);
        (void)execv("/proc/self/exe", argv);
    }
}

/* A call may keep memory for the next one, but not each of three. Returns the status of the last one. */
static inline int leaves_nothing(const char *words)
{
    const int open = count_in("/proc/self/fd");
    size_t used[4];
    int status = -1;

    for (int i = 0; i < 4; i++) {
        said s = say(words);
        status = s.status;
        said_free(&s);
        used[i] = held_bytes();
    }
    if (count_in("/proc/self/fd") != open)
        fail_msg("%s: %d files are open, %d before", words, count_in("/proc/self/fd"), open);
    if (used[1] < used[2] && used[2] < used[3])
        fail_msg("%s: %zu bytes are kept, then %zu, then %zu", words, used[1], used[2], used[3]);
    return status;
}

#endif

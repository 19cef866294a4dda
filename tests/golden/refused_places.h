/* tests/golden/refused_places.h - refuses once each place that asks SQLite, an arena or another room for something.
 *
 * Link it with -rdynamic, -Wl,--wrap of pl_arena_get and pl_arena_new and of the functions of refused_functions.inc, and include it once. */
#ifndef REFUSED_PLACES_H
#define REFUSED_PLACES_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/file.h"

/* ---- places: the addresses behind calls ---- */

enum { PLACES_MAX = 1 << 13 };

static uintptr_t seen[PLACES_MAX]; /* in a table by hash; 0: none */
static int n_seen;
static atomic_bool armed;
static const void *where;        /* the place that was refused */
static const char *_Atomic what; /* was refused in this run; NULL: nothing */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static bool is_new(uintptr_t place)
{
    size_t i = (place * 0x9e3779b97f4a7c15u) >> 51;

    while (seen[i] != 0 && seen[i] != place)
        i = (i + 1) % PLACES_MAX;
    if (seen[i] == place)
        return false;
    assert_true(n_seen < PLACES_MAX / 2);
    seen[i] = place;
    n_seen++;
    return true;
}

static bool is_counted(const void *place); /* by the program that includes this */

/* The first new place of a run is refused. */
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

/* Of the function that the linker exports before a place: what is static is called as that before it. */
static const char *name_of(const void *place)
{
    Dl_info at = { 0 };

    if (place == NULL)
        return "nothing was refused";
    return dladdr(place, &at) != 0 && at.dli_sname != NULL ? at.dli_sname : "?";
}

static void write_text(const char *path, const char *text)
{
    pl_error err = { 0 };

    assert_int_equal(pl_file_write(path, (pl_bytes){ (const unsigned char *)text, strlen(text) }, &err), PL_OK);
}

#endif

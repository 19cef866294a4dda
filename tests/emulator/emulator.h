/* tests/emulator/emulator.h - CUDA kernels as ordinary C++ on one host thread.
 *
 * Every thread of a block is a fiber. A barrier, a shuffle or an mma hands over
 * to the next fiber, in an order that MOLSIEVE_EMULATOR_SEED chooses (0: first to
 * last, 1: last to first, blocks too, others: warps in any order, each as far as it comes,
 * and asynchronous copies arrive at once), so that a missing barrier changes results. Dynamic
 * shared memory is full of NaN before every block, static before every launch. A barrier that not all threads reach, or
 * that some can no longer reach, ends the program with the kernel, block and thread; so do
 * vector accesses off their alignment, launches that no device takes and more dynamic shared
 * memory than a kernel was allowed. Products of matrices cut off what tensor cores cut off
 * (matrix.h). Compiled with ASan and UBSan the kernels' accesses are checked like any others;
 * ThreadSanitizer takes every fiber for a thread and reports what no barrier orders within a
 * block, lanes of a warp too.
 *
 * MOLSIEVE_EMULATOR_TRACE=1: a line for every launch.
 *
 * It cannot show: the order of memory between blocks, what the asynchronous copies of two
 * threads do to each other, speed. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define EMU_ASAN 1
#else
#define EMU_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define EMU_TSAN 1
#define EMU_OWN __attribute__((no_sanitize_thread)) /* the emulator's own state belongs to no thread */
#define EMU_RELEASE(p) __tsan_release(p)
#define EMU_ACQUIRE(p) __tsan_acquire(p)
#else
#define EMU_TSAN 0
#define EMU_OWN
#define EMU_RELEASE(p) (void)(p)
#define EMU_ACQUIRE(p) (void)(p)
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

/* Static shared memory. Threads of the host take turns (streams.h), so one copy is enough. ASan guards the ends of a variable only
 * if it is neither thread-local nor in a section of its own. Without ASan the section is full of NaN before every launch; gcc keeps
 * variables of templates elsewhere. Each source file has its own turns, and therefore its own section. */
#if EMU_ASAN
#define __shared__ static
static void emu_static_clear() {}
#else
#ifndef EMU_SECTION
#define EMU_SECTION emu_shared
#endif
#define EMU_TEXT_OF(word) #word
#define EMU_TEXT(word) EMU_TEXT_OF(word)
#define EMU_JOIN_OF(a, b) a##b
#define EMU_JOIN(a, b) EMU_JOIN_OF(a, b)
#define EMU_STATIC_BEGIN EMU_JOIN(__start_, EMU_SECTION)
#define EMU_STATIC_END EMU_JOIN(__stop_, EMU_SECTION)
#define __shared__ static __attribute__((section(EMU_TEXT(EMU_SECTION))))
extern "C" char EMU_STATIC_BEGIN[] __attribute__((weak, visibility("hidden")));
extern "C" char EMU_STATIC_END[] __attribute__((weak, visibility("hidden")));
static void emu_static_clear()
{
    if (EMU_STATIC_BEGIN)
        memset(EMU_STATIC_BEGIN, 0xff, (size_t)(EMU_STATIC_END - EMU_STATIC_BEGIN));
}
#endif

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

struct emu_index { /* not a dim3: a constructor would have every access to thread-local memory ask whether it has run */
    unsigned x, y, z;
};

enum { EMU_THREADS = 1024, EMU_STACK = 128 << 10, EMU_SHARED = 228 << 10, EMU_COPIES = 96 };
enum { EMU_SHARED_PLAIN = 48 << 10 }; /* shared memory of a kernel that did not ask for more */
enum emu_state { EMU_RUNS, EMU_AT_BLOCK, EMU_AT_WARP, EMU_DONE };

union emu_slot { /* the value that a lane shows to its warp */
    uint64_t bits;
    float number[12]; /* of its words of a matrix, two each at most */
};

struct emu_copy {
    void *to;
    const void *from;
    int bytes, group;
};

struct emu_fiber {
    emu_state state;
    int parity, n_copies, group;
    emu_index thread;
    unsigned barriers[2]; /* of its warp, of the block */
    void *tsan;
    emu_copy copy[EMU_COPIES];
    char *stack;
    void *at; /* its saved stack pointer or context */
    emu_slot slot[2];
};

struct emu_machine {
    const char *kernel;
    void (*call)(void *);
    void *args, *home; /* home: stack pointer or context of the scheduler */
    const void *home_stack;
    size_t home_bytes;
    unsigned n, now, done, at_block, at_warp[EMU_THREADS / 32];
    int line[EMU_THREADS / 32]; /* where the lanes that wait are */
    emu_index block, blocks, threads;
    uint64_t seed;
    unsigned order[EMU_THREADS];
    char sync[2 + EMU_THREADS / 16], over; /* addresses that tell ThreadSanitizer of barriers: two each, used alternately */
    void *tsan;
    emu_fiber fiber[EMU_THREADS];
    alignas(128) char shared[EMU_SHARED];
    ~emu_machine()
    {
        for (emu_fiber &f : fiber) {
#if EMU_TSAN
            if (f.tsan)
                __tsan_destroy_fiber(f.tsan);
#endif
            free(f.stack);
        }
    }
};

static thread_local emu_machine emu;
static thread_local int emu_capturing; /* streams of this thread */

EMU_OWN static emu_index emu_thread_now() { return emu.fiber[emu.now].thread; }
#define threadIdx emu_thread_now()
#define blockIdx emu.block
#define blockDim emu.threads
#define gridDim emu.blocks

[[noreturn]] static void emu_fail(const char *what)
{
    fprintf(stderr, "emulator: %s: %s (block %u,%u,%u thread %u,%u,%u)\n", emu.kernel, what, blockIdx.x, blockIdx.y, blockIdx.z,
            threadIdx.x, threadIdx.y, threadIdx.z);
    abort();
}

/* ---- switching ---------------------------------------------------------------- */

#if defined(__x86_64__)
extern "C" void emu_swap(void **save, void *load);
asm(".text\n.p2align 4\n.weak emu_swap\n.hidden emu_swap\n.type emu_swap,@function\nemu_swap:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\npop %rcx\njmp *%rcx\n.size emu_swap,.-emu_swap\n");
#else
static void emu_swap(void **save, void *load)
{
    ucontext_t here;
    *save = &here;
    swapcontext(&here, (ucontext_t *)load);
}
#endif

EMU_OWN static void emu_to_home(bool last)
{
    emu_fiber *f = &emu.fiber[emu.now];
#if EMU_TSAN
    __tsan_switch_to_fiber(emu.tsan, __tsan_switch_to_fiber_no_sync);
#endif
#if EMU_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(last ? nullptr : &fake, emu.home_stack, emu.home_bytes);
#else
    (void)last;
#endif
    emu_swap(&f->at, emu.home);
#if EMU_ASAN
    __sanitizer_finish_switch_fiber(fake, &emu.home_stack, &emu.home_bytes);
#endif
}

EMU_OWN static void emu_entry()
{
#if EMU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &emu.home_stack, &emu.home_bytes);
#endif
    emu.call(emu.args);
    if (emu.fiber[emu.now].n_copies)
        emu_fail("a copy that nobody waited for");
    EMU_RELEASE(&emu.over);
    emu.fiber[emu.now].state = EMU_DONE;
    emu.done++;
    emu_to_home(true);
}

static void emu_fiber_reset(emu_fiber *f)
{
    f->state = EMU_RUNS;
    f->parity = f->n_copies = f->group = 0;
    f->barriers[0] = f->barriers[1] = 0;
    if (!f->stack)
        f->stack = (char *)aligned_alloc(64, EMU_STACK);
    if (!f->stack)
        emu_fail("no memory for a fiber");
#if EMU_TSAN
    if (!f->tsan)
        f->tsan = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
    void **top =
        (void **)(f->stack + EMU_STACK - 64 * (1 + (f - emu.fiber) % 61)); /* so that stacks are not all in one set of a cache */
    memset((void *)(top - 8), 0, 8 * sizeof *top);
    top[-1] = nullptr; /* where emu_entry would return to */
    top[-2] = (void *)emu_entry;
    f->at = top - 8;
#else
    ucontext_t *c = (ucontext_t *)f->stack;
    getcontext(c);
    c->uc_stack.ss_sp = f->stack + sizeof *c;
    c->uc_stack.ss_size = EMU_STACK - sizeof *c;
    makecontext(c, emu_entry, 0);
    f->at = c;
#endif
}

EMU_OWN static void emu_thread_run(unsigned t)
{
    emu_fiber *f = &emu.fiber[t];

    emu.now = t;
#if EMU_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, f->stack, EMU_STACK);
#endif
#if EMU_TSAN
    emu.tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
    emu_swap(&emu.home, f->at);
#if EMU_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

/* ---- barriers ------------------------------------------------------------------- */

/* Threads first .. end-1 wait for each other; `came` of them have arrived. */
EMU_OWN static void emu_meet(unsigned first, unsigned end, unsigned *came, emu_state state, unsigned which)
{
    emu_fiber *f = &emu.fiber[emu.now];
    char *known = &emu.sync[2 * which + f->barriers[which == 0]++ % 2];

    EMU_RELEASE(known);
    f->state = state;
    if (++*came == end - first) {
        for (unsigned t = first; t < end; t++)
            emu.fiber[t].state = EMU_RUNS;
        *came = 0;
    } else {
        emu_to_home(false);
    }
    EMU_ACQUIRE(known);
}

EMU_OWN static void __syncthreads() { emu_meet(0, emu.n, &emu.at_block, EMU_AT_BLOCK, 0); }

/* All lanes must be at the same source line: a shuffle or an mma in two branches is an error. */
EMU_OWN static void __syncwarp(int line = __builtin_LINE())
{
    unsigned warp = emu.now / 32, first = warp * 32, end = first + 32 < emu.n ? first + 32 : emu.n;

    if (!emu.at_warp[warp])
        emu.line[warp] = line;
    if (emu.line[warp] != line)
        emu_fail("lanes of a warp meet at two instructions");
    emu_meet(first, end, &emu.at_warp[warp], EMU_AT_WARP, 1 + warp);
}

/* ---- primitives of warps, see models/cuda/device/prim.cuh -------------------------------- */

template <class T> EMU_OWN static T warp_get(T value, int lane, int line = __builtin_LINE())
{
    emu_fiber *f = &emu.fiber[emu.now];
    unsigned from = emu.now / 32 * 32 + (unsigned)lane;
    T out;

    f->parity ^= 1;
    memcpy(&f->slot[f->parity], &value, sizeof value);
    __syncwarp(line);
    if (from >= emu.n)
        emu_fail("a shuffle from a lane that is not there");
    memcpy(&out, &emu.fiber[from].slot[f->parity], sizeof out);
    return out;
}

template <class T> EMU_OWN static T warp_xor(T value, int mask, int line = __builtin_LINE())
{
    return warp_get(value, (int)(emu.now % 32) ^ mask, line);
}

#include "emulator/matrix.h"

/* ---- vector loads and asynchronous copies ------------------------------------------ */

static void emu_aligned(const void *p, unsigned to = 16)
{
    if ((uintptr_t)p % to)
        emu_fail("8 or 16 bytes at an address that is no multiple of them");
}

[[maybe_unused]] static void load4(float v[4], const float *p)
{
    emu_aligned(p);
    memcpy(v, p, 4 * sizeof *v);
}

[[maybe_unused]] static void load2(float v[2], const float *p)
{
    emu_aligned(p, 8);
    memcpy(v, p, 2 * sizeof *v);
}

[[maybe_unused]] static void store2(float *p, float x, float y)
{
    emu_aligned(p, 8);
    p[0] = x;
    p[1] = y;
}

[[maybe_unused]] static void store4(float *p, const float v[4])
{
    emu_aligned(p);
    memcpy(p, v, 4 * sizeof *v);
}

EMU_OWN static void load_words(uint32_t f[4], const uint32_t *row, int line = __builtin_LINE())
{
    int lane = (int)(emu.now % 32);

    emu_aligned(row);
    for (int i = 0; i < 4; i++)
        f[i] = warp_get(row, 8 * i + lane / 4, line)[lane % 4];
}

static void emu_copy_arrive(const emu_copy *c)
{
    memcpy(c->to, c->from, (size_t)c->bytes);
    memset((char *)c->to + c->bytes, 0, 16 - (size_t)c->bytes);
}

/* A device may copy at any moment between the two: with seeds 0 and 1 the bytes arrive when the thread waits for
 * them, which shows a missing wait; with others at once, which shows that the place is still being read. */
EMU_OWN static void copy_async(void *to, const void *from, int bytes)
{
    emu_fiber *f = &emu.fiber[emu.now];
    emu_copy c = { to, from, bytes, f->group };

    emu_aligned(to);
    emu_aligned(from);
    if (bytes < 0 || bytes > 16)
        emu_fail("a copy of less than none or more than 16 bytes");
    if (f->n_copies == EMU_COPIES)
        emu_fail("more copies under way than the emulator keeps");
    if (emu.seed > 1) {
        emu_copy_arrive(&c);
        c.to = nullptr;
    }
    f->copy[f->n_copies++] = c;
}

EMU_OWN static void copy_async(void *to, const void *from) { copy_async(to, from, 16); }

EMU_OWN static void copy_close() { emu.fiber[emu.now].group++; }

template <int n> EMU_OWN static void copy_wait()
{
    emu_fiber *f = &emu.fiber[emu.now];
    int left = 0;

    for (int i = 0; i < f->n_copies; i++) {
        const emu_copy *c = &f->copy[i];
        if (c->group >= f->group - n) {
            f->copy[left++] = *c;
            continue;
        }
        if (c->to)
            emu_copy_arrive(c);
    }
    f->n_copies = left;
}

#define UNROLL
#define UNROLL_BY(n)
#define SHARED_BYTES(name) char *name = emu.shared

/* ---- launching -------------------------------------------------------------------- */

static void emu_order_make(bool again)
{
    for (unsigned t = 0; t < emu.n && !again; t++)
        emu.order[t] = emu.seed == 1 ? emu.n - 1 - t : t;
    for (unsigned t = emu.n; emu.seed > 1 && t > 1; t--) {
        emu.seed = emu.seed * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)((emu.seed >> 33) % t), swap = emu.order[k];
        emu.order[k] = emu.order[t - 1];
        emu.order[t - 1] = swap;
    }
}

/* Runs the warp as far as it gets before another continues; its lanes in turn, from one that the seed chooses. */
EMU_OWN static void emu_warp_run(unsigned warp)
{
    unsigned first = warp * 32, n = emu.n - first < 32 ? emu.n - first : 32, from = (unsigned)(emu.seed >> 33);

    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i = 0; i < n; i++) {
            unsigned t = first + (from + i) % n;
            if (emu.fiber[t].state == EMU_RUNS) {
                moved = true;
                emu_thread_run(t);
            }
        }
    }
}

/* Seeds 0 and 1: all warps advance together from barrier to barrier; others: one warp runs ahead of the rest. */
EMU_OWN static void emu_block_run()
{
    bool moved = true;

    emu.done = emu.at_block = 0;
    memset(emu.at_warp, 0, sizeof emu.at_warp);
    for (unsigned t = 0; t < emu.n; t++)
        emu_fiber_reset(&emu.fiber[t]);
    for (int round = 0; emu.done < emu.n; round++, moved = false) {
        emu_order_make(round > 0);
        for (unsigned i = 0; i < emu.n; i++)
            if (emu.fiber[emu.order[i]].state == EMU_RUNS) {
                moved = true;
                emu_thread_run(emu.order[i]);
                if (emu.seed > 1)
                    emu_warp_run(emu.order[i] / 32);
            }
        if (!moved)
            emu_fail("a barrier that not all threads reach");
    }
    EMU_ACQUIRE(&emu.over);
}

static void emu_launch(const char *kernel, dim3 grid, dim3 block, size_t shared, void (*call)(void *), void *args)
{
    const char *seed = getenv("MOLSIEVE_EMULATOR_SEED");

    if (getenv("MOLSIEVE_EMULATOR_TRACE"))
        fprintf(stderr, "launch %s %u x %u x %u blocks of %u, %zu bytes shared\n", kernel, grid.x, grid.y, grid.z,
                block.x * block.y * block.z, shared);
    emu.kernel = kernel;
    emu.call = call;
    emu.args = args;
    emu.seed = seed ? strtoull(seed, nullptr, 10) : 0;
    emu.n = block.x * block.y * block.z;
    emu.blocks = { grid.x, grid.y, grid.z };
    emu.threads = { block.x, block.y, block.z };
    emu.block = { 0, 0, 0 };
    for (unsigned t = 0; t < emu.n && t < EMU_THREADS; t++)
        emu.fiber[t].thread = { t % block.x, t / block.x % block.y, t / (block.x * block.y) };
    if (emu.n > EMU_THREADS || shared > EMU_SHARED || !emu.n || !grid.x || !grid.y || !grid.z || grid.x > INT32_MAX ||
        grid.y > 65535 || grid.z > 65535)
        emu_fail("a launch that no device takes");
    emu_static_clear();
    for (uint64_t i = 0, n = (uint64_t)grid.x * grid.y * grid.z; i < n; i++) {
        uint64_t at = emu.seed == 1 ? n - 1 - i : i;
        emu.block = { (unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y), (unsigned)(at / grid.x / grid.y) };
        memset(emu.shared, 0xff, shared);
#if EMU_ASAN
        __asan_poison_memory_region(emu.shared + shared, EMU_SHARED - shared);
#endif
        emu_block_run();
#if EMU_ASAN
        __asan_unpoison_memory_region(emu.shared, EMU_SHARED);
#endif
    }
}

/* Shared memory is allowed to a kernel for all its launches: of other threads, and of graphs that were
 * made before. So the limit must never be lowered. Nor may it be raised during a capture: CUDA does not promise that this works. */
static size_t emu_allowed(const void *kernel, size_t bytes)
{
    static std::mutex turn;
    static std::map<const void *, size_t> all;
    std::lock_guard<std::mutex> mine(turn);
    size_t &now = all.emplace(kernel, (size_t)EMU_SHARED_PLAIN).first->second;

    if (bytes && emu_capturing)
        emu_fail("shared memory is allowed while a stream is captured");
    if (bytes && bytes < now)
        emu_fail("less shared memory is allowed to a kernel than before");
    return now = bytes ? bytes : now;
}

/* MOLSIEVE_EMULATOR_ONLY=loss_run,rule_make: all other kernels end at once, to measure the host alone. */
static bool emu_runs(const char *name)
{
    static const char *const only = getenv("MOLSIEVE_EMULATOR_ONLY");
    const char *at = only ? strstr(only, name) : name;

    return at && (!only || at == only || at[-1] == ',');
}

/* Without a stream: now. Streams and their order are in streams.h. */
static inline void emu_enqueue(int, const char *, std::function<void()> run) { run(); }
static inline void emu_device_check(int, const char *) {}
static inline void emu_load(int, const char *, const void *) {}

template <class S, class... P, class A>
static void emu_launch_in(S stream, const char *name, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...), A args)
{
    static_assert((sizeof(P) + ... + 0) <= 4096, "more arguments than every driver takes");
    std::tuple<P...> kept(args);

    emu.kernel = name;
    emu_device_check(stream, name);
    emu_load(stream, name, (const void *)kernel);
    if (shared > emu_allowed((const void *)kernel, 0))
        emu_fail("more shared memory than the kernel was allowed");
    emu_enqueue(stream, name, [=] {
        if (!emu_runs(name))
            return;
        auto call = [&] { std::apply(kernel, kept); };
        emu_launch(
            name, grid, block, shared, [](void *p) { (*(decltype(call) *)p)(); }, &call);
    });
}

#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    emu_launch_in(stream, #kernel, grid, block, shared, kernel, std::make_tuple(__VA_ARGS__))
#define SHARED_ALLOW(function, bytes) (emu.kernel = #function, emu_allowed((const void *)(function), (size_t)(bytes)), cudaSuccess)

#endif

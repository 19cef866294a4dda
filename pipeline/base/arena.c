/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/arena.h"
#include "pipeline/base/refused.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct block block;
struct block {
    block *next;
    size_t cap, used;
    alignas(max_align_t) unsigned char data[];
};

struct pl_arena {
    block *first, *now;
    size_t block_bytes;
};

static _Thread_local long refuse_nth;

#ifndef __has_feature /* of clang */
#define __has_feature(x) 0
#endif

/* AddressSanitizer is told which bytes of a block belong to an object, so it sees a byte before or behind one. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
void __asan_poison_memory_region(volatile void *at, size_t bytes);
void __asan_unpoison_memory_region(volatile void *at, size_t bytes);
enum { GAP = alignof(max_align_t) }; /* bytes between objects */
static void hide(void *at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
static void show(void *at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
enum { GAP = 0 };
static void hide(void *at, size_t bytes) { (void)at, (void)bytes; }
static void show(void *at, size_t bytes) { (void)at, (void)bytes; }
#endif

void pl_arena_refuse(long nth) { refuse_nth = nth; }

static block *block_new(size_t cap)
{
    block *b = malloc(sizeof *b + cap);
    if (b == NULL) {
        pl_refused(cap);
        return NULL;
    }
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
    hide(b->data, cap);
    return b;
}

static void free_blocks(block *b)
{
    while (b != NULL) {
        block *next = b->next;
        free(b);
        b = next;
    }
}

pl_arena *pl_arena_new(size_t block_bytes)
{
    pl_arena *mem = calloc(1, sizeof *mem);
    if (mem == NULL)
        return NULL;
    mem->block_bytes = block_bytes;
    mem->first = mem->now = block_new(block_bytes);
    if (mem->first == NULL) {
        free(mem);
        return NULL;
    }
    return mem;
}

void pl_arena_free(pl_arena *mem)
{
    if (mem == NULL)
        return;
    free_blocks(mem->first);
    free(mem);
}

/* Blocks made for one large request are freed: the next batch may need another size. */
void pl_arena_reset(pl_arena *mem)
{
    for (block **at = &mem->first->next; *at != NULL;) {
        block *b = *at;
        if (b->cap > mem->block_bytes) {
            *at = b->next;
            free(b);
        } else {
            b->used = 0;
            hide(b->data, b->cap);
            at = &b->next;
        }
    }
    mem->first->used = 0;
    hide(mem->first->data, mem->first->cap);
    mem->now = mem->first;
}

/* A block with room for `need` bytes. A large request gets a block of its own, and the current block stays in use. */
static block *block_with_room(pl_arena *mem, size_t need)
{
    block *b = mem->now;

    if (b->cap - b->used >= need)
        return b;
    if (need <= mem->block_bytes)
        for (b = b->next; b != NULL; b = b->next)
            if (b->cap - b->used >= need)
                return mem->now = b;
    b = block_new(need > mem->block_bytes ? need : mem->block_bytes);
    if (b == NULL)
        return NULL;
    b->next = mem->now->next;
    mem->now->next = b;
    if (need <= mem->block_bytes)
        mem->now = b;
    return b;
}

void *pl_arena_raw(pl_arena *mem, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    size_t need;
    block *b;
    void *p;

    if (refuse_nth > 0 && --refuse_nth == 0)
        return NULL;
    if (bytes > PTRDIFF_MAX - 2 * align) /* a negative count, or no room for the header of the block */
        return NULL;
    need = (bytes + align - 1) / align * align + GAP;
    b = block_with_room(mem, need);
    if (b == NULL)
        return NULL;
    p = b->data + b->used;
    b->used += need;
    show(p, bytes);
    return p;
}

void *pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    void *p;

    if (size != 0 && n > SIZE_MAX / size)
        return NULL;
    p = pl_arena_raw(mem, n * size);
    return p != NULL ? memset(p, 0, n * size) : NULL;
}

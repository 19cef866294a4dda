/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/arena.h"

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

void pl_arena_refuse(long nth) { refuse_nth = nth; }

static block *block_new(size_t cap)
{
    block *b = malloc(sizeof *b + cap);
    if (b == NULL)
        return NULL;
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
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

void pl_arena_reset(pl_arena *mem)
{
    if (mem->block_bytes == 0) {
        free_blocks(mem->first->next);
        mem->first->next = NULL;
    }
    for (block *b = mem->first; b != NULL; b = b->next)
        b->used = 0;
    mem->now = mem->first;
}

/* The next block with room for `need`, adding one at the end if none has. */
static block *block_with_room(pl_arena *mem, size_t need)
{
    while (mem->now->cap - mem->now->used < need) {
        if (mem->now->next == NULL)
            mem->now->next = block_new(need > mem->block_bytes ? need : mem->block_bytes);
        if (mem->now->next == NULL)
            return NULL;
        mem->now = mem->now->next;
    }
    return mem->now;
}

void *pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    const size_t align = alignof(max_align_t);
    size_t need;
    block *b;
    void *p;

    if (refuse_nth > 0 && --refuse_nth == 0)
        return NULL;
    if (size != 0 && n > (SIZE_MAX - align) / size)
        return NULL;
    need = (n * size + align - 1) / align * align;
    b = block_with_room(mem, need);
    if (b == NULL)
        return NULL;
    p = b->data + b->used;
    b->used += need;
    return memset(p, 0, need);
}

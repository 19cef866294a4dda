/* tests/unit/guarded.h - arrays with nothing behind them: whoever reads or writes one element too many ends the program. */
#ifndef GUARDED_H
#define GUARDED_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* n zeroed elements that end where a page begins that may not be touched. Kept until the program ends; NULL: no memory. */
static inline void *guarded(size_t n, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = n * size, whole = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED || mprotect(at + whole, page, PROT_NONE) != 0)
        return NULL;
    return at + whole - bytes;
}

#endif

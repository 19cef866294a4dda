/* pipeline/workflow/names.h - a few names, sorted, each once; plain data. */
#ifndef PL_NAMES_H
#define PL_NAMES_H

#include <stdbool.h>

enum { PL_NAMES_MAX = 64, PL_NAME_BYTES = 201 };

typedef struct pl_names {
    int n;
    bool too_many;  /* some name is not among them: too long, or one too many */
    bool no_memory; /* some may not be among them: whoever looked for them had no memory */
    char name[PL_NAMES_MAX][PL_NAME_BYTES];
} pl_names;

void pl_names_add(pl_names *all, const char *name);
int pl_names_find(const pl_names *all, const char *name); /* its place; -1: it is not there */

#endif

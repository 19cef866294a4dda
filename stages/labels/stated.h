/* stages/labels/stated.h - the unit and the kind of measurement in which the values of a property are, as tables state them.
 *
 * The library's files are read again, as long as they are those that it was read from. What tables of later values state is kept in
 * `meta`, with its file and line. */
#ifndef ST_STATED_H
#define ST_STATED_H

#include "chem/records/relation.h"
#include "pipeline/store/store.h"

typedef struct st_stated {
    ch_units units;                /* first of each: what is stated, else ""                                          */
    const char *unit_at, *type_at; /* "lib.csv:2"; NULL: none is stated                                               */
    const char *unread;            /* a file of the library that was moved or changed since it was read; NULL: none   */
} st_stated;

/* What the library's files state of its own labels of that name, else the first table of later values. Texts are in mem. */
pl_code st_stated_read(st_stated *out, pl_store *s, const char *property, pl_arena *mem, pl_error *err);
/* Keeps what a table of later values states, unless an earlier one stated it. In the open transaction. */
pl_code st_stated_store(pl_store *s, const char *property, const char *path, const ch_units *said, pl_error *err);

/* How a table contradicts what is stated of `label`, and the line of the table; 0: not at all. */
int64_t st_stated_unit_say(char out[CH_RELATION_BYTES], const st_stated *was, const ch_units *now, const char *label);
int64_t st_stated_type_say(char out[CH_RELATION_BYTES], const st_stated *was, const ch_units *now, const char *label);

#endif

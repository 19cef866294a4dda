/* stages/steps/ingest/cost.h - what reading a record and building its structures take on this machine, for `plan`.
 *
 * Six known molecules, three small and three large ones, go through the chemistry worker and the builder; that takes less than a second. The
 * times are kept in $XDG_CACHE_HOME/molsieve, or ~/.cache/molsieve, in one small file for each computer, kind of processor, version,
 * builder and force field. Without such a folder they are measured every time; a damaged file is measured again. */
#ifndef ST_COST_H
#define ST_COST_H

#include "pipeline/base/arena.h"
#include "stages/steps/ingest/prepare_conf.h"

typedef struct st_cost {
    double atoms[2]; /* mean number of the small and of the large molecules, hydrogens included */
    double read[2];  /* CPU seconds of one core: a record without a structure */
    double build[2]; /* its first structure */
    double more;     /* each further one that is asked for, as a share of the first */
    bool measured;   /* false: the means of another machine, because the worker did not answer */
} st_cost;

/* Of the builder and the force field of c. */
st_cost st_cost_get(const st_prepare_conf *c, pl_arena *mem);

/* A file of the cache as text, and back. False: not such a text, of another machine, or not numbers above zero. */
const char *st_cost_text(const st_cost *c, const char *machine, pl_arena *mem); /* NULL: no memory */
bool st_cost_read(st_cost *out, const char *text, const char *machine);

/* Seconds of a molecule with so many atoms (a power law through the two points) and structures; 0 structures: it is only read. */
double st_cost_seconds(const st_cost *c, double atoms, double structures);

#endif

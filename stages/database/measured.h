/* stages/database/measured.h - labels that came after the library was read: from `molsieve label`, or as the answers of a campaign.
 *
 * The table `measured` has them by InChIKey, so they outlive the molecules, which `prepare` may make again. They also are rows of
 * `label`, where every stage and command finds them. Stages that learn from labels have a hash of them in their keys, so new labels make
 * these run again, and the preparation of the library stays.
 *
 * Rounds are counted from 0. The molecules of a round are chosen first (table `acquired`); the round ends with the first value or
 * outcome of one. Labels without a choice before them are a round, too. */
#ifndef ST_MEASURED_H
#define ST_MEASURED_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

/* SQL: the last round that has ended; -1: none. */
#define ST_LAST_ROUND \
    "max(coalesce((SELECT max(round) FROM measured),-1), coalesce((SELECT max(round) FROM acquired WHERE outcome IS NOT NULL),-1))"

typedef struct st_measured {
    const char *property, *unit; /* the name of the label                          */
    const char *inchikey;        /* of the molecule; its SMILES if it has none     */
    const char *source;          /* "measured.csv:12"                              */
    double value;
    bool is_class;
    int64_t round;
} st_measured;

/* Adds a label, or replaces the one that the molecule has. In the open transaction. */
pl_code st_measured_put(pl_store *s, const st_measured *m, pl_error *err);
/* Makes them labels of the molecules that are there. EINPUT: the library now has such labels in another unit. In the open transaction. */
pl_code st_measured_apply(pl_store *s, pl_error *err);

/* A hash of those of n properties and of their limits (property NULL: of all); *out NULL: there are none. store may be NULL. */
pl_code st_measured_hash(const char **out, pl_store *store, const char *const *property, int n, pl_arena *mem, pl_error *err);
/* Adds that to the JSON object *extra (NULL: none) of a stage's key. */
pl_code st_measured_key(const char **extra, pl_store *store, const char *const *property, int n, pl_arena *mem, pl_error *err);

/* Whether results.db of the workflow has any of this property. */
bool st_measured_has(const pl_workflow *wf, const char *property);

/* Key in `meta`, before the name of a property: the unit that the first table of its later values states, as JSON (text, column, place,
 * and whether the property is a logarithm, which is not in this unit). */
#define ST_STATED_UNIT "stated unit "

enum { ST_UNIT_MAX = 128 };
/* The unit that they were given in, or that only their tables state (*by_table), which may have another name than that of a target; "":
 * none, or no results.db that this version reads. */
pl_code st_measured_unit(char unit[ST_UNIT_MAX], bool *by_table, const pl_workflow *wf, const char *property, pl_error *err);

#endif

/* stages/steps/dataset/split_parts.h - what the files of the stage `split` share; used by split*.c only. */
#ifndef ST_SPLIT_PARTS_H
#define ST_SPLIT_PARTS_H

#include "pipeline/workflow/stage.h"
#include "stages/steps/dataset/dataset.h"

enum { NO_PART = -1, SKELETON = 14 }; /* outside of all parts; letters of the InChIKey's first block */
enum { BY_RANDOM, BY_COLUMN, BY_FILE, BY_SCAFFOLD, BY_TIME };
enum { SCAFFOLD_RANDOM, SCAFFOLD_DETERMINISTIC, SCAFFOLD_BALANCED };
enum { FOLDS_MAX = 100 };
enum { LEAK_DROP, LEAK_REFUSE, LEAK_ALLOW };

typedef struct split_conf {
    int32_t method, variant, leaks;
    double fraction[ST_SPLIT_PARTS];
    int64_t limit[ST_SPLIT_PARTS], repeat, folds, fold;
    const char *column, *path;
} split_conf;

typedef struct member {
    int64_t mol_id;
    uint64_t order; /* hash of (seed, skeleton)    */
    uint64_t own;   /* hash of (seed, InChIKey)    */
    union {
        uint64_t scaffold; /* ch_scaffold                 */
        double value;      /* of the label; NaN: has none */
    };
    char key[28];
    int part;
} member;

typedef struct split_state {
    pl_env *env;
    const split_conf *conf;
    split_conf folded; /* of folds: the settings, with the shares that follow */
    member *m;
    int64_t n;
} split_state;

/* Another for each `repeat`. */
static inline uint64_t st_split_seed(const split_state *s) { return s->env->seed + (uint64_t)s->conf->repeat; }

int st_split_by_id(const void *a, const void *b);              /* for qsort */
member *st_split_member(const split_state *s, int64_t mol_id); /* NULL: there is none; members must be in order of id */

/* Each gives the members, in order of id, their parts; afterwards they may be in another order. */
pl_code st_split_column(split_state *s, pl_error *err);
pl_code st_split_file(split_state *s, pl_error *err);
pl_code st_split_scaffold(split_state *s, pl_error *err);
pl_code st_split_time(split_state *s, pl_error *err);

#endif

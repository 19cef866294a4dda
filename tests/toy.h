/* tests/toy.h - a workflow of three small stages, for tests of the engine.
 *
 * count  (per unit): rows in `number`, a block per unit, some failures
 * square (per unit): reads count's blocks; rows in `square`, a block per unit
 * walk   (whole):    a long sum over `square` with its own checkpoints */
#ifndef TOY_H
#define TOY_H

#include <sys/types.h>

#include "pipeline/run/run.h"

typedef struct toy_conf {
    int64_t units, rows; /* of count: units, rows in each             */
    int64_t offset;      /* of square: added to every value           */
    int64_t fail_every;  /* of count: every n-th row fails; 0: none   */
    int64_t fail_at;     /* how, of square: work of this unit fails; 0: none */
    double pause;        /* how: seconds of every work call           */
} toy_conf;

typedef struct toy {
    pl_arena *mem;
    pl_workflow wf;
    pl_step step[3];
    toy_conf conf[3];
    char dir[256];
} toy;

/* How far count was ahead of square, at most, in units; set it to 0 before a run. */
extern int64_t toy_lead;

extern const pl_schema toy_schema;
extern const pl_stage toy_count, toy_square, toy_walk;

/* A workflow in `dir` (which need not exist) of `units` units of 8 rows. */
void toy_make(toy *t, const char *dir, int64_t units);
void toy_free(toy *t);
pl_code toy_run(toy *t, int workers, pl_error *err);
/* Both digests, results and blocks, as one text of 129 characters. */
void toy_digest(toy *t, char out[130]);
/* Checks that the database is sound and has rows exactly for the units marked done. */
bool toy_sound(toy *t);
/* The number that a query on results.db returns; -1: none. */
int64_t toy_int(toy *t, const char *sql);
/* Minimum seconds for each unit of count and square; a row of walk takes an eighth of it. */
void toy_pause(toy *t, double pause);
/* A child that runs the workflow in `dir` and ends with the exit status of the command.
 * fault: MOLSIEVE_FAULT of the child, or NULL. */
pid_t toy_start(const char *dir, int64_t units, double pause, const char *fault);
/* Waits for a child: its exit status, or 128 + the signal that it died of. */
int toy_ended(pid_t pid);
void toy_sleep_ms(double ms);
/* A new empty directory below $TMPDIR; removed by toy_remove. */
void toy_directory(char out[256]);
void toy_remove(const char *dir);
/* A file of this content. */
pl_code toy_copy(const char *from, const char *to);

#endif

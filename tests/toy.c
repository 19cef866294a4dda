/* SPDX-License-Identifier: Apache-2.0 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/run/progress.h"

enum { SMALLEST = 4 };

static const pl_field fields[] = {
    { PL_INT, "units", offsetof(toy_conf, units), .dflt = 10, .min = 0, .max = 1e9 },
    { PL_INT, "rows", offsetof(toy_conf, rows), .dflt = 8, .min = 1, .max = 1e6 },
    { PL_INT, "offset", offsetof(toy_conf, offset), .min = -1e9, .max = 1e9 },
    { PL_INT, "fail_every", offsetof(toy_conf, fail_every), .min = 0, .max = 1e9 },
    { PL_INT, "fail_at", offsetof(toy_conf, fail_at), .min = 0, .max = 1e9, .flags = PL_HOW },
    { PL_REAL, "pause", offsetof(toy_conf, pause), .min = 0, .max = 10, .flags = PL_HOW },
    { .type = PL_END },
};

static const char *const digest[][2] = {
    { "number", "SELECT id,value FROM number" },
    { "square", "SELECT id,value FROM square" },
    { "walk", "SELECT step,value FROM walk" },
    { "failure", "SELECT stage,record_id,code,message FROM failure" },
    { NULL, NULL },
};

static const char *const check[][2] = {
    { "every number belongs to a committed unit",
      "SELECT count(*) FROM number WHERE unit NOT IN (SELECT unit FROM unit JOIN stage USING(stage_id) WHERE name='count')" },
    { "every committed unit has all its numbers",
      "SELECT count(*) FROM unit u JOIN stage s USING(stage_id) WHERE s.name='count' AND u.n_ok<>(SELECT count(*) FROM "
      "number n WHERE n.unit=u.unit)" },
    { "every committed unit of square has all its rows",
      "SELECT count(*) FROM unit u JOIN stage s USING(stage_id) WHERE s.name='square' AND u.n_ok<>(SELECT count(*) FROM "
      "square q WHERE q.unit=u.unit)" },
    { NULL, NULL },
};

const pl_schema toy_schema = {
    .sql = "CREATE TABLE number(id INTEGER PRIMARY KEY, unit INTEGER NOT NULL, value INTEGER NOT NULL);"
           "CREATE TABLE square(id INTEGER PRIMARY KEY REFERENCES number, unit INTEGER NOT NULL, value INTEGER NOT NULL);"
           "CREATE TABLE walk(step INTEGER PRIMARY KEY, value INTEGER NOT NULL);",
    .version = 1,
    .digest = digest,
    .check = check,
};

static void sleep_s(double s)
{
    struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };

    if (s > 0)
        (void)nanosleep(&t, NULL);
}

/* ---- count ---- */

typedef struct per_unit {
    pl_env *env;
    const toy_conf *conf;
    int64_t next;
} per_unit;

typedef struct piece {
    int64_t n, id[64], value[64];
} piece;

static pl_code open_per_unit(void *state, pl_env *env, pl_error *err)
{
    per_unit *s = state;

    *s = (per_unit){ env, env->step->conf, env->units_done };
    if (PL_NEW(env->mem, int64_t, 1) == NULL) /* as real stages do */
        return pl_fail(err, PL_ENOMEM, "the stage's numbers");
    return pl_store_features(env->store, err);
}

static void close_per_unit(void *state) { (void)state; }

static pl_code count_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    per_unit *s = state;

    *more = s->next < s->conf->units;
    if (!*more)
        return PL_OK;
    unit->data = PL_NEW(unit->mem, piece, 1);
    if (unit->data == NULL || unit->index != s->next)
        return pl_fail(err, PL_EBUG, "unit %lld instead of %lld", (long long)unit->index, (long long)s->next);
    unit->first = s->next++ * s->conf->rows + 1;
    unit->last = unit->first + s->conf->rows - 1;
    return PL_OK;
}

static pl_code worker_open(void *worker, void *state, pl_error *err)
{
    (void)err;
    *(const toy_conf **)worker = ((per_unit *)state)->conf;
    return PL_OK;
}

static pl_code count_work(void *worker, pl_unit *unit, pl_error *err)
{
    const toy_conf *conf = *(const toy_conf **)worker;
    piece *p = unit->data;

    (void)err;
    sleep_s(conf->pause);
    for (int64_t id = unit->first; id <= unit->last; id++) {
        if (conf->fail_every > 0 && id % conf->fail_every == 0)
            continue;
        p->id[p->n] = id;
        p->value[p->n++] = id * 7 % 1000003;
    }
    return PL_OK;
}

static pl_code put_rows(per_unit *s, const char *table, pl_unit *unit, pl_error *err)
{
    const piece *p = unit->data;
    pl_code code = PL_OK;

    for (int64_t i = 0; code == PL_OK && i < p->n; i++) {
        char *sql = sqlite3_mprintf("INSERT INTO %s VALUES(%lld,%lld,%lld)", table, (long long)p->id[i], (long long)unit->index,
                                    (long long)p->value[i]);
        code = pl_db_exec(s->env->store->db, sql, err);
        sqlite3_free(sql);
    }
    unit->n_ok = p->n;
    if (code == PL_OK)
        code =
            pl_block_put(s->env->store, table, s->env->step->key, unit->index, unit->first, p->n, (pl_bytes){ p, sizeof *p }, err);
    return code;
}

/* Whether SQLite looks up references must be as the stage wants it, however the stages take turns. */
static pl_code look_up_is(const per_unit *s, bool want, pl_error *err)
{
    int64_t is = -1;
    pl_code code = pl_db_int(s->env->store->db, &is, err, "PRAGMA foreign_keys");

    return code != PL_OK || is == want ? code : pl_fail(err, PL_EBUG, "foreign_keys is %d", (int)is);
}

static pl_code count_commit(void *state, pl_unit *unit, pl_error *err)
{
    per_unit *s = state;
    pl_code code = look_up_is(s, true, err);

    for (int64_t id = unit->first; code == PL_OK && id <= unit->last; id++) {
        if (s->conf->fail_every == 0 || id % s->conf->fail_every != 0)
            continue;
        code = pl_failure_add(s->env, &(pl_failure){ .record_id = id, .code = "toy", .message = "meant to fail" }, err);
        unit->n_failed++;
    }
    return code == PL_OK ? put_rows(s, "number", unit, err) : code;
}

static pl_code count_finish(void *state, pl_error *err)
{
    per_unit *s = state;
    pl_code code = look_up_is(s, true, err);

    return code != PL_OK ? code : pl_db_exec(s->env->store->db, "CREATE INDEX IF NOT EXISTS number_value ON number(value)", err);
}

static pl_code count_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                              pl_error *err)
{
    const toy_conf *c = step->conf;

    (void)wf, (void)store, (void)mem, (void)err;
    *out = (pl_estimate){ .n_items = c->units * c->rows,
                          .n_units = c->units,
                          .bytes_results = 40.0 * (double)c->units,
                          .seconds = 0.001 * (double)c->units };
    return PL_OK;
}

static const char *const count_reset[] = { "DELETE FROM number", NULL };

const pl_stage toy_count = {
    .name = "count",
    .help = "count",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(toy_conf),
    .state_size = sizeof(per_unit),
    .worker_size = sizeof(void *),
    .item = "numbers",
    .estimate = count_estimate,
    .open = open_per_unit,
    .next = count_next,
    .worker_open = worker_open,
    .work = count_work,
    .commit = count_commit,
    .finish = count_finish,
    .close = close_per_unit,
    .reset_sql = count_reset,
};

/* ---- square ---- */

int64_t toy_lead;

static pl_code square_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    per_unit *s = state;
    const pl_step *count = &s->env->wf->step[s->env->step->needs[0]];
    pl_block block;
    pl_code code = pl_block_get(s->env->store, "number", count->key, unit->index, &block, unit->mem, err);

    if (code == PL_OK)
        code = pl_block_check(&block, err);
    *more = block.found;
    unit->first = block.first;
    if (code == PL_OK && *more) {
        unit->data = (void *)block.data.data;
        unit->last = unit->first + ((piece *)unit->data)->n - 1;
    }
    return code;
}

static pl_code square_work(void *worker, pl_unit *unit, pl_error *err)
{
    const toy_conf *conf = *(const toy_conf **)worker;
    piece *p = unit->data;

    sleep_s(conf->pause);
    if (conf->fail_at > 0 && unit->index == conf->fail_at)
        return pl_fail(err, PL_EINPUT, "unit %lld is meant to fail", (long long)unit->index);
    for (int64_t i = 0; i < p->n; i++)
        p->value[i] = p->value[i] * p->value[i] + conf->offset;
    return PL_OK;
}

static pl_code square_commit(void *state, pl_unit *unit, pl_error *err)
{
    per_unit *s = state;
    int64_t ahead = 0;
    pl_code code = pl_db_int(s->env->store->db, &ahead, err,
                             "SELECT max(unit) FROM unit JOIN stage USING(stage_id) "
                             "WHERE name='count'");

    toy_lead = ahead - unit->index > toy_lead ? ahead - unit->index : toy_lead;
    if (code == PL_OK)
        code = look_up_is(s, false, err);
    return code == PL_OK ? put_rows(s, "square", unit, err) : code;
}

static const char *const square_needs[] = { "count", NULL };
static const char *const square_reset[] = { "DELETE FROM square WHERE value<0", "DELETE FROM square", NULL };

const pl_stage toy_square = {
    .name = "square",
    .help = "square",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(toy_conf),
    .state_size = sizeof(per_unit),
    .worker_size = sizeof(void *),
    .needs = square_needs,
    .item = "numbers",
    .open = open_per_unit,
    .next = square_next,
    .worker_open = worker_open,
    .work = square_work,
    .commit = square_commit,
    .own_references = true,
    .close = close_per_unit,
    .reset_sql = square_reset,
};

/* ---- walk: step i adds the i-th square to a running value that depends on the order ---- */

static pl_code walk_step(per_unit *s, int64_t step, uint64_t *value, pl_error *err)
{
    int64_t add = 0;
    pl_code code = pl_db_int(s->env->store->db, &add, err, "SELECT value FROM square WHERE id=%lld", (long long)step);

    *value = *value * 31 + (uint64_t)add + s->env->seed;
    return code;
}

static pl_code walk_put(per_unit *s, int64_t step, uint64_t value, pl_error *err)
{
    char *sql = sqlite3_mprintf("DELETE FROM walk; INSERT INTO walk VALUES(%lld,%lld)", (long long)step, (long long)(value >> 1));
    pl_code code = pl_db_begin(s->env->store->db, err);

    if (code == PL_OK)
        code = pl_db_exec(s->env->store->db, sql, err);
    sqlite3_free(sql);
    return code;
}

static pl_code walk_finish(void *state, pl_error *err)
{
    per_unit *s = state;
    sqlite3 *db = s->env->store->db;
    int64_t step = 0, last = 0, half = 0;
    uint64_t value;
    pl_code code = pl_db_int(db, &last, err, "SELECT max(id) FROM number");

    if (code == PL_OK)
        code = look_up_is(s, true, err);
    if (code == PL_OK)
        code = pl_db_int(db, &step, err, "SELECT max(step) FROM walk");
    if (code == PL_OK)
        code = pl_db_int(db, &half, err, "SELECT value FROM walk");
    value = (uint64_t)half << 1;
    while (code == PL_OK && step < last) {
        if (*s->env->stop)
            return PL_ESTOP;
        code = walk_step(s, ++step, &value, err);
        value &= ~(uint64_t)1;
        sleep_s(s->conf->pause);
        pl_progress_set(s->env->progress, step, last, "walking");
        if (code == PL_OK && step % SMALLEST == 0 && step < last) {
            code = walk_put(s, step, value, err);
            if (code == PL_OK)
                code = pl_db_commit(db, err);
        }
    }
    return code == PL_OK ? walk_put(s, step, value, err) : code; /* left open for the runner */
}

static const char *const walk_needs[] = { "square", NULL };
static const char *const walk_reset[] = { "DELETE FROM walk", NULL };

const pl_stage toy_walk = {
    .name = "walk",
    .help = "walk",
    .scope = PL_WHOLE,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(toy_conf),
    .state_size = sizeof(per_unit),
    .needs = walk_needs,
    .item = "steps",
    .open = open_per_unit,
    .finish = walk_finish,
    .close = close_per_unit,
    .reset_sql = walk_reset,
    .uses_seed = true,
};

/* ---- the workflow ---- */

void toy_make(toy *t, const char *dir, int64_t units)
{
    static const pl_stage *const stages[] = { &toy_count, &toy_square, &toy_walk };

    *t = (toy){ .mem = pl_arena_new(1 << 16) };
    (void)snprintf(t->dir, sizeof t->dir, "%s", dir);
    t->wf = (pl_workflow){ .path = "toy.yaml",
                           .text = "format: 1\n",
                           .format = 1,
                           .name = "toy",
                           .seed = 7,
                           .workdir = t->dir,
                           .workers = -1,
                           .n_steps = 3,
                           .step = t->step };
    t->wf.storage.results = pl_sprintf(t->mem, "%s/results.db", dir);
    t->wf.storage.features = pl_sprintf(t->mem, "%s/features.db", dir);
    t->wf.limits.max_fraction = 1;
    t->wf.limits.max_count = -1;
    for (int i = 0; i < 3; i++) {
        t->conf[i] = (toy_conf){ .units = units, .rows = 8 };
        t->step[i] = (pl_step){ .stage = stages[i], .conf = &t->conf[i], .n_needs = i > 0, .needs = { i - 1 } };
    }
}

void toy_free(toy *t) { pl_arena_free(t->mem); }

pl_code toy_run(toy *t, int workers, pl_error *err)
{
    pl_run_opts opts = { .workers = workers, .quiet = true, .grace = 25 };

    return pl_run(&t->wf, &toy_schema, &opts, t->mem, err);
}

static pl_store *open_writer(toy *t)
{
    pl_store *s = NULL;
    pl_error err = { 0 };

    if (pl_store_open(&s, &t->wf, &toy_schema, &err) != PL_OK || pl_store_features(s, &err) != PL_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return s;
}

void toy_digest(toy *t, char out[130])
{
    pl_store *s = open_writer(t);

    (void)snprintf(out, 130, "failed");
    if (s != NULL && pl_store_digest(s, out, NULL) == PL_OK && pl_store_digest_blocks(s, out + 65, NULL) == PL_OK)
        out[64] = ' ';
    pl_store_close(s);
}

bool toy_sound(toy *t)
{
    pl_store *s = open_writer(t);
    pl_text report = { 0 };
    bool good = false;

    if (s == NULL || pl_store_check(s, &good, &report, NULL) != PL_OK)
        good = false;
    if (!good)
        (void)fprintf(stderr, "%s", pl_text_str(&report));
    pl_text_free(&report);
    pl_store_close(s);
    return good;
}

int64_t toy_int(toy *t, const char *sql)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    int64_t n = -1;

    /* A process that died while it made the database leaves nothing to read. */
    if (pl_store_open_read(&s, t->wf.storage.results, &toy_schema, &err) != PL_OK || pl_db_int(s->db, &n, &err, "%s", sql) != PL_OK)
        n = -1;
    pl_store_close(s);
    return n;
}

void toy_pause(toy *t, double pause)
{
    t->conf[0].pause = t->conf[1].pause = pause;
    t->conf[2].pause = pause / 8; /* its steps are rows, not units */
}

pid_t toy_start(const char *dir, int64_t units, double pause, const char *fault)
{
    pid_t pid = fork();

    if (pid == 0) {
        toy t;

        if (fault != NULL)
            (void)setenv("MOLSIEVE_FAULT", fault, 1);
        toy_make(&t, dir, units);
        toy_pause(&t, pause);
        _exit(pl_code_exit(toy_run(&t, 2, NULL)));
    }
    return pid;
}

int toy_ended(pid_t pid)
{
    int status = -1;

    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void toy_sleep_ms(double ms)
{
    struct timespec t = { 0, (long)(ms * 1e6) };
    (void)nanosleep(&t, NULL);
}

void toy_directory(char out[256])
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(out, 256, "%s/molsieve-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(out) == NULL)
        out[0] = '\0';
}

pl_code toy_copy(const char *from, const char *to)
{
    pl_arena *mem = pl_arena_new(0);
    pl_bytes all = { 0 };
    pl_code code = pl_file_read(&all, from, mem, NULL);

    code = code == PL_OK ? pl_file_write(to, all, NULL) : code;
    pl_arena_free(mem);
    return code;
}

void toy_remove(const char *dir)
{
    char command[600];

    if (strstr(dir, "/molsieve-test-") == NULL)
        return;
    (void)snprintf(command, sizeof command, "rm -rf '%s' '%s'-[0-9]*", dir, dir);
    if (system(command) != 0)
        (void)fprintf(stderr, "%s is left behind\n", dir);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/distributed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/sha256.h"
#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "pipeline/run/run.h"
#include "stages/files/data_dir.h"
#include "stages/files/version.h"
#include "stages/steps/train/compute.h"
#include "stages/steps/train/train_conf.h"

/* ---- plugins ------------------------------------------------------------- */

const char *st_plugin_path(const char *file, pl_arena *mem)
{
    char dir[4096];
    const char *given = st_env("MOLSIEVE_PLUGINS"), *place[3];

    (void)st_program_dir(dir, sizeof dir);
    place[0] = given != NULL ? pl_sprintf(mem, "%s/%s", given, file) : NULL;
    place[1] = pl_sprintf(mem, "%s/%s", dir, file);
    place[2] = pl_sprintf(mem, "%s/../lib/molsieve/%s", dir, file);
    for (int i = 0; i < 3; i++)
        if (place[i] != NULL && access(place[i], R_OK) == 0)
            return place[i];
    return NULL;
}

static pl_code plugin_load(const nn_collective **out, const char *file, const char *needs, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *path = mem != NULL ? st_plugin_path(file, mem) : NULL;
    pl_code code = path != NULL ? nn_collective_load(out, path, err)
                                : pl_fail(err, PL_ECONFIG,
                                          "%s is not beside the program, in ../lib/molsieve or in $MOLSIEVE_PLUGINS: "
                                          "build it where %s is installed, or set stages.train.ranks=none",
                                          file, needs);

    pl_arena_free(mem);
    return code;
}

static bool plugin_there(const char *file)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    bool there = mem != NULL && st_plugin_path(file, mem) != NULL;

    pl_arena_free(mem);
    return there;
}

/* ---- open ---------------------------------------------------------------- */

/* ST_RANKS_NONE: one process is enough. */
static int choose(const st_train_conf *c, const nn_launcher *l)
{
    if (c->ranks != ST_RANKS_AUTO)
        return c->ranks;
    if (l->size < 2)
        return ST_RANKS_NONE;
    if (st_compute_engine(&c->compute) == &nn_engine_cuda && plugin_there(ST_NCCL_PLUGIN))
        return ST_RANKS_NCCL;
    return l->mpi ? ST_RANKS_MPI : ST_RANKS_TCP;
}

/* The transport: the MPI that started us, if its plugin exists, or TCP. */
static pl_code bytes_open(nn_ranks *r, const nn_join *join, int which, pl_error *err)
{
    bool mpi = which == ST_RANKS_MPI || (which == ST_RANKS_NCCL && join->launch.mpi && plugin_there(ST_MPI_PLUGIN));
    pl_code code = PL_OK;

    *r = (nn_ranks){ .kind = which == ST_RANKS_NONE ? &nn_collective_none : &nn_collective_tcp,
                     .size = 1,
                     .patience = join->patience };
    if (mpi)
        code = plugin_load(&r->kind, ST_MPI_PLUGIN, "an MPI", err);
    return code != PL_OK ? code : r->kind->open(r, join, err);
}

/* An error here is the same on all ranks, unless one of them has died. */
static pl_code team_check(st_team *team, const nn_launcher *l, const st_train_conf *c, pl_error *err)
{
    nn_ranks *r = &team->ranks;
    pl_error why = { 0 };
    char text[256];
    pl_code code;

    if (r->size < l->size)
        return pl_fail(err, PL_EDEVICE,
                       "the launcher started %d ranks, the MPI of the plugin (%s) sees %d: are they the same "
                       "MPI?",
                       l->size, r->kind->about(), r->size);
    if (r->size > c->loop.shards)
        return pl_fail(err, PL_ECONFIG,
                       "%d ranks, but a batch has only %lld shards: with stages.train.batch.shards=%d any number of "
                       "ranks up to %d gives the same model",
                       r->size, (long long)c->loop.shards, r->size, r->size);
    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "%s %s", st_version, st_commit);
    code = nn_ranks_agree(r, text, sizeof text, "version and commit", &why);
    if (code != PL_OK && code != PL_EDATA) {
        team->state = ST_TEAM_BUSY;
        return pl_fail(err, code, "%s", why.text);
    }
    return code != PL_OK ? pl_fail(err, PL_ECONFIG, "ranks run different builds: this one is molsieve %s; %s", text, why.text)
                         : PL_OK;
}

/* With different kernels the model would depend on which rank had which molecules. */
static pl_code team_level(st_team *team, const st_train_conf *c, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *level = mem != NULL ? st_compute_level(&c->compute, mem) : NULL;
    pl_error why = { 0 };
    char text[384];
    pl_code code = level != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "ranks");

    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "%s", level != NULL ? level : "");
    pl_arena_free(mem);
    if (code == PL_OK)
        code = nn_ranks_agree(&team->ranks, text, sizeof text, "kernels", &why);
    if (code != PL_OK && code != PL_EDATA) {
        team->state = ST_TEAM_BUSY;
        return pl_fail(err, code, "%s", why.text);
    }
    return code != PL_OK
               ? pl_fail(err, PL_ECONFIG,
                         "ranks use different kernels: this one has %s; set stages.train.kernels to a set that all machines "
                         "have",
                         text)
               : PL_OK;
}

/* NCCL on top of the transport, which is closed with it. */
static pl_code sum_open(st_team *team, const st_train_conf *c, nn_join *join, pl_error *err)
{
    int32_t device = join->launch.local_rank > 0 ? join->launch.local_rank : 0;
    pl_code code = PL_OK;

    team->control = team->ranks;
    join->control = &team->control;
    if (st_compute_engine(&c->compute) == &nn_engine_cuda)
        code = st_compute_device(&c->compute, &join->launch, &device, err);
    join->device = device;
    if (code == PL_OK)
        code = plugin_load(&team->ranks.kind, ST_NCCL_PLUGIN, "NCCL", err);
    if (code == PL_OK)
        code = team->ranks.kind->open(&team->ranks, join, err);
    if (code != PL_OK) { /* the others may wait for this rank: the close ends them */
        team->ranks = team->control;
        team->state = ST_TEAM_BUSY;
    }
    return code;
}

static pl_code team_start(st_team *team, const pl_workflow *wf, const st_train_conf *c, nn_join *join, pl_error *err)
{
    int which = c != NULL ? choose(c, &join->launch) : ST_RANKS_NONE;
    pl_code code;

    join->folder = wf->workdir;
    join->patience = c != NULL ? c->rank_timeout : 0;
    code = bytes_open(&team->ranks, join, which, err);
    if (code != PL_OK || which == ST_RANKS_NONE)
        return code;
    pl_fault("ranks", "met");
    if (join->launch.size > 1)
        pl_stop_begin(&team->stop, 0, 0);
    team->state = ST_TEAM_REFUSED;
    code = team_check(team, &join->launch, c, err);
    if (code == PL_OK)
        code = team_level(team, c, err);
    return code != PL_OK || which != ST_RANKS_NCCL ? code : sum_open(team, c, join, err);
}

pl_code st_team_open(st_team *team, const pl_workflow *wf, pl_error *err)
{
    const pl_step *step = pl_workflow_step(wf, "train");
    const st_train_conf *c = step != NULL ? step->conf : NULL;
    nn_join join = { .launch = nn_launcher_read() };
    pl_code code;

    *team = (st_team){ .ranks = { .kind = &nn_collective_none, .size = 1 } };
    if (join.launch.size > 1 && c == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "%d ranks were started, but only stage train shares its work among ranks, and this "
                       "workflow has none",
                       join.launch.size);
    code = team_start(team, wf, c, &join, err);
    if (code == PL_OK)
        team->state = ST_TEAM_READY;
    return code;
}

/* ---- orders of rank 0 ---------------------------------------------------- */

typedef struct order {
    int32_t train;   /* 1: come to the training; 0: it is over */
    char digest[65]; /* of what all ranks must have read identically */
} order;

static pl_code digest_make(char out[65], const pl_workflow *wf, const pl_step *step, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *settings = mem != NULL ? pl_params_json(step->stage->fields, step->conf, mem) : NULL;
    const st_train_conf *c = step->conf; /* of the settings of how to compute, only those that must be the same on all ranks */
    const char *text = settings != NULL ? pl_sprintf(mem, "%s %s %lld %d %d %d %s", st_version, st_commit, (long long)wf->seed,
                                                     pl_workflow_step(wf, "basis") != NULL, c->loop.sharded, c->beside, settings)
                                        : NULL;
    pl_sha256 sum;

    if (text != NULL) {
        pl_sha256_start(&sum);
        pl_sha256_add_str(&sum, text);
        pl_sha256_hex(&sum, out);
    }
    pl_arena_free(mem);
    return text != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "ranks");
}

/* Until the first step: rank 0 reads the molecules, and all open their engines. */
static double patience_begin(const pl_step *step) { return 10 * ((const st_train_conf *)step->conf)->rank_timeout; }

pl_code st_team_call(st_team *team, const pl_workflow *wf, const pl_step *step, pl_error *err)
{
    order o = { .train = 1 };
    pl_code code = digest_make(o.digest, wf, step, err);

    team->state = ST_TEAM_BUSY;
    team->ranks.patience = patience_begin(step);
    return code != PL_OK ? code : team->ranks.kind->broadcast(&team->ranks, &o, sizeof o, err);
}

pl_code st_team_wait(st_team *team, const pl_workflow *wf, const pl_step *step, bool *train, pl_error *err)
{
    order o = { .train = 1 };
    char own[65];
    pl_code code;

    *train = false;
    team->ranks.patience = 0;
    code = team->ranks.kind->broadcast(&team->ranks, &o, sizeof o, err);
    if (code != PL_OK || !o.train)
        return code;
    code = digest_make(own, wf, step, err);
    if (code == PL_OK && strcmp(own, o.digest) != 0)
        code = pl_fail(err, PL_ECONFIG, "this rank read another workflow than rank 0, or is another version of the program");
    team->ranks.patience = patience_begin(step);
    *train = code == PL_OK;
    return code;
}

int st_team_close(st_team *team, int status)
{
    order o = { 0 };
    nn_ranks *r = &team->ranks;
    bool lost = r->rank == 0 ? team->state == ST_TEAM_BUSY : status != 0;

    r->patience = 0;
    if (!lost && r->rank == 0 && team->state == ST_TEAM_READY)
        lost = r->kind->broadcast(r, &o, sizeof o, NULL) != PL_OK;
    if (lost)
        r->kind->give_up(r, status);
    else if (team->state != ST_TEAM_NONE)
        r->kind->close(r);
    return status;
}

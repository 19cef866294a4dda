/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/sha256.h"
#include "pipeline/base/text.h"
#include "pipeline/stop.h"
#include "stages/share.h"
#include "stages/train.h"
#include "stages/version.h"

/* ---- what the launcher says ---------------------------------------------- */

static int number(const char *name)
{
    const char *text = getenv(name);
    int64_t n = 0;

    return text != NULL && pl_parse_int(text, &n) && n >= 0 && n < 1 << 24 ? (int)n : -1;
}

/* A batch script has SLURM_NTASKS too: only a process with a PMIx rank is one of them. */
int st_launched_size(void)
{
    int open_mpi = number("OMPI_COMM_WORLD_SIZE"), pmi = number("PMI_SIZE"), slurm = number("SLURM_NTASKS");

    if (open_mpi > 0)
        return open_mpi;
    if (pmi > 0)
        return pmi;
    return number("PMIX_RANK") >= 0 && slurm > 0 ? slurm : 1;
}

/* ---- plugins ------------------------------------------------------------- */

const char *st_plugin_path(const char *file, pl_arena *mem)
{
    char dir[4096];
    const char *given = getenv("MOLSIEVE_PLUGINS"), *place[3];

    (void)st_program_dir(dir, sizeof dir);
    place[0] = given != NULL && given[0] != '\0' ? pl_sprintf(mem, "%s/%s", given, file) : NULL;
    place[1] = pl_sprintf(mem, "%s/%s", dir, file);
    place[2] = pl_sprintf(mem, "%s/../lib/molsieve/%s", dir, file);
    for (int i = 0; i < 3; i++)
        if (place[i] != NULL && access(place[i], R_OK) == 0)
            return place[i];
    return NULL;
}

static pl_code kind_find(const nn_collective **out, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *path = mem ? st_plugin_path(ST_MPI_PLUGIN, mem) : NULL;
    pl_code rc = path ? nn_collective_load(out, path, err)
                      : pl_fail(err, PL_ECONFIG, "%s is not beside the program, in ../lib/molsieve or in $MOLSIEVE_PLUGINS: "
                                "build it where an MPI is installed, or set stages.train.ranks=none", ST_MPI_PLUGIN);

    pl_arena_free(mem);
    return rc;
}

/* ---- open ---------------------------------------------------------------- */

static pl_code team_check(const st_team *team, const st_train_conf *c, pl_error *err)
{
    const nn_ranks *r = &team->ranks;

    if (r->size < st_launched_size())
        return pl_fail(err, PL_EDEVICE, "the launcher started %d ranks, the MPI of the plugin (%s) sees %d: are they the same "
                       "MPI?", st_launched_size(), r->kind->library(), r->size);
    if (r->size > c->loop.shards)
        return pl_fail(err, PL_ECONFIG, "%d ranks, but a batch is cut in %lld: with stages.train.batch.shards=%d any number of "
                       "ranks up to %d gives the same model", r->size, (long long)c->loop.shards, r->size, r->size);
    return PL_OK;
}

pl_code st_team_open(st_team *team, const pl_workflow *wf, pl_error *err)
{
    const pl_step *step = pl_workflow_step(wf, "train");
    const st_train_conf *c = step ? step->conf : NULL;
    bool several = st_launched_size() > 1 && !(c && c->ranks == ST_RANKS_NONE);
    pl_code rc = PL_OK;

    *team = (st_team){ .ranks = { .kind = &nn_collective_none } };
    if (several && !c)
        return pl_fail(err, PL_ECONFIG, "%d ranks were started, but only stage train shares its work among ranks, and this "
                       "workflow has none", st_launched_size());
    if (several || (c && c->ranks == ST_RANKS_MPI))
        rc = kind_find(&team->ranks.kind, err);
    if (!rc)
        rc = team->ranks.kind->open(&team->ranks, err);
    if (rc)
        return rc;
    if (several)
        pl_stop_begin(&team->stop, 0, 0);
    rc = several ? team_check(team, c, err) : PL_OK;
    team->state = rc ? ST_TEAM_REFUSED : ST_TEAM_READY;
    return rc;
}

/* ---- orders of rank 0 ---------------------------------------------------- */

typedef struct order {
    int32_t train;        /* 1: come to the training; 0: it is over */
    char digest[65];      /* of what all ranks must have read alike */
} order;

static pl_code digest_make(char out[65], const pl_workflow *wf, const pl_step *step, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *settings = mem ? pl_params_json(step->stage->fields, step->conf, mem) : NULL;
    const char *text = settings ? pl_sprintf(mem, "%s %s %lld %d %s", st_version, st_commit, (long long)wf->seed,
                                             pl_workflow_step(wf, "basis") != NULL, settings) : NULL;
    pl_sha256 sum;

    if (text) {
        pl_sha256_start(&sum);
        pl_sha256_add_str(&sum, text);
        pl_sha256_hex(&sum, out);
    }
    pl_arena_free(mem);
    return text ? PL_OK : pl_fail(err, PL_ENOMEM, "ranks");
}

pl_code st_team_call(st_team *team, const pl_workflow *wf, const pl_step *step, pl_error *err)
{
    order o = { .train = 1 };
    pl_code rc = digest_make(o.digest, wf, step, err);

    team->state = ST_TEAM_BUSY;
    team->ranks.patience = ((const st_train_conf *)step->conf)->rank_timeout;
    return rc ? rc : team->ranks.kind->tell(&team->ranks, &o, sizeof o, err);
}

static pl_code train_along(st_team *team, const pl_workflow *wf, const order *o, int workers, pl_error *err)
{
    const pl_step *step = pl_workflow_step(wf, "train");
    char own[65];
    pl_code rc = digest_make(own, wf, step, err);

    if (!rc && strcmp(own, o->digest) != 0)
        return pl_fail(err, PL_ECONFIG, "has read another workflow than rank 0, or is another version of the program");
    team->ranks.patience = ((const st_train_conf *)step->conf)->rank_timeout;
    return rc ? rc : st_train_follow(wf, step, team, workers, err);
}

pl_code st_team_follow(st_team *team, const pl_workflow *wf, int workers, pl_error *err)
{
    order o = { .train = 1 };
    pl_code rc = PL_OK;

    while (!rc && o.train) {
        team->ranks.patience = 0;
        rc = team->ranks.kind->tell(&team->ranks, &o, sizeof o, err);
        if (!rc && o.train)
            rc = train_along(team, wf, &o, workers, err);
        if (rc == PL_ESTOP || rc == PL_ELIMIT) /* so for all; rank 0 says it */
            rc = PL_OK;
    }
    pl_at(err, "rank %d", team->ranks.rank);
    return rc;
}

int st_team_close(st_team *team, int status)
{
    order o = { 0 };
    nn_ranks *r = &team->ranks;
    bool lost = r->rank == 0 ? team->state == ST_TEAM_BUSY : status != 0;

    r->patience = 0;
    if (!lost && r->rank == 0 && team->state == ST_TEAM_READY)
        lost = r->kind->tell(r, &o, sizeof o, NULL) != PL_OK;
    if (lost)
        r->kind->give_up(r, status);
    else if (team->state != ST_TEAM_NONE)
        r->kind->close(r);
    return status;
}

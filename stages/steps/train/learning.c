/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/learning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "pipeline/run/run.h"

/* The error of a single target has its unit; that of several is a mean over normalised targets. */
static bool has_unit(const st_learning *l) { return !l->m->classifies && l->conf->targets.n == 1; }

/* The name of the number after "valid" in the progress line. */
static const char *valid_name(const st_learning *l)
{
    if (l->m->classifies)
        return "log loss";
    return has_unit(l) ? "MAE" : "loss";
}

int64_t st_learning_done(const st_learning *l, const nn_train_state *s, int64_t n_train)
{
    return (l->member * nn_train_epochs(l->loop, s) + s->epoch) * n_train + s->cursor;
}

/* Writes "epoch 3/100", or "epoch 1, then as many as fit into 2h," to to [n]. Returns the number of epochs; -1: not known yet. */
static int64_t epoch_note(const nn_train_conf *c, const nn_train_state *s, char *to, size_t n)
{
    const int64_t epochs = nn_train_epochs(c, s);
    char time[32];

    if (c->budget > 0 && s->planned == 0) {
        (void)snprintf(to, n, "epoch 1, then as many as fit into %s,", pl_duration_str(c->budget, time));
        return -1;
    }
    (void)snprintf(to, n, "epoch %lld/%lld", (long long)s->epoch + 1, (long long)epochs);
    return epochs;
}

void st_learning_step(const st_learning *l, const nn_train_state *s, int64_t n_train)
{
    const bool unit = has_unit(l) && l->m->target->unit[0];
    char note[640], member[64] = "", loss[40] = "", noise[40] = "", valid[80] = "", epoch[64];
    const int64_t epochs = epoch_note(l->loop, s, epoch, sizeof epoch);

    if (l->conf->members > 1)
        snprintf(member, sizeof member, "member %lld/%lld ", (long long)l->member + 1, (long long)l->conf->members);
    if (s->noise.n)
        snprintf(noise, sizeof noise, " noise %.4f", s->noise.square / (double)s->noise.n);
    if (isfinite(l->valid_error))
        snprintf(valid, sizeof valid, " valid %s %.4g%s%.40s", valid_name(l), l->valid_error, unit ? " " : "",
                 unit ? l->m->target->unit : "");
    if (!l->m->denoises)
        snprintf(loss, sizeof loss, " loss %.4f", s->seen.n ? s->seen.loss / (double)s->seen.n : NAN);
    snprintf(note, sizeof note, "%s%s%s%s%s", member, epoch, loss, noise, valid);
    pl_progress_set(l->env->progress, st_learning_done(l, s, n_train), epochs < 0 ? -1 : l->conf->members * epochs * n_train, note);
}

const char *st_learning_metric(const char *name, int64_t member, pl_arena *mem)
{
    return member ? pl_sprintf(mem, "member%lld.%s", (long long)member + 1, name) : name;
}

/* Adds a number that is known if *code is PL_OK, and stores what came of it there. */
static void value_add(const st_learning *l, const nn_epoch_report *r, const char *part, const char *name, double value,
                      pl_code *code, pl_error *err)
{
    const char *own;

    if (*code != PL_OK || !isfinite(value))
        return;
    own = st_learning_metric(name, l->member, l->env->mem);
    *code =
        own != NULL ? pl_metric_add(l->env, r->step, (double)r->epoch, part, own, value, err) : pl_fail(err, PL_ENOMEM, "a metric");
}

static void sums_add(const st_learning *l, const nn_epoch_report *r, const char *part, const nn_loss_sum *sum, pl_code *code,
                     pl_error *err)
{
    const bool limits =
        l->limits && strcmp(part, "train") == 0; /* what is no error of measured values alone is not stored as one */
    double n = (double)sum->n, scale = has_unit(l) && !limits ? l->m->target->scale.stdev : NAN;
    const struct {
        const char *name;
        double value;
    } rows[] = { { "loss", sum->loss / n },
                 { "mae", scale * sum->abs / n },
                 { "rmse", scale * sqrt(sum->square / n) },
                 { "brier",
                   l->m->classifies && !st_train_weighs(l->conf) ? sum->square / n : NAN } }; /* by weight, no probability */

    for (int k = 0; k < 4 && sum->n; k++)
        value_add(l, r, part, rows[k].name, rows[k].value, code, err);
}

static pl_code epoch_add(const st_learning *l, const nn_epoch_report *r, pl_error *err)
{
    pl_code code = PL_OK;

    sums_add(l, r, "train", &r->train, &code, err);
    sums_add(l, r, "valid", &r->valid, &code, err);
    sums_add(l, r, "test", &r->test, &code, err);
    value_add(l, r, "train", "noise_loss", r->noise.square / (double)r->noise.n, &code, err); /* without noise: not a number */
    value_add(l, r, "train", "lr", r->lr, &code, err);
    return code;
}

pl_code st_learning_epoch(st_learning *l, const nn_epoch_report *r, pl_error *err)
{
    sqlite3 *db = l->env->store->db;
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = epoch_add(l, r, err);
    if (code != PL_OK) {
        pl_db_rollback(db);
        return code;
    }
    l->valid_error = has_unit(l) ? l->m->target->scale.stdev * r->valid.abs : r->valid.loss;
    l->valid_error = r->valid.n ? l->valid_error / (double)r->valid.n : NAN;
    pl_fault("train", "epoch.before_commit");
    return pl_db_commit(db, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/limits.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "stages/steps/ingest/read_input.h"

static const char *const ending[ST_SIDES] = { " at least", " at most" };

const char *st_limit_name(const char *label, st_side side, pl_arena *mem) { return pl_sprintf(mem, "%s%s", label, ending[side]); }

size_t st_limit_label(const char *name)
{
    const size_t n = strlen(name);

    for (int side = 0; side < ST_SIDES; side++) {
        const size_t end = strlen(ending[side]);
        if (n > end && strcmp(name + n - end, ending[side]) == 0)
            return n - end;
    }
    return 0;
}

bool st_limit_read(double *value, st_side *side, const char *text)
{
    static const struct {
        const char *text;
        st_side side;
    } signs[] = { { ">=", ST_AT_LEAST },           { "<=", ST_AT_MOST },          { ">", ST_AT_LEAST }, { "<", ST_AT_MOST },
                  { "\xe2\x89\xa5", ST_AT_LEAST }, { "\xe2\x89\xa4", ST_AT_MOST } };

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t n = strlen(signs[i].text);
        if (strncmp(text, signs[i].text, n) != 0)
            continue;
        *side = signs[i].side;
        return pl_parse_real(text + n + strspn(text + n, " "), value) && isfinite(*value);
    }
    return false;
}

/* Adds a limit as a number of a label of its own; a text that is none adds nothing. */
static pl_code limit_add(st_record *out, st_field *to, const ch_field *from, pl_arena *mem, pl_error *err)
{
    const char *name = NULL;
    double value;
    st_side side;

    if (st_limit_label(from->name) > 0)
        return pl_fail(err, PL_ECONFIG,
                       "the field \"%.100s\" has the name that limits get (stages.read.censored: bound); rename it", from->name);
    if (from->is_number || !st_limit_read(&value, &side, from->text))
        return PL_OK;
    name = st_limit_name(from->name, side, mem);
    if (name == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a data field");
    to[out->n_fields++] = (st_field){ name, value };
    return PL_OK;
}

/* A column that is there twice: the first counts, also if it is empty. */
static bool is_repeated(const ch_field *found, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(found[k].name, found[i].name) == 0)
            return true;
    return false;
}

pl_code st_label_fields(st_record *out, const ch_field *found, int n, bool table, bool limits, pl_arena *mem, pl_error *err)
{
    st_field *to = PL_NEW(mem, st_field, n + 1);
    pl_code code = to != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for %d data fields", n);

    out->field = to;
    for (int i = 0; i < n && code == PL_OK; i++) {
        if (is_repeated(found, i) || (!table && ch_field_again(found, n, &found[i]) != NULL))
            continue;
        if (found[i].is_number && isfinite(found[i].value))
            to[out->n_fields++] = (st_field){ found[i].name, found[i].value };
        if (limits)
            code = limit_add(out, to, &found[i], mem, err);
    }
    return code;
}

bool st_limits_wanted(const pl_workflow *wf)
{
    const pl_step *read = pl_workflow_step(wf, "read");

    return read != NULL && ((const st_read_conf *)read->conf)->censored == ST_CENSORED_BOUND;
}

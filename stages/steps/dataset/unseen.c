/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/unseen.h"

#include "chem/molecule/element.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

static pl_code row_put(pl_env *env, int64_t mol_id, int32_t element, const char *model, pl_error *err)
{
    char message[280];

    (void)sqlite3_snprintf(sizeof message, message, "model %.200s has not seen element %s", model, ch_element_symbol(element));
    return pl_failure_add(env, &(pl_failure){ .mol_id = mol_id, .code = "element", .message = message, .attempt = 1 }, err);
}

static void counts_tell(pl_env *env, const int64_t n[ST_PARTS], const char *model)
{
    pl_text text = { 0 };

    for (int p = 0; p < ST_PARTS; p++)
        if (n[p] > 0)
            pl_text_addf(&text, "%s%lld %s", text.len ? ", " : "", (long long)n[p], st_part_name[p]);
    if (text.len > 0)
        pl_event_add(env, PL_WARN,
                     "%s molecules have elements that model %s has not seen: they are left out of the errors (see molsieve "
                     "failures)",
                     pl_text_str(&text), model);
    pl_text_free(&text);
}

pl_code st_unseen_put(pl_env *env, const st_dataset *d, unsigned parts, const nn_inputs *in, const char *model, pl_error *err)
{
    int64_t n[ST_PARTS] = { 0 };
    pl_code code =
        pl_db_execf(env->store->db, err, "DELETE FROM failure WHERE stage=%Q AND code='element'", env->step->stage->name);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++) {
        const int32_t element = parts >> d->part[i] & 1 ? nn_inputs_unknown(in, d->item[i].graph) : 0;
        if (element == 0)
            continue;
        n[d->part[i]]++;
        code = row_put(env, d->mol_id[i], element, model, err);
    }
    if (code == PL_OK)
        counts_tell(env, n, model);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What prepare says when all records are done. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/prepare.h"

/* No molecule is left to continue with: most often the format or the settings are wrong. */
pl_code st_prepare_fail_empty(const pl_env *env, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row, read; /* read: as a molecule of the format */
    int64_t n = 0, aside = 0;
    pl_code code = pl_db_int(env->store->db, &n, err, "SELECT count(*) FROM record");

    if (code == PL_OK)
        code = pl_db_int(env->store->db, &aside, err, "SELECT count(*) FROM record WHERE status='filtered'");
    if (aside > 0)
        return pl_fail(err, PL_EINPUT,
                       "none of the %lld records gave a molecule: %lld were set aside by prepare, the others "
                       "failed; see record.reason and `molsieve failures`",
                       (long long)n, (long long)aside);
    if (code == PL_OK)
        code = pl_db_prepare(env->store->db, &st,
                             "SELECT code, message FROM failure WHERE stage IN('read','prepare') "
                             "GROUP BY code, message ORDER BY count(*) DESC, code, message LIMIT 1",
                             err);
    row = pl_db_next(st, &code, err);
    read = row && strcmp((const char *)sqlite3_column_text(st, 0), "valence") == 0;
    if (code == PL_OK)
        code =
            pl_fail(err, PL_EINPUT, "none of the %lld records gave a molecule, most often: %s: %.160s; %ssee `molsieve failures`",
                    (long long)n, row ? (const char *)sqlite3_column_text(st, 0) : "unknown",
                    row ? (const char *)sqlite3_column_text(st, 1) : "", read ? "" : "check `format` of `inputs` and ");
    (void)sqlite3_finalize(st);
    return code;
}

/* Where no drawing shows the stereo of a SMILES with an axis, its InChIKey lacks the axis, and a record with positions has it. */
pl_code st_axes_text(pl_store *s, char text[256], pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(s->db, &n, err,
                             "SELECT count(*) FROM (SELECT 1 FROM molecule WHERE instr(smiles,'@]=')+instr(smiles,'=C=')>0 AND "
                             "axes(smiles)<>'' GROUP BY smiles HAVING count(DISTINCT inchikey)>1)");

    text[0] = '\0';
    if (n > 0)
        (void)snprintf(
            text, 256,
            "SMILES of allenes or longer cumulenes that are two molecules, because the InChIKeys of their records differ: "
            "%lld; see SELECT smiles FROM molecule GROUP BY smiles HAVING count(*)>1",
            (long long)n);
    return code;
}

/* Checks labels requested by name. If no molecule has one, it was probably misspelled or uses decimal commas; if some lack it, the field may
 * be empty, but also >10 or n.d. */
pl_code st_prepare_warn_labels(pl_env *env, pl_error *err)
{
    const st_prepare_conf *c = env->step->conf;
    const pl_list *labels = &c->labels;
    const char *const *name = labels->items;
    bool named = labels->n > 0 && strcmp(name[0], "all") != 0 && strcmp(name[0], "none") != 0;
    int64_t all = 0, have = 0;
    pl_code code = named ? pl_db_int(env->store->db, &all, err, "SELECT count(*) FROM molecule") : PL_OK;

    for (int32_t i = 0; named && i < labels->n && code == PL_OK; i++) {
        code = pl_db_int(env->store->db, &have, err,
                         "SELECT count(*) FROM label JOIN property USING(property_id) "
                         "WHERE name=%Q",
                         name[i]);
        if (code != PL_OK)
            break;
        if (have == 0)
            pl_event_add(env, PL_WARN, "labels: no molecule has a number in a data field called %s", name[i]);
        else if (have < all)
            pl_event_add(env, PL_INFO,
                         "labels: %lld of %lld molecules have a number in %s, the others have nothing or "
                         "text there",
                         (long long)have, (long long)all, name[i]);
    }
    return code;
}

/* Labels that were added later are kept by InChIKey, and other settings of prepare, or another input, may leave no molecule of that name. */
static pl_code warn_measured(pl_env *env, pl_error *err)
{
    static const char lost[] =
        "FROM measured WHERE inchikey NOT IN(SELECT inchikey FROM molecule) AND inchikey NOT IN(SELECT smiles "
        "FROM molecule WHERE inchikey='')";
    int64_t n = 0, all = 0;
    char first[64];
    pl_code code = pl_db_int(env->store->db, &all, err, "SELECT count(*) FROM measured");

    if (code == PL_OK && all > 0)
        code = pl_db_int(env->store->db, &n, err, "SELECT count(*) %s", lost);
    if (code == PL_OK && n > 0)
        code = pl_db_text(env->store->db, first, sizeof first, err, "SELECT substr(min(inchikey),1,60) %s", lost);
    if (code == PL_OK && n > 0)
        pl_event_add(
            env, PL_WARN,
            "labels: %lld of %lld that were added (`molsieve label`, or a campaign) are of no molecule of this library, so "
            "nothing learns them: the inputs or the settings of prepare have changed since; the first: %s",
            (long long)n, (long long)all, first);
    return code;
}

/* Before the added labels take the place of those that the library's files give: `label` asked, but the files may have changed since. */
static pl_code warn_replaced(pl_env *env, pl_error *err)
{
    static const char both[] = "FROM label l JOIN property p USING(property_id) JOIN molecule m USING(mol_id) JOIN measured x ON "
                               "x.property=p.name AND x.inchikey=coalesce(nullif(m.inchikey,''),m.smiles) WHERE l.value<>x.value";
    int64_t n = 0;
    char first[256];
    pl_code code = pl_db_int(env->store->db, &n, err, "SELECT count(*) %s", both);

    if (code != PL_OK || n == 0)
        return code;
    code = pl_db_text(env->store->db, first, sizeof first, err,
                      "SELECT substr(p.name,1,60)||', '||l.value||' in the files and '||x.value||' in '||substr(x.source,1,100) "
                      "%s ORDER BY p.name, m.inchikey, m.smiles LIMIT 1",
                      both);
    if (code == PL_OK)
        pl_event_add(
            env, PL_WARN,
            "labels: %lld that were added (`molsieve label`, or a campaign) replace another value of the library's files; the "
            "first: %s",
            (long long)n, first);
    return code;
}

static pl_code warn_inchi(pl_env *env, pl_error *err)
{
    int64_t n = 0;
    pl_code code =
        pl_db_int(env->store->db, &n, err,
                  "SELECT count(*) FROM record JOIN input_file USING(file_id) WHERE format='inchi' AND mol_id IS NOT NULL");

    if (code == PL_OK && n > 0)
        pl_event_add(env, PL_WARN, "%lld %s read from InChI: %s", (long long)n, n == 1 ? "record is" : "records are",
                     st_inchi_tautomers);
    return code;
}

pl_code st_prepare_library_end(pl_env *env, bool any, pl_error *err)
{
    pl_code code = any ? PL_OK : st_prepare_fail_empty(env, err);

    if (code == PL_OK)
        code = warn_replaced(env, err);
    if (code == PL_OK)
        code = st_measured_apply(env->store, err);
    if (code == PL_OK)
        code = warn_measured(env, err);
    if (code == PL_OK)
        code = warn_inchi(env, err);
    if (code == PL_OK)
        code = st_prepare_warn_labels(env, err);
    return code == PL_OK ? st_drawings_warn(env, err) : code;
}

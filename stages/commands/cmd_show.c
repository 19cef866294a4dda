/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pipeline/base/wrap.h"
#include "stages/commands/commands.h"
#include "stages/commands/show_find.h"
#include "stages/database/descriptor_columns.h"
#include "stages/database/rows.h"

static const pl_opt opts[] = { { "--json", 0, NULL, "as JSON: every row about it, numbers in full precision" }, { 0 } };

/* Each row of a query is a line behind its heading; ?1 is the molecule, or the record without one. */
typedef struct section {
    const char *heading, *sql;
} section;

/* "mw 180.2 u, logp 1.31, ...": those that have a value. */
static const char descriptors_sql[] =
    "SELECT group_concat(col||' '||printf('%.4g',v)||coalesce(' '||unit,''),', ') FROM (SELECT d.col, d.unit, CASE d.col"
#define WHEN(name, ...) " WHEN '" #name "' THEN m." #name
    CH_DESCRIPTORS(WHEN) " END AS v FROM molecule m, column_doc d WHERE m.mol_id=?1 AND d.tbl='molecule' "
                         "AND d.col IN (''"
#define IN_LIST(name, ...) ",'" #name "'"
    CH_DESCRIPTORS(IN_LIST) ") ORDER BY d.col) WHERE v IS NOT NULL";

#define PLACE "i.path||':'||r.line"

static const section molecule_sections[] = {
    { "SMILES", "SELECT smiles FROM molecule WHERE mol_id=?1" },
    { "InChIKey", "SELECT inchikey FROM molecule WHERE mol_id=?1 AND inchikey<>''" },
    { "formula",
      "SELECT formula||', '||n_heavy||' heavy atoms'||CASE WHEN charge<>0 THEN printf(', charge %+d',charge) ELSE '' END FROM "
      "molecule WHERE mol_id=?1" },
    { "scaffold", "SELECT CASE scaffold WHEN '' THEN 'none: no rings' ELSE scaffold END FROM fingerprint WHERE mol_id=?1" },
    { "state",
      "SELECT CASE WHEN EXISTS(SELECT 1 FROM hit WHERE mol_id=?1) THEN (SELECT 'rank '||rank||' of '||(SELECT count(*) FROM hit) FROM "
      "hit WHERE mol_id=?1) WHEN EXISTS(SELECT 1 FROM failure WHERE mol_id=?1) THEN 'failed in '||(SELECT group_concat(stage) "
      "FROM (SELECT stage FROM failure WHERE mol_id=?1 GROUP BY stage ORDER BY min(failure_id))) WHEN EXISTS(SELECT 1 FROM score "
      "WHERE mol_id=?1) THEN 'scored'||CASE WHEN EXISTS(SELECT 1 FROM hit) THEN ', not in the ranking' ELSE '' END ELSE 'prepared' END" },
    { "records", "SELECT " PLACE "||coalesce('  '||r.title,'')||'  '||r.status||coalesce(': '||r.reason,'') FROM record r JOIN "
                 "input_file i USING(file_id) WHERE r.mol_id=?1 ORDER BY r.record_id LIMIT 20" },
    { "", "SELECT 'and '||(count(*)-20)||' more' FROM record WHERE mol_id=?1 HAVING count(*)>20" },
    { "removed", "SELECT removed FROM molecule WHERE mol_id=?1 AND removed<>''" },
    { "charge",
      "SELECT printf('%+d in the record, %+d as prepared',neutralised,charge) FROM molecule WHERE mol_id=?1 AND neutralised "
      "IS NOT NULL" },
    { "alerts", "SELECT alerts FROM molecule WHERE mol_id=?1 AND alerts<>''" },
    { "stereo",
      "SELECT undefined_stereo||' undefined: its structure has an arbitrary configuration there' FROM molecule WHERE mol_id=?1 "
      "AND undefined_stereo>0" },
    { "structure",
      "SELECT CASE geometry WHEN 'none' THEN 'none' ELSE printf('%d conformer%s, ',structures,CASE structures WHEN 1 THEN '' ELSE 's' "
      "END)||CASE geometry WHEN 'input' THEN 'from the input' ELSE 'built with '||geometry END||CASE built_by WHEN 'native' THEN ' by the native builder' WHEN 'openbabel' THEN ' by Open Babel' ELSE '' END||"
      "coalesce(', '||steps||' steps','')||CASE converged WHEN 0 THEN ', not converged' ELSE '' END||coalesce(', '||round(energy,2)||' kcal/mol','')||coalesce('; not by the native builder: '||fallback,'') END FROM molecule WHERE mol_id=?1" },
    { "descriptors", descriptors_sql },
    { "features",
      "SELECT group_concat(one,', ') FROM (SELECT s.name||' (unit '||u.unit||')' AS one FROM unit u JOIN stage s USING(stage_id) WHERE "
      "s.name IN ('prepare','graph','basis') AND ?1 BETWEEN u.first AND u.last ORDER BY s.stage_id, u.unit)" },
    { "measured",
      "SELECT p.name||' '||printf('%.4g',l.value)||coalesce(' '||nullif(p.unit,''),'')||CASE WHEN l.n_measurements>1 THEN "
      "printf(' (mean of %d, deviation %.3g)',l.n_measurements,l.spread) ELSE '' END FROM label l JOIN property p "
      "USING(property_id) WHERE l.mol_id=?1 ORDER BY p.name" },
    { "part", "SELECT part FROM split WHERE mol_id=?1" },
    { "scores",
      "SELECT p.name||' '||printf('%.4g',s.mean)||CASE WHEN s.interval90 IS NULL THEN '' ELSE printf(' +- %.2g',s.interval90) END||coalesce(' '||"
      "nullif(p.unit,''),'')||coalesce(', '||s.domain||' of the domain','')||coalesce(': '||nullif(s.reasons,''),'') FROM "
      "score s JOIN property p USING(property_id) WHERE s.mol_id=?1 ORDER BY p.name" },
    { "models",
      "SELECT d.name||': '||p.name||' '||printf('%.4g',x.value)||coalesce('; nearest training molecule '||x.nearest||coalesce(' '||(SELECT n.smiles FROM molecule n WHERE n.inchikey=x.nearest ORDER BY n.mol_id LIMIT 1),'')||', similarity '||round(x.similarity,2),'') FROM prediction x JOIN "
      "property p USING(property_id) JOIN model d USING(model_id) WHERE x.mol_id=?1 ORDER BY 1" },
    { "ranking",
      "SELECT printf('rank %d, objective %.4g',rank,objective)||coalesce(', front '||front,'')||coalesce(', cluster of rank '||cluster,'')||coalesce(', '||nullif(n_similar,0)||' similar left out','') FROM hit WHERE "
      "mol_id=?1" },
    { "failures", "SELECT stage||': '||code||': '||message FROM failure WHERE mol_id=?1 ORDER BY failure_id" },
    { NULL, NULL },
};

static const section record_sections[] = {
    { "record",
      "SELECT " PLACE "||coalesce('  '||r.title,'')||'  '||r.status||coalesce(': '||r.reason,'') FROM record r JOIN input_file "
      "i USING(file_id) WHERE r.record_id=?1" },
    { "SMILES", "SELECT raw_smiles FROM record WHERE record_id=?1 AND raw_smiles IS NOT NULL" },
    { "failures",
      "SELECT stage||': '||code||': '||message||CASE WHEN attempt>1 THEN ' ('||attempt||' attempts)' ELSE '' END FROM failure "
      "WHERE record_id=?1 ORDER BY failure_id" },
    { NULL, NULL },
};

/* ---- for people ---- */

static pl_code add_section(pl_text *out, sqlite3 *db, const section *s, int64_t id, pl_error *err)
{
    const char *heading = s->heading;
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(db, &st, s->sql, err);

    if (code == PL_OK)
        (void)sqlite3_bind_int64(st, 1, id);
    while (pl_db_next(st, &code, err)) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        pl_text line = { 0 };
        if (text == NULL)
            continue;
        pl_text_addf(&line, "%-11s  ", heading);
        pl_text_add_clean(&line, text, strlen(text), 4000);
        pl_text_add(&line, "\n");
        pl_text_wrap(out, pl_text_str(&line), PL_COLUMNS);
        pl_text_depend(out, &line);
        pl_text_free(&line);
        heading = "";
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code print_sections(sqlite3 *db, const section *all, int64_t id, pl_error *err)
{
    pl_text out = { 0 };
    pl_code code = PL_OK;

    for (; all->heading != NULL && code == PL_OK; all++)
        code = add_section(&out, db, all, id, err);
    if (!pl_text_ok(&out))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
    return code;
}

static pl_code print_all(const st_ask *ask, const st_shown *found, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < found->n && code == PL_OK; i++) {
        pl_cmd_print("%smolecule %lld\n", i > 0 ? "\n" : "", (long long)found->mol_id[i]);
        code = print_sections(ask->store->db, molecule_sections, found->mol_id[i], err);
    }
    for (int i = 0; i < found->n_records && code == PL_OK; i++) {
        pl_cmd_print("%srecord %lld, without molecule\n", i + found->n > 0 ? "\n" : "", (long long)found->record[i]);
        code = print_sections(ask->store->db, record_sections, found->record[i], err);
    }
    return code;
}

/* ---- for programs ---- */

static const section molecule_rows[] = {
    { "molecule", "SELECT m.*, f.scaffold, hex(f.bits) AS fingerprint FROM molecule m LEFT JOIN fingerprint f USING(mol_id) WHERE "
                  "m.mol_id=?1" },
    { "records",
      "SELECT r.record_id, i.path, r.line, r.ordinal, r.byte_offset, r.title, r.raw_smiles, r.status, r.reason FROM record r "
      "JOIN input_file i USING(file_id) WHERE r.mol_id=?1 ORDER BY r.record_id" },
    { "labels",
      "SELECT p.name AS property, p.unit, l.value, l.n_measurements, l.spread FROM label l JOIN property p USING(property_id) "
      "WHERE l.mol_id=?1 ORDER BY 1" },
    { "split", "SELECT part FROM split WHERE mol_id=?1" },
    { "units",
      "SELECT s.name AS stage, u.unit FROM unit u JOIN stage s USING(stage_id) WHERE ?1 BETWEEN u.first AND u.last ORDER BY "
      "s.stage_id" },
    { "scores",
      "SELECT p.name AS property, p.unit, s.mean, s.stdev, s.n_models, s.similarity, s.interval90, s.domain, s.reasons FROM "
      "score s JOIN property p USING(property_id) WHERE s.mol_id=?1 ORDER BY 1" },
    { "predictions",
      "SELECT d.name AS model, p.name AS property, x.value, x.similarity, x.nearest, x.spread, x.uncertainty FROM "
      "prediction x JOIN property p USING(property_id) JOIN model d USING(model_id) WHERE x.mol_id=?1 ORDER BY 1, 2" },
    { "hit", "SELECT rank, objective, front, cluster, n_similar FROM hit WHERE mol_id=?1" },
    { "failures", "SELECT stage, code, message, signal, cpu_s, attempt, at_utc FROM failure WHERE mol_id=?1 ORDER BY failure_id" },
    { NULL, NULL },
};

static const section record_rows[] = {
    { "records",
      "SELECT r.record_id, i.path, r.line, r.ordinal, r.byte_offset, r.title, r.raw_smiles, r.status, r.reason FROM record r "
      "JOIN input_file i USING(file_id) WHERE r.record_id=?1" },
    { "failures",
      "SELECT stage, code, message, signal, cpu_s, attempt, at_utc FROM failure WHERE record_id=?1 ORDER BY failure_id" },
    { NULL, NULL },
};

static pl_code add_text(void *ctx, const pl_text *text, pl_error *err)
{
    (void)err;
    pl_text_add(ctx, pl_text_str(text));
    return PL_OK;
}

static pl_code add_rows(pl_text *out, sqlite3 *db, const section *all, int64_t id, pl_error *err)
{
    pl_code code = PL_OK;

    pl_text_add(out, "{");
    for (const section *s = all; s->heading != NULL && code == PL_OK; s++) {
        sqlite3_stmt *st = NULL;
        code = pl_db_prepare(db, &st, s->sql, err);
        if (code == PL_OK)
            (void)sqlite3_bind_int64(st, 1, id);
        pl_text_addf(out, "%s\"%s\": ", s > all ? ", " : "", s->heading);
        if (code == PL_OK)
            code = st_rows_write(st, ST_JSON, 0, NULL, add_text, out, err);
        (void)sqlite3_finalize(st);
    }
    pl_text_add(out, "}");
    return code;
}

static pl_code print_json(const st_ask *ask, const st_shown *found, pl_error *err)
{
    pl_text out = { 0 };
    pl_code code = PL_OK;

    pl_text_add(&out, "[");
    for (int i = 0; i < found->n && code == PL_OK; i++) {
        pl_text_add(&out, i > 0 ? ",\n" : "");
        code = add_rows(&out, ask->store->db, molecule_rows, found->mol_id[i], err);
    }
    for (int i = 0; i < found->n_records && code == PL_OK; i++) {
        pl_text_add(&out, i + found->n > 0 ? ",\n" : "");
        code = add_rows(&out, ask->store->db, record_rows, found->record[i], err);
    }
    pl_text_add(&out, "]\n");
    if (!pl_text_ok(&out))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
    return code;
}

static pl_code show(const st_ask *ask, pl_error *err)
{
    const char *word = ask->args->arg[0];
    st_shown found;
    pl_code code = st_show_find(&found, ask->store, word, ask->mem, err);

    if (code == PL_OK && pl_arg(ask->args, "--json") != NULL)
        code = print_json(ask, &found, err);
    else if (code == PL_OK)
        code = print_all(ask, &found, err);
    if (code == PL_OK && found.n_more > 0)
        pl_cmd_say("%lld more have the %s %.60s; `molsieve show NUMBER` shows one", (long long)found.n_more, found.as, word);
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    if (args->n > 2)
        return pl_cmd_usage(args, "one molecule at a time; put a title with blanks in quotes");
    return st_results_ask(app, args, args->n > 1 ? args->arg[1] : NULL, show, NULL);
}

const pl_cmd st_cmd_show = {
    .name = "show",
    .args = "ID [WORKDIR | WORKFLOW | DATABASE]",
    .help = "show all that a run knows of one molecule",
    .about = "Its records with file and line, duplicates, structure, descriptors, labels,\n"
             "scores, domain, nearest training molecules, rank and failures. ID is a title, a\n"
             "mol_id or record_id, an InChIKey or its first 14 letters, or a SMILES drawn in\n"
             "any way. `molsieve explain NUMBER` says why it has its score.\n"
             "\n"
             "  molsieve show CID-1755\n"
             "  molsieve show \"OC(=O)c1ccccc1\" runs/screen\n"
             "  molsieve show --json 17\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};

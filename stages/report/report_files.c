/* SPDX-License-Identifier: Apache-2.0 */
/* The ranking as files inside the page, and the script that offers them for download. */
#include "stages/report/report_parts.h"

#include <string.h>

#include "chem/molecule/sdf_write.h"
#include "pipeline/base/sha256.h"
#include "stages/database/rows.h"
#include "stages/steps/rank/table_columns.h"

extern const char st_report_js[]; /* stages/report/report.js */

static sqlite3_stmt *query(st_report *r)
{
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;

    pl_text_add(&sql, "SELECT ");
    if (r->code == PL_OK)
        r->code = st_table_columns(r->db, &sql, r->err);
    pl_text_addf(&sql, " FROM hit h CROSS JOIN molecule m ON m.mol_id=h.mol_id ORDER BY h.rank LIMIT %lld", (long long)r->n_hits);
    if (r->code == PL_OK)
        r->code = pl_text_ok(&sql) ? pl_db_prepare(r->db, &st, sql.s, r->err) : pl_fail(r->err, PL_ENOMEM, "the ranking");
    pl_text_free(&sql);
    return st;
}

static pl_code keep(void *ctx, const pl_text *text, pl_error *err)
{
    pl_text *all = ctx;

    (void)err;
    pl_text_add_n(all, pl_text_str(text), text->len);
    return PL_OK;
}

static void add_file(st_report *r, const char *id, const char *title, const pl_text *file)
{
    pl_text_addf(r->out, "<details><summary>%s</summary><pre id=\"%s\">", title, id);
    st_html_add(r->out, pl_text_str(file));
    pl_text_add(r->out, "</pre></details>\n");
    if (r->code == PL_OK && !pl_text_ok(file))
        r->code = pl_fail(r->err, PL_ENOMEM, "the ranking");
}

static void add_csv(st_report *r)
{
    pl_text csv = { 0 };
    sqlite3_stmt *st = query(r);

    if (r->code == PL_OK)
        r->code = st_rows_write(st, ST_CSV, 0, NULL, keep, &csv, r->err);
    (void)sqlite3_finalize(st);
    add_file(r, "csv", "These hits as CSV", &csv);
    pl_text_free(&csv);
}

static void add_record(st_report *r, pl_text *sdf, sqlite3_stmt *st, const st_hit *h)
{
    const int n_columns = sqlite3_column_count(st);
    ch_sdf_field *field = PL_NEW(r->mem, ch_sdf_field, n_columns + 1);
    int n = 0;

    if (!st_report_has_memory(r, field != NULL ? PL_OK : PL_ENOMEM, "a file"))
        return;
    for (int i = 0; i < n_columns; i++) {
        const char *value = st_report_text(r, st_cell_str(st, i, r->mem), "a file");
        if (value[0] != '\0')
            field[n++] = (ch_sdf_field){ sqlite3_column_name(st, i), value };
    }
    ch_sdf_write_molfile(sdf, h->structure.molfile, h->title, field, n);
}

static void add_sdf(st_report *r)
{
    pl_text sdf = { 0 };
    sqlite3_stmt *st = query(r);

    for (int64_t i = 0; st_report_row(r, &st); i++)
        if (i < r->n_hits && r->hit[i].structure.molfile != NULL)
            add_record(r, &sdf, st, &r->hit[i]);
    (void)sqlite3_finalize(st);
    if (sdf.len > 0)
        add_file(r, "sdf", "These hits as SDF, as they are drawn (<code>molsieve export sdf</code> has the conformers)", &sdf);
    pl_text_free(&sdf);
}

void st_report_files(st_report *r)
{
    add_csv(r);
    add_sdf(r);
}

/* ---- the script ---- */

static void add_base64(pl_text *out, const unsigned char *b, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        const uint32_t bits = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            pl_text_add_n(out, i + k > n ? "=" : &digit[bits >> (18 - 6 * k) & 63], 1);
    }
}

void st_report_policy(pl_text *out)
{
    pl_sha256 sum;
    unsigned char hash[32];

    pl_sha256_start(&sum);
    pl_sha256_add(&sum, st_report_js, strlen(st_report_js));
    pl_sha256_end(&sum, hash);
    pl_text_add(out, "'sha256-");
    add_base64(out, hash, sizeof hash);
    pl_text_add(out, "'");
}

void st_report_script(pl_text *out) { pl_text_addf(out, "<script>%s</script>\n", st_report_js); }

/* stages/expression/expression.h - conditions written by the user: "mw < 500 and logp <= 4".
 *
 * A part of SQL's expressions, parsed here before SQLite sees the text: known
 * columns, numbers, 'texts', arithmetic, comparisons, LIKE, GLOB, IN, BETWEEN,
 * IS NULL, AND, OR, NOT, CASE, CAST and deterministic functions. Everything
 * else is refused: queries, parameters, comments that do not end. Types are
 * checked, because SQL gives an answer to `200 < mw < 500`, `logp = 3 or 4`,
 * `mw > 'heavy'`, `removed = null` and `hba / n_heavy > 0.3` that the user did not mean. */
#ifndef ST_EXPRESSION_H
#define ST_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/workflow/yaml.h"

typedef enum st_type { ST_NULL, ST_TRUTH, ST_WHOLE, ST_REAL, ST_STRING, ST_ANY } st_type;

typedef struct st_column {
    const char *name;
    st_type type;    /* ST_WHOLE, ST_REAL or ST_STRING                                          */
    const char *sql; /* what SQLite is given in its place; NULL: the name, which is a column    */
} st_column;

/* What a text of a condition has to be: of smarts() and of similarity(), or what `smiles` and `scaffold` are compared with, which are
 * canonical. */
typedef enum st_text_is { ST_IS_SMARTS, ST_IS_MOLECULE, ST_IS_SMILES, ST_IS_SCAFFOLD } st_text_is;

/* What a condition says of structures: smarts('c1ccccc1') and similarity('CCO'), in which the molecule itself is left out, and
 * scaffold = 'c1ccccc1'. */
enum { ST_EDITS_MAX = 64, ST_TEXTS_MAX = 1000 };
typedef struct st_structural {
    const char *smiles, *bits; /* SQL of the molecule's SMILES and fingerprint; NULL: these functions are not known here */
    int n_edits, n_texts;
    struct {
        size_t at, n; /* n bytes of the condition from `at` on become `sql` */
        const char *sql;
    } edit[ST_EDITS_MAX];
    struct {
        size_t at, n; /* in the condition, without its quotes */
        st_text_is is;
    } text[ST_TEXTS_MAX];
} st_structural;

/* ECONFIG says what is wrong, *at is the byte of the text where. columns: up to 64, ended by a NULL name; bit i of *used:
 * column i is read. used and at may be NULL. */
pl_code st_expression_check(const char *text, const st_column *columns, uint64_t *used, size_t *at, pl_error *err);

/* The same; fills the edits and texts of *s. Then st_expression_sql is the condition as SQLite gets it, in mem; NULL: no memory. */
pl_code st_expression_parse(const char *text, const st_column *columns, st_structural *s, uint64_t *used, size_t *at,
                            pl_error *err);
const char *st_expression_sql(const char *text, const st_structural *s, pl_arena *mem);

/* Asks the chemistry worker about the texts of a condition that was parsed: ECONFIG with *at if one is no SMARTS, or no SMILES, or is
 * compared with a canonical one and written in another way, so that nothing would be equal to it. */
pl_code st_structural_check(const char *text, const st_structural *s, size_t *at, pl_error *err);

/* Adds err as a problem at that byte of the value of `node`, where the file has the text as it is. */
void st_expression_problem(pl_problems *problems, const pl_node *node, const char *stage, size_t at, const pl_error *err);

/* Called by sqlite3_set_authorizer with a table's name (or NULL): only SELECT, its columns, and functions of the list. */
int st_expression_only(void *table, int action, const char *a, const char *b, const char *db, const char *source);

#endif

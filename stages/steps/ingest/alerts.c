/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/alerts.h"

#include <string.h>
#include <sys/stat.h>

#include "chem/worker/worker_client.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

enum { FILE_MAX = 1 << 20 };

typedef struct reader {
    st_alerts *out;
    pl_text text;
    pl_problems *problems;
    bool full; /* reported already */
} reader;

/* One rule, borrowed from its line. */
typedef struct rule {
    const char *smarts, *name;
    size_t n_smarts, n_name;
} rule;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static size_t word_length(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && !is_blank(s[k]))
        k++;
    return k;
}

static size_t blanks_length(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && is_blank(s[k]))
        k++;
    return k;
}

/* Up to the blanks before a comment or the end. */
static size_t name_length(const char *s, size_t n)
{
    size_t k = 0;

    while (k < n && !(s[k] == '#' && (k == 0 || is_blank(s[k - 1]))))
        k++;
    while (k > 0 && is_blank(s[k - 1]))
        k--;
    return k;
}

/* false: nothing but a comment. */
static bool split_line(rule *r, const char *line, size_t n)
{
    const char *end = line + n;

    r->smarts = line + blanks_length(line, n);
    r->n_smarts = word_length(r->smarts, (size_t)(end - r->smarts));
    r->name = r->smarts + r->n_smarts;
    r->name += blanks_length(r->name, (size_t)(end - r->name));
    r->n_name = name_length(r->name, (size_t)(end - r->name));
    return r->n_smarts > 0 && r->smarts[0] != '#';
}

static bool all_within(const char *s, size_t n, char low, const char *but)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < low || s[i] > '~' || strchr(but, s[i]) != NULL)
            return false;
    return true;
}

/* NULL, or what is wrong with it. */
static const char *fault_of(const rule *r)
{
    if (!all_within(r->smarts, r->n_smarts, '!', ""))
        return "a SMARTS has printable ASCII characters only";
    if (r->n_smarts > ST_SMARTS_MAX)
        return "a SMARTS of more than 1000 characters";
    if (r->n_name == 0)
        return "a rule is a SMARTS, white space and a name; there is no name";
    if (r->n_name > ST_ALERT_MAX)
        return "a name of more than 100 characters";
    if (!all_within(r->name, r->n_name, ' ', ",\"\\"))
        return "a name has printable ASCII characters, but no comma, quote or backslash";
    return ch_smarts_fault(r->smarts, r->n_smarts);
}

static void add_rule(reader *in, const rule *r, const pl_node *at)
{
    const char *fault = fault_of(r);

    if (fault != NULL) {
        pl_problem_add(in->problems, at, "alerts: %s", fault);
        return;
    }
    if (in->out->n == ST_RULES_MAX || in->text.len + r->n_smarts + r->n_name + 2 > ST_RULES_BYTES) {
        if (!in->full)
            pl_problem_add(in->problems, at, "alerts: more than %d rules, or more than %d KiB of them", (int)ST_RULES_MAX,
                           (int)ST_RULES_BYTES >> 10);
        in->full = true;
        return;
    }
    in->out->at[in->out->n++] = *at;
    pl_text_add_n(&in->text, r->smarts, r->n_smarts);
    pl_text_add(&in->text, " ");
    pl_text_add_n(&in->text, r->name, r->n_name);
    pl_text_add(&in->text, "\n");
}

static void read_file(reader *in, const char *path, pl_arena *mem)
{
    pl_node at = { .origin = path };
    pl_bytes bytes = { NULL, 0 };
    const char *s, *end;
    struct stat st;
    pl_error err = { 0 };
    rule r;

    if (stat(path, &st) == 0 && st.st_size > FILE_MAX)
        pl_problem_add_file(in->problems, path, "more than %d MiB: this is no file of alerts", (int)FILE_MAX >> 20);
    else if (pl_file_read(&bytes, path, mem, &err) != PL_OK)
        pl_problem_add_file(in->problems, path, "%s", err.text);
    if (bytes.data == NULL)
        return;
    s = bytes.data;
    end = s + bytes.len;
    if (bytes.len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
        s += 3;
    while (s < end) {
        const char *eol = memchr(s, '\n', (size_t)(end - s));
        const size_t n = (size_t)((eol != NULL ? eol : end) - s);
        at.line++;
        if (split_line(&r, s, n)) {
            at.column = (int)(r.smarts - s) + 1;
            add_rule(in, &r, &at);
        }
        s += n + 1;
    }
}

/* The value of `rules`, or of one of its items. */
static const pl_node *node_of_rule(const pl_step *step, int32_t i)
{
    const pl_node *alerts = pl_node_get(step->node, "alerts"), *list = alerts != NULL ? pl_node_get(alerts, "rules") : NULL;

    if (list == NULL)
        return step->node;
    return list->kind == PL_SEQUENCE ? list->item[i] : list;
}

static void read_inline(reader *in, const pl_step *step)
{
    const pl_list *list = &((const st_prepare_conf *)step->conf)->alert_rules;
    const char *const *line = list->items;
    rule r;

    for (int32_t i = 0; i < list->n; i++)
        if (split_line(&r, line[i], strlen(line[i])))
            add_rule(in, &r, node_of_rule(step, i));
}

bool st_alerts_wanted(const st_prepare_conf *c) { return c->alert_file != NULL || c->alert_rules.n > 0; }

void st_alerts_read(st_alerts *out, const pl_step *step, pl_problems *problems, pl_arena *mem)
{
    const st_prepare_conf *c = step->conf;
    const pl_node *alerts = step->node != NULL ? pl_node_get(step->node, "alerts") : NULL;
    const pl_node *action = alerts != NULL ? pl_node_get(alerts, "action") : NULL;
    reader in = { .out = out, .problems = problems };
    const int before = problems->n;

    *out = (st_alerts){ .text = NULL };
    if (!st_alerts_wanted(c)) {
        if (action != NULL && action->text != NULL && strcmp(action->text, "filter") == 0)
            pl_problem_add(problems, action, "alerts: action filter needs rules; set `file` or `rules`");
        return;
    }
    out->at = PL_NEW(mem, pl_node, ST_RULES_MAX);
    if (out->at != NULL && c->alert_file != NULL)
        read_file(&in, c->alert_file, mem);
    if (out->at != NULL)
        read_inline(&in, step);
    out->text = pl_text_ok(&in.text) ? pl_strdup(mem, pl_text_str(&in.text)) : NULL;
    pl_text_free(&in.text);
    if (out->at == NULL || out->text == NULL)
        pl_problem_refused(problems, alerts, NULL);
    else if (out->n == 0 && problems->n == before)
        pl_problem_add(problems, alerts, "alerts: there is no rule in %s", c->alert_file != NULL ? c->alert_file : "`rules`");
}

static void tell_bad(const st_alerts *a, const ch_bad_rule *bad, pl_problems *problems)
{
    pl_node at;

    if (bad->rule < 0 || bad->rule >= a->n)
        return;
    at = a->at[bad->rule];
    if (at.text == NULL) /* of a file, where every character has its column */
        at.column += bad->column - 1;
    pl_problem_add(problems, &at, "alerts: Open Babel cannot read this SMARTS from character %d on", (int)bad->column);
}

/* Some texts crash Open Babel, which then does not report which one. */
static pl_code check_each(ch_worker *w, const st_alerts *a, pl_problems *problems, pl_arena *mem, pl_error *err)
{
    const char *line = a->text;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < a->n && (code == PL_OK || code == PL_EINPUT); i++) {
        const size_t n = strcspn(line, "\n");
        const char *one = pl_strndup(mem, line, n);
        ch_bad_rule *bad = NULL;
        int32_t n_bad = 0;
        code = one != NULL ? ch_worker_rules(w, one, &bad, &n_bad, mem, err) : pl_fail(err, PL_ENOMEM, "a rule");
        if (code == PL_EINPUT)
            pl_problem_add(problems, &a->at[i], "alerts: Open Babel cannot read this SMARTS: %s", err->text);
        if (n_bad > 0)
            tell_bad(a, &(ch_bad_rule){ i, bad->column }, problems);
        line += n + 1;
    }
    return code == PL_EINPUT ? PL_OK : code;
}

void st_alerts_check(const st_alerts *a, const pl_step *step, pl_problems *problems, pl_arena *mem)
{
    ch_worker *w = NULL;
    ch_bad_rule *bad = NULL;
    int32_t n_bad = 0;
    pl_error err = { 0 };
    pl_code code = ch_worker_open(&w, NULL, &err);

    if (code == PL_OK)
        code = ch_worker_rules(w, a->text, &bad, &n_bad, mem, &err);
    if (code == PL_EINPUT)
        code = check_each(w, a, problems, mem, &err);
    ch_worker_close(w);
    if (code != PL_OK)
        pl_problem_add(problems, step->node, "prepare.alerts: %s", err.text);
    for (int32_t i = 0; i < n_bad; i++)
        tell_bad(a, &bad[i], problems);
}

pl_code st_alerts_there(sqlite3 *db, bool *yes, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(db, &n, err, "SELECT (SELECT alerts FROM molecule LIMIT 1) IS NOT NULL");

    *yes = n != 0;
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/label_scan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chem/records/record.h"
#include "chem/records/relation.h"
#include "pipeline/base/two.h"
#include "pipeline/workflow/settings.h"
#include "stages/database/measured.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/placeholder.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/ingest/remarks.h"

enum { NAMES_MAX = 64, SHOWN = 60, FEWEST = 10 }; /* of fewer numbers two different ones say nothing */

typedef struct label {
    const char *name;
    bool is_class, learned; /* learned: a target of `train` */
    bool compared, read;    /* nothing but this: st_label_need */
    bool own_unit;          /* a column beside the labels, of which only a unit of its name tells */
    bool once;              /* only whether it has the unit of the need */
    const char *unit;       /* as the workflow says; ""    */
    ch_units units;         /* of the numbers, by columns of units and of types */
    const char *unit_path;  /* the file with another unit than the first, or with the first */
    const char *type_path;  /* the same of types */
    int64_t numbers, empty, texts[ST_TEXTS], zeros, ones;
    int64_t limits;   /* that are learned from */
    double low, high; /* of the numbers */
    pl_two two;       /* the same       */
    st_placeholders odd_numbers;
    const char *text, *odd; /* the first text, and the first value that is no class: "a.csv:3: '>10'" */
    const char *twice;      /* a table with several columns of this name; NULL: none */
    int64_t unclear;        /* numbers beside a relation such as ">" that names no value */
    const char *relation;   /* the first of these: "a.csv:3: Relation is '>' ..." */
} label;

typedef struct scan {
    const pl_workflow *wf;
    st_label_need need;
    label *label; /* [n], with room for all that may be looked at */
    int n;
    const char *field[NAMES_MAX]; /* names of data fields that were seen */
    int n_fields;
    int64_t records, complete, partial; /* with all that `train` learns, with some of it */
    st_remarks remarks;                 /* of those with any label                           */
    bool whole;                         /* all records of all inputs were looked at */
    pl_arena *mem;
} scan;

/* ---- which labels ---- */

static void add_label(scan *s, const char *name, bool learned)
{
    const pl_step *prepare = pl_workflow_step(s->wf, "prepare");
    const st_prepare_conf *c = prepare->conf;
    const st_property *p = c->properties.items;

    for (int i = 0; i < s->n; i++)
        if (strcmp(s->label[i].name, name) == 0) {
            s->label[i].learned |= learned;
            return;
        }
    s->label[s->n] = (label){ .name = name, .learned = learned, .unit = "", .low = NAN, .high = NAN };
    for (int32_t i = 0; i < c->properties.n; i++)
        if (strcmp(p[i].name, name) == 0) {
            s->label[s->n].is_class = s->label[s->n].is_class || p[i].task == ST_CLASSIFICATION;
            s->label[s->n].unit = p[i].unit != NULL ? p[i].unit : "";
        }
    s->n++;
}

/* A target that is not converted has the unit of its label, if `prepare` does not say another. */
static void target_unit(scan *s, const char *name, const pl_node *target)
{
    const pl_node *unit = pl_node_get(target, "unit"), *factor = pl_node_get(target, "factor");

    for (int i = 0; i < s->n && unit != NULL && unit->text != NULL && factor == NULL; i++)
        if (strcmp(s->label[i].name, name) == 0 && s->label[i].unit[0] == '\0')
            s->label[i].unit = unit->text;
}

/* `targets: [{name: a}, {name: b, column: c}]`: the words of the file, because the table of `train` is not known here. */
static void add_targets(scan *s)
{
    const pl_step *train = pl_workflow_step(s->wf, "train");
    const pl_node *targets = train != NULL ? pl_node_get(train->node, "targets") : NULL;

    for (int i = 0; targets != NULL && i < targets->n; i++) {
        const pl_node *column = pl_node_get(targets->item[i], "column"), *name = pl_node_get(targets->item[i], "name");
        const pl_node *one = column != NULL ? column : name;
        if (one == NULL || one->text == NULL)
            continue;
        add_label(s, one->text, true);
        target_unit(s, one->text, targets->item[i]);
    }
}

static const st_prepare_conf *prepare_of(const scan *s) { return pl_workflow_step(s->wf, "prepare")->conf; }

static void add_kept(scan *s)
{
    const pl_list *labels = &prepare_of(s)->labels;
    const char *const *name = labels->items;
    const bool named = labels->n > 0 && strcmp(name[0], "all") != 0 && strcmp(name[0], "none") != 0;

    for (int32_t i = 0; named && i < labels->n; i++)
        add_label(s, name[i], false);
}

static void add_labels(scan *s)
{
    if (!s->need.targets_only)
        add_kept(s);
    add_targets(s);
}

/* Room for all labels that may be added. */
static label *labels_make(const scan *s)
{
    const pl_step *train = pl_workflow_step(s->wf, "train");
    const pl_node *targets = train != NULL ? pl_node_get(train->node, "targets") : NULL;
    const int32_t others = s->need.compared != NULL ? s->need.compared->n + s->need.read->n : 0;

    return PL_NEW(s->mem, label, prepare_of(s)->labels.n + others + (targets != NULL ? targets->n : 0));
}

static void others_mark(scan *s, int from, bool compared)
{
    for (int i = from; i < s->n; i++) {
        s->label[i].compared = compared;
        s->label[i].read = !compared;
        s->label[i].once = s->need.unit != NULL;
        if (s->need.unit != NULL)
            s->label[i].unit = s->need.unit;
    }
}

/* The labels of the need. */
static void add_others(scan *s)
{
    const st_label_need *need = &s->need;
    int n_compared;

    for (int i = 0; i < need->compared->n; i++)
        add_label(s, need->compared->name[i], false);
    n_compared = s->n;
    others_mark(s, 0, true);
    for (int i = 0; i < need->read->n; i++)
        add_label(s, need->read->name[i], false);
    for (int i = n_compared; i < s->n && !need->are_labels; i++)
        s->label[i].own_unit = true;
    if (need->kept)
        add_kept(s);
    others_mark(s, n_compared, false);
}

/* Where the workflow does not say the unit, that of values which `molsieve label` added, or a campaign. */
static pl_code add_units(scan *s, const pl_node *at, pl_problems *problems, pl_error *err)
{
    pl_error why = { 0 };

    for (int i = 0; i < s->n; i++) {
        char unit[ST_UNIT_MAX];
        bool by_table;
        label *l = &s->label[i];
        if (l->unit[0] != '\0' || l->own_unit || l->is_class)
            continue;
        if (st_measured_unit(unit, &by_table, s->wf, l->name, &why) != PL_OK) {
            pl_problem_add(problems, at, "%s", why.text);
            return PL_OK;
        }
        l->unit = pl_strdup(s->mem, unit);
        if (l->unit == NULL)
            return pl_fail(err, PL_ENOMEM, "a unit");
    }
    return PL_OK;
}

/* ---- the records ---- */

static void add_field(scan *s, const char *name)
{
    for (int i = 0; i < s->n_fields; i++)
        if (strcmp(s->field[i], name) == 0)
            return;
    if (s->n_fields < NAMES_MAX && (s->field[s->n_fields] = pl_strdup(s->mem, name)) != NULL)
        s->n_fields++;
}

static const char *place(const scan *s, const pl_input *in, const ch_record *r, const char *text)
{
    const char *p = pl_sprintf(s->mem, "%s:%lld: '%.*s'", in->path, (long long)r->line, SHOWN, text);
    return p != NULL ? p : "";
}

/* A relation that may be meant for a number: of two columns the names do not say it. */
static void count_unclear(scan *s, label *l, const pl_input *in, const ch_record *r, const ch_field *relation)
{
    char what[CH_RELATION_BYTES];

    if (relation == NULL || l->unclear++ > 0)
        return;
    ch_relation_say(what, relation, l->name);
    l->relation = pl_sprintf(s->mem, "%s:%lld: %s", in->path, (long long)r->line, what);
    l->relation = l->relation != NULL ? l->relation : "";
}

/* A field of SDF that a record has twice: which value is meant? */
static void count_again(scan *s, label *l, const pl_input *in, const ch_record *r, const ch_field *f, const ch_field *again)
{
    if (again == NULL || l->twice != NULL || l->unclear++ > 0)
        return;
    l->relation = pl_sprintf(s->mem, "%s:%lld: a record has %.60s twice, '%.*s' and '%.*s': keep one", in->path, (long long)r->line,
                             l->name, SHOWN, f->text, SHOWN, again->text);
    l->relation = l->relation != NULL ? l->relation : "";
}

/* One unit for all numbers of all inputs: the column of units may come in any of them. */
static void count_units(label *l, const pl_input *in, const ch_record *r, const ch_field *field, int n, const ch_field *f)
{
    const ch_units before = l->units;

    if (l->own_unit)
        ch_units_add_own(&l->units, field, n, f, r->line);
    else
        (void)ch_units_add(&l->units, field, n, f, r->line);
    if (memcmp(&before.unit, &l->units.unit, sizeof before.unit) != 0)
        l->unit_path = in->path;
    if (memcmp(&before.type, &l->units.type, sizeof before.type) != 0)
        l->type_path = in->path;
}

/* Nothing else of it is told but what judge_beside does. */
static bool is_only_compared(const label *l) { return l->compared || l->read; }

/* Whether there is something to learn from. */
static bool count(scan *s, label *l, const pl_input *in, const ch_record *r, const ch_field *f)
{
    double limit;
    st_side side;

    if (f == NULL || f->text[0] == '\0') {
        l->empty++;
        return false;
    }
    if (!f->is_number && !l->is_class && st_limits_wanted(s->wf) && st_limit_read(&limit, &side, f->text)) {
        l->limits++;
        return true;
    }
    if (!f->is_number) {
        l->texts[st_label_text_of(f->text)]++;
        if (l->text == NULL && !is_only_compared(l))
            l->text = place(s, in, r, f->text);
        return false;
    }
    l->low = l->numbers == 0 || f->value < l->low ? f->value : l->low;
    l->high = l->numbers == 0 || f->value > l->high ? f->value : l->high;
    pl_two_add(&l->two, f->value);
    st_placeholders_add(&l->odd_numbers, f->value, r->line);
    l->numbers++;
    l->zeros += f->value == 0;
    l->ones += f->value == 1;
    if (f->value != 0 && f->value != 1 && l->odd == NULL && !is_only_compared(l))
        l->odd = place(s, in, r, f->text);
    return true;
}

static void count_all(scan *s, const pl_input *in, const ch_record *r, const ch_field *field, int n_fields)
{
    int learned = 0, there = 0;
    bool any = false;

    for (int i = 0; i < s->n; i++) {
        label *l = &s->label[i];
        const ch_field *f = ch_field_named(field, n_fields, l->name); /* as prepare takes it */
        const bool some = count(s, l, in, r, f);
        if (f != NULL && f->is_number)
            count_unclear(s, l, in, r, ch_relation_unclear(field, n_fields, f));
        if (f != NULL && f->is_number)
            count_again(s, l, in, r, f, ch_field_again(field, n_fields, f));
        if (f != NULL && f->text[0] != '\0' && !l->is_class)
            count_units(l, in, r, field, n_fields, f);
        learned += l->learned;
        there += l->learned && some;
        any = any || some;
    }
    s->complete += there == learned;
    s->partial += there > 0 && there < learned;
    if (any)
        st_remarks_add(&s->remarks, field, n_fields, in->path, r->line);
}

static pl_code read_record(scan *s, const pl_input *in, ch_reader *reader, const ch_record *r, pl_arena *scratch, pl_error *err)
{
    ch_field *field = NULL;
    int n = 0;
    pl_code code = PL_OK;

    s->records++;
    pl_arena_reset(scratch);
    if (r->problem != NULL)
        return PL_OK;
    code = ch_record_measured(&field, &n, reader, r, scratch, err);
    if (code != PL_OK)
        return code;
    for (int i = 0; i < n && s->records < 1000; i++)
        add_field(s, field[i].name);
    count_all(s, in, r, field, n);
    return PL_OK;
}

/* Of two columns of one name the first gives the labels, which may be the wrong one. */
static void look_for_twins(scan *s, const pl_input *in, const ch_reader *reader)
{
    int n_columns = 0;
    const char *const *column = ch_reader_columns(reader, &n_columns);

    for (int i = 0; i < s->n; i++) {
        int n = 0;
        for (int k = 0; k < n_columns; k++)
            n += strcmp(column[k], s->label[i].name) == 0;
        if (n > 1)
            s->label[i].twice = in->path;
    }
}

static pl_code read_input(scan *s, const pl_input *in, pl_error *err)
{
    const pl_step *read = pl_workflow_step(s->wf, "read");
    pl_arena *scratch = pl_arena_new(1 << 14);
    ch_reader *reader = NULL;
    bool more = true;
    pl_code code = scratch != NULL ? st_input_open(&reader, in, read->conf, NULL, err) : pl_fail(err, PL_ENOMEM, "the labels");

    if (code == PL_OK && !ch_format_is_ours(ch_reader_format(reader)))
        s->whole = more = false;
    if (code == PL_OK)
        look_for_twins(s, in, reader);
    while (code == PL_OK && more && s->records < ST_LABELS_LOOKED_AT) {
        ch_record r;
        code = ch_reader_next(reader, &r, &more, err);
        if (code == PL_OK && more)
            code = read_record(s, in, reader, &r, scratch, err);
    }
    s->whole = s->whole && !more;
    ch_reader_close(reader);
    pl_arena_free(scratch);
    return code;
}

/* ---- the verdicts ---- */

static int64_t texts_of(const label *l) { return l->texts[ST_TEXT_COMMA] + l->texts[ST_TEXT_LIMIT] + l->texts[ST_TEXT_OTHER]; }

static void judge_missing(const scan *s, const label *l, const pl_node *at, pl_problems *problems)
{
    char what[300];

    (void)snprintf(what, sizeof what, "labels: no record has a data field called \"%.100s\"", l->name);
    if (s->n_fields > 0)
        pl_unknown_name(problems, at, what, l->name, s->field, s->n_fields);
    else
        pl_problem_add(problems, at, "%s: the inputs have none", what);
}

/* A label is asked for, and no input has a record that could give it. */
static void judge_empty(const scan *s, const pl_node *at, pl_problems *problems)
{
    const label *wanted = NULL;

    for (int i = 0; i < s->n && wanted == NULL; i++)
        if (s->need.compared == NULL && !st_label_comes_later(s->wf, s->label[i].name))
            wanted = &s->label[i];
    if (s->whole && s->records == 0 && wanted != NULL)
        pl_problem_add(problems, at, "labels: the inputs have no records, so none has %s; see inputs", wanted->name);
}

/* Values to learn from in all records, of which a molecule may have several. */
static int64_t values_of(const label *l) { return l->numbers + l->limits; }

static bool is_too_rare(const scan *s, const label *l)
{
    return l->learned && values_of(l) < s->need.fewest && !st_label_comes_later(s->wf, l->name);
}

/* A training leaves out what too few molecules have, unless nothing is left. */
static void judge_rare(const scan *s, const pl_node *at, pl_problems *problems)
{
    bool all = s->whole;

    for (int i = 0; i < s->n; i++)
        all = all && (!s->label[i].learned || is_too_rare(s, &s->label[i]));
    for (int i = 0; i < s->n && all; i++)
        if (is_too_rare(s, &s->label[i]))
            pl_problem_add(problems, at, "labels: %s has %lld values to learn from in %lld records; at least %d are needed",
                           s->label[i].name, (long long)values_of(&s->label[i]), (long long)s->records, (int)s->need.fewest);
}

/* A limit or a placeholder that is taken as if it were measured, and numbers of several units. */
static void judge_beside(const label *l, const pl_node *at, pl_problems *problems)
{
    const ch_said *wrong;
    char what[CH_RELATION_BYTES], number[ST_PLACEHOLDER_BYTES];

    if ((l->learned || l->compared) && l->unclear > 0)
        pl_problem_add(problems, at, "labels: %s (%lld in all)", l->relation, (long long)l->unclear);
    if ((l->learned || l->compared) && !l->is_class && st_placeholders_say(number, &l->odd_numbers, l->name) > 0)
        pl_problem_add(problems, at, "labels: %s", number);
    if (l->once && ch_units_differ(&l->units)) /* told by st_label_scan_others */
        return;
    wrong = ch_units_say(what, &l->units, l->name, l->unit);
    if (wrong != NULL)
        pl_problem_add(problems, at, "labels: %s:%s", wrong == &l->units.unit ? l->unit_path : l->type_path, what);
}

/* Whether these are all values that there will be to learn from. */
static bool is_final(const scan *s, const label *l) { return l->learned && s->whole && !st_label_comes_later(s->wf, l->name); }

/* Values that are no classes, or of which nothing can be learned, unless others are added to those of the inputs. */
static void judge_values(const scan *s, const label *l, const pl_node *at, pl_problems *problems)
{
    if (l->numbers == 1 && is_final(s, l))
        pl_problem_add(problems, at,
                       "labels: %s has one number in %lld records: there is nothing to learn; leave it out of targets", l->name,
                       (long long)s->records);
    else if (l->is_class && l->odd != NULL)
        pl_problem_add(problems, at, "labels: %s is a class, so its values are 0 and 1; found %s", l->name, l->odd);
    else if (l->is_class && l->numbers > 0 && (l->zeros == 0 || l->ones == 0) && is_final(s, l))
        pl_problem_add(problems, at, "labels: %s is a class, but all its %lld values are %d: there is nothing to learn", l->name,
                       (long long)l->numbers, l->ones > 0);
    else if (!l->is_class && l->numbers > 0 && !isfinite(l->high - l->low))
        pl_problem_add(
            problems, at,
            "labels: %s is between %g and %g: too large to compute with; does a label use a large number for \"not measured\"?",
            l->name, l->low, l->high);
    else if (!l->is_class && l->low == l->high && is_final(s, l))
        pl_problem_add(problems, at, "labels: all %lld values of %s are %.10g: there is nothing to learn", (long long)l->numbers,
                       l->name, l->low);
}

static void judge(const scan *s, const label *l, const pl_node *at, pl_problems *problems)
{
    const bool there = l->numbers + l->limits + texts_of(l) > 0;
    bool named = there;

    if (l->twice != NULL)
        pl_problem_add(problems, at, "labels: %s has several columns called %s: which one? give them different names", l->twice,
                       l->name);
    judge_beside(l, at, problems);
    if (l->own_unit && !l->once && there && l->numbers == 0 && s->whole)
        pl_problem_add(problems, at, "%s, which the model reads, is no number in any of %lld records", l->name,
                       (long long)s->records);
    if (is_only_compared(l))
        return;
    for (int i = 0; i < s->n_fields && !named; i++)
        named = strcmp(s->field[i], l->name) == 0;
    if (!there && st_label_comes_later(s->wf, l->name))
        return;
    if (!there && s->whole && s->records > 0) {
        if (!named)
            judge_missing(s, l, at, problems);
        else
            pl_problem_add(problems, at, "labels: %s is empty in all %lld records", l->name, (long long)s->records);
        return;
    }
    if (there && l->numbers == 0 && s->whole)
        pl_problem_add(problems, at, "labels: %s is no number in any of %lld records; the first: %s%s", l->name,
                       (long long)s->records, l->text != NULL ? l->text : "a limit",
                       l->texts[ST_TEXT_COMMA] > 0 ? "; write 1.5 for 1,5" : "");
    judge_values(s, l, at, problems);
}

static void add_count(pl_text *out, bool *any, int64_t n, const char *what)
{
    char number[32];

    if (n == 0)
        return;
    pl_text_addf(out, "%s%s %s", *any ? ", " : "; ", pl_count_str(n, number), what);
    *any = true;
}

/* Classes that are learned as numbers. */
static void say_two(const label *l, pl_text *out)
{
    if (l->is_class || !l->learned || l->two.n != 2 || l->numbers < FEWEST || l->limits > 0)
        return;
    pl_text_addf(
        out,
        "; all are %.10g or %.10g, and learned as numbers: for two classes %sset prepare: {properties: {%s: {task: classification}}}",
        l->low, l->high, l->zeros > 0 && l->ones > 0 ? "" : "write 0 and 1, and ", l->name);
}

static void say(const scan *s, const label *l, pl_text *out)
{
    const double for_training = ceil(s->need.share * (double)values_of(l) - 1e-9);
    char a[32], b[32];
    bool any = false;

    pl_text_addf(out, "%s: %s %s in %s%s records", l->name, pl_count_str(l->numbers, a), l->numbers == 1 ? "number" : "numbers",
                 s->whole ? "" : "the first ", pl_count_str(s->records, b));
    if (l->is_class)
        pl_text_addf(out, ", %lld of class 1", (long long)l->ones);
    if (l->limits > 0)
        pl_text_addf(out, ", and %s %s such as >10 to learn from", pl_count_str(l->limits, a), l->limits == 1 ? "limit" : "limits");
    add_count(out, &any, l->texts[ST_TEXT_LIMIT], l->texts[ST_TEXT_LIMIT] == 1 ? "limit such as >10" : "limits such as >10");
    add_count(out, &any, l->texts[ST_TEXT_COMMA], "with a decimal comma");
    add_count(out, &any, l->texts[ST_TEXT_OTHER], l->texts[ST_TEXT_OTHER] == 1 ? "other text" : "other texts");
    add_count(out, &any, l->empty, "empty");
    pl_text_add(out, any ? ": they give no label" : "");
    if (l->text != NULL)
        pl_text_addf(out, "; the first text: %s", l->text);
    say_two(l, out);
    if (l->learned && s->whole && !is_too_rare(s, l) && for_training < (double)s->need.fewest &&
        !st_label_comes_later(s->wf, l->name))
        pl_text_addf(out, "; about %.0f are for training, and at least %d are needed", for_training, (int)s->need.fewest);
    pl_text_add(out, "\n");
}

/* Of several targets: how many records have all of them. */
static void say_gaps(const scan *s, pl_text *out)
{
    const int64_t none = s->records - s->complete - s->partial;
    char all[32], records[32], partial[32], without[32];
    int learned = 0;

    for (int i = 0; i < s->n; i++)
        learned += s->label[i].learned;
    if (learned < 2 || s->complete == s->records)
        return;
    pl_text_addf(out, "all %d targets are in %s of %s%s records", learned, pl_count_str(s->complete, all),
                 s->whole ? "" : "the first ", pl_count_str(s->records, records));
    if (s->partial > 0)
        pl_text_addf(out, ", some in %s", pl_count_str(s->partial, partial));
    if (none > 0)
        pl_text_addf(out, "; nothing is learned from the other %s", pl_count_str(none, without));
    pl_text_add(out, "\n");
}

pl_code st_label_scan(const pl_workflow *wf, const st_label_need *need, pl_problems *problems, pl_text *out, pl_arena *mem,
                      pl_error *err)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    scan *s = PL_NEW(mem, scan, 1);
    const pl_node *at;
    const int before = problems->n;
    pl_code code = s != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the labels");

    if (code != PL_OK || prepare == NULL || pl_workflow_step(wf, "read") == NULL)
        return code;
    *s = (scan){ .wf = wf, .need = *need, .whole = true, .mem = mem };
    s->label = labels_make(s);
    if (s->label == NULL)
        return pl_fail(err, PL_ENOMEM, "the labels");
    if (need->compared != NULL)
        add_others(s);
    else
        add_labels(s);
    code = add_units(s, prepare->node, problems, err);
    for (int32_t i = 0; i < wf->inputs.n && s->n > 0 && code == PL_OK; i++)
        code = read_input(s, st_input_at(wf, i), err);
    at = pl_node_get(prepare->node, "labels") != NULL ? pl_node_get(prepare->node, "labels") : prepare->node;
    if (code != PL_OK)
        return code;
    for (int i = 0; i < s->n; i++) {
        judge(s, &s->label[i], at, problems);
        if (s->records > 0 && need->compared == NULL)
            say(s, &s->label[i], out);
    }
    judge_empty(s, at, problems);
    if (problems->n == before)
        judge_rare(s, at, problems);
    say_gaps(s, out);
    st_remarks_say(&s->remarks, out);
    return PL_OK;
}

void st_label_scan_read(const pl_workflow *wf, const st_label_need *need, pl_problems *problems)
{
    const bool some = need->compared->n + need->read->n > 0 || need->kept;
    pl_arena *mem = some ? pl_arena_new(1 << 16) : NULL;
    pl_text counts = { 0 };

    if (some && (mem == NULL || st_label_scan(wf, need, problems, &counts, mem, NULL) == PL_ENOMEM))
        pl_problem_refused(problems, pl_workflow_step(wf, "prepare")->node, NULL);
    pl_text_free(&counts);
    pl_arena_free(mem);
}

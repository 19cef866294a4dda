/* SPDX-License-Identifier: Apache-2.0 */
/* A range as the metadata of a model file has it:
 *
 *   molecules     of the training
 *   structures    ["input"]: how they were made, see nn_source
 *   form          "as drawn": what acids and bases became
 *   heavy_atoms, charge, rings, conjugated_atoms, fragments    [smallest, largest]
 *   unusual_valences    the same; a file without it was trained on none, as far as is known
 *   ring_sizes    [3, 5, 6]
 *   high_valences ["S6", "P5"]: elements with more bonds than their lowest valence; a file without it was trained on none, as far as
 *                 is known
 *   atoms         ["C", "N", "N+1", "N+1 paired"] */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "models/domain/range.h"

static const char *const number_names[NN_NUMBERS] = { "heavy_atoms",      "charge",    "rings",
                                                      "conjugated_atoms", "fragments", "unusual_valences" };
static const char *const source_names[NN_SOURCES] = { "input", "mmff94", "uff", "mmff94s", "none" };
static const char PAIRED[] = " paired", EXPANDED[] = "high_valences";

/* ---- writing ----------------------------------------------------------------- */

static json_t *json_kinds(const nn_range *r)
{
    json_t *list = json_array();

    for (int32_t k = 0; k < r->n_kinds; k++) {
        char text[32], charge[8] = "";
        if (r->kind[k].charge)
            (void)snprintf(charge, sizeof charge, "%+d", (int)r->kind[k].charge);
        (void)snprintf(text, sizeof text, "%s%s%s", ch_element_symbol(r->kind[k].z), charge, r->kind[k].paired ? PAIRED : "");
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *json_bits(uint32_t bits, const char *const *name)
{
    json_t *list = json_array();

    for (int k = 0; k < 32; k++)
        if (bits >> k & 1)
            json_array_append_new(list, name != NULL ? json_string(name[k]) : json_integer(k));
    return list;
}

/* "S6" */
static json_t *json_expanded(const nn_range *r)
{
    json_t *list = json_array();
    char text[32];

    for (int k = 0; k < NN_EXPANDED; k++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++) {
            if (!(r->expanded[k] >> bonds & 1))
                continue;
            (void)snprintf(text, sizeof text, "%s%d", ch_element_symbol(nn_expanded_z[k]), bonds);
            json_array_append_new(list, json_string(text));
        }
    return list;
}

const char *nn_range_text(const nn_range *r, pl_arena *mem)
{
    json_t *all = json_pack("{s:I, s:o, s:s}", "molecules", (json_int_t)r->molecules, "structures",
                            json_bits(r->sources, source_names), "form", r->form);
    char *text;
    const char *copy;

    for (int k = 0; k < NN_NUMBERS && all != NULL; k++)
        json_object_set_new(all, number_names[k], json_pack("[i, i]", (int)r->low[k], (int)r->high[k]));
    json_object_set_new(all, "ring_sizes", json_bits(r->ring_sizes, NULL));
    json_object_set_new(all, EXPANDED, json_expanded(r));
    json_object_set_new(all, "atoms", json_kinds(r));
    text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    copy = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(all);
    return copy;
}

/* ---- reading ----------------------------------------------------------------- */

static bool numbers_take(nn_range *r, const json_t *all)
{
    for (int k = 0; k < NN_NUMBERS; k++) {
        const json_t *pair = json_object_get(all, number_names[k]), *low = json_array_get(pair, 0), *high = json_array_get(pair, 1);
        const json_int_t a = json_integer_value(low), b = json_integer_value(high);
        if (k == NN_VALENCES && pair == NULL) /* a file of a version that did not count them */
            continue;
        if (!json_is_integer(low) || !json_is_integer(high) || a > b || a < INT32_MIN || b > INT32_MAX)
            return false;
        r->low[k] = (int32_t)a;
        r->high[k] = (int32_t)b;
    }
    return true;
}

static int source_number(const char *name)
{
    int k = 0;

    while (k < NN_SOURCES && (name == NULL || strcmp(name, source_names[k]) != 0))
        k++;
    return k;
}

/* A structure source that this program does not know is one it cannot make, so it is left out. */
static bool bits_take(nn_range *r, const json_t *all)
{
    const json_t *rings = json_object_get(all, "ring_sizes"), *structures = json_object_get(all, "structures"), *one;
    size_t i;

    json_array_foreach(rings, i, one) {
        if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) > NN_RING_MAX)
            return false;
        r->ring_sizes |= 1u << json_integer_value(one);
    }
    json_array_foreach(structures, i, one) {
        const int k = source_number(json_string_value(one));
        r->sources |= k < NN_SOURCES ? 1u << k : 0;
    }
    return json_is_array(rings) && json_is_array(structures);
}

/* Parses an atom kind such as "N+1 paired". */
static bool kind_take(nn_kind *out, const char *text)
{
    char symbol[4] = "";
    size_t n = 0;
    long charge;
    char *end;

    while (text != NULL && n < sizeof symbol - 1 && ((text[n] >= 'A' && text[n] <= 'Z') || (text[n] >= 'a' && text[n] <= 'z'))) {
        symbol[n] = text[n];
        n++;
    }
    if (ch_element_number(symbol) == 0)
        return false;
    charge = strtol(text + n, &end, 10);
    *out = (nn_kind){ .z = (uint8_t)ch_element_number(symbol), .charge = (int8_t)charge, .paired = strcmp(end, PAIRED) == 0 };
    return charge >= INT8_MIN && charge <= INT8_MAX && (*end == '\0' || out->paired);
}

static bool kinds_take(nn_range *r, const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) > NN_KINDS_MAX)
        return false;
    r->n_kinds = (int32_t)json_array_size(list);
    for (int32_t k = 0; k < r->n_kinds; k++)
        if (!kind_take(&r->kind[k], json_string_value(json_array_get(list, (size_t)k))))
            return false;
    return true;
}

static bool expanded_one(nn_range *r, const char *text)
{
    for (int k = 0; k < NN_EXPANDED && text != NULL; k++) {
        const char *symbol = ch_element_symbol(nn_expanded_z[k]), *digits = text + strlen(symbol);
        if (strncmp(text, symbol, strlen(symbol)) != 0 || strspn(digits, "0123456789") != strlen(digits) || *digits == '\0')
            continue;
        const long bonds = strtol(digits, NULL, 10);
        if (bonds < 1 || bonds > NN_EXPANDED_MAX)
            return false;
        r->expanded[k] |= (uint16_t)(1u << bonds);
        return true;
    }
    return false;
}

static bool expanded_take(nn_range *r, const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
        if (!expanded_one(r, json_string_value(one)))
            return false;
    return list == NULL || json_is_array(list);
}

pl_code nn_range_take(nn_range *out, const char *text, pl_error *err)
{
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *molecules = json_object_get(all, "molecules");
    const char *form = json_string_value(json_object_get(all, "form"));
    bool good = json_is_integer(molecules) && json_integer_value(molecules) > 0 && form != NULL && strlen(form) < NN_FORM_BYTES;

    *out = (nn_range){ .molecules = json_integer_value(molecules) };
    if (good)
        (void)snprintf(out->form, sizeof out->form, "%s", form);
    good = good && numbers_take(out, all) && bits_take(out, all) && kinds_take(out, json_object_get(all, "atoms")) &&
           expanded_take(out, json_object_get(all, EXPANDED));
    for (const char *c = out->form; good && *c; c++)
        good = *c >= ' ' && *c < 0x7f;
    json_decref(all);
    return good ? PL_OK : pl_fail(err, PL_EDATA, "metadata range is not valid; train the model again");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/explain_words.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = 64, HASH_SHOWN = 12 };

static bool is_hash(const char *s) { return strlen(s) == HASH && strspn(s, "0123456789abcdef") == HASH; }

/* JSON without quotes around plain words and with short hashes: {file: a.smi, sha256: 1a2b3c4d5e6f}. */
static void add_value(pl_text *out, const json_t *v)
{
    char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) | JSON_COMPACT);
    const char *key;
    json_t *one;
    size_t k;

    if (json_is_string(v)) {
        pl_text_addf(out, "%.*s", is_hash(json_string_value(v)) ? HASH_SHOWN : 1000, json_string_value(v));
    } else if (json_is_array(v) && json_array_size(v) > 0) {
        json_array_foreach(v, k, one) {
            pl_text_add(out, k ? ", " : "[");
            add_value(out, one);
        }
        pl_text_add(out, "]");
    } else if (json_is_object(v)) {
        bool first = true;
        json_object_foreach((json_t *)v, key, one) {
            if (json_is_null(one))
                continue;
            pl_text_addf(out, "%s%s: ", first ? "{" : ", ", key);
            add_value(out, one);
            first = false;
        }
        pl_text_add(out, first ? "{}" : "}");
    } else {
        const char *plain = text != NULL ? text : "?";
        pl_text_add(out, json_is_array(v) ? "empty" : plain);
    }
    free(text);
}

void pl_explain_words(pl_text *out, const char *words, const char *json)
{
    json_t *all = json_loads(json, 0, NULL), *v;
    const char *key;
    bool first = true;

    json_object_foreach(all, key, v) {
        if (json_is_null(v))
            continue;
        if (first)
            pl_text_addf(out, "  %s: %s ", words, key);
        else
            pl_text_addf(out, ", %s ", key);
        add_value(out, v);
        first = false;
    }
    pl_text_add(out, first ? "" : "\n");
    json_decref(all);
}

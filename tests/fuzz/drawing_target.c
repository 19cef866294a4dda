/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a drawing of the chemistry worker are refused, or give an <svg> of paths and labels and nothing else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stages/report/drawing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_ours(const char *tag)
{
    static const char *const known[] = {
        "<path stroke-width=\"", "<path class=\"w\" d=\"M", "<text x=\"", "</text>", "</svg>", "<g class=\"ink\">", "</g>"
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(tag, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *svg = malloc(size + 1);
    pl_text out = { 0 };

    if (svg == NULL)
        abort();
    memcpy(svg, data, size);
    svg[size] = '\0';
    if (!st_drawing_add(&out, svg, "x", "", NULL) && out.len > 0)
        abort();
    for (const char *tag = pl_text_str(&out); out.len > 0 && (tag = strchr(tag + 1, '<')) != NULL;)
        if (!is_ours(tag))
            abort();
    if (strpbrk(pl_text_str(&out), "&'\x01\x1f") != NULL)
        abort();
    pl_text_free(&out);
    free(svg);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/small_table.h - a table of small molecules to learn from. Include it after cmocka.h. */
#ifndef SMALL_TABLE_H
#define SMALL_TABLE_H

#include "pipeline/base/text.h"
#include "toy_folder.h"

/* Twenty molecules, each with a value y and a class z. Tables with another `end` of their SMILES have other molecules. */
static inline void small_table_write(const char *path, const char *end)
{
    static const char *const rings[] = { "CO", "C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1" };
    pl_text text = { 0 };

    pl_text_add(&text, "smiles,y,z\n");
    for (int i = 0; i < 20; i++)
        pl_text_addf(&text, "%s%.*s%s,%d,%d\n", rings[i % 5], i / 5, "CCCC", end, i % 7, i % 2);
    write_text(path, pl_text_str(&text));
    pl_text_free(&text);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "chem/records/qm9bin.h"
#include "chem/records/record_parts.h"

pl_code ch_next_qm9(ch_reader *r, bool *more, pl_error *err)
{
    int32_t i = (int32_t)r->ordinal;
    pl_error wrong = { 0 };
    pl_code code = r->qm9 != NULL ? PL_OK : ch_qm9_read(&r->qm9, ch_source_file(r->src), r->path, &wrong);

    if (code == PL_EINPUT) { /* a damaged file is one bad record */
        *more = i == 0;
        r->line = 1;
        ch_reader_set_problem(r, "%s", wrong.text);
        return PL_OK;
    }
    if (code != PL_OK)
        return pl_fail(err, code, "%s", wrong.text);
    *more = i < ch_qm9_count(r->qm9);
    if (!*more)
        return PL_OK;
    r->offset = ch_qm9_offset(r->qm9, i);
    r->line = 1; /* a binary file has no lines */
    code = ch_qm9_record(&r->text, r->qm9, i, &wrong);
    if (code == PL_OK || code == PL_EINPUT) {
        char title[32];
        int n = snprintf(title, sizeof title, "gdb_%d", (int)ch_qm9_index(r->qm9, i));
        ch_reader_set_title(r, title, (size_t)n);
    }
    if (code == PL_EINPUT)
        ch_reader_set_problem(r, "%s", wrong.text);
    else if (code != PL_OK)
        return pl_fail(err, code, "%s", wrong.text);
    return PL_OK;
}

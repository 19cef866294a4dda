/* stages/steps/ingest/remarks.h - records whose value somebody doubts: ChEMBL says why in a field of its own, Data Validity Comment
 * ("Outside typical range", "Potential transcription error"). */
#ifndef ST_REMARKS_H
#define ST_REMARKS_H

#include "chem/records/record.h"
#include "pipeline/base/text.h"

/* Zeroed before the first record. */
typedef struct st_remarks {
    int64_t n;
    char first[400]; /* "a.csv:3: 'Outside typical range' in Data Validity Comment" */
} st_remarks;

/* Adds a record that begins at `line` of the file. Letter case, blanks and signs in names of fields do not count. */
void st_remarks_add(st_remarks *r, const ch_field *fields, int n, const char *path, int64_t line);
/* One line, if there are any. */
void st_remarks_say(const st_remarks *r, pl_text *out);

#endif

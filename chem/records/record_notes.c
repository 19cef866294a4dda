/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/record_notes.h"

#include <ctype.h>
#include <string.h>

const char *const ch_note_text[CH_NOTES] = {
    [CH_NOTE_GROUPS] =
        "groups of enhanced stereo (racemates, relative stereo) are not read: the molecule is the form that is drawn",
    [CH_NOTE_SHORT] = "fewer values than columns: the last columns are taken to be empty",
};

static bool has(const ch_record *r, const char *text) { return memmem(r->raw, r->raw_len, text, strlen(text)) != NULL; }

/* "&1:" or "o12:" */
static bool is_group(const char *s, const char *end)
{
    const char *from = s + 1;

    if (*s != '&' && *s != 'o')
        return false;
    for (s++; s < end && isdigit((unsigned char)*s); s++)
        continue;
    return s > from && s < end && *s == ':';
}

/* In bars, as the first part or behind a comma. */
static bool has_group_in_bars(const char *s, const char *end)
{
    const char *bar = memchr(s, '|', (size_t)(end - s)), *stop = bar != NULL ? memchr(bar + 1, '|', (size_t)(end - bar - 1)) : NULL;

    for (const char *at = bar; stop != NULL && at < stop; at++)
        if ((*at == '|' || *at == ',') && at + 1 < stop && is_group(at + 1, stop))
            return true;
    return false;
}

static bool has_groups(const ch_record *r)
{
    if (strcmp(r->format, "smi") == 0)
        return has_group_in_bars(r->raw, r->raw + r->raw_len);
    return strcmp(r->format, "sdf") == 0 && (has(r, "MDLV30/STERAC") || has(r, "MDLV30/STEREL"));
}

unsigned ch_record_notes(const ch_record *r)
{
    unsigned notes = 0;

    if (has_groups(r))
        notes |= 1u << CH_NOTE_GROUPS;
    if (r->is_short)
        notes |= 1u << CH_NOTE_SHORT;
    return notes;
}

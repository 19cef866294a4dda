/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/seen_records.h - writes a file and reads its records. Include it once, after cmocka.h. */
#ifndef TESTS_SEEN_RECORDS_H
#define TESTS_SEEN_RECORDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "chem/records/record.h"

enum { SEEN_MAX = 64 };

typedef struct seen {
    int n;
    char *text[SEEN_MAX], *title[SEEN_MAX], *problem[SEEN_MAX];
    int64_t offset[SEEN_MAX], line[SEEN_MAX];
} seen;

static char path[64];

static inline void write_file(const char *ending, const char *data, size_t n, bool gz)
{
    (void)snprintf(path, sizeof path, "/tmp/molsieve_record_%ld%s", (long)getpid(), ending);
    if (gz) {
        gzFile f = gzopen(path, "wb");
        assert_int_equal(gzwrite(f, data, (unsigned)n), (int)n);
        assert_int_equal(gzclose(f), Z_OK);
        return;
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void read_path(seen *s, const ch_reader_opts *opts)
{
    ch_reader *r;
    ch_record rec;
    bool more;
    pl_error err = { 0 };

    *s = (seen){ 0 };
    if (ch_reader_open(&r, path, NULL, opts, &err) != PL_OK)
        fail_msg("%s", err.text);
    while (ch_reader_next(r, &rec, &more, &err) == PL_OK && more && s->n < SEEN_MAX) {
        assert_int_equal(rec.ordinal, s->n + 1);
        s->text[s->n] = strdup(rec.text);
        s->title[s->n] = strdup(rec.title);
        s->problem[s->n] = rec.problem != NULL ? strdup(rec.problem) : NULL;
        s->offset[s->n] = rec.offset;
        s->line[s->n++] = rec.line;
    }
    ch_reader_close(r);
}

static inline void read_data(seen *s, const char *ending, const char *data, size_t n, const ch_reader_opts *opts)
{
    write_file(ending, data, n, false);
    read_path(s, opts);
    (void)unlink(path);
}

static inline void read_text(seen *s, const char *ending, const char *text) { read_data(s, ending, text, strlen(text), NULL); }

static inline void forget(seen *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->text[i]);
        free(s->title[i]);
        free(s->problem[i]);
    }
}

#endif

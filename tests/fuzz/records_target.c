/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of molecules; the first says of which format. Every record is
 * sane and the file is read to its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chem/records/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const formats[] = { "smi", "sdf", "mol2", "xyz", "pdb", "csv", "tsv", "inchi" };

static void read_all(ch_reader *r, size_t size, pl_arena *mem)
{
    ch_record rec;
    bool more = true;
    int64_t count = 0;

    while (ch_reader_next(r, &rec, &more, NULL) == PL_OK && more) {
        ch_field *fields;
        int n_fields;
        if (rec.ordinal != ++count || rec.offset < 0 || rec.line < 1 || rec.text[rec.len] != '\0' || count > (int64_t)size + 2)
            abort();
        if (ch_record_fields(&fields, &n_fields, r, &rec, mem, NULL) != PL_OK)
            abort();
        pl_arena_reset(mem);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ch_reader_opts opts = { .max_record_bytes = 512, .title_from = "a" };
    pl_arena *mem = pl_arena_new(0);
    int fd = memfd_create("records", MFD_CLOEXEC);
    char path[32];
    ch_reader *r;

    if (mem == NULL || fd < 0)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size > 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1 &&
        ch_reader_open(&r, path, formats[data[0] % 8], &opts, NULL) == PL_OK) {
        read_all(r, size, mem);
        ch_reader_close(r);
    }
    (void)close(fd);
    pl_arena_free(mem);
    return 0;
}

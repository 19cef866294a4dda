/* SPDX-License-Identifier: Apache-2.0 */
/* Small records, mutated with a fixed seed, through every splitter: any bytes
 * give records with sane numbers, and the file is read to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/records/record.h"
#include "pipeline/base/rng.h"

enum { ROUNDS = 3000, DATA_MAX = 4096, LIMIT = 512 };

static const char *const seeds[][2] = {
    { "smi", "CCO ethanol\nc1ccccc1 benzene\n# note\n[Na+].[Cl-]\n" },
    { "sdf",
      "m\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0    0.0    0.0 C   0  0\nM  END\n> <a>\n1\n\n$$$$\nn\n$$$$\n" },
    { "mol2", "@<TRIPOS>MOLECULE\nx\n1 0\n@<TRIPOS>ATOM\n1 C 0 0 0 C.3\n@<TRIPOS>MOLECULE\ny\n" },
    { "xyz", "2\nkey=1 b=\"x y\"\nC 0 0 0\nH 0 0 1.1*^0\n1\ngdb 1\t2\t3\nO 0 0 0\n12.1\nC\tC\n" },
    { "pdb", "COMPND    A\nMODEL        1\nATOM      1  C\nENDMDL\nMODEL        2\nHETATM\nENDMDL\nEND\n" },
    { "csv", "id,smiles,y\n1,\"CC\",2\n\"a,b\",CCC,\"x\ny\"\n" },
    { "tsv", "smiles\tname\nCC\tethane\n" },
    { "inchi", "InChI=1S/CH4/h1H4 methane\nAuxInfo=1\n" },
    { "cif", "# by hand\ndata_a\n_cell_length_a 1\n;\ndata_text\n;\ndata_b\nloop_\n_x\n1\n" },
};

static size_t mutate(char *data, const char *seed, pl_rng *rng)
{
    static const char nasty[] = "\"\0\r\n\t$@<>=*^,;#\xFF\xEF 0123456789";
    size_t n = strlen(seed);

    memcpy(data, seed, n);
    for (uint64_t k = pl_rng_below(rng, 8); k > 0; k--) {
        size_t at = (size_t)pl_rng_below(rng, n + 1), len = (size_t)pl_rng_below(rng, 40);
        switch (pl_rng_below(rng, 4)) {
        case 0:
            if (at < n)
                data[at] = nasty[pl_rng_below(rng, sizeof nasty - 1)];
            break;
        case 1: /* cut out */
            len = at + len > n ? n - at : len;
            memmove(data + at, data + at + len, n - at - len);
            n -= len;
            break;
        case 2: /* repeat a piece, sometimes far beyond the limit */
            len = at + len > n ? n - at : len;
            for (int i = 0; i < 30 && n + len < DATA_MAX; i++, n += len)
                memmove(data + at + len, data + at, n - at);
            break;
        default: n = at; /* the file ends here */
        }
    }
    return n;
}

/* Tables of which it is not known what the columns are. */
static bool is_unclear(pl_code code, const char *text)
{
    static const char *const why[] = { "the first row, which names the columns, is longer than",
                                       "the first row has to name the columns",
                                       ": the row of names: csv: ",
                                       " may both be the ",
                                       ": another row of names: ",
                                       ": \"sep=" };
    bool unclear = false;

    for (size_t i = 0; code == PL_ECONFIG && i < sizeof why / sizeof *why; i++)
        unclear = unclear || strstr(text, why[i]) != NULL;
    return unclear;
}

static void read_everything(const char *path, const char *format, size_t n)
{
    const ch_reader_opts opts = { .max_record_bytes = LIMIT, .title_from = "a" };
    pl_arena *mem = pl_arena_new(0);
    ch_reader *r;
    ch_record rec;
    bool more = true;
    int64_t count = 0;
    pl_error err = { 0 };
    pl_code code = ch_reader_open(&r, path, format, &opts, &err);

    if (is_unclear(code, err.text)) {
        pl_arena_free(mem);
        return;
    }
    assert_int_equal(code, PL_OK);
    for (;;) {
        ch_field *fields;
        int n_fields;
        code = ch_reader_next(r, &rec, &more, &err);
        if (is_unclear(code, err.text))
            break;
        assert_int_equal(code, PL_OK);
        if (!more)
            break;
        assert_int_equal(rec.ordinal, ++count);
        assert_true(rec.offset >= 0 && rec.offset <= (int64_t)n && rec.line >= 1);
        assert_true(rec.len <= LIMIT + 1100 && rec.text[rec.len] == '\0');
        assert_int_equal(ch_record_fields(&fields, &n_fields, r, &rec, mem, NULL), PL_OK);
        pl_arena_reset(mem);
        assert_true(count <= (int64_t)n + 2);
    }
    ch_reader_close(r);
    pl_arena_free(mem);
}

static void any_bytes_are_split_into_records(void **state)
{
    char path[64], *data = malloc(2 * DATA_MAX);
    (void)state;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_fuzz_%ld", (long)getpid());
    for (int i = 0; i < ROUNDS; i++) {
        pl_rng rng = pl_rng_at(20240613, (uint64_t)i, 1);
        const char *const *seed = seeds[pl_rng_below(&rng, sizeof seeds / sizeof *seeds)];
        size_t n = mutate(data, seed[1], &rng);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
        read_everything(path, seed[0], n);
    }
    (void)unlink(path);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_bytes_are_split_into_records) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

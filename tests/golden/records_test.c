/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that readers return for the files in data/messy and for small files made here, against golden/records.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/records/record.h"
#include "golden/golden_text.h"

typedef struct made {
    const char *ending, *text;
    ch_reader_opts opts;
    const char *format; /* NULL: by the extension or the content */
} made;

#define ATOM "    0.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
#define PDB_ATOM "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00           C\n"

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X1000 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

static const made cases[] = {
    /* formats by their content */
    { ".dat", "CCO a\nCC b\n", { 0 }, NULL },
    { ".txt", "@<TRIPOS>MOLECULE\na\n 1 0\n", { 0 }, NULL },
    { ".in", "# made by hand\n@<TRIPOS>MOLECULE\na\n 1 0\n", { 0 }, NULL },
    { ".bin", "x\n\n\n  0  0\nM  END\n", { 0 }, NULL },
    { ".data", "x\n\n\n$$$$\n", { 0 }, NULL },
    { ".input", "x\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\n", { 0 }, NULL },
    { ".dat", "HETATM\n", { 0 }, NULL },
    { ".dat", "REMARK x\n" PDB_ATOM, { 0 }, NULL },
    { ".dat", "HEADER    HYDROLASE\n" PDB_ATOM "END\n", { 0 }, NULL },
    { ".dat", "HEADER", { 0 }, NULL },
    { ".dat", "<?xml?>\n<cml></cml>\n", { 0 }, NULL },
    { ".dat", "<molecule id='a'/>\n", { 0 }, NULL },
    { ".dat", "InChI=1S/CH4/h1H4\n", { 0 }, NULL },
    { ".dat", "InChI=", { 0 }, NULL },
    { ".dat", "1\nx\nC 0 0 0\n", { 0 }, NULL },
    { ".dat", "Name,SMILES,IC50\na,CC,1\n", { 0 }, NULL },
    { ".dat", "Name;SMILES\na;CC\n", { 0 }, NULL },
    { ".dat", "Name\tSmiles\na\tCC\n", { 0 }, NULL },
    { ".dat", "smiles\nCC\n", { 0 }, NULL },
    { ".dat", "Name,SMILES," X1000 X1000 "\na,CC,1\n", { 0 }, NULL }, /* a header of which only the beginning is looked at */
    { ".dat", X1000 "xxxxxxxxxxxxxxxx,SMILES\na,CC\n", { 0 }, NULL },
    { ".dat", X1000 "xxxxxxxxxxxxxxx,SMILES\na,CC\n", { 0 }, NULL },
    { "", "CC nothing\n", { 0 }, NULL },
    { ".SMI", "CC upper\n", { 0 }, NULL },
    { ".can", "CC\n", { 0 }, NULL },
    { ".tab.sdf", "CC\n", { 0 }, "smiles" },
    { ".abcdefghijklmnopqrstuvwxyzabcde", "CC 31\n", { 0 }, NULL },
    { ".abcdefghijklmnopqrstuvwxyzabcdef", "CC 32\n", { 0 }, NULL },
    { ".abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "CC long ending\n", { 0 }, NULL },
    { ".smi", "CC\n", { 0 }, "a-format-with-a-name-of-more-than-thirty-two-characters" },
    { ".smi", "CC\n", { 0 }, "" },
    { ".g09", "not listed\n", { 0 }, NULL },
    { ".cml", "0123456789abcdefghijklmnopqrstuvwxyz\n", { .max_file_bytes = 16 }, NULL },

    /* lines */
    { ".smi", "  CC  two words \n\n \t\n#no\n\r\nCCC\r\nC\rN\n", { 0 }, NULL },
    { ".smi", "CCCCCCCCCCCCCCCC sixteen\nCC b\n", { .max_record_bytes = 16 }, NULL },
    { ".smi", "CCCCCCCCCCCCCCC\nCCCCCCCCCCCCCCCC\nCCCCCCCCCCCCCCCCC\nC\n", { .max_record_bytes = 16 }, NULL },
    { ".smi",
      "\xFF\xFE"
      "CC",
      { 0 },
      NULL },
    { ".smi",
      "\xFE\xFF"
      "C",
      { 0 },
      NULL },
    { ".smi", "\xFF\xFE", { 0 }, NULL },
    { ".inchi", "# no\nInChI=1S/CH4/h1H4 methane\nother\nInChI=1S/H2O/h1H2\n", { 0 }, NULL },

    /* tables */
    { ".csv", "name,smiles,x\na,CC,1\nb,CCC,\n,C,3\n", { 0 }, NULL },
    { ".csv", "a;canonical_smiles;id\n1;CC;m1\n2;CO;m2\n", { 0 }, NULL },
    { ".csv", "first,second\nCC,1\n", { 0 }, NULL },
    { ".csv", "\"first, the\",second\nCC,1\n", { 0 }, NULL },
    { ".csv", "x,SMILES,mol_id,title\n1,CC,mm,tt\n", { 0 }, NULL },
    { ".csv", "x,structure,compound id\n1,CC,mm\n", { 0 }, NULL },
    { ".csv", "x,mol,cid\n1,CC,mm\n", { 0 }, NULL },
    { ".csv", "x,SMILES_string,num\n1,CC,mm\n", { 0 }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "b", .title_column = "c" }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "2", .title_column = "3" }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "4" }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "0" }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "B", .title_column = "none" }, NULL },
    { ".csv", "a,b,c\n1,CC,mm\n", { .smiles_column = "B", .title_column = "A" }, NULL },
    { ".csv", "name,smiles\n", { 0 }, NULL },
    { ".csv", "", { 0 }, NULL },
    { ".csv", "name,x,smiles\na\nb,1\nc,2,\nd,3,CC\ne,4,CC,5\nf,5,CC,\ng,6,C C\n", { 0 }, NULL },
    { ".csv", "smiles,name\n\"CC\",\"a \"\"b\"\" c\"\nCC,\"two\nlines\"\nCO,\"open\nC,c\n", { 0 }, NULL },
    { ".csv", "smiles,name\nCC,\"a\"b\nCO,c\"d\"\n", { 0 }, NULL },
    { ".csv", "smiles,name\nCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC,a\nCC,b\n", { .max_record_bytes = 24 }, NULL },
    { ".csv", "smiles,name of many many bytes\nCC,b\n", { .max_record_bytes = 24 }, NULL },
    { ".tsv", "smiles\tname\nCC\ta b\nCO\t\"q\"\nCN\n", { 0 }, NULL },
    { ".csv", "smiles\tname\nCC\ta b\n", { 0 }, NULL },
    { ".csv", "smiles|name\nCC|a b\n", { 0 }, NULL },
    { ".tsv", "smiles,a,b,c\tname\nCC\tx,y\n", { 0 }, NULL },
    { ".csv", "smiles;a;b,c\nCC;x,y;z\n", { 0 }, NULL },
    { ".csv", "a,smiles;\tname\n1,CC;\t2\n", { 0 }, NULL },

    /* frames */
    { ".xyz", "0000000000000000001\n19 digits\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "00000000000000000001\n20 digits\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "2\nwater?\nO 0 0 0\nH 0 0 1\n\n1\nhelium x=2 \"y z\"=3\nHe 1 2 3\n", { 0 }, NULL },
    { ".xyz", "2\nshort\nO 0 0 0\n1\nnext\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "junk\n1\nnext\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "1\nno number\nC 0 x 0\n1\nnext\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "1\nProperties=species:S:1:pos:R:3:force:R:3 e=1\nC 0 0 0 1 2 3\n", { 0 }, NULL },
    { ".xyz", "1\nProperties=pos:R:3:species:S:1\n0 0 0 C\n", { 0 }, NULL },
    { ".xyz", "0\nnone\n1\nnext\nC 0 0 0\n", { 0 }, NULL },
    { ".xyz", "1\n", { 0 }, NULL },
    { ".xyz", "1\na\n", { 0 }, NULL },
    { ".xyz", "3\na\nC 0 0 0\nC 1 1 1\n", { 0 }, NULL },
    { ".xyz", "-1\na\n", { 0 }, NULL },
    { ".xyz",
      "1\ngdb 9 157.7 157.7 157.7 0. 13.2 -0.3877 0.1171 0.5048 35.3 0.0447 -40.4 -40.4 -40.4 -40.4 6.469\n"
      "C\t0.1*^-6\t0\t2.5*^1\t-0.5\n1341 1341\nC\tC\nInChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4\n",
      { 0 },
      NULL },
    { ".xyz", "1\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nC 0 0 0\n1\na\nC 0 0 0\n", { .max_record_bytes = 32 }, NULL },

    /* structures */
    { ".sdf",
      "a\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\n> <x>\n1\n\n> <y>\n2\n3\n\n$$$$\n"
      "b\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\n",
      { .title_from = "x" },
      NULL },
    { ".sdf",
      "a\n\n\n  2  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\n$$$$\n"
      "b\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM ATOM "M  END\n$$$$\n"
      "c\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\nM  END\n$$$$\n",
      { 0 },
      NULL },
    { ".sdf", "\n\n\n$$$$\n\n  \n", { .title_from = "none" }, NULL },
    { ".mol", "one\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\n", { .max_record_bytes = 64 }, NULL },
    { ".mol2",
      "# c\n@<TRIPOS>MOLECULE\nm1\n 1 0 0\nSMALL\n@<TRIPOS>ATOM\n1 C 0 0 0 C.3\n"
      "@<TRIPOS>MOLECULE\nm2\n 1 1\n@<TRIPOS>ATOM\n1 C 0 0 0 C.3\n2 C 0 0 1 C.3\n@<TRIPOS>BOND\n1 1 2 1\n"
      "@<TRIPOS>MOLECULE\nm3\n 2 1\n@<TRIPOS>ATOM\n1 C 0 0 0 C.3\n2 C 0 0 1 C.3\n@<TRIPOS>BOND\n1 1 2 1\n2 2 1 1\n",
      { 0 },
      NULL },
    { ".mol2", "# c\nno molecule\n", { 0 }, NULL },
    { ".cif", "# c\nno data\n", { 0 }, NULL },
    { ".cif", "# c\ndata_one\nloop_\n\ndata_two\n_x 1\n", { 0 }, NULL },
    { ".pdb", "HEADER    ONE\n" PDB_ATOM "END\nHEADER    TWO\n" PDB_ATOM "TITLE     THREE\n" PDB_ATOM, { 0 }, NULL },
    { ".pdb", "HEADER    M\nMODEL        1\n" PDB_ATOM "ENDMDL\nMODEL        2\n" PDB_ATOM "ENDMDL\nEND\n", { 0 }, NULL },
    { ".pdb", "HEADER    NO ATOMS\nREMARK\nEND\n", { 0 }, NULL },
    { ".pdb", PDB_ATOM "END \n" PDB_ATOM "ENDX\n" PDB_ATOM "END 1\n" PDB_ATOM "EN\nEND\r\n" PDB_ATOM "END", { 0 }, NULL },
    { ".pdb", "COMPND    A\n" PDB_ATOM PDB_ATOM "TER\nEND\n" PDB_ATOM, { .max_record_bytes = 100 }, NULL },
};

typedef struct place {
    int64_t offset, ordinal, line;
} place;

static void fields_say(pl_text *out, const ch_reader *r, const ch_record *rec, pl_arena *mem)
{
    pl_error err = { 0 };
    ch_field *fields;
    int n;

    if (ch_record_fields(&fields, &n, r, rec, mem, &err) != PL_OK) {
        pl_text_addf(out, "   fields: %s\n", err.text);
        return;
    }
    for (int i = 0; i < n; i++) {
        pl_text_add(out, "   <");
        golden_bytes(out, fields[i].name, strlen(fields[i].name), 60);
        pl_text_add(out, "> ");
        golden_bytes(out, fields[i].text, strlen(fields[i].text), 60);
        if (fields[i].is_number)
            pl_text_addf(out, " = %.12g", fields[i].value);
        pl_text_add(out, "\n");
    }
}

static void record_say(pl_text *out, const ch_reader *r, const ch_record *rec, pl_arena *mem)
{
    pl_text_addf(out, "%d at %d, line %d, %s, %zu of %zu bytes [", (int)rec->ordinal, (int)rec->offset, (int)rec->line, rec->format,
                 rec->len, rec->raw_len);
    golden_bytes(out, rec->title, strlen(rec->title), 60);
    pl_text_add(out, "]\n");
    if (rec->problem != NULL)
        pl_text_addf(out, "   problem: %s\n", rec->problem);
    pl_text_add(out, "   ");
    golden_bytes(out, rec->text, rec->len, 300);
    if (rec->raw != rec->text) {
        pl_text_add(out, "\n   raw ");
        golden_bytes(out, rec->raw, rec->raw_len, 300);
    }
    pl_text_add(out, "\n");
    fields_say(out, r, rec, mem);
}

/* Lists the records from the reader's position on, and their places; without the path. */
static int all_say(pl_text *out, ch_reader *r, const char *path, place *at, int max)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    bool more = true;
    int n = 0;
    pl_code code;
    ch_record rec;

    while ((code = ch_reader_next(r, &rec, &more, &err)) == PL_OK && more) {
        record_say(out, r, &rec, mem);
        if (n < max)
            at[n] = (place){ rec.offset, rec.ordinal, rec.line };
        n++;
        pl_arena_reset(mem);
    }
    if (code != PL_OK)
        pl_text_addf(out, "error %d: %s\n", (int)code,
                     strncmp(err.text, path, strlen(path)) == 0 ? err.text + strlen(path) : err.text);
    pl_arena_free(mem);
    return n;
}

/* A reader that seeks to the second half lists the same records as the first reader. */
static void seek_check(const char *path, const made *c, const pl_text *whole, const place *at, int n)
{
    pl_text out = { 0 };
    ch_reader *r;

    if (n == 0)
        return;
    at += n / 2;
    assert_int_equal(ch_reader_open(&r, path, c->format, &c->opts, NULL), PL_OK);
    assert_int_equal(ch_reader_seek(r, at->offset, at->ordinal, at->line, NULL), PL_OK);
    (void)all_say(&out, r, path, NULL, 0);
    if (out.len > whole->len || strcmp(whole->s + whole->len - out.len, pl_text_str(&out)) != 0)
        fail_msg("%s from record %d on:\n%s\nshould be the end of\n%s", path, (int)at->ordinal, pl_text_str(&out), whole->s);
    ch_reader_close(r);
    pl_text_free(&out);
}

static void file_say(pl_text *out, const char *path, const made *c)
{
    ch_reader_opts opts = c->opts;
    pl_text records = { 0 };
    pl_error err = { 0 };
    char sha[65];
    int64_t n_bytes;
    place at[64];
    ch_reader *r;
    pl_code code;

    opts.hash = true;
    code = ch_reader_open(&r, path, c->format, &opts, &err);
    if (code != PL_OK) {
        pl_text_addf(out, "error %d%s\n", (int)code,
                     strncmp(err.text, path, strlen(path)) == 0 ? err.text + strlen(path) : err.text);
        return;
    }
    pl_text_addf(out, "format %s, guessed %s, count %d\n", ch_reader_format(r),
                 ch_reader_guessed(r) != NULL ? ch_reader_guessed(r) : "no", (int)ch_reader_count(r));
    const int n = all_say(&records, r, path, at, 64);
    pl_text_add_n(out, pl_text_str(&records), records.len);
    assert_int_equal(ch_reader_hash(r, true, &n_bytes, sha, NULL), PL_OK);
    pl_text_addf(out, "%d bytes, %.16s\n", (int)n_bytes, sha);
    ch_reader_close(r);
    seek_check(path, c, &records, at, n < 64 ? n : 64);
    pl_text_free(&records);
}

static void what_readers_tell_of_made_files_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const made *c = &cases[i];
        char path[128];
        FILE *f;
        (void)snprintf(path, sizeof path, "/tmp/molsieve-records-%ld%s", (long)getpid(), c->ending);
        f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(c->text, 1, strlen(c->text), f), strlen(c->text));
        assert_int_equal(fclose(f), 0);
        pl_text_addf(&out, "== %zu %s %s ", i + 1, c->ending, c->format != NULL ? c->format : "");
        golden_bytes(&out, c->text, strlen(c->text), 40);
        pl_text_add(&out, "\n");
        file_say(&out, path, c);
        (void)unlink(path);
    }
    golden_check(MOLSIEVE_TESTS "/golden/records_made.txt", &out);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int not_hidden(const struct dirent *e) { return e->d_name[0] != '.'; }

static void what_readers_tell_of_messy_files_is_known(void **state)
{
    const made plain = { .opts = { .title_from = NULL } };
    struct dirent **name;
    pl_text out = { 0 };
    int n = scandir(MOLSIEVE_TESTS "/data/messy/files", &name, not_hidden, by_name);
    (void)state;

    assert_true(n > 60);
    for (int i = 0; i < n; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/data/messy/files/%s", MOLSIEVE_TESTS, name[i]->d_name);
        pl_text_addf(&out, "== %s\n", name[i]->d_name);
        file_say(&out, path, &plain);
        free(name[i]);
    }
    free(name);
    golden_check(MOLSIEVE_TESTS "/golden/records_messy.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_readers_tell_of_made_files_is_known),
        cmocka_unit_test(what_readers_tell_of_messy_files_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

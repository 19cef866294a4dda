/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from the output of programs, the poses that it gives, and the command and environment of a call, against
 * golden/external.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "golden/golden_text.h"
#include "stages/steps/ingest/pose_block.h"
#include "stages/steps/external/external_parts.h"
#include "toy.h"

enum { LOW = ST_BETTER_LOW, HIGH = ST_BETTER_HIGH, NONE = ST_BETTER_NONE };

/* ---- numbers ---- */

static const struct {
    int output, n, better; /* n: molecules of the call, whose ids are 1, 2, 30, 31 */
    const char *value, *text;
} outputs[] = {
    /* a table: the delimiter, quotes, blanks, columns that are not there, ids */
    { ST_OUT_CSV, 1, LOW, NULL, "points\n7\n" },
    { ST_OUT_CSV, 1, LOW, NULL, "a,points\n1,7\n1,6\n1,8\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a;points\n1;7\n1;6\n1;8\n" },
    { ST_OUT_CSV, 1, NONE, NULL, "a\tpoints\r\n1\t7\r\n1\t6\r\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a;b,points\n1;2,7\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "\"a \"\"b\"\", c\",\"points\"\n\"x\ny\",\" +7.5 \"\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "\"points\",b\n\"1\"2,3\n4,5" },
    { ST_OUT_CSV, 1, HIGH, NULL, "\"points\",b\n\"1\" ,\"3\"\r\n4,5" },
    { ST_OUT_CSV, 1, HIGH, NULL, "\"a,b\";points\n1;7\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points,points\n1,2\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a,points\n1\n\n1,\n2,4,5\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a,points\n1,4,\n2,5,,\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a,name,points\n1,1,2-dichloroethane,-5\n" },
    { ST_OUT_CSV, 3, HIGH, NULL, "id,name,points\n1,ethane,3\n2,1,2-dichloroethane,-5\n30,many,x\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "id,points,id\n1,2,3\n" },
    { ST_OUT_CSV, 1, HIGH, "id", "id,points\n1,2\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "a,b\n1,2\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points\n7\nnan\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points\n+7\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points\n++7\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points\n+-7\n" },
    { ST_OUT_CSV, 1, HIGH, NULL, "points\n\"unclosed\n7\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "id,points\n1,1.5\n30,3.5\n2,2.5\n30,-1\n" },
    { ST_OUT_CSV, 4, HIGH, NULL, "id,points\n31,4\n1,1\n2,many\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "points,id\n5, 30\n4,\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "points\n5\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "id,points\n1,5\n3,5\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "id,points\n1,5\n0,5\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "id,points\none,5\n" },
    { ST_OUT_CSV, 1, LOW, NULL, "id,points\n99,5\n" },
    { ST_OUT_CSV, 1, LOW, NULL,
      "points\n\001\033[31m a very long word that is no number and goes on and on and on and on and on\n" },
    { ST_OUT_CSV, 3, LOW, NULL, "\xef\xbb\xbfid,points\n1,5\n2,6\n" },
    /* JSON: a number, an object, a list, one a line; keys below keys */
    { ST_OUT_JSON, 1, LOW, NULL, "7" },
    { ST_OUT_JSON, 1, LOW, NULL, "7 8 6.5" },
    { ST_OUT_JSON, 1, LOW, NULL, "3 conformers\n{\"points\": 7}\n" },
    { ST_OUT_JSON, 1, LOW, NULL, "{\"points\": 7}\n3\n" },
    { ST_OUT_JSON, 1, LOW, NULL, "{\"points\": 7}\ndone\n" },
    { ST_OUT_JSON, 3, LOW, NULL, "{\"id\": 1, \"points\": 7}\n{\"id\": 2, \"points\": \"x\"}\n{\"id\": 30, \"points\": NaN}\n" },
    { ST_OUT_JSON, 1, LOW, NULL, "\"7\"" },
    { ST_OUT_JSON, 1, LOW, NULL, "{\"points\": 7}\n{\"points\": 5}\n" },
    { ST_OUT_JSON, 1, HIGH, NULL, "[{\"points\": 7}, {\"points\": 8}, 9, [10]]" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": \" 7 \"}" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": null}" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": true}" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": [1]}" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": NaN}" },
    { ST_OUT_JSON, 1, HIGH, NULL, "{\"points\": 7" },
    { ST_OUT_JSON, 1, HIGH, NULL, " \n" },
    { ST_OUT_JSON, 1, HIGH, NULL, "" },
    { ST_OUT_JSON, 1, HIGH, "a.b.c", "{\"a\": {\"b\": {\"c\": 7}}}" },
    { ST_OUT_JSON, 1, HIGH, "a.b.c", "{\"a.b.c\": 7}" },
    { ST_OUT_JSON, 1, HIGH, "a.b.c", "{\"a\": {\"b.c\": 7}}" },
    { ST_OUT_JSON, 1, HIGH, "a.b.c", "{\"a\": {\"b\": 7}}" },
    { ST_OUT_JSON, 1, HIGH, "a.b.c", "{\"a\": 7}" },
    { ST_OUT_JSON, 3, LOW, NULL, "[{\"id\": 1, \"points\": 1}, {\"id\": \"2\", \"points\": 2}, {\"id\": 30, \"points\": 3}]" },
    { ST_OUT_JSON, 3, LOW, NULL, "[{\"id\": 1, \"points\": 1}, {\"points\": 2}]" },
    { ST_OUT_JSON, 3, LOW, NULL, "[{\"id\": 1.5, \"points\": 1}]" },
    { ST_OUT_JSON, 3, LOW, NULL, "[{\"id\": 4, \"points\": 1}]" },
    { ST_OUT_JSON, 3, LOW, NULL, "[{\"id\": 4}, {\"id\": 30, \"points\": 1}]" },
    { ST_OUT_JSON, 3, LOW, NULL, "7" },
    { ST_OUT_JSON, 1, LOW, NULL, "{\"points\": 7, \"points\": 8}" },
    { ST_OUT_JSON, 3, LOW, NULL, "{\"id\": 1, \"points\": 7}\n{\"id\": 2, \"id\": 30, \"points\": 8}\n" },
    { ST_OUT_JSON, 1, LOW, NULL, "\xef\xbb\xbf{\"points\": 7}" },
    /* a field of SDF; the title is the id */
    { ST_OUT_SDF, 1, LOW, NULL, "x\n\n\n  0  0  V2000\nM  END\n> <points>\n7\n\n$$$$\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "x\r\n\r\n\r\n\r\nM  END\r\n>  (1) <points> x\r\n 7 \r\n\r\n> <points>\r\n5\r\n\r\n$$$$\r\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "x\n\n\n\nM  END\n> <point>\n7\n> <points2>\n8\n> points\n9\n$$$$\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "> <points>\n7\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "x\n> <points>\n> <points>\n7\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "x\n> <points>\n" },
    { ST_OUT_SDF, 1, LOW, NULL, "x\n> <points>\n$$$$\n7\n" },
    { ST_OUT_SDF, 3, HIGH, NULL, "1\n> <points>\n1\n\n$$$$\n30 \n> <points>\n3\n\n$$$$\n30\n> <points>\n4\n\n$$$$\n2\n$$$$\n" },
    { ST_OUT_SDF, 3, HIGH, NULL, "1\n> <points>\n1\n\n$$$$\n\n> <points>\n3\n\n$$$$\n" },
    { ST_OUT_SDF, 3, HIGH, NULL, "1\n> <points>\n1\n\n$$$$ \n30\n> <points>\n3\n\n$$$$\t\n" },
    /* a regular expression, whose first group is the number */
    { ST_OUT_REGEX, 1, LOW, "points +([^ ]+)", "points 7\nno points\npoints 5 6\n points 9" },
    { ST_OUT_REGEX, 1, LOW, "[0-9]+", "a 12 13\n" },
    { ST_OUT_REGEX, 1, LOW, "points +([^ ]+)", "point 7" },
    { ST_OUT_REGEX, 1, LOW, "points +([^ ]+)", "points x" },
    { ST_OUT_REGEX, 1, LOW, "(a)?[0-9]+", "12" },
    /* remarks of pdbqt */
    { ST_OUT_PDBQT, 1, LOW, NULL, "MODEL 1\nREMARK VINA RESULT:    -6.47      0.000\nENDMDL\nREMARK VINA RESULT: -6.5 1\n" },
    { ST_OUT_PDBQT, 1, LOW, "dG", "REMARK dG = 5\nREMARK  x dG:\t4\nREMARK d 3\nATOM dG 2\n" },
    { ST_OUT_PDBQT, 1, LOW, "", "REMARK VINA RESULT: \n" },
    { ST_OUT_PDBQT, 1, LOW, "dG", "REMARK minusdG -9\nREMARK dG_2 -8\nREMARK xdG dG -7\nREMARK dG 5\n" },
    { ST_OUT_PDBQT, 1, LOW, "dG", "REMARK minusdG -9\nREMARKdG -8\nREMARK dG\n" },
};

static void items_begin(st_ext_item item[4])
{
    static const int64_t id[4] = { 1, 2, 30, 31 };

    memset(item, 0, 4 * sizeof *item);
    for (int i = 0; i < 4; i++)
        item[i].id = id[i];
}

static void items_add(pl_text *out, const st_ext_item *item, int n)
{
    for (int i = 0; i < n; i++)
        if (item[i].code == NULL)
            pl_text_addf(out, "  %lld: %g\n", (long long)item[i].id, item[i].value);
        else
            pl_text_addf(out, "  %lld: %s: %s\n", (long long)item[i].id, item[i].code, item[i].message);
}

static void numbers_add(pl_text *out)
{
    static const char *const format[] = { "csv", "json", "sdf", "regex", "pdbqt" }, *const better[] = { "low", "high", "none" };

    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
        const st_external_conf conf = {
            .property = "points", .value = outputs[k].value, .output = outputs[k].output, .better = outputs[k].better
        };
        pl_arena *mem = pl_arena_new(0);
        st_ext_item item[4];
        char *text = strdup(outputs[k].text);
        regex_t re;
        pl_error err = { 0 };
        assert_non_null(text);
        assert_int_equal(regcomp(&re, outputs[k].value != NULL ? outputs[k].value : "x", REG_EXTENDED), 0);
        items_begin(item);
        assert_int_equal(st_ext_read(item, outputs[k].n, &conf, &(st_ext_given){ &re, NULL, mem }, text, strlen(text), &err),
                         PL_OK);
        pl_text_addf(out, "== %s, %d, %s", format[outputs[k].output], outputs[k].n, better[outputs[k].better]);
        if (outputs[k].value != NULL)
            pl_text_addf(out, ", %s", outputs[k].value);
        pl_text_add(out, ": ");
        golden_bytes(out, outputs[k].text, strlen(outputs[k].text), 200);
        pl_text_add(out, "\n");
        items_add(out, item, outputs[k].n);
        regfree(&re);
        free(text);
        pl_arena_free(mem);
    }
}

/* A NUL is a byte like others, and does not end the output. */
static void a_nul_does_not_end_the_output(void **state)
{
    static const char text[] = "a\0b,points\n\0,7\n";
    const st_external_conf conf = { .property = "points", .output = ST_OUT_CSV };
    pl_arena *mem = pl_arena_new(0);
    st_ext_item item[4];
    char given[sizeof text];
    pl_error err = { 0 };

    (void)state;
    memcpy(given, text, sizeof text);
    items_begin(item);
    assert_int_equal(st_ext_read(item, 1, &conf, &(st_ext_given){ NULL, NULL, mem }, given, sizeof text - 1, &err), PL_OK);
    assert_null(item[0].code);
    assert_true(item[0].value == 7);
    pl_arena_free(mem);
}

/* ---- poses ---- */

enum { ATOMS = 9 };

/* Ethanol: C C O, then the hydrogens of each. */
static void molecule_make(ch_mol *mol, pl_arena *mem)
{
    static const uint8_t z[ATOMS] = { 6, 6, 8, 1, 1, 1, 1, 1, 1 };
    static const float xyz[ATOMS][3] = { { 0, 0, 0 },           { 1.5F, 0, 0 },         { 2, 1.3F, 0 },
                                         { -0.4F, 1, 0 },       { -0.4F, -0.5F, 0.9F }, { -0.4F, -0.5F, -0.9F },
                                         { 1.9F, -0.5F, 0.9F }, { 1.9F, -0.5F, -0.9F }, { 2.9F, 1.3F, 0.1F } };
    static const int32_t bond[ATOMS - 1][2] = { { 0, 1 }, { 0, 3 }, { 0, 4 }, { 0, 5 }, { 1, 2 }, { 1, 6 }, { 1, 7 }, { 2, 8 } };

    assert_int_equal(ch_mol_alloc(mol, ATOMS, ATOMS - 1, mem, NULL), PL_OK);
    memcpy(mol->z, z, sizeof z);
    memcpy(mol->xyz, xyz, sizeof xyz);
    memcpy(mol->bond, bond, sizeof bond);
    memset(mol->order, 1, ATOMS - 1);
}

/* Turned by a quarter about z, moved by (10, 20, 30) and k. */
static void turned(float out[3], const float in[3], int k)
{
    out[0] = 10 - in[1] + (float)k;
    out[1] = 20 + in[0];
    out[2] = 30 + in[2];
}

static const char *symbol(int z)
{
    static const char *const known[] = { [1] = "H", [6] = "C", [8] = "O" };

    return known[z];
}

typedef enum kind { ALL, HEAVY, SWAPPED, SHORT, LONG, NO_NUMBER, HOWS } kind;

/* The atoms of a record: how: all; those that are no hydrogens; the first and the third swapped; without the last; with one more; one
 * place is no number. */
static void record_add(pl_text *out, const ch_mol *mol, kind how, int k)
{
    static const int atoms[HOWS] = { ATOMS, 3, 3, 2, ATOMS + 1, ATOMS };

    pl_text_addf(out, "1\n\n\n%3d  0  0  0  0  0  0  0  0  0999 V2000\n", atoms[how]);
    for (int i = 0; i < atoms[how]; i++) {
        const int32_t from = how == SWAPPED ? 2 - i : i % ATOMS;
        float xyz[3];
        turned(xyz, mol->xyz[from], k);
        if (how == NO_NUMBER && i == 1)
            xyz[2] = NAN;
        pl_text_addf(out, "%10.4f%10.4f%10.4f %-3s 0  0\n", (double)xyz[0], (double)xyz[1], (double)xyz[2], symbol(mol->z[from]));
    }
    pl_text_addf(out, "M  END\n> <points>\n%d\n\n$$$$\n", k);
}

static void pose_add(pl_text *out, const ch_mol *pose)
{
    for (int i = 0; i < pose->n_atoms; i++)
        pl_text_addf(out, "  %s %.2f %.2f %.2f\n", symbol(pose->z[i]), (double)pose->xyz[i][0] + 1e-4,
                     (double)pose->xyz[i][1] + 1e-4, (double)pose->xyz[i][2] + 1e-4);
}

static void sdf_poses_add(pl_text *out, const ch_mol *mol)
{
    static const char *const hows[HOWS] = { "all", "heavy", "swapped", "short", "long", "nan" };
    const ch_mol *one[] = { mol };

    for (kind h = 0; h < HOWS; h++)
        for (int wanted = 0; wanted < 2; wanted++) {
            const st_external_conf conf = { .property = "points", .output = ST_OUT_SDF, .poses = wanted };
            pl_arena *mem = pl_arena_new(0);
            st_ext_item item[4];
            pl_text text = { 0 };
            pl_error err = { 0 };
            items_begin(item);
            item[0].mol = one;
            item[0].n_mols = 1;
            record_add(&text, mol, h, 0);
            record_add(&text, mol, ALL, 1);
            assert_int_equal(st_ext_read(item, 1, &conf, &(st_ext_given){ NULL, NULL, mem }, text.s, text.len, &err), PL_OK);
            pl_text_addf(out, "== poses, SDF, %s%s: %d\n", hows[h], wanted ? "" : ", not wanted", item[0].n_poses);
            items_add(out, item, 1);
            for (int k = 0; k < item[0].n_poses && k < 1; k++)
                pose_add(out, &item[0].pose[k]);
            pl_text_free(&text);
            pl_arena_free(mem);
        }
}

static void line_pdbqt(pl_text *out, const float xyz[3], const char *type)
{
    pl_text_addf(out, "ATOM  %5d  X   UNL     1    %8.3f%8.3f%8.3f  0.00  0.00    +0.000 %s\n", 1, (double)xyz[0], (double)xyz[1],
                 (double)xyz[2], type);
}

/* The input has C, O and the hydrogen of O, in another order than the molecule. how: good, type, missing, twice, no end, bad. */
static void pdbqt_poses_add(pl_text *out, const ch_mol *mol)
{
    static const char *const hows[] = { "good", "type", "missing", "no end", "short line", "bad number", "far" };
    static const int32_t from[] = { 8, 2, 1, 0 };
    static const char *const type[] = { "HD", "OA", "C", "C" };
    const ch_mol *one[] = { mol };

    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
        const st_external_conf conf = { .property = "points", .output = ST_OUT_PDBQT, .poses = true };
        pl_arena *mem = pl_arena_new(0);
        st_ext_atoms input = { .n = 0 };
        st_ext_item item[4];
        pl_text text = { 0 };
        pl_error err = { 0 };
        items_begin(item);
        item[0].mol = one;
        item[0].n_mols = 1;
        for (int i = 0; i < 4; i++) {
            pl_text line = { 0 };
            float xyz[3] = { mol->xyz[from[i]][0] + (h == 6 ? 0.2F : 0.05F), mol->xyz[from[i]][1], mol->xyz[from[i]][2] };
            line_pdbqt(&line, xyz, type[i]);
            assert_true(st_ext_atom_pdbqt(&input, pl_text_str(&line), mem));
            pl_text_free(&line);
        }
        pl_text_add(&text, "MODEL 1\nREMARK VINA RESULT: -5.5 0 0\n");
        for (int i = 0; i < (h == 2 ? 3 : 4); i++) {
            float xyz[3];
            turned(xyz, mol->xyz[from[i]], 0);
            line_pdbqt(&text, xyz, h == 1 && i == 3 ? "A" : type[i]);
        }
        if (h == 4)
            pl_text_add(&text, "ATOM  too short\n");
        if (h == 5)
            pl_text_add(&text, "HETATM    1  X   UNL     1       1.000   x.000   0.000  0.00  0.00    +0.000 C\n");
        pl_text_add(&text, h == 3 ? "" : "ENDMDL\n");
        assert_int_equal(st_ext_read(item, 1, &conf, &(st_ext_given){ NULL, &input, mem }, text.s, text.len, &err), PL_OK);
        pl_text_addf(out, "== poses, pdbqt, %s: %d\n", hows[h], item[0].n_poses);
        items_add(out, item, 1);
        if (item[0].n_poses > 0)
            pose_add(out, &item[0].pose[0]);
        pl_text_free(&text);
        pl_arena_free(mem);
    }
}

/* Values lie behind the structures; blocks of earlier versions have none. */
static void a_block_of_poses_keeps_values_and_order(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    ch_mol mol;
    ch_block_item item[] = { { .id = 3 }, { .id = 3 }, { .id = 8 } };
    double value[] = { -7.25, NAN, 1e300 };
    st_poses poses = { item, value, 3 }, got;
    pl_bytes block, front;
    pl_error err = { 0 };

    (void)state;
    molecule_make(&mol, mem);
    for (int i = 0; i < 3; i++)
        item[i].mol = mol;
    assert_int_equal(st_pose_block_pack(&block, &poses, mem, &err), PL_OK);
    assert_int_equal(ch_block_pack(&front, item, 3, mem, &err), PL_OK);
    assert_int_equal(block.len, front.len + 3 * sizeof *value);
    assert_int_equal(st_pose_block_unpack(&got, block, mem, &err), PL_OK);
    assert_true(got.n == 3 && got.item[2].id == 8 && got.value[0] == -7.25 && isnan(got.value[1]) && got.value[2] == 1e300);
    assert_int_equal(st_pose_block_unpack(&got, front, mem, &err), PL_OK);
    assert_true(got.n == 3 && got.item[1].mol.n_atoms == ATOMS && isnan(got.value[0]) && isnan(got.value[2]));
    for (size_t n = 0; n < block.len; n++)
        assert_int_equal(st_pose_block_unpack(&got, (pl_bytes){ block.data, n }, mem, &err), n == front.len ? PL_OK : PL_EDATA);
    assert_string_equal(err.text, "block of poses: 23 bytes of values of 3 poses");
    poses.n = 0;
    assert_int_equal(st_pose_block_pack(&block, &poses, mem, &err), PL_OK);
    assert_int_equal(st_pose_block_unpack(&got, block, mem, &err), PL_OK);
    assert_int_equal(got.n, 0);
    pl_arena_free(mem);
}

static void the_best_pose_comes_first(void **state)
{
    static const double low[] = { -7, -6, -6, -5, NAN };
    ch_mol pose[5] = { { .n_atoms = 0 }, { .n_atoms = 1 }, { .n_atoms = 2 }, { .n_atoms = 3 }, { .n_atoms = 4 } };
    double value[] = { NAN, -6, -5, -7, -6 };
    st_ext_item m = { .pose = pose, .pose_value = value, .n_poses = 5 };

    (void)state;
    st_ext_poses_sort(&m, ST_BETTER_NONE);
    assert_true(isnan(value[0]) && pose[0].n_atoms == 0);
    st_ext_poses_sort(&m, ST_BETTER_LOW);
    for (int i = 0; i < 4; i++)
        assert_true(value[i] == low[i]);
    assert_true(isnan(value[4]) && pose[0].n_atoms == 3 && pose[1].n_atoms == 1 && pose[2].n_atoms == 4 && pose[4].n_atoms == 0);
    st_ext_poses_sort(&m, ST_BETTER_HIGH);
    assert_true(value[0] == -5 && value[3] == -7 && isnan(value[4]));
}

/* ---- the command ---- */

static void command_add(pl_text *out)
{
    static const char *const texts[] = {
        "{input}",    "a{output}b",  "{dir}/{id}.{cores}",
        "{{input}}",  "{{input}",    "{input}}",
        "{",          "{}",          "{ input}",
        "{nothing}",  "{{nothing}}", "x{{id}}{none}",
        "{inputs}",   "{in}",        "x{input}}",
        "{x{input}}", "{{a}}",       "{a}",
        "{INPUT}",    "plain",       "{aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg}"
    };
    static const char *const words[] = { "input", "output", "dir", "id", "cores", "in", "nothing" };
    pl_arena *mem = pl_arena_new(0);

    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const char *command[] = { "x", texts[k] };
        const st_external_conf conf = { .command = { .items = command, .n = 2 } };
        const st_ext_words w = { "in.smi", "out.csv", "/dir", "17", 3 };
        char **argv = st_ext_argv(&conf, &w, mem), bad[64];
        pl_text_addf(out, "== command: %s\n  -> %s %s\n  has", texts[k], argv[0], argv[1]);
        assert_null(argv[2]);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (st_ext_has_word(&conf, words[i]))
                pl_text_addf(out, " %s", words[i]);
        pl_text_addf(out, "\n  bad %s\n", st_ext_bad_word(texts[k], bad) != NULL ? bad : "-");
    }
    pl_arena_free(mem);
}

static void every_output_gives_the_numbers_and_poses_as_before(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    pl_text out = { 0 };
    ch_mol mol;

    (void)state;
    numbers_add(&out);
    molecule_make(&mol, mem);
    sdf_poses_add(&out, &mol);
    pdbqt_poses_add(&out, &mol);
    command_add(&out);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/external.txt", &out);
}

static int count_of(char **env, const char *name)
{
    int n = 0;

    for (; *env != NULL; env++)
        n += strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=';
    return n;
}

static const char *value_of(char **env, const char *name)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=')
            return *env + strlen(name) + 1;
    return NULL;
}

static void the_environment_is_ours_with_what_is_set_once_each(void **state)
{
    static const st_ext_variable set[] = { { "GIVEN", "a=b" }, { "EMPTY", NULL }, { "LC_ALL", "de" }, { "GIVE", "x" } };
    const st_external_conf conf = { .cores = 7, .env = { .items = (void *)(uintptr_t)set, .n = 4 } };
    pl_arena *mem = pl_arena_new(0);
    char **env;

    (void)state;
    assert_int_equal(setenv("LC_ALL", "fr", 1) + setenv("GIVEN", "before", 1) + setenv("KEPT", "k", 1) + unsetenv("GIVE"), 0);
    env = st_ext_environment(&conf, "/call", mem);
    assert_non_null(env);
    assert_string_equal(value_of(env, "GIVEN"), "a=b");
    assert_string_equal(value_of(env, "GIVE"), "x");
    assert_string_equal(value_of(env, "EMPTY"), "");
    assert_string_equal(value_of(env, "LC_ALL"), "de");
    assert_string_equal(value_of(env, "TMPDIR"), "/call");
    assert_string_equal(value_of(env, "OMP_NUM_THREADS"), "7");
    assert_string_equal(value_of(env, "KEPT"), "k");
    assert_int_equal(count_of(env, "GIVEN") + count_of(env, "LC_ALL") + count_of(env, "TMPDIR"), 3);
    pl_arena_free(mem);
}

/* A program is an executable file: beside the workflow if its name has a slash, else in PATH, of which only absolute folders count. */
static void programs_are_found_beside_the_workflow_or_in_the_path(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    char dir[256], back[4096], path[1600], here[512], *usual = strdup(getenv("PATH"));
    pl_workflow wf = { .path = "w.yaml" };
    const char *one;
    static const char *const names[] = { "tool", "./tool", "sub/tool", "plain", "sub", "./none", "", "/bin/sh" };
    pl_text out = { 0 };

    (void)state;
    toy_directory(dir);
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(dir), 0);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir("sub", 0700) + mkdir("other", 0700) + mkdir("sub/folder", 0700), 0);
    assert_int_equal(symlink("/bin/sh", "tool") + symlink("/bin/sh", "sub/tool") + symlink("/bin/sh", "sub/second"), 0);
    assert_int_equal(close(creat("plain", 0600)) + close(creat("sub/plain", 0600)), 0);
    (void)snprintf(path, sizeof path, "relative:%s/none:%s/other:%s/sub", here, here, here);
    assert_int_equal(setenv("PATH", path, 1), 0);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *command[] = { names[k] };
        const st_external_conf conf = { .command = { .items = command, .n = 1 } };
        const char *found;
        const bool there = st_ext_program(&found, &wf, &conf, mem, NULL) == PL_OK;
        if (there && strncmp(found, here, strlen(here)) == 0)
            found += strlen(here);
        pl_text_addf(&out, "%s -> %s\n", names[k], there ? found : "-");
    }
    assert_string_equal(pl_text_str(&out),
                        "tool -> /sub/tool\n./tool -> /./tool\nsub/tool -> /sub/tool\nplain -> -\nsub -> -\n./none -> -\n -> -\n"
                        "/bin/sh -> /bin/sh\n");
    assert_int_equal(st_ext_program(&one, &wf, &(st_external_conf){ .cores = 1 }, mem, NULL), PL_ECONFIG);
    (void)snprintf(path, sizeof path, "%s/none/w.yaml", here);
    wf.path = path;
    assert_int_equal(st_ext_path(&one, &wf, "a", mem, NULL), PL_EIO);
    wf.path = "sub/w.yaml";
    assert_int_equal(st_ext_path(&one, &wf, "a", mem, NULL), PL_OK);
    assert_string_equal(one + strlen(here), "/sub/a");
    assert_int_equal(st_ext_path(&one, &wf, "/x/a", mem, NULL), PL_OK);
    assert_string_equal(one, "/x/a");
    assert_string_equal(st_ext_base("/x/a"), "a");
    assert_string_equal(st_ext_base("b"), "b");
    pl_text_free(&out);
    assert_int_equal(setenv("PATH", usual, 1) + chdir(back), 0);
    free(usual);
    toy_remove(dir);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_gives_the_numbers_and_poses_as_before),
        cmocka_unit_test(a_block_of_poses_keeps_values_and_order),
        cmocka_unit_test(the_best_pose_comes_first),
        cmocka_unit_test(a_nul_does_not_end_the_output),
        cmocka_unit_test(the_environment_is_ours_with_what_is_set_once_each),
        cmocka_unit_test(programs_are_found_beside_the_workflow_or_in_the_path),
    };

    return cmocka_run_group_tests_name("programs of the stage external", tests, NULL, NULL);
}

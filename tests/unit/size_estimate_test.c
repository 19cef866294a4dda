/* SPDX-License-Identifier: Apache-2.0 */
/* What `plan` knows before anything has run: records, atoms and flat records of each format, and what stages take of them, by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "chem/graph/graph_block.h"
#include "pipeline/store/store_parts.h"
#include "stages/database/schema.h"
#include "stages/registry/registry.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/cost.h"
#include "stages/steps/ingest/device.h"
#include "stages/steps/ingest/size_estimate.h"
#include "toy.h"

static char dir[256], cache[256];
static pl_arena *mem;

/* What a record costs is measured once for all tests, and kept in a folder of this program. */
static int cache_begin(void **state)
{
    (void)state;
    toy_directory(cache);
    return cache[0] == '\0' || setenv("XDG_CACHE_HOME", cache, 1) != 0;
}

static int cache_end(void **state)
{
    (void)state;
    toy_remove(cache);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    toy_directory(dir);
    mem = pl_arena_new(1 << 20);
    return dir[0] == '\0' || mem == NULL;
}

static int end(void **state)
{
    (void)state;
    pl_arena_free(mem);
    toy_remove(dir);
    return 0;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(pl_file_write(pl_sprintf(mem, "%s/%s", dir, name), (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
}

static const pl_workflow *workflow(const char *inputs, const char *stages)
{
    char *text = pl_sprintf(mem, "format: 1\ninputs: [%s]\nstages: {%s}\n", inputs, stages);
    pl_problems problems = { .mem = mem };
    const pl_workflow *wf;

    put("w.yaml", text);
    wf = pl_workflow_load(pl_sprintf(mem, "%s/w.yaml", dir), NULL, 0, st_stages, &problems, mem);
    if (wf == NULL || problems.n > 0)
        fail_msg("%s: %s", inputs, problems.n > 0 ? problems.list[0].text : "not loaded");
    return wf;
}

static st_sizes sizes(const char *inputs, const char *stages)
{
    st_sizes s;

    assert_int_equal(st_sizes_get(&s, workflow(inputs, stages), NULL, NULL), PL_OK);
    return s;
}

static void near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
        fail_msg("%s: %.12g, not %.12g", what, got, want);
}

/* ---- formats ---- */

#define HEAD "t\n\n\n"
#define FLAT "    1.0000    2.0000    0.0000 C   0\n"
#define HIGH "    1.0000    2.0000   -0.5000 C   0\n"
#define FLATS FLAT FLAT FLAT FLAT FLAT FLAT FLAT FLAT FLAT
#define V30(z) "M  V30 1 C 1.5 2.5 " z " 0\n"
#define V3000(n, atoms)                                                                                                       \
    HEAD "  0  0  0     0  0              0 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS " n " 0 0 0 0\nM  V30 BEGIN ATOM\n" atoms \
         "M  V30 END ATOM\nM  END\n$$$$\n"
#define SDF(counts, atoms) HEAD counts "\n" atoms "M  END\n$$$$\n"
#define V2000 " 0  0  0  0  0  0  0  0999 V2000"

/* Of one file: records, atoms and the share of flat records. In SMILES 1.9 atoms for each heavy one. */
static const struct {
    const char *name, *text;
    double n, atoms, flat;
} files[] = {
    { "a.smi", "CCO a\nc1ccccc1 b\n", 2, 1.9 * 9, 1 },
    { "hydrogen.smi", "[H][H] CCCC\n", 1, 0, 1 },
    { "letters.smi", "ClCBr a\nC[nH]OPSFI b\nbsonpc\n", 3, 1.9 * (3 + 7 + 5), 1 },
    { "two.sdf", SDF("  2  1 " V2000, FLAT FLAT) SDF(" 12  1 " V2000, FLAT HIGH), 2, 14, 0.5 },
    { "ten.sdf", SDF(" 11  0 " V2000, FLATS HIGH HIGH), 1, 11, 0 },
    { "eleven.sdf", SDF(" 11  0 " V2000, FLATS FLAT HIGH), 1, 11, 1 }, /* ten atoms are looked at */
    { "hundred.sdf", SDF("123 12 " V2000, HIGH), 1, 123, 0 },
    { "none.sdf", SDF("  0  0 " V2000, ""), 1, 1, 1 },
    { "v3000.sdf", V3000("3", V30("0") V30("0.0")) V3000("1200", V30("0") V30("1.5")), 2, 1203, 0.5 },
    { "a.xyz", "3\n\nC 0 0 0\nO 0 0 1\nO 0 0 2\n1\n\nC 0 0 0\n", 2, 4, 0 },
    { "a.csv", "id,smiles\n1,CCO\n2,CCCC\n", 2, 1.9 * 7, 1 },
};

static void each_format_tells_its_atoms(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char input[64];
        st_sizes s;
        put(files[k].name, files[k].text);
        (void)snprintf(input, sizeof input, "{path: %s}", files[k].name);
        s = sizes(input, "read: {}");
        near(files[k].name, s.n_records, files[k].n);
        near(files[k].name, s.atoms, files[k].atoms);
        near(files[k].name, s.flat, files[k].flat);
        near(files[k].name, s.bonds, s.atoms + s.n);
        assert_true(s.n == s.n_records && s.structures == s.n && s.n_units == 1);
    }
}

static void other_formats_count_their_bytes(void **state)
{
    static const char mol2[] = "@<TRIPOS>MOLECULE\nx\n3 0 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n"
                               "1 C 0.0 0.0 0.0 C.3 1 L 0.0\n2 C 1.5 0.0 0.0 C.3 1 L 0.0\n3 O 2.0 1.2 0.0 O.3 1 L 0.0\n";
    st_sizes s;

    (void)state;
    put("a.mol2", mol2);
    put("b.mol2", "@<TRIPOS>MOLECULE\nx\n");
    s = sizes("{path: a.mol2}", "read: {}");
    assert_true(s.n == 1 && s.flat == 0);
    near("a.mol2", s.atoms, (double)(sizeof mol2 - 1) / 60);
    near("b.mol2", sizes("{path: b.mol2}", "read: {}").atoms, 1);
}

/* The format that the workflow names, and its column of SMILES. */
static void a_format_and_a_column_are_read_as_they_are_named(void **state)
{
    st_sizes s;

    (void)state;
    put("names.txt", "CCO a\nCC b\n");
    put("two.csv", "smiles,other\nCC,CCCCC\n");
    s = sizes("{path: names.txt, format: smi}", "read: {}");
    near("names.txt", s.atoms, 1.9 * 5);
    near("two.csv", sizes("{path: two.csv, columns: {smiles: other}}", "read: {}").atoms, 1.9 * 5);
    near("two.csv", sizes("{path: two.csv}", "read: {}").atoms, 1.9 * 2);
}

/* ---- what is not looked at ---- */

static const char *lines(int n)
{
    char *text = pl_arena_get(mem, (size_t)n * 9 + 1, 1);

    assert_non_null(text);
    for (int i = 0; i < n; i++) {
        char line[32];
        (void)snprintf(line, sizeof line, "CCO %04d\n", i % 10000);
        memcpy(text + (ptrdiff_t)9 * i, line, 10);
    }
    return text;
}

/* 200 records are looked at; the rest of the file is like them. One that is compressed holds four times its bytes. */
static void what_is_behind_the_first_records_is_like_them(void **state)
{
    const char *text = lines(300);
    gzFile packed;
    st_sizes s;

    (void)state;
    put("many.smi", text);
    s = sizes("{path: many.smi}", "read: {unit: 100}");
    near("many.smi", s.n, 300);
    near("many.smi", s.flat, 1);
    near("many.smi", s.atoms, 200 * 1.9 * 3 * 2700 / (1800 + 1));
    assert_int_equal(s.n_units, 3);
    assert_int_equal(sizes("{path: many.smi}", "read: {unit: 101}").n_units, 3);
    assert_int_equal(sizes("{path: many.smi}", "read: {unit: 99}").n_units, 4);
    put("exact.smi", lines(200));
    near("exact.smi", sizes("{path: exact.smi}", "read: {}").n, 200);
    packed = gzopen(pl_sprintf(mem, "%s/stored.smi.gz", dir), "wb0"); /* as large as the text: 2700, and 23 of its own */
    assert_non_null(packed);
    assert_int_equal(gzwrite(packed, text, 2700), 2700);
    assert_int_equal(gzclose(packed), Z_OK);
    near("stored.smi.gz", sizes("{path: stored.smi.gz}", "read: {}").n, round(200 * 4 * 2723.0 / (1800 + 1)));
    packed = gzopen(pl_sprintf(mem, "%s/packed.smi.gz", dir), "wb9"); /* less than a quarter: as much as was looked at */
    for (int i = 0; i < 300; i++)
        assert_int_equal(gzwrite(packed, text, 9), 9);
    assert_int_equal(gzclose(packed), Z_OK);
    near("packed.smi.gz", sizes("{path: packed.smi.gz}", "read: {}").n, 200);
}

/* Eight files are looked at, in the order of their names; the others are like them. */
static void what_is_behind_the_first_files_is_like_them(void **state)
{
    st_sizes s;

    (void)state;
    for (int i = 0; i < 10; i++)
        put(pl_sprintf(mem, "part%d.smi", i), i < 8 ? "CC a\n" : "CCCCCCCCCC a\nCC b\nCC c\n");
    s = sizes("{path: 'part*.smi'}", "read: {}");
    near("ten files", s.n, 10);
    near("ten files", s.atoms, 10 * 2 * 1.9);
    s = sizes("{path: 'part[0-7].smi'}", "read: {}");
    near("eight files", s.n, 8);
    s = sizes("{path: part0.smi}, {path: part8.smi}", "read: {}");
    near("two files", s.n, 4);
}

static void without_records_nothing_is_known(void **state)
{
    st_sizes s;

    (void)state;
    put("empty.smi", "");
    s = sizes("{path: empty.smi}", "read: {}");
    assert_true(s.n == 0 && s.n_records == 0 && s.atoms == 0 && s.n_units == -1);
}

/* ---- structures and units ---- */

static void several_structures_are_fewer_than_asked_for(void **state)
{
    (void)state;
    put("one.smi", "CC a\nCO b\n");
    near("one", sizes("{path: one.smi}", "read: {}, prepare: {}").structures, 2);
    near("nine", sizes("{path: one.smi}", "read: {}, prepare: {conformers: {count: 9}}").structures, 2 * (1 + 0.45 * 8));
    assert_true(st_structures_a_molecule(workflow("{path: one.smi}", "read: {}")) == 1);
}

static int64_t unit_of(int n_records, const char *stages)
{
    put("n.smi", lines(n_records));
    return st_unit_records(workflow("{path: n.smi}", stages));
}

#define BUILDS(how) "read: {}, prepare: {conformers: {" how "}}, graph: {}"

/* A sixteenth of the records within limits where the native builder works; less where each takes longer. */
static void units_are_as_large_as_their_work_allows(void **state)
{
    const pl_workflow *flat;

    (void)state;
    assert_int_equal(unit_of(10, "read: {}"), 1000);
    assert_int_equal(
        unit_of(16000, "read: {}, prepare: {}, external: {command: [/bin/true, '{input}', '{output}'], input: smiles, output: csv, "
                       "property: y, better: low}"),
        16);
    put("l.csv", "smiles,y\nC,1\nCC,2\nCCC,3\nO,4\nN,5\nCO,6\nCN,7\nCCO,8\nCCN,9\nOCO,10\nF,11\nCF,12\n");
    flat = workflow("{path: l.csv}", "read: {}, prepare: {}, graph: {edges: topology}, split: {}, "
                                     "train: {name: m, targets: [{name: y}], family: [gp]}");
    assert_int_equal(st_unit_records(flat), 1000); /* no stage needs structures */
    assert_int_equal(unit_of(10, "read: {}, prepare: {conformers: {source: none}}"), 1000);
    assert_int_equal(unit_of(10, BUILDS("source: keep")), 1000);
    assert_int_equal(unit_of(10, BUILDS("source: auto")), 200);
    assert_int_equal(unit_of(10, BUILDS("source: generate")), 50);
    assert_int_equal(unit_of(1610, BUILDS("source: generate")), 100);
    assert_int_equal(unit_of(1610, BUILDS("source: auto")), 200);
    assert_int_equal(unit_of(6410, BUILDS("source: auto")), 400);
    assert_int_equal(unit_of(16000, BUILDS("source: auto")), 500);
    assert_int_equal(unit_of(16000, BUILDS("source: auto, builder: openbabel")), 200);
    assert_int_equal(unit_of(16000, BUILDS("source: generate, force_field: uff")), 50);
}

/* ---- what stages take ---- */

static pl_estimate estimate(const pl_workflow *wf, const char *stage)
{
    const pl_step *step = pl_workflow_step(wf, stage);
    pl_estimate e = { 0 };

    assert_non_null(step);
    assert_int_equal(step->stage->estimate(wf, step, NULL, &e, mem, NULL), PL_OK);
    return e;
}

static void reading_takes_as_long_as_its_bytes(void **state)
{
    pl_estimate e;

    (void)state;
    put("ten.smi", lines(10));
    put("two.smi", lines(2));
    e = estimate(workflow("{path: ten.smi}, {path: two.smi}", "read: {unit: 5}"), "read");
    assert_true(e.guessed && e.n_items == 12 && e.n_units == 3);
    near("bytes", e.bytes_features, 12 * 9);
    near("rows", e.bytes_results, 1200);
    near("seconds", e.seconds, 12 * 9 / 20e6);
    assert_string_equal(e.note, "2 input files; what is not yet read is guessed from the first records");
    e = estimate(workflow("{path: ten.smi}", "read: {}"), "read");
    assert_string_equal(e.note, "1 input file; what is not yet read is guessed from the first records");
}

/* Structures are built of flat records only: of half of these by default, of none or of all. */
static void building_takes_as_long_as_was_measured(void **state)
{
    static const char *const how[] = { "count: 3", "source: keep", "source: generate" };
    static const double built[] = { 0.5, 0, 1 }, bytes[] = { 1900 * 1.9, 900, 1900 };

    (void)state;
    put("half.sdf", SDF("  2  1 " V2000, FLAT FLAT) SDF(" 12  1 " V2000, FLAT HIGH));
    for (int k = 0; k < 3; k++) {
        char stages[80];
        const pl_workflow *wf;
        pl_estimate e;
        st_cost cost;
        double read, more;
        (void)snprintf(stages, sizeof stages, "read: {}, prepare: {conformers: {%s}}", how[k]);
        wf = workflow("{path: half.sdf}", stages);
        e = estimate(wf, "prepare");
        cost = st_cost_get(pl_workflow_step(wf, "prepare")->conf, mem);
        read = st_cost_seconds(&cost, 7, 0);
        more = st_cost_seconds(&cost, 7, k == 0 ? 3 : 1) - read;
        assert_true(cost.measured && more > 0);
        near(how[k], e.seconds, 2 * (read + built[k] * more));
        near(how[k], e.bytes_features, 2 * bytes[k]);
        near(how[k], e.bytes_results, 2 * 660);
        assert_true(e.guessed && e.n_items == 2 && e.n_units == -1 && e.note == NULL);
    }
}

/* Of each kind of edges: those of an atom, for molecules of 5.7 atoms. */
static void graphs_have_the_edges_of_their_atoms(void **state)
{
    static const double atoms = 5.7;
    static const struct {
        const char *how;
        double edges, mutual;
    } kinds[] = {
        { "edges: full", 4.7, 0.5 },
        { "edges: bonds", 2 * 6.7 / 5.7, 0.5 },
        { "edges: knn, k: 3", 3, 0.65 },
        { "edges: knn, k: 9", 4.7, 0.65 },
        { "edges: radius, cutoff: 20, max_neighbours: 2", 2, 0.5 },
        { "edges: radius, cutoff: 20", 4.7, 0.5 },
        { "edges: radius, cutoff: 1.5", 4.7 * (1 - 0.6207573), 0.5 }, /* exp(-0.9 x 1.5^2.25 / 4.7) */
    };

    (void)state;
    put("ten.smi", lines(10));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char stages[120];
        const pl_workflow *wf;
        st_graph_sizes s;
        pl_estimate e;
        (void)snprintf(stages, sizeof stages, "read: {unit: 5}, prepare: {conformers: {count: 5}}, graph: {%s}", kinds[k].how);
        wf = workflow("{path: ten.smi}", stages);
        assert_int_equal(st_graph_expect(&s, wf, pl_workflow_step(wf, "graph"), NULL, NULL), PL_OK);
        e = estimate(wf, "graph");
        assert_true(s.n == 10 && s.n_units == 2 && e.n_items == 10 && e.n_units == 2);
        near("structures", s.structures, 28);
        near("atoms", s.atoms, 28 * atoms);
        if (!(fabs(s.edges - 28 * atoms * kinds[k].edges) <= 1e-4 * s.edges))
            fail_msg("%s: %g edges an atom", kinds[k].how, s.edges / s.atoms);
        near("pairs", s.pairs, s.edges * kinds[k].mutual);
        near("bytes", e.bytes_features, ch_graph_block_bytes(s.structures, s.atoms, s.edges, s.pairs));
        near("seconds", e.seconds, 6e-6 * s.structures + 3e-8 * s.edges); /* measured: of a structure, of an edge */
        if (k == 0)
            assert_string_equal(e.note, "about 5.7 atoms and 27 edges a structure");
    }
    assert_non_null(strstr(estimate(workflow("{path: ten.smi}", "read: {}, prepare: {}, graph: {}"), "graph").note, " a molecule"));
}

static void nothing_is_guessed_of_a_library_without_records(void **state)
{
    pl_estimate e;

    (void)state;
    put("none.smi", "");
    e = estimate(workflow("{path: none.smi}", "read: {}, prepare: {}, graph: {}"), "graph");
    assert_true(e.n_items == -1 && e.n_units == -1 && e.bytes_features == 0 && e.seconds == 0 && e.note == NULL);
}

static void a_program_takes_a_second_a_call_before_it_has_run(void **state)
{
    const pl_workflow *wf;
    pl_estimate e;

    (void)state;
    put("ten.smi", lines(10));
    wf = workflow("{path: ten.smi}",
                  "read: {unit: 4}, prepare: {}, external: {command: [/bin/true, '{input}', '{output}'], input: smiles, "
                  "output: csv, property: y, better: low, batch: 4}");
    e = estimate(wf, "external");
    assert_true(e.n_items == 10 && e.n_units == 3 && e.bytes_results == 600 && e.bytes_features == 0);
    near("seconds", e.seconds, 10 / 4.0);
    assert_string_equal(e.note, "the time of the program is not known before it has run: 1 s a call is assumed");
}

/* ---- after stages have run ---- */

/* Molecule 1 has no structure, 3 has two; `external` took 3 s for 4 molecules, one of which failed. */
static const char rows[] =
    "INSERT INTO stage(stage_id,name,key,params_json,extra_json,needs_json,code_version,state,n_units,created_utc) VALUES"
    "(1,'read','r','','','',1,'done',9,''),(2,'prepare','p','','','',1,'done',7,''),(3,'external','e','','','',1,'running',NULL,'');"
    "INSERT INTO unit(stage_id,unit,n_ok,n_failed,wall_s) VALUES(1,0,50,0,100),(3,0,1,1,2),(3,1,2,0,1);"
    "INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,rings,geometry,structures,unit) VALUES"
    "(1,'','C','',5,1,0,NULL,'none',NULL,0),(2,'','CC','',8,2,0,NULL,'built',NULL,0),(3,'','C1CC1','',9,3,0,1,'built',2,0);"
    "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,status) VALUES(1,1,0,0,1,'ok'),(2,1,1,0,2,'ok'),(3,1,2,0,3,'ok'),"
    "(4,1,3,0,4,'failed');";

static void what_is_stored_is_not_guessed(void **state)
{
    static const char outer[] = "external: {command: [/bin/true, '{input}', '{output}'], input: smiles, output: csv, property: y, "
                                "better: low}";
    pl_store s = { .results_path = "the.db" };
    const pl_workflow *built, *flat;
    pl_estimate e;
    st_sizes is;
    pl_error err = { 0 };

    (void)state;
    put("ten.smi", lines(10));
    built = workflow("{path: ten.smi}", pl_sprintf(mem, "read: {}, prepare: {conformers: {source: generate}}, %s", outer));
    flat = workflow("{path: ten.smi}", pl_sprintf(mem, "read: {}, prepare: {conformers: {source: none}}, %s", outer));
    assert_int_equal(sqlite3_open(":memory:", &s.db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(s.db, pl_engine_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pl_schema_create(s.db, &st_schema, &err), PL_OK);
    if (pl_db_exec(s.db, rows, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(st_sizes_get(&is, built, &s, &err), PL_OK);
    assert_true(is.n == 2 && is.atoms == 17 && is.bonds == 16 && is.structures == 3 && is.n_units == 7 && is.n_records == 4);
    assert_int_equal(st_sizes_get(&is, flat, &s, &err), PL_OK);
    assert_true(is.n == 3 && is.atoms == 22 && is.bonds == 20 && is.structures == 4);
    e = (pl_estimate){ 0 };
    assert_int_equal(
        pl_workflow_step(built, "external")->stage->estimate(built, pl_workflow_step(built, "external"), &s, &e, mem, &err), PL_OK);
    near("seconds", e.seconds, 0.75 * 2);
    assert_true(e.note == NULL && e.n_items == 2 && e.n_units == 7);
    e = (pl_estimate){ 0 };
    assert_int_equal(
        pl_workflow_step(built, "prepare")->stage->estimate(built, pl_workflow_step(built, "prepare"), &s, &e, mem, &err), PL_OK);
    assert_true(!e.guessed && e.n_items == 4 && e.bytes_results == 4 * 660);
    assert_int_equal(pl_db_exec(s.db, "UPDATE stage SET state='running'", &err), PL_OK); /* neither is done */
    assert_int_equal(
        pl_workflow_step(built, "prepare")->stage->estimate(built, pl_workflow_step(built, "prepare"), &s, &e, mem, &err), PL_OK);
    assert_true(e.guessed && e.n_items == 10);
    assert_int_equal(st_sizes_get(&is, built, &s, &err), PL_OK);
    assert_true(is.n == 10 && is.n_records == 10);
    assert_int_equal(sqlite3_close(s.db), SQLITE_OK);
}

/* ---- where ---- */

/* Without `cuda`, which a machine without a GPU refuses. */
static void structures_are_built_on_the_gpu_of_the_first_engine(void **state)
{
    static const struct {
        const char *train, *evaluate;
        int32_t number;
    } cases[] = { { "engine: auto, devices: [3, 1]", "", 3 },
                  { "engine: auto", "engine: auto, devices: [1]", 0 },
                  { "engine: cpu, devices: [2]", "", 0 },
                  { "engine: cpu", "engine: auto, devices: [1]", 1 } };

    (void)state;
    put("a.csv", "smiles,y\nCCO,1\nCCC,2\n");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *stages = pl_sprintf(
            mem, "read: {}, prepare: {}, graph: {}, split: {}, train: {targets: [{name: y}], family: se3, %s}, evaluate: {%s}",
            cases[k].train, cases[k].evaluate);
        assert_int_equal(st_device_number(workflow("{path: a.csv}", stages)), cases[k].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_format_tells_its_atoms, begin, end),
        cmocka_unit_test_setup_teardown(other_formats_count_their_bytes, begin, end),
        cmocka_unit_test_setup_teardown(a_format_and_a_column_are_read_as_they_are_named, begin, end),
        cmocka_unit_test_setup_teardown(what_is_behind_the_first_records_is_like_them, begin, end),
        cmocka_unit_test_setup_teardown(what_is_behind_the_first_files_is_like_them, begin, end),
        cmocka_unit_test_setup_teardown(without_records_nothing_is_known, begin, end),
        cmocka_unit_test_setup_teardown(several_structures_are_fewer_than_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(units_are_as_large_as_their_work_allows, begin, end),
        cmocka_unit_test_setup_teardown(reading_takes_as_long_as_its_bytes, begin, end),
        cmocka_unit_test_setup_teardown(building_takes_as_long_as_was_measured, begin, end),
        cmocka_unit_test_setup_teardown(graphs_have_the_edges_of_their_atoms, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_guessed_of_a_library_without_records, begin, end),
        cmocka_unit_test_setup_teardown(a_program_takes_a_second_a_call_before_it_has_run, begin, end),
        cmocka_unit_test_setup_teardown(what_is_stored_is_not_guessed, begin, end),
        cmocka_unit_test_setup_teardown(structures_are_built_on_the_gpu_of_the_first_engine, begin, end),
    };

    return cmocka_run_group_tests(tests, cache_begin, cache_end);
}

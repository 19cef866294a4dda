/* stages/steps/external/external_parts.h - the parts of the stage `external`, internal to it: external.c is the stage,
 * external_check.c finds what is wrong before any work, external_command.c makes the command line, external_input.c writes
 * molecules, external_output.c reads numbers, external_poses.c makes poses of the positions beside them, external_pose_check.c
 * compares these with the molecule, external_call.c runs the program, external_store.c stores rows. */
#ifndef ST_EXTERNAL_PARTS_H
#define ST_EXTERNAL_PARTS_H

#include <pthread.h>
#include <regex.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "chem/molecule/mol.h"
#include "chem/worker/worker_client.h"
#include "pipeline/store/insert.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/blocks.h"

typedef enum st_ext_input { ST_IN_SMILES, ST_IN_CSV, ST_IN_SDF, ST_IN_XYZ, ST_IN_PDBQT } st_ext_input;
typedef enum st_ext_output { ST_OUT_CSV, ST_OUT_JSON, ST_OUT_SDF, ST_OUT_REGEX, ST_OUT_PDBQT } st_ext_output;
typedef enum st_ext_better { ST_BETTER_LOW, ST_BETTER_HIGH, ST_BETTER_NONE } st_ext_better;
typedef enum st_ext_keep { ST_KEEP_NONE, ST_KEEP_FAILED, ST_KEEP_ALL } st_ext_keep;
typedef enum st_ext_structures { ST_STRUCTURES_FIRST, ST_STRUCTURES_ALL } st_ext_structures;

/* "env: {NAME: value}" */
typedef struct st_ext_variable {
    const char *name, *value;
} st_ext_variable;

typedef struct st_external_conf {
    const char *name, *property, *unit, *value; /* value: NULL: as property                */
    pl_list command, files, env;                /* texts, texts, st_ext_variable           */
    int32_t input, output, better, keep, structures;
    bool poses;
    int64_t cores, batch;
    double timeout, memory, max_output, max_disk; /* seconds; bytes; 0: no limit             */
} st_external_conf;

/* ---- external_command.c ---- */

/* What a placeholder of `command` stands for in a call. */
typedef struct st_ext_words {
    const char *input, *output, *dir, *id;
    int64_t cores;
} st_ext_words;

/* A placeholder in `text` that does not exist, as "{word}" in out; NULL: there is none. */
const char *st_ext_bad_word(const char *text, char out[64]);
/* Whether some argument of the command has the placeholder "{word}". */
bool st_ext_has_word(const st_external_conf *c, const char *word);
/* NULL-terminated, in mem; NULL: refused. */
char **st_ext_argv(const st_external_conf *c, const st_ext_words *w, pl_arena *mem);

/* *out, in mem: the absolute path of the program: with a slash relative to the workflow file, else searched in PATH. PL_ECONFIG: there is
 * none; PL_ENOMEM. */
pl_code st_ext_program(const char **out, const pl_workflow *wf, const st_external_conf *c, pl_arena *mem, pl_error *err);
/* *out, in mem: the absolute path of a file that the workflow names. PL_EIO: the folder of the workflow is gone; PL_ENOMEM. */
pl_code st_ext_path(const char **out, const pl_workflow *wf, const char *path, pl_arena *mem, pl_error *err);
/* The name that it has in the folder of a call. */
const char *st_ext_base(const char *path);
/* The variables of this process, with those of `env` and OMP_NUM_THREADS, LC_ALL and TMPDIR=dir. NULL: refused. */
char **st_ext_environment(const st_external_conf *c, const char *dir, pl_arena *mem);

/* ---- external_check.c ---- */

/* As in a pl_stage. */
void st_external_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
bool st_ext_needs_3d(const st_external_conf *c);

/* ---- molecules ---- */

enum { ST_POSE_WHY = 160 };

typedef struct st_ext_item {
    int64_t id;
    const char *smiles, *inchikey, *title;
    const ch_mol **mol; /* [n_mols] its structures; none: it has none, or the format needs none */
    int32_t n_mols;
    int32_t structure; /* if this call gets one of several: which, from 1; else 0 */
    /* the outcome */
    const char *code; /* of the failure; NULL: value is good */
    char message[480];
    int32_t n_bad_calls; /* for a structure, which failed while others gave the value; message is that of the first */
    double value;
    int signal;
    ch_mol *pose;       /* [n_poses] the best first; if poses are wanted */
    double *pose_value; /* [n_poses] what the program wrote beside each; NaN: nothing */
    int32_t n_poses;
    int32_t n_left_out;         /* structures that the program wrote and that are no poses of the molecule */
    char left_out[ST_POSE_WHY]; /* why the first of them is none                                           */
} st_ext_item;

/* Atoms as a program wrote them. */
typedef struct st_ext_atom {
    float xyz[3];
    char type[8]; /* an element, or the atom type of pdbqt */
} st_ext_atom;

typedef struct st_ext_atoms {
    st_ext_atom *atom; /* [n] */
    int32_t n, cap;
    const char *bad; /* what is wrong with the structure; NULL: nothing yet */
    bool refused;    /* memory for one of them, or for a pose of them       */
} st_ext_atoms;

/* ---- external_input.c ---- */

/* "input.sdf", "output.json": the names of the files of a call. */
const char *st_ext_input_name(st_ext_input format);
const char *st_ext_output_name(st_ext_output format);
/* The molecules as text; an id is the molecule's number in results.db. chem writes pdbqt, of the first structure of one molecule.
 * EINPUT: the molecule has no such text. */
pl_code st_ext_write(pl_text *out, st_ext_input format, const st_ext_item *item, int32_t n, ch_worker *chem, pl_arena *mem,
                     pl_error *err);

/* ---- external_poses.c ---- */

void st_ext_atoms_begin(st_ext_atoms *a);
/* Adds the atom of a line of a V2000 molfile, or of pdbqt. False: it is none, which `bad` says. */
bool st_ext_atom_sdf(st_ext_atoms *a, const char *line, pl_arena *mem);
bool st_ext_atom_pdbqt(st_ext_atoms *a, const char *line, pl_arena *mem);
bool st_ext_is_atom_pdbqt(const char *line);
/* Adds a pose with its value to the molecule. input: the atoms of its pdbqt file; NULL: of SDF. False: it is left out, as the molecule
 * says, or memory was refused. */
bool st_ext_pose_add(st_ext_item *m, double value, st_ext_atoms *a, const st_ext_atoms *input, pl_arena *mem);
/* The best first, of equal ones the first; those without a value last. Without better or worse in the order of the output. */
void st_ext_poses_sort(st_ext_item *m, st_ext_better better);

/* ---- external_pose_check.c ---- */

/* Whether lengths, angles and stereo of `mol`, the structure that the program got, are those of the pose. False: not, as `why` says, or
 * memory was refused. */
bool st_ext_pose_check(const ch_mol *pose, const ch_mol *mol, bool *refused, char why[ST_POSE_WHY]);

/* ---- external_output.c ---- */

/* Sets value or code and message of each of the items from the output. Several values of a molecule: the best one counts; without better or worse the first. The text may
 * have any bytes; it is changed. */
typedef struct st_ext_given {
    const regex_t *re;         /* of ST_OUT_REGEX                       */
    const st_ext_atoms *input; /* of ST_IN_PDBQT                        */
    pl_arena *mem;             /* of poses                              */
} st_ext_given;
pl_code st_ext_read(st_ext_item *item, int32_t n, const st_external_conf *c, const st_ext_given *given, char *text, size_t len,
                    pl_error *err);
const char *st_ext_value_name(const st_external_conf *c);

/* ---- the stage ---- */

typedef struct st_ext_watched {
    const char *path;
    struct stat was;
} st_ext_watched;

typedef struct st_ext_stage {
    pl_env *env;
    const st_external_conf *conf;
    st_blocks molecules;
    const char *program, *scratch;
    st_ext_watched *watched; /* [n_watched] the program and the files */
    int32_t n_watched;
    bool has_lock;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int n_running, n_slots; /* calls; of the lock */
    int64_t property_id, model_id;
    sqlite3_stmt *get;
    pl_insert put_prediction, put_score;
    int64_t n_left_out, n_left_out_of;   /* structures that are no poses; molecules that they are of */
    int64_t n_bad_calls, n_bad_calls_of; /* calls that failed, of molecules that have a value        */
} st_ext_stage;

typedef struct st_external_worker {
    st_ext_stage *stage;
    pl_arena *scratch;
    regex_t re;
    bool has_re;
    char *out;       /* [max_output + 1] */
    ch_worker *chem; /* of pdbqt         */
    pl_arena *mem;   /* of the unit, which keeps poses */
} st_external_worker;

typedef struct st_external_unit {
    pl_block block;
    st_ext_item *item; /* [n] */
    int32_t n;
} st_external_unit;

/* As in a pl_stage. Close: zeroed is fine. */
pl_code st_external_worker_open(void *worker, void *state, pl_error *err);
void st_external_worker_close(void *worker);
/* Whether the molecule has what the program gets; else sets its failure. */
bool st_ext_has_input(const st_external_conf *c, st_ext_item *m);

/* ---- external_call.c ---- */

/* Runs the program on the molecules and sets their outcomes. PL_ESTOP, or an error of the run. */
pl_code st_external_call(st_external_worker *w, st_ext_item *item, int32_t n, pl_error *err);

/* ---- external_store.c ---- */

/* Begin: rows of property and model, statements. End: zeroed is fine. */
pl_code st_external_rows_open(st_ext_stage *s, pl_error *err);
void st_external_rows_close(st_ext_stage *s);
/* As in a pl_stage. */
pl_code st_external_commit(void *state, pl_unit *unit, pl_error *err);
pl_code st_external_finish(void *state, pl_error *err);
extern const char *const st_external_reset_sql[];

#endif

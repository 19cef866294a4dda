/* chem/worker/worker_client.h - the chemistry worker seen from the main process.
 *
 * Parsing and 3D building run in a child process, molsieve-chem, because the
 * library they use crashes and hangs on some inputs, is not thread-safe and
 * keeps global state. A worker that dies or exceeds its budget is started again. The
 * record is tried once more with the long budget and then fails, so a bad
 * record costs only itself. The answer to a record does not depend on what the
 * worker did before. If the worker's program file is replaced during the run, starting
 * another worker is EIO: answers of two versions are not mixed.
 *
 * The child is started when first needed. Use one ch_worker per thread. Units: Angstrom, kcal/mol, seconds. */
#ifndef CH_WORKER_CLIENT_H
#define CH_WORKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chem/common/protocol.h"
#include "chem/molecule/mol.h"
#include "chem/structures/stereo.h"
#include "chem/worker/worker_opts.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* ch_status, ch_conformer, ch_builder and ch_force_field are in chem/common/protocol.h. */
const char *ch_status_name(ch_status s); /* "too_large"; never NULL */

enum { CH_DIELECTRIC_SEVERAL = 4 }; /* of ensembles: docs/SCIENCE.md */

typedef struct ch_prepare_opts {
    bool largest_fragment;   /* remove counter-ions and solvents, then keep the largest part */
    int32_t max_heavy_atoms; /* of the part that is kept                                   */
    int32_t max_atoms;       /* with hydrogens                                             */
    ch_conformer conformer;
    ch_builder builder;
    ch_force_field force_field; /* MMFF94 falls back to UFF where it has no parameters       */
    int32_t steps;              /* of minimisation, at most; it ends earlier if the gradient is small */
    bool neutralise;            /* give acids and bases their neutral form (docs/SCIENCE.md) */
    bool one_drawing;           /* give groups with several drawings (nitro, sulfoxide) one (docs/SCIENCE.md) */
    int32_t n_structures;       /* maximum conformers of a built molecule; others get random torsions */
    double window;              /* kcal/mol; conformers higher than this above the lowest are left out */
    double dielectric;          /* constant of the native builder's electrostatics; not sent to the worker */
    double structure_s; /* CPU limit of each conformer but the first, beyond which it is left out; 0: the rest of the budget */
    uint64_t seed;
    double ph;         /* charge groups as in water of this pH; < 0: as drawn       */
    const char *rules; /* alerts, one per line: SMARTS, a blank, a name; NULL: none; borrowed */
} ch_prepare_opts;

ch_prepare_opts ch_prepare_defaults(
    void); /* on, 250, 1000, auto, Open Babel, mmff94, 250, off, on, 1, 10, 1, 0, 0, no pH, no alerts */

typedef struct ch_worker ch_worker;

typedef struct ch_prepared {
    ch_status code;
    const char *message; /* why, or ""                                         */
    int signal;          /* signal that ended the last child, or 0             */
    int attempts;        /* 1 or 2                                             */
    double cpu_s;        /* sum of all attempts                                */
    /* Known for some failures, too; otherwise "" and zeros. */
    const char *smiles;   /* canonical, of the input structure, stereo kept     */
    const char *inchikey; /* 27 characters                                      */
    const char *formula;  /* Hill order                                         */
    const char *
        built_from; /* what a structure is built from: the SMILES and, behind a blank, stereo that it leaves out; "": none is built */
    const char *removed; /* "[Na+].O", or ""                                   */
    const char *alerts;  /* names of the rules that match, ", " between; ""     */
    int32_t n_heavy, charge;
    int32_t charge_read, n_neutralised;  /* net charge before neutralise and ph, and atoms whose charge they changed */
    int32_t undefined_stereo;            /* centres and double bonds that the structure has by chance */
    int32_t lost_stereo;                 /* of these, the ones that the record defines                */
    int32_t lacking, present;            /* of a record with 3D positions: hydrogens that it lacks, and has; else 0 */
    double descriptor[CH_N_DESCRIPTORS]; /* of the kept part, chem/common/descriptors.h; NaN where there is none */
    /* The 3D structure; if there are several, the one with the lowest energy. */
    const char *geometry; /* "input", "mmff94", "uff", "none" or ""             */
    double energy;        /* kcal/mol; NaN when no force field was used         */
    ch_mol mol;           /* explicit hydrogens; zero atoms unless code is CH_OK */
    const ch_mol *other;  /* [n_other] the other conformers, by increasing energy   */
    int32_t n_other;
    const double *other_energy; /* [n_other] kcal/mol; NULL: not known */
    const char *set_aside;      /* why ch_known.judge needs no structure of it, or NULL */
    const char *built_by;       /* "native", "openbabel"; NULL: not built                */
    const char *fallback;       /* why the native builder left it to Open Babel, or NULL */
    int32_t steps;              /* of minimisation; -1: not known                         */
    bool converged;             /* the gradient was small at the end                      */
    bool built, known;          /* a structure was built, or taken from ch_known; also set if code says that it failed */
} ch_prepared;                  /* strings and arrays live in the arena                */

/* One record of many. */
typedef struct ch_input {
    const char *text, *format; /* borrowed */
    size_t len;
} ch_input;

/* A molecule whose structure is wanted; it has no positions yet. All are borrowed. */
typedef struct ch_to_build {
    const ch_mol *mol;
    const ch_stereo *stereo;
    ch_prepared *out;
} ch_to_build;

/* Structures that need not be built again. A structure depends only on what it is
 * built from (ch_prepared.built_from), on opts and on the library. find looks up an earlier build, whatever its age, fills
 * code, message, signal, geometry, energy, mol and other, and sets *found. */
typedef struct ch_known {
    void *ctx;
    pl_code (*find)(void *ctx, const char *built_from, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err);
    /* May be NULL. Called for each record that was read, before anything is built; sets set_aside (allocated in mem)
     * for records that need no structure. p->geometry is "build" where one is to be built; p->mol has no positions then. */
    pl_code (*judge)(void *ctx, ch_prepared *p, pl_arena *mem, pl_error *err);
    /* May be NULL; asked once for all molecules, where opts have CH_NATIVE. Builds their structures: fills geometry, energy,
     * mol, other, built_by, steps and converged of each `out`. Or sets out->fallback: then Open Babel builds it. */
    pl_code (*build)(void *ctx, const ch_to_build *all, int32_t n, pl_arena *mem, pl_error *err);
} ch_known;

/* Does not start the worker yet. ECONFIG if its program cannot be found. */
pl_code ch_worker_open(ch_worker **out, const ch_worker_opts *opts, pl_error *err);
void ch_worker_close(ch_worker *w); /* ends the child; NULL is fine */

/* PL_OK, or PL_EINPUT with out->code, out->message and err filled (text
 * "timeout: ..."), or ESTOP, ENOMEM, ECONFIG (the worker cannot work at all),
 * EIO (it cannot be started). opts may be NULL. */
pl_code ch_worker_prepare(ch_worker *w, const char *text, size_t len, const char *format, const ch_prepare_opts *opts,
                          ch_prepared *out, pl_arena *mem, pl_error *err);

/* The same for n records, faster: several requests are sent ahead, and a structure is built only
 * if `known` (may be NULL) does not have it. PL_OK also if records fail: see out[i].code. */
pl_code ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts, const ch_known *known,
                              ch_prepared *out, pl_arena *mem, pl_error *err);

/* The molecules of a whole file as MDL texts. EINPUT: none could be read, or the worker died. */
typedef struct ch_listing {
    int32_t n;
    const char **text;    /* [n] NUL-terminated                                                  */
    const char **problem; /* [n] why it is not a molecule (then text has only its title), or ""  */
    size_t *len;          /* [n]                                                                 */
    const char *message;  /* why the list may be short, or "" */
} ch_listing;
pl_code ch_worker_list(ch_worker *w, const char *text, size_t len, const char *format, ch_listing *out, pl_arena *mem,
                       pl_error *err);

/* A molecule as text in format `to`, with positions, for export. title may be NULL. */
pl_code ch_worker_write(ch_worker *w, const ch_mol *mol, const char *title, const char *to, const char **out, pl_arena *mem,
                        pl_error *err);

/* A drawing of a SMILES: bonds of one length on average, few overlaps, the longer side across. CH_NO_STEREO is a text in the svg and the
 * third line of the molfile if they do not show the stereo of the molecule. */
typedef struct ch_drawn {
    const char *svg;     /* one <svg> element, no XML head, no external references; a bond is 40 units long */
    const char *molfile; /* MDL text of the same drawing, in the plane */
    int32_t overlaps;    /* atoms that touch and bonds that cross      */
} ch_drawn;
pl_code ch_worker_draw(ch_worker *w, const char *smiles, ch_drawn *out, pl_arena *mem, pl_error *err);
/* Only its svg. */
pl_code ch_worker_svg(ch_worker *w, const char *smiles, const char **out, pl_arena *mem, pl_error *err);

/* Open Babel's version, which is part of stage keys. First the worker tests itself with known
 * molecules: ECONFIG if that fails (missing plug-ins or data tables). */
typedef struct ch_worker_info {
    char openbabel[32]; /* Open Babel's version: "3.1.1" */
    char tables[256];   /* folder of its tables, "" if they were not found; only of ch_worker_version */
    int n_formats;      /* readable                    */
    int confined;       /* sum of ch_confined: restrictions in force */
} ch_worker_info;
pl_code ch_worker_hello(ch_worker *w, ch_worker_info *out, pl_error *err);
/* Only the version, without that test, in milliseconds. n_formats and confined are 0. */
pl_code ch_worker_version(ch_worker *w, ch_worker_info *out, pl_error *err);

/* The rules (ch_prepare_opts.rules) that are not valid SMARTS: bad[n_bad], in the order of the rules. */
typedef struct ch_bad_rule {
    int32_t rule, column; /* from 0; from 1, in the SMARTS */
} ch_bad_rule;
pl_code ch_worker_rules(ch_worker *w, const char *rules, ch_bad_rule **bad, int32_t *n_bad, pl_arena *mem, pl_error *err);

/* Whether molecules match a SMARTS: yes[i] is 1 or 0, or -1 if smiles[i] cannot be read. *column is 0, or the column (from 1) at which
 * the pattern is no valid SMARTS; then yes is not filled. Hydrogens count as for alerts (docs/SCIENCE.md). EINPUT: the worker died or
 * spent its CPU budget, the pattern is longer than CH_SMARTS_MAX, or ch_smarts_fault refuses it. */
enum { CH_SMARTS_MAX = 10000 };
pl_code ch_worker_match(ch_worker *w, const char *smarts, const char *const *smiles, int32_t n, int8_t *yes, int32_t *column,
                        pl_error *err);

/* NULL, or why a pattern cannot be asked: Open Babel's matcher passes over the marks / and \ of a double bond, so that `F/C=C/F`
 * would match both forms, over @ at an atom with three neighbours, and over what follows the first part of `(O).(N)`; it reads [2H]
 * as an atom of mass 2 with a hydrogen. */
const char *ch_smarts_fault(const char *smarts, size_t n);

/* *yes: records of this format can be read, by molsieve itself or by Open Babel. */
pl_code ch_worker_reads(ch_worker *w, const char *format, bool *yes, pl_error *err);

/* Counts since ch_worker_open: children started, requests sent, children lost. Any pointer may be NULL. */
void ch_worker_counts(const ch_worker *w, int64_t *started, int64_t *requests, int64_t *lost);

#endif

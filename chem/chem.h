/* chem/chem.h - the chemistry worker seen from the main process.
 *
 * Parsing and 3D building run in a child process, molsieve-chem, because the
 * library they use crashes and hangs on some inputs, is not thread-safe and
 * keeps global state. A worker that dies or overruns is started again, the
 * record is tried once more with the long budget, and then is failed: a bad
 * record costs only itself. The answer to a record does not depend on what the
 * worker did before. When the program itself is replaced meanwhile, what would start
 * another of it is EIO: answers of two versions are not mixed.
 *
 * The child is started when first needed. One ch_worker per thread. Units: Angstrom, kcal/mol, seconds. */
#ifndef CH_CHEM_H
#define CH_CHEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chem/mol.h"
#include "chem/protocol.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* ch_status, ch_conformer and ch_force_field are in chem/protocol.h. */
const char *ch_status_name(ch_status s); /* "too_large"; never NULL */

typedef struct ch_prepare_opts {
    bool largest_fragment;     /* drop counter-ions and solvents, then keep the largest part */
    int32_t max_heavy_atoms;   /* of the part that is kept                                   */
    int32_t max_atoms;         /* with hydrogens                                             */
    ch_conformer conformer;
    ch_force_field force_field; /* MMFF94 falls back to UFF where it has no parameters       */
    int32_t steps;             /* down the force field, at most; it ends where the gradient is small */
    bool neutralise;           /* acids and bases without charge (docs/SCIENCE.md)          */
    int32_t n_structures;      /* at most, of one that is built: others turn its rotatable bonds by chance */
    double window;             /* kcal/mol; those with more energy above the lowest are left out */
    double structure_s;        /* CPU of each but the first, which is left out when it needs more; 0: what the budget has */
    uint64_t seed;
    double ph;                 /* groups as they are in water of this pH; < 0: as they come   */
    const char *rules;         /* NULL, or alerts: lines of a SMARTS, a blank, a name; borrowed */
} ch_prepare_opts;

ch_prepare_opts ch_prepare_defaults(void); /* on, 250, 1000, auto, mmff94, 250, off, 1, 10, 0, 0, no pH, no alerts */

typedef struct ch_worker_opts {
    const char *program;       /* NULL: beside this program, else $MOLSIEVE_CHEM, else PATH    */
    double cpu_first_s;        /* 0: 2                                                         */
    double cpu_retry_s;        /* 0: 30                                                        */
    double wall_slack_s;       /* 0: 20; a worker may use no CPU for so long and 4 x the budget */
    size_t memory_bytes;       /* 0: 2 GiB; address space of the child                         */
    const atomic_int *stop; /* NULL, or: non-zero ends every call with ESTOP        */
} ch_worker_opts;

typedef struct ch_worker ch_worker;

typedef struct ch_prepared {
    ch_status code;
    const char *message;     /* why, or ""                                         */
    int signal;              /* that ended the last child, or 0                    */
    int attempts;            /* 1 or 2                                             */
    double cpu_s;            /* of all attempts                                    */
    /* Known even for some failures; "" and zeros where not. */
    const char *smiles;      /* canonical, of the input structure, stereo kept     */
    const char *inchikey;    /* 27 characters                                      */
    const char *formula;     /* Hill order                                         */
    const char *removed;     /* "[Na+].O", or ""                                   */
    const char *alerts;      /* names of the rules that match, ", " between; ""     */
    int32_t n_heavy, charge;
    int32_t charge_read, n_neutralised; /* net charge before neutralise and ph, and atoms whose charge they changed */
    int32_t undefined_stereo; /* centres and double bonds that the SMILES leaves open    */
    double descriptor[CH_N_DESCRIPTORS]; /* of the kept part, chem/descriptors.h; NaN where there is none */
    /* Of the 3D structure; if there are several, of that with the lowest energy. */
    const char *geometry;    /* "input", "mmff94", "uff", "none" or ""             */
    double energy;           /* kcal/mol; NaN when no force field was used         */
    ch_mol mol;              /* explicit hydrogens; zero atoms unless code is CH_OK */
    const ch_mol *other;     /* [n_other] the same atoms elsewhere, by growing energy */
    int32_t n_other;
    const char *set_aside;   /* why ch_known.judge wants no structure of it, or NULL */
    bool built, known;       /* a structure was built, or taken from ch_known; also when code says that it failed */
} ch_prepared;               /* strings and arrays live in the arena                */

/* One record of many. */
typedef struct ch_input {
    const char *text, *format; /* borrowed */
    size_t len;
} ch_input;

/* Structures that need not be built again. A structure depends on its canonical
 * SMILES, on opts and on the library, on nothing else. find fills what a build
 * gives - code, message, signal, geometry, energy, mol, other, of any age - and says
 * whether it could. */
typedef struct ch_known {
    void *ctx;
    pl_code (*find)(void *ctx, const char *smiles, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err);
    /* Or NULL: asked of each record that was read, before anything is built; fills set_aside, in mem, of those
     * that need no structure. */
    pl_code (*judge)(void *ctx, ch_prepared *p, pl_arena *mem, pl_error *err);
} ch_known;

/* Starts nothing yet. ECONFIG when the worker program cannot be found. */
pl_code ch_worker_open(ch_worker **out, const ch_worker_opts *opts, pl_error *err);
void ch_worker_close(ch_worker *w); /* ends the child; NULL is fine */

/* PL_OK, or PL_EINPUT with out->code, out->message and err filled (text
 * "timeout: ..."), or ESTOP, ENOMEM, ECONFIG (the worker cannot work at all),
 * EIO (it cannot be started). opts may be NULL. */
pl_code ch_worker_prepare(ch_worker *w, const char *text, size_t len, const char *format,
                          const ch_prepare_opts *opts, ch_prepared *out, pl_arena *mem,
                          pl_error *err);

/* The same for n records, faster: a few are with the child at a time, and a structure
 * is built only if `known` (or NULL) does not have it. PL_OK whatever out[n] says. */
pl_code ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts,
                              const ch_known *known, ch_prepared *out, pl_arena *mem, pl_error *err);

/* The molecules of a whole file as MDL texts. EINPUT: none could be read, or the worker died. */
typedef struct ch_listing {
    int32_t n;
    const char **text;    /* [n] NUL-terminated                                                  */
    const char **problem; /* [n] why it is no molecule (text has its title only), or ""          */
    size_t *len;          /* [n]                                                                 */
    const char *message; /* why the list may be short, or "" */
} ch_listing;
pl_code ch_worker_list(ch_worker *w, const char *text, size_t len, const char *format,
                       ch_listing *out, pl_arena *mem, pl_error *err);

/* Our own arrays as text, positions included, for export. title may be NULL. */
pl_code ch_worker_write(ch_worker *w, const ch_mol *mol, const char *title, const char *to,
                        const char **out, pl_arena *mem, pl_error *err);

/* A drawing of a SMILES: one <svg> element, no XML head, no external references. */
pl_code ch_worker_svg(ch_worker *w, const char *smiles, const char **out, pl_arena *mem,
                      pl_error *err);

/* Versions, after the worker's own test with a known molecule: "3.1.1". Part of
 * stage keys. ECONFIG when that test fails (missing plug-ins or data tables). */
typedef struct ch_worker_info {
    char openbabel[32];   /* Open Babel's version        */
    int n_formats;        /* readable                    */
    int confined;         /* ch_confined: what it has given up */
} ch_worker_info;
pl_code ch_worker_hello(ch_worker *w, ch_worker_info *out, pl_error *err);
/* The versions alone, without that test: milliseconds. n_formats and confined are 0. */
pl_code ch_worker_version(ch_worker *w, ch_worker_info *out, pl_error *err);

/* Which rules (ch_prepare_opts.rules) are no SMARTS: [n_bad], in the order of the rules. */
typedef struct ch_bad_rule {
    int32_t rule, column; /* from 0; from 1, in the SMARTS */
} ch_bad_rule;
pl_code ch_worker_rules(ch_worker *w, const char *rules, ch_bad_rule **bad, int32_t *n_bad, pl_arena *mem, pl_error *err);

/* *yes: can records of this format be read, by us or by the library? */
pl_code ch_worker_reads(ch_worker *w, const char *format, bool *yes, pl_error *err);

/* Since open: children started, requests sent, children lost. Any pointer may be NULL. */
void ch_worker_counts(const ch_worker *w, int64_t *started, int64_t *requests, int64_t *lost);

#endif

/* chem/common/protocol.h - the messages between molsieve and molsieve-chem.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (both programs include it)
 *
 * Over stdin and stdout of the worker, little-endian. Requests may be sent before
 * earlier ones are answered; the worker finishes and answers one before it reads
 * the next, so if it dies, the first request without an answer is the cause.
 *
 *   message  = u32 number of bytes that follow, then these bytes
 *   request  = u32 op, f64 CPU seconds for this request (0: no limit), then
 *     hello    -
 *     ready    -        hello without a structure, which takes most of its time
 *     version  -        answered without loading Open Babel's tables
 *     reads    str format
 *     prepare  opts; rules; str format; str text
 *     build    opts; str built_from
 *     list     str format; str text
 *     write    str to; str title; mol
 *     svg      str smiles
 *     rules    rules
 *     match    str SMARTS; i32 n, then n times str smiles
 *   answer   = u32 ch_status, i32 signal that ended the 3D builder or 0, f64 CPU seconds
 *              of the worker and its children so far, str message, then
 *     hello    str library version; i32 readable formats; i32 ch_confined (chem/common/confine.h)
 *     ready    as hello
 *     version  str library version; str protocol; str folder of the library's tables
 *     reads    i32 yes
 *     prepare  str smiles, inchikey, formula, removed, alerts, geometry, built_from;
 *              i32 n_heavy, charge, charge_read, n_neutralised, undefined_stereo, lost_stereo, lacking, present;
 *              f64 of each descriptor; f64 energy; mol (also when the status is not ok);
 *              stereo. geometry "build": this needs a structure; `build` asks for one of Open Babel. built_from is then the SMILES and, behind a
 *              blank, stereo that it leaves out. mol is then the SMILES with all hydrogens, heavy atoms first, without positions, and
 *              stereo what its structure must have. log P and polar surface are NaN: the main program computes them from mol
 *     build    str geometry; f64 energy; mol; i32 n, then n times mol: the other conformers, by increasing energy
 *     list     i32 n, then n times str molecule, str why it is not a molecule (then molecule has only its title)
 *     write    str
 *     svg      str svg, molfile (with the positions of the drawing); i32 overlaps that are left in it. CH_NO_STEREO is a text in the svg
 *              and the comment of the molfile if they do not show the stereo of the molecule
 *     rules    i32 n, then n times i32 rule (from 0) that is not a valid SMARTS, i32 column (from 1)
 *     match    i32 column (from 1) where the pattern is not a valid SMARTS, 0: it is; i32 n (0 if it is not), then n times i32: 1 the
 *              molecule matches, 0 it does not, -1 the SMILES cannot be read
 *   opts     = i32 largest_fragment, max_heavy_atoms, max_atoms, conformer,
 *              force_field, steps, neutralise, n_structures, one_drawing, builder; u64 seed; f64 ph (< 0: none), window,
 *              structure_s
 *   rules    = str, one rule per line: SMARTS, a blank, a name; empty: no alerts
 *   str      = u32 length, bytes
 *   mol      = i32 n_atoms, n_bonds, has (sum of CH_HAS_...); u8 z[n]; i8 charge[n];
 *              f32 xyz[n][3] if it has them; i32 bond[m][2]; u8 order[m];
 *              u16 isotope[n] (mass number, 0: natural mixture) if it has them
 *   stereo   = i32 n_centres, n_double_bonds, n_axes; i32 atom, neighbour[4], sign of each centre; i32 a, b, c, d, cis of each double
 *              bond; i32 atom[4] of each axis (chem/structures/stereo.h)
 *
 * A worker that exceeds its CPU seconds dies of SIGPROF. It ends when its
 * stdin ends, or within a second after its parent has ended. */
#ifndef CH_PROTOCOL_H
#define CH_PROTOCOL_H

#include "chem/common/bond_order.h"

#include "chem/common/descriptors.h"

/* "8 mw logp ...": programs with different descriptors refuse each other. */
#define CH_PROTOCOL_NAME(name, ...) " " #name
#define CH_PROTOCOL_VERSION "17" CH_DESCRIPTORS(CH_PROTOCOL_NAME)

/* Version of the answers: raise it when an unchanged request would get a different answer. It is part of the keys of stages and of
 * stored structures, where it is called "protocol" (formerly it was the same number). Do not raise it for a new descriptor: its name is
 * in the key. Nor for descriptors alone: pl_stage.version of `prepare` runs it again and keeps the structures. */
#define CH_ANSWERS_VERSION "10"

/* Version of chem/worker_program/groups.h and of how groups are charged; part of the keys of stages that set a pH. */
#define CH_GROUPS_VERSION "2"

#define CH_NO_STEREO "stereo not drawn"

enum { CH_MESSAGE_MAX = 256 << 20 }; /* bytes; longer messages are neither sent nor accepted */

enum ch_op {
    CH_OP_HELLO = 1,
    CH_OP_READS,
    CH_OP_PREPARE,
    CH_OP_LIST,
    CH_OP_WRITE,
    CH_OP_SVG,
    CH_OP_BUILD,
    CH_OP_VERSION,
    CH_OP_RULES,
    CH_OP_MATCH,
    CH_OP_READY
};

/* Exit statuses of a worker that cannot work on this machine: no record is the cause. 127: the loader, or a shell. */
enum ch_exit { CH_EXIT_NULL = 91, CH_EXIT_FILES = 92, CH_EXIT_PROCESS = 93, CH_EXIT_LOADER = 127 };

enum ch_mol_has { CH_HAS_XYZ = 1, CH_HAS_ISOTOPE = 2 };

/* Why a record has no molecule. The database stores the names (ch_status_name);
 * add new ones only at the end. */
typedef enum ch_status {
    CH_OK = 0,    /* ok                                                             */
    CH_PARSE,     /* parse: the text is not a molecule of this format               */
    CH_EMPTY,     /* empty: no atoms                                                */
    CH_TOO_LARGE, /* too_large: more atoms than allowed, or a longer text           */
    CH_VALENCE,   /* valence: an impossible valence, or a dummy atom                */
    CH_CONFORMER, /* conformer: no 3D structure could be built                      */
    CH_GEOMETRY,  /* geometry: 3D present but atoms coincide, or are not finite     */
    CH_TIMEOUT,   /* timeout: CPU or wall-clock budget spent, also on the second try */
    CH_MEMORY,    /* memory: the memory limit was reached                           */
    CH_CRASH,     /* crash: the worker died on it, twice                            */
    CH_FORMAT,    /* format: no reader for this format                              */
    CH_RECORD,    /* record: found unusable when the file was split into records    */
    CH_INTERNAL,  /* internal: an exception in Open Babel, or a malformed answer    */
    CH_N_STATUS
} ch_status;

typedef enum ch_conformer {
    CH_3D_AUTO = 0, /* keep real 3D with hydrogens, else generate            */
    CH_3D_KEEP,     /* positions of the input; hydrogens added where missing */
    CH_3D_GENERATE, /* always built from the 2D structure                    */
    CH_3D_NONE      /* hydrogens, but no positions (mol.xyz is NULL)         */
} ch_conformer;

/* Who builds structures: molsieve itself, from the plan in the answer to prepare, or Open Babel. */
typedef enum ch_builder { CH_NATIVE = 0, CH_OPENBABEL } ch_builder;

/* Open Babel's builder reads MMFF94S as MMFF94: it has no MMFF94s of its own that relaxes. */
typedef enum ch_force_field { CH_FF_MMFF94 = 0, CH_FF_MMFF94S, CH_FF_UFF } ch_force_field;

#endif

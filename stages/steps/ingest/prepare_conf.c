/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/prepare_conf.h"

#include <stdio.h>
#include <string.h>

#include "chem/worker/worker_client.h"
#include "stages/steps/ingest/device.h"

#define AT(member) offsetof(st_prepare_conf, member)
#define OF(member) offsetof(st_property, member)

static const pl_field property_fields[] = {
    { PL_TEXT, "name", OF(name), .help = "the key above" },
    { PL_TEXT, "unit", OF(unit), .text = "", .help = "unit of its values" },
    { PL_CHOICE, "task", OF(task), .choices = "regression|classification", .help = "kind of values" },
    { PL_CHOICE, "better", OF(better), .choices = "none|low|high", .help = "which end is better" },
    { PL_TEXT, "description", OF(description), .help = "what it is" },
    { 0 },
};

const pl_field st_prepare_fields[] = {
    { PL_CHOICE, "fragment", AT(fragment), .choices = "largest|keep",
      .help = "keep the largest part, without known counter-ions and solvents, or all parts" },
    { PL_CHOICE, "drawing", AT(drawing), .choices = "standard|as_drawn",
      .help =
          "groups that are drawn in several ways: standard: nitro, N-oxide, azide, diazo and isonitrile with charges, S=O and P=O "
          "without; as_drawn: as in the record" },
    { PL_BOOL, "neutralise", AT(neutralise), .flags = PL_LATER,
      .help = "convert acids and bases to their uncharged form; quaternary nitrogen keeps its charge and one counter-charge" },
    { PL_REAL, "ph", AT(ph), .dflt = -1, .min = 0, .max = 14, .choices = "none", .flags = PL_LATER,
      .help =
          "protonate acids and bases as in water of this pH (7.4: blood) by typical pKa values of their groups, whatever form the input "
          "has; instead of neutralise" },
    { PL_PATH, "alerts.file", AT(alert_file), .flags = PL_EXISTS,
      .help =
          "file of structural alerts, in each line a SMARTS, white space and a name; molecule.alerts lists the names that match" },
    { PL_TEXTS, "alerts.rules", AT(alert_rules), .flags = PL_LATER,
      .help = "inline rules, added to those of the file: \"[N+](=O)[O-] nitro\"" },
    { PL_CHOICE, "alerts.action", AT(alert_action), .choices = "flag|filter", .flags = PL_LATER,
      .help = "molecules with an alert: flag: only list the alert; filter: set their records aside before a structure is built" },
    { PL_TEXT, "keep", AT(keep), .flags = PL_LATER,
      .help = "SQL expression that a molecule must satisfy, else its record is set aside before a structure is built: "
              "\"mw < 600 and smarts('c1ccccc1')\"; also similarity('SMILES') > 0.5, scaffold = 'SMILES'" },
    { PL_CHOICE, "conformers.source", AT(conformer), .choices = "auto|keep|generate|none",
      .help =
          "3D structure: auto: the input's if it is 3D, else built; keep: always the input's; generate: always built; none. If not "
          "given: auto, but none where no stage and no setting needs structures" },
    { PL_CHOICE, "conformers.builder", AT(builder), .choices = "native|openbabel",
      .help =
          "who builds structures: native: this program's own builder, and Open Babel where that cannot (molecule.fallback says why); "
          "openbabel: Open Babel, more than ten times as slow" },
    { PL_CHOICE, "conformers.device", AT(device), .choices = "cpu|cuda", .flags = PL_HOW,
      .help =
          "where the native builder computes: cpu; cuda: the first GPU, about as fast as 16 cores, other last digits, at times another "
          "conformer; what it does not take the CPU builds" },
    { PL_CHOICE, "conformers.force_field", AT(force_field), .choices = "mmff94|mmff94s|uff",
      .help = "minimises built structures; mmff94s has flatter nitrogens, as in crystals; uff is Open Babel's; where mmff94 has no "
              "parameters, Open Babel builds with uff" },
    { PL_INT, "conformers.count", AT(structures), .dflt = 1, .min = 1, .max = 100, .unit = "structures", .flags = PL_LATER,
      .help =
          "conformers built for a molecule with rotatable bonds or undefined stereo; models train on all of them, and a score is the "
          "mean over them" },
    { PL_REAL, "conformers.window", AT(window), .dflt = 10, .min = 0, .max = 1000, .unit = "kcal/mol", .flags = PL_LATER,
      .help = "of several structures, those are left out whose energy is this much above the lowest; 0: none" },
    { PL_REAL, "conformers.dielectric", AT(dielectric), .dflt = -1, .min = 1, .max = 1000, .choices = "auto", .flags = PL_LATER,
      .help =
          "dielectric constant of the native builder's electrostatics, also in the energies; 1: vacuum; auto: 1 for one structure, 4 "
          "for several, which fold onto themselves in vacuum" },
    { PL_DURATION, "conformers.cpu_limit", AT(cpu_limit), .dflt = 2, .min = 0.05, .max = 3600,
      .help = "CPU time of one record at the first attempt; multiplied by `count`" },
    { PL_DURATION, "conformers.retry_cpu_limit", AT(retry_cpu_limit), .dflt = 30, .min = 0.05, .max = 86400,
      .help = "CPU time at the second and last attempt; multiplied by `count`" },
    { PL_CHOICE, "dedupe.by", AT(dedupe), .choices = "inchikey|exact|none|protonation|skeleton",
      .help =
          "records are the same molecule if they have as many unpaired electrons and: inchikey: the same InChIKey, and allenes and "
          "longer cumulenes of one form; exact: also the same canonical SMILES; none: never; "
          "protonation: the same InChIKey except for the last letter (the protonation); skeleton: the same first 14 letters of the "
          "InChIKey, whatever their stereo and isotopes" },
    { PL_CHOICE, "dedupe.on_conflict", AT(on_conflict), .choices = "mean|first",
      .help = "label of a molecule with several records" },
    { PL_INT, "max_heavy_atoms", AT(max_heavy_atoms), .dflt = 250, .min = 1, .max = 100000, .unit = "atoms",
      .help = "molecules with more heavy atoms fail" },
    { PL_INT, "max_atoms", AT(max_atoms), .dflt = 1000, .min = 1, .max = 1000000, .unit = "atoms",
      .help = "molecules with more atoms, hydrogens included, fail" },
    { PL_SIZE, "memory_limit", AT(memory_limit), .dflt = 2147483648.0, .min = 268435456.0, .max = 1099511627776.0,
      .help = "address space of one chemistry worker" },
    { PL_TEXTS, "labels", AT(labels), .help = "numeric data fields that become labels: all (default), none, or their names" },
    { PL_LIST, "properties", AT(properties), .flags = PL_KEYED, .sub = property_fields, .sub_size = sizeof(st_property),
      .help = "units and meaning of data fields" },
    { 0 },
};

bool st_prepare_is_flat(const st_prepare_conf *c) { return c->conformer == CH_3D_NONE; }

bool st_prepare_builds(const st_prepare_conf *c) { return c->conformer == CH_3D_AUTO || c->conformer == CH_3D_GENERATE; }

bool st_prepare_on_gpu(const st_prepare_conf *c)
{
    return c->device == ST_DEVICE_CUDA && c->builder == CH_NATIVE && st_prepare_builds(c);
}

double st_prepare_dielectric(const st_prepare_conf *c)
{
    if (c->dielectric > 0)
        return c->dielectric;
    return c->structures > 1 ? CH_DIELECTRIC_SEVERAL : 1;
}

const char st_inchi_tautomers[] =
    "InChI has one text for an amide and its imidic acid, and for other tautomers: most amides are read as N=C(O), "
    "whose scores differ from those of the SMILES; give SMILES or molfiles where you have them";

ch_prepare_opts st_prepare_opts(const st_prepare_conf *c, uint64_t seed)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.largest_fragment = c->fragment == 0;
    o.one_drawing = c->drawing == ST_DRAWING_STANDARD;
    o.neutralise = c->neutralise;
    o.ph = c->ph;
    o.max_heavy_atoms = (int32_t)c->max_heavy_atoms;
    o.max_atoms = (int32_t)c->max_atoms;
    o.conformer = (ch_conformer)c->conformer;
    o.builder = (ch_builder)c->builder;
    o.force_field = (ch_force_field)c->force_field;
    o.n_structures = (int32_t)c->structures;
    o.window = c->window;
    o.dielectric = st_prepare_dielectric(c);
    o.structure_s = 0.9 * c->retry_cpu_limit; /* all of them together stay within the budget of the second attempt */
    o.seed = seed;
    return o;
}

ch_worker_opts st_prepare_budget(const st_prepare_conf *c, const atomic_int *stop)
{
    return (ch_worker_opts){ .cpu_first_s = c->cpu_limit * (double)c->structures,
                             .cpu_retry_s = c->retry_cpu_limit * (double)c->structures,
                             .memory_bytes = (size_t)c->memory_limit,
                             .stop = stop };
}

json_t *st_prepare_told(const st_prepare_conf *c)
{
    json_t *told = c->fragment != 0 || c->drawing != ST_DRAWING_STANDARD ? json_object() : NULL;

    if (c->fragment != 0)
        (void)json_object_set_new(told, "fragment", json_string("keep"));
    if (c->drawing != ST_DRAWING_STANDARD)
        (void)json_object_set_new(told, "drawing", json_string("as_drawn"));
    return told;
}

const char *st_prepare_told_words(const json_t *told)
{
    static const char *const words[] = { "", "fragment: keep", "drawing: as_drawn", "fragment: keep, drawing: as_drawn" };

    return words[(json_object_get(told, "fragment") != NULL) + 2 * (json_object_get(told, "drawing") != NULL)];
}

static bool says(const json_t *told, const char *key, const char *word)
{
    const char *said = json_string_value(json_object_get(told, key));

    return said != NULL && strcmp(said, word) == 0;
}

void st_prepare_take(st_prepare_conf *c, const json_t *told)
{
    c->fragment = says(told, "fragment", "keep") ? 1 : 0;
    c->drawing = says(told, "drawing", "as_drawn") ? ST_DRAWING_AS_DRAWN : ST_DRAWING_STANDARD;
}

json_t *st_prepare_several(const st_prepare_conf *c)
{
    if (!st_prepare_builds(c) || c->structures < 2)
        return NULL;
    return json_pack("{s:I, s:f, s:f}", "count", (json_int_t)c->structures, "window", c->window, "dielectric",
                     st_prepare_dielectric(c));
}

void st_prepare_take_several(st_prepare_conf *c, const json_t *several)
{
    const double window = json_number_value(json_object_get(several, "window"));
    const double dielectric = json_number_value(json_object_get(several, "dielectric"));
    const json_int_t count = json_integer_value(json_object_get(several, "count"));

    c->structures = count >= 1 && count <= 100 ? count : 1;
    if (window >= 0 && window <= 1000 && several != NULL)
        c->window = window;
    if (dielectric >= 1 && dielectric <= 1000)
        c->dielectric = dielectric;
}

const char *st_prepare_form(const st_prepare_conf *c, char out[32])
{
    if (c->ph < 0)
        return c->neutralise ? "neutral" : "as drawn";
    (void)snprintf(out, 32, "at pH %.6g", c->ph);
    return out;
}

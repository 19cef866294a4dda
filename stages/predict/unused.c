/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/predict/unused.h"

#include <string.h>
#include <strings.h>

#include "pipeline/base/text.h"

/* Tables, documents, molecules, compressed files. */
static const char *const others[] = { "tsv", "tab",   "json", "ndjson", "parquet", "feather", "arrow",  "xls",  "xlsx",   "ods",
                                      "xml", "html",  "yaml", "yml",    "md",      "db",      "sqlite", "smi",  "smiles", "ism",
                                      "can", "inchi", "sd",   "mol",    "mol2",    "ml2",     "xyz",    "exyz", "extxyz", "pdb",
                                      "ent", "pdbqt", "cif",  "mcif",   "mmcif",   "cml",     "bz2",    "xz",   "zst",    "zip" };

pl_code st_unused_ending(const char *output, pl_error *err)
{
    const size_t all = strlen(output), n = all > 3 && strcasecmp(output + all - 3, ".gz") == 0 ? all - 3 : all;

    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const size_t m = strlen(others[k]);
        if (n > m && output[n - m - 1] == '.' && strncasecmp(output + n - m, others[k], m) == 0)
            return pl_fail(err, PL_ECONFIG,
                           "--output %s: answers are not written as %s; let the name end in .csv, .jsonl or .sdf (with .gz "
                           "compressed), or add --format csv, jsonl or sdf",
                           output, others[k]);
    }
    return PL_OK;
}

pl_code st_unused_columns(const ch_reader_opts *opts, const char *format, const char *input, pl_error *err)
{
    const bool table = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0, sdf = strcmp(format, "sdf") == 0;

    if (opts->smiles_column != NULL && !table)
        return pl_fail(err, PL_ECONFIG,
                       "--smiles-column %s: %s is read as %s, which has no columns; leave the option out, or name a table with "
                       "--input-format csv or tsv",
                       opts->smiles_column, input, format);
    if (opts->title_column != NULL && !table && !sdf)
        return pl_fail(err, PL_ECONFIG,
                       "--id-column %s: %s is read as %s, which has neither columns nor data fields; leave the option out, or name "
                       "a table with --input-format csv or tsv",
                       opts->title_column, input, format);
    return PL_OK;
}

pl_code st_unused_structures(const st_predictor *p, const st_predict_conf *conf, pl_error *err)
{
    const bool asked = conf->structures != ST_STRUCTURES_MODEL;

    if (!p->has_network && (asked || conf->count > 0))
        return pl_fail(err, PL_ECONFIG, "%s: %s 3D structures, so the option would have no effect; leave it out",
                       asked ? "--structures" : "--count",
                       p->scorer.n_models > 1 ? "none of the models reads" : "the model reads no");
    if (conf->count > 0 && !st_prepare_builds(&p->prepare))
        return pl_fail(err, PL_ECONFIG, "--count: no structures are built with --structures keep; leave one of the options out");
    return PL_OK;
}

const char *st_unused_options(const st_predictor *p, bool seed, bool engine)
{
    seed = seed && !(p->has_network && st_prepare_builds(&p->prepare));
    engine = engine && !p->has_network;
    if (seed && engine)
        return "--seed and --engine change nothing: the models have no network";
    if (engine)
        return "--engine changes nothing: the models have no network";
    if (seed)
        return p->has_network ? "--seed changes nothing: no structures are built"
                              : "--seed changes nothing: the models have no network";
    return NULL;
}

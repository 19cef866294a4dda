/* stages/steps/ingest/prepare_conf.h - the settings of the stage `prepare`. Plain data: who reads it needs no more of the stage. */
#ifndef ST_PREPARE_CONF_H
#define ST_PREPARE_CONF_H

#include <jansson.h>

#include "chem/worker/worker_client.h"
#include "pipeline/workflow/stage.h"

enum { ST_DEDUPE_INCHIKEY, ST_DEDUPE_EXACT, ST_DEDUPE_NONE, ST_DEDUPE_PROTONATION, ST_DEDUPE_SKELETON };

/* How many letters of two InChIKeys must be the same for records to be one molecule: all 27, all but the protonation
 * (-2, the hyphen and the letter), or the first block, which knows neither stereo nor isotopes. */
static inline int st_dedupe_letters(int32_t dedupe)
{
    if (dedupe == ST_DEDUPE_SKELETON)
        return 14;
    return dedupe == ST_DEDUPE_PROTONATION ? 25 : 27;
}

enum { ST_CONFLICT_MEAN, ST_CONFLICT_FIRST, ST_CONFLICT_LAST }; /* the last is no setting: of a split by time */
enum { ST_REGRESSION, ST_CLASSIFICATION };
enum { ST_DRAWING_STANDARD, ST_DRAWING_AS_DRAWN };
enum { ST_ALERT_FLAG, ST_ALERT_FILTER };

typedef struct st_prepare_conf {
    int32_t fragment, conformer, builder, device, force_field, dedupe, on_conflict;
    bool skips;                                      /* conformer is CH_3D_NONE because no stage needs positions */
    int64_t structures;                              /* maximum number built per molecule               */
    double window;                                   /* kcal/mol                                        */
    double dielectric;                               /* < 0: auto; see st_prepare_dielectric            */
    double cpu_limit, retry_cpu_limit, memory_limit; /* s, s, bytes                                     */
    int64_t max_heavy_atoms, max_atoms;
    int32_t drawing; /* ST_DRAWING_...                                  */
    bool neutralise;
    double ph;              /* -1: none                                        */
    const char *alert_file; /* stages/steps/ingest/alerts.h, or NULL           */
    pl_list alert_rules;    /* const char *                                    */
    const char *keep;       /* stages/steps/ingest/prefilter.h, or NULL        */
    int32_t alert_action;   /* ST_ALERT_...                                    */
    pl_list labels;         /* const char *; empty, or "all", "none", names    */
    pl_list properties;     /* st_property: from the user, about data fields   */
    pl_names columns;       /* not a setting: what models of later stages read */
    pl_names times;         /* not a setting: labels of which the largest value counts, for a split by time */
} st_prepare_conf;

typedef struct st_property {
    const char *name, *unit, *description;
    int32_t task, better; /* regression|classification, none|low|high */
} st_property;

extern const pl_field st_prepare_fields[]; /* of st_prepare_conf; ends with {0} */

/* Does it build structures (conformers.source is auto or generate)? */
bool st_prepare_builds(const st_prepare_conf *c);
bool st_prepare_on_gpu(const st_prepare_conf *c);  /* whether it builds, and on a GPU */
bool st_prepare_is_flat(const st_prepare_conf *c); /* no 3D structures at all: conformers.source is none */
/* The dielectric constant that structures are built with. Of several, vacuum would fold too many onto themselves. */
double st_prepare_dielectric(const st_prepare_conf *c);
/* What these settings ask of the chemistry worker; without alerts. Call it after the settings are settled. */
ch_prepare_opts st_prepare_opts(const st_prepare_conf *c, uint64_t seed);
ch_worker_opts st_prepare_budget(const st_prepare_conf *c, const atomic_int *stop);

/* Of a model file: which of the settings `fragment` and `drawing` are not the default, as an object; NULL: none, or no memory. */
json_t *st_prepare_told(const st_prepare_conf *c);
/* "fragment: keep, drawing: as_drawn", or less. */
const char *st_prepare_told_words(const json_t *told);
/* Sets both as a model file tells them. */
void st_prepare_take(st_prepare_conf *c, const json_t *told);

/* Of a model file: how many structures of a molecule were built for its networks, and which, as an object; NULL: one, none were built, or
 * no memory. */
json_t *st_prepare_several(const st_prepare_conf *c);
/* Sets it as a model file tells it; where it tells nothing (NULL), one is built. */
void st_prepare_take_several(st_prepare_conf *c, const json_t *several);

/* The form of acids and bases after prepare: "as drawn", "neutral", "at pH 7.4"; out is its memory. */
const char *st_prepare_form(const st_prepare_conf *c, char out[32]);

/* What InChI does not tell of a molecule. */
extern const char st_inchi_tautomers[];

#endif

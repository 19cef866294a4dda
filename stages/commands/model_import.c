/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/model_import.h"
#include "stages/files/out_file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/files/model_file.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/file.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/text.h"

static const float CUTOFF_MIN = 0.5f, CUTOFF_MAX = 20.0f; /* as stages.graph.cutoff; molecules of QM9 are smaller */

/* What the weights do not say of themselves. The defaults are those of NVIDIA's training on QM9. */
typedef struct settings {
    nn_model_file m;
    nn_target target;
    bool other_signs;
} settings;

static settings settings_default(void)
{
    settings s = { .m = { .inputs = nn_inputs_qm9(), .graph = { .edges = CH_EDGES_RADIUS, .cutoff = CUTOFF_MAX } } };

    s.m.conf = nn_se3_published();
    s.m.conf.node_features = nn_inputs_node_features(&s.m.inputs);
    s.m.conf.edge_features = nn_inputs_edge_features(&s.m.inputs);
    s.target = (nn_target){ .unit = "", .better = "none", .scale = { .stdev = 1 } };
    return s;
}

/* ---- --network KEY=VALUE,... ---------------------------------------------- */

static bool take_number(settings *s, const char *key, const char *value)
{
    const struct {
        const char *name;
        int32_t *to;
    } known[] = { { "layers", &s->m.conf.layers },
                  { "degrees", &s->m.conf.degrees },
                  { "channels", &s->m.conf.channels },
                  { "heads", &s->m.conf.heads },
                  { "channels_div", &s->m.conf.channels_div } };
    int64_t n;

    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(key, known[k].name) == 0 && pl_parse_int(value, &n) && n > 0 && n < 1 << 20) {
            *known[k].to = (int32_t)n;
            return true;
        }
    return false;
}

/* One of two words. */
static bool take_choice(bool *out, const char *value, const char *no, const char *yes)
{
    *out = strcmp(value, yes) == 0;
    return *out || strcmp(value, no) == 0;
}

static bool take_norm(settings *s, const char *value)
{
    bool norm = false, known = take_choice(&norm, value, "false", "true");

    s->m.conf.norm = norm ? NN_NORMS_SE3 : NN_NORMS_NONE;
    return known;
}

static bool take_word(settings *s, const char *key, const char *value)
{
    bool max = true;

    if (strcmp(key, "norm") == 0)
        return take_norm(s, value);
    if (strcmp(key, "layer_norm") == 0)
        return take_choice(&s->m.conf.layer_norm, value, "false", "true");
    if (strcmp(key, "w3j") == 0)
        return take_choice(&s->other_signs, value, "e3nn-0.3.3", "e3nn-0.5");
    if (strcmp(key, "pooling") != 0 || !take_choice(&max, value, "avg", "max"))
        return false;
    s->m.conf.pooling = max ? NN_POOL_MAX : NN_POOL_MEAN;
    return true;
}

static pl_code network_parse(settings *s, const char *text, pl_arena *mem, pl_error *err)
{
    char *words = text != NULL ? pl_strdup(mem, text) : NULL, *word;

    if (text != NULL && words == NULL)
        return pl_fail(err, PL_ENOMEM, "--network");
    while (words != NULL && (word = strsep(&words, ",")) != NULL) {
        char *value = strchr(word, '=');
        if (value != NULL)
            *value++ = '\0';
        if (value == NULL || (!take_number(s, word, value) && !take_word(s, word, value)))
            return pl_fail(err, PL_ECONFIG,
                           "--network %s: allowed are layers, degrees, channels, heads and channels_div with a number; norm and "
                           "layer_norm with true or false; pooling=max or avg; w3j=e3nn-0.3.3 or e3nn-0.5",
                           text);
    }
    return PL_OK;
}

/* ---- the other options ---------------------------------------------------- */

/* all, bonds, or the cutoff of a radius. */
static pl_code graph_parse(settings *s, const char *text, pl_error *err)
{
    double cutoff = 0;

    if (text == NULL || strcmp(text, "all") == 0)
        return PL_OK;
    if (strcmp(text, "bonds") == 0) {
        s->m.graph = (ch_graph_opts){ .edges = CH_EDGES_BONDS };
        return PL_OK;
    }
    if (!pl_parse_real(text, &cutoff) || !(cutoff >= CUTOFF_MIN && cutoff <= CUTOFF_MAX))
        return pl_fail(err, PL_ECONFIG, "--graph %s: allowed are all, bonds, and a cutoff of 0.5 to 20 Angstrom", text);
    s->m.graph.cutoff = (float)cutoff;
    return PL_OK;
}

static pl_code scale_parse(settings *s, const pl_args *args, pl_error *err)
{
    const char *mean = pl_arg(args, "--mean"), *stdev = pl_arg(args, "--std");
    nn_scale *to = &s->target.scale;

    if ((mean != NULL && (!pl_parse_real(mean, &to->mean) || !isfinite(to->mean))) ||
        (stdev != NULL && (!pl_parse_real(stdev, &to->stdev) || !(to->stdev > 0) || !isfinite(to->stdev))))
        return pl_fail(err, PL_ECONFIG, "--mean takes a number, --std one above 0: of the targets of the training");
    return PL_OK;
}

static pl_code names_parse(settings *s, const pl_args *args, pl_error *err)
{
    const char *from = pl_arg(args, "--from"), *unit = pl_arg(args, "--unit");

    if (from == NULL || strcmp(from, "nvidia") != 0)
        return pl_fail(err, PL_ECONFIG, "model import needs --from nvidia (SE3Transformer of NVIDIA's DeepLearningExamples)");
    if (pl_arg(args, "--output") == NULL || pl_arg(args, "--target") == NULL)
        return pl_fail(err, PL_ECONFIG, "model import needs --output FILE and --target NAME, what the network predicts");
    s->m.name = s->target.name = pl_arg(args, "--target");
    s->target.unit = unit != NULL ? unit : "";
    if (!nn_model_name_fits(s->target.name) || s->target.name[0] == '\0' || !nn_model_name_fits(s->target.unit))
        return pl_fail(err, PL_ECONFIG, "--target and --unit: one line of at most 200 bytes");
    return PL_OK;
}

/* ---- weights ---------------------------------------------------------------- */

/* Without "module.", which a training on several GPUs puts before each name. */
static pl_code names_plain(nn_tensors *all, pl_arena *mem, pl_error *err)
{
    nn_tensor *t = PL_NEW(mem, nn_tensor, all->n + 1);

    if (t == NULL)
        return pl_fail(err, PL_ENOMEM, "weights");
    for (int k = 0; k < all->n; k++) {
        t[k] = all->t[k];
        t[k].name += strncmp(t[k].name, "module.", 7) == 0 ? 7 : 0;
    }
    all->t = t;
    return PL_OK;
}

/* How far convolutions are fused shows in the names and shapes. If no level fits, what the first lacks is told. */
static pl_code weights_take(settings *s, const nn_tensors *all, pl_arena *mem, pl_error *err)
{
    pl_error first = { 0 };

    for (int32_t level = NN_FUSE_FULL; level >= NN_FUSE_NONE; level--) {
        pl_error why = { 0 };
        s->m.conf.fusion = level;
        const pl_code code = nn_model_weights_take(&s->m, all, s->other_signs, mem, &why);
        if (level == NN_FUSE_FULL)
            first = why;
        if (code == PL_OK)
            return PL_OK;
        if (code == PL_ECONFIG || code == PL_ENOMEM)
            return pl_fail(err, code, "--network: %s", why.text);
    }
    return pl_fail(err, PL_EDATA, "%s; see --network of `molsieve help model`", first.text);
}

/* A checkpoint of PyTorch is a zip file of pickles, which could run anything: it is converted where PyTorch is. */
static pl_code weights_read(settings *s, pl_bytes file, pl_arena *mem, pl_error *err)
{
    nn_tensors *all = NULL;
    pl_code code;

    if (file.len >= 4 && memcmp(file.data, "PK\3\4", 4) == 0)
        return pl_fail(err, PL_EDATA,
                       "a checkpoint of PyTorch; convert it to safetensors: python3 -m molsieve.nvidia IN.pth OUT.safetensors");
    code = nn_tensors_parse(&all, file, mem, err);
    if (code == PL_OK)
        code = names_plain(all, mem, err);
    return code == PL_OK ? weights_take(s, all, mem, err) : code;
}

static pl_code provenance_make(settings *s, const char *path, pl_bytes file, pl_arena *mem, pl_error *err)
{
    pl_sha256 sha;
    char sha256[65];

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, file.data, file.len);
    pl_sha256_hex(&sha, sha256);
    json_t *o = json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "program", "molsieve model import", "from", "nvidia", "data", "file", path,
                          "sha256", sha256);
    char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;

    s->m.provenance = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(o);
    return s->m.provenance != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "provenance of the model");
}

static pl_code options_parse(settings *s, const pl_args *args, pl_arena *mem, pl_error *err)
{
    pl_code code = names_parse(s, args, err);

    if (code == PL_OK)
        code = network_parse(s, pl_arg(args, "--network"), mem, err);
    if (code == PL_OK)
        code = graph_parse(s, pl_arg(args, "--graph"), err);
    return code == PL_OK ? scale_parse(s, args, err) : code;
}

static pl_code import(settings *s, const pl_args *args, pl_arena *mem, pl_error *err)
{
    const char *path = args->arg[1];
    pl_bytes file = { 0 };
    pl_code code = options_parse(s, args, mem, err);

    if (code == PL_OK)
        code = st_out_check(pl_arg(args, "--output"), path, err);
    if (code == PL_OK && pl_arg(args, "--output") != NULL)
        code = st_out_guard(pl_arg(args, "--output"), err);
    if (code == PL_OK)
        code = pl_file_read(&file, path, mem, err);
    if (code == PL_OK && (code = weights_read(s, file, mem, err)) != PL_OK)
        pl_at(err, "%s", path);
    s->m.target = &s->target;
    if (code == PL_OK)
        code = provenance_make(s, path, file, mem, err);
    return code == PL_OK ? nn_model_write(&s->m, pl_arg(args, "--output"), err) : code;
}

int st_model_import(const pl_args *args, pl_arena *mem)
{
    static const char *const levels[] = { "none", "partial", "full" };
    settings s = settings_default();
    pl_error err = { 0 };

    if (import(&s, args, mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    pl_cmd_print("%s: %zu parameters as %s, convolutions fused: %s\n", pl_arg(args, "--output"), s.m.model->n_floats,
                 s.m.bf16 ? "bf16" : "f32", levels[s.m.conf.fusion]);
    pl_cmd_print("The file has no training molecules, so the domain of its predictions is unknown and they have no interval\n");
    return 0;
}

/* models/network/radial.h - what radial networks read of a distance, and the envelope of the messages
 * (docs/model.md 3.6).
 *
 * The published network reads the distance itself, in Angstrom, and has no envelope: an
 * all-zero nn_radial_conf. A basis replaces the distance by `number` functions of it. An
 * envelope multiplies every message by u(r), which is 1 at 0 and, with slope and curvature, 0 from
 * the cutoff on. Plain functions without state, in double. */
#ifndef NN_RADIAL_H
#define NN_RADIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* DISTANCE: r. BESSEL: sqrt(2/c) sin(n pi r/c)/r, n = 1 .. number. GAUSSIAN: exp(-((r - m)/s)^2 / 2), with the
 * centres m at even steps s from 0 to the cutoff c. In the order of NN_RADIAL_BASIS_WORDS. */
typedef enum nn_radial_basis { NN_BASIS_DISTANCE, NN_BASIS_BESSEL, NN_BASIS_GAUSSIAN } nn_radial_basis;
#define NN_RADIAL_BASIS_WORDS "distance|bessel|gaussian"

/* In the order of NN_ENVELOPE_WORDS. */
typedef enum nn_envelope { NN_ENVELOPE_NONE, NN_ENVELOPE_POLYNOMIAL } nn_envelope;
#define NN_ENVELOPE_WORDS "none|polynomial"

enum { NN_RADIAL_MIN = 2, NN_RADIAL_MAX = 64 }; /* functions of a basis */

typedef struct nn_radial_conf {
    int32_t basis;    /* nn_radial_basis                              */
    int32_t number;   /* functions; not read for DISTANCE             */
    int32_t envelope; /* nn_envelope                                  */
    double cutoff;    /* Angstrom; read unless both are the published */
} nn_radial_conf;

/* ECONFIG: the text names the invalid setting. */
pl_code nn_radial_check(const nn_radial_conf *c, pl_error *err);

/* Whether the network is another one than the published. */
bool nn_radial_is_plain(const nn_radial_conf *c);
bool nn_radial_same(const nn_radial_conf *a, const nn_radial_conf *b);

int32_t nn_radial_inputs(const nn_radial_conf *c); /* numbers that stand for a distance */

/* value [nn_radial_inputs] at a distance above 0; slope, the same shape: derivatives, or NULL. */
void nn_radial_values(const nn_radial_conf *c, double r, double *value, double *slope);

void nn_radial_floats(const nn_radial_conf *c, float r, float *value); /* the values in float */

/* The inputs of radial networks in `to`: n_features numbers of `from`, then what stands for the distance behind them. */
void nn_radial_expand(const nn_radial_conf *c, const float *from, int32_t n_features, float *to);

/* u(r); slope: its derivative, or NULL. 1 and 0 without an envelope. */
double nn_radial_envelope(const nn_radial_conf *c, double r, double *slope);

/* ln u as it is added to logits of the attention: a very small number, not an infinity, where u is 0. */
double nn_radial_log_envelope(double u);

#endif

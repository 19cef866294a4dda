/* stages/steps/errors/trust.h - which component of a model to trust, inside and outside of its domain, in one sentence.
 *
 * Made from the numbers of stages/steps/errors/by_domain.h, which the table `evaluation` and model files hold. A component is named only if a
 * paired test over the same molecules says that its error is smaller than that of the mean: two-sided at 5 % over all components and
 * both sides together (Bonferroni), for at least ST_TRUST_MIN molecules. */
#ifndef ST_TRUST_H
#define ST_TRUST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/text.h"

enum { ST_TRUST_MIN = 20, ST_TRUST_COMPONENTS = 9, ST_TRUST_NAME = 16 };

typedef struct st_trust_side {
    int64_t n;
    double error, difference, difference_error; /* NaN: not known */
} st_trust_side;

typedef struct st_trust {
    bool classes;
    st_trust_side model[2], neighbours[2]; /* 0 inside, 1 outside */
    double coverage;                       /* inside, where scores have intervals; NaN: not known */
    int n;
    struct {
        char name[ST_TRUST_NAME];
        st_trust_side side[2];
    } component[ST_TRUST_COMPONENTS];
} st_trust;

st_trust st_trust_new(bool classes);
/* A metric of the table `evaluation`; others than those above are ignored. */
void st_trust_add(st_trust *t, const char *metric, double value, int64_t n);
/* "domain" of a part's errors in a model file: {"mae.domain inside": [value, molecules], .., "coverage90": ..}. NULL is fine. */
void st_trust_take(st_trust *t, const json_t *domain);

/* Whether there are components to choose from. */
bool st_trust_known(const st_trust *t);
/* Lines of text, each after `indent`: errors inside and outside of the mean, each component, the nearest neighbours; coverage of intervals. */
void st_trust_lines(pl_text *out, const st_trust *t, const char *indent, const char *unit);
/* "By the part test: outside of it trust trees: MAE 0.6 eV, the mean 0.7 eV (41 molecules); take the mean of the components: none is shown
 * to be better inside of the domain (102 molecules)". Nothing if there is nothing to choose from. */
void st_trust_sentence(pl_text *out, const st_trust *t, const char *part, const char *unit);

#endif

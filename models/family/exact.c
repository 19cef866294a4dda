/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled without contraction to fused operations (models/CMakeLists.txt): additions, products and divisions of doubles are exact to
 * the last bit by IEEE 754, and nothing else is used. */
#include "models/family/exact.h"

#include <math.h>

/* ln 2 in two parts, of which the first has zeros at its end: its product with a small whole number is exact. */
static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;

double nn_exp(double x)
{
    double n, r, sum = 1;

    if (isnan(x))
        return x;
    if (x < -708)
        return 0;
    if (x > 709)
        return INFINITY;
    n = floor(x / (LN2_HIGH + LN2_LOW) + 0.5);
    r = x - n * LN2_HIGH - n * LN2_LOW; /* at most ln 2 / 2 */
    for (int k = 14; k > 0; k--)
        sum = 1 + r * sum / k;
    return ldexp(sum, (int)n);
}

/* ln of m in [sqrt 1/2, sqrt 2]: 2 atanh s = 2 (s + s^3/3 + ...), s = (m - 1) / (m + 1), at most 0.172. */
double nn_log(double x)
{
    int exponent;
    double m = frexp(x, &exponent), s, sum = 0;

    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    s = (m - 1) / (m + 1);
    for (int k = 21; k > 0; k -= 2)
        sum = sum * s * s + 1.0 / k;
    return exponent * LN2_HIGH + (2 * s * sum + exponent * LN2_LOW);
}

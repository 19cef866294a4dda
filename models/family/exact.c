/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled without contraction to fused operations (models/CMakeLists.txt): additions, products and divisions of doubles are exact to
 * the last bit by IEEE 754, and nothing else is used. */
#include "models/family/exact.h"

#include <math.h>

/* ln 2 in two parts, of which the first has zeros at its end: its product with a small whole number is exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

double nn_exp(double x)
{
    /* 1 / k! */
    static const double term[] = {
        1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0
    };
    enum { LAST = sizeof term / sizeof *term - 1 };
    double n, r, sum = term[LAST];

    if (isnan(x))
        return x;
    if (x < -708)
        return 0;
    if (x > 709)
        return INFINITY;
    n = floor(x * (1 / (LN2_HIGH + LN2_LOW)) + 0.5);
    r = x - n * LN2_HIGH - n * LN2_LOW; /* at most ln 2 / 2 */
    for (int k = LAST - 1; k >= 0; k--)
        sum = term[k] + r * sum;
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

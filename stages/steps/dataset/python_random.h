/* stages/steps/dataset/python_random.h - the random numbers of Python's random.Random(seed).
 *
 * A split that equals that of a Python program, molecule by molecule, must shuffle as Python does: MT19937 (Matsumoto and Nishimura,
 * ACM Trans. Model. Comput. Simul. 1998, 8, 3), seeded by an array of 32-bit words, and random.shuffle of CPython 3.2 to 3.13. */
#ifndef ST_PYTHON_RANDOM_H
#define ST_PYTHON_RANDOM_H

#include <stdint.h>

typedef struct st_python_random {
    uint32_t state[624];
    int at;
} st_python_random;

void st_python_seed(st_python_random *r, uint64_t seed);            /* random.seed(seed) */
uint32_t st_python_bits(st_python_random *r, int k);                /* random.getrandbits(k); k is 1 to 32 */
void st_python_shuffle(st_python_random *r, int32_t *x, int32_t n); /* random.shuffle(x) */

#endif

/* models/family/exact.h - functions that give the same bits on every machine. Those of a C library differ between
 * its versions and processors in the last bit, and a model would differ with them. */
#ifndef NN_EXACT_H
#define NN_EXACT_H

double nn_exp(double x); /* relative error below 1e-15; 0 below -708, infinite above 709 */
double nn_log(double x); /* of x > 0 and finite: error below 1e-15 of the result, or 1e-15 near 1 */

#endif

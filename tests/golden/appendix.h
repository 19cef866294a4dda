/* tests/golden/appendix.h - the network of docs/model.md 9: 9,279,553 parameters from a hash
 * of tensor number and element, two small molecules, and the results of the reference for them. Needs no stored file. */
#ifndef TESTS_APPENDIX_H
#define TESTS_APPENDIX_H

#include "golden/model_file.h"

enum { APPENDIX_NODES = 7, APPENDIX_GRAPHS = 2 };

/* A parameter's gradient of mean |y - target|, layout FULL: its norm, and its first number (0: not listed). */
typedef struct appendix_gradient {
    const char *name;
    double norm, first;
} appendix_gradient;

extern const double appendix_outputs[3][APPENDIX_GRAPHS]; /* of each nn_fusion */
extern const appendix_gradient appendix_gradients[];      /* the last has no name */

/* The case, as if read from a file, but without `file`; all memory is in mem. */
void appendix_open(model_file *f, nn_fusion level, pl_arena *mem);

#endif

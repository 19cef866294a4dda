/* SPDX-License-Identifier: Apache-2.0 */
#define NK_W 4
#define NK_R 4
#define NK_Q 2
#define NK_SET nn_cpu_portable
#define NK_LABEL "portable"
#include "models/cpu/kernels_body.h"

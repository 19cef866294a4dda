/* SPDX-License-Identifier: Apache-2.0 */
#define NK_W 4
#define NK_R 4
#define NK_C 2
#define NK_Q 2
#define NK_SET nn_cpu_portable
#define NK_LABEL "portable"
#define NK_BF16 "models/cpu/kernels/kernels_plain16.h"
#include "models/cpu/kernels/kernels_body.h"

/* SPDX-License-Identifier: Apache-2.0 */
#define NK_W 8
#define NK_R 6
#define NK_C 2
#define NK_Q 2
#define NK_SET nn_cpu_avx2
#define NK_LABEL "avx2"
#define NK_BF16 "models/cpu/kernels/kernels_plain16.h"
#include "models/cpu/kernels/kernels_body.h"

/* SPDX-License-Identifier: Apache-2.0 */
#define NK_W 16
#define NK_R 12
#define NK_C 6
#define NK_Q 6
#define NK_SET nn_cpu_avx512
#define NK_LABEL "avx512"
#define NK_BF16 "models/cpu/kernels/kernels_plain16.h"
#include "models/cpu/kernels/kernels_body.h"

/* SPDX-License-Identifier: Apache-2.0 */
#define SK_W 16
#define SK_SET ch_kernels_avx512
#define SK_LABEL "avx512"
#define SK_LANES "chem/structures/lanes_avx512.h"
#include "chem/structures/kernels_body.h"

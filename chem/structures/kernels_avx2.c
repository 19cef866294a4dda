/* SPDX-License-Identifier: Apache-2.0 */
#define SK_W 8
#define SK_SET ch_kernels_avx2
#define SK_LABEL "avx2"
#define SK_LANES "chem/structures/lanes_avx2.h"
#include "chem/structures/kernels_body.h"

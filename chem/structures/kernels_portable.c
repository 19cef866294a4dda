/* SPDX-License-Identifier: Apache-2.0 */
#define SK_W 4
#define SK_SET ch_kernels_portable
#define SK_LABEL "portable"
#define SK_LANES "chem/structures/lanes_any.h"
#include "chem/structures/kernels_body.h"

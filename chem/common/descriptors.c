/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/common/descriptors.h"

#include <stddef.h>

enum { REAL = 0, WHOLE = 1 };

#define ROW(name, kind, unit, heading, title, shown, since, meaning) { #name, unit, heading, title, CH_SHOWN_##shown, since, kind },
const ch_descriptor ch_descriptors[CH_N_DESCRIPTORS] = { CH_DESCRIPTORS(ROW) };

/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/features.h"

#define CH_FEATURE_ROW(name, unit, meaning) { #name, unit, meaning },
const ch_feature ch_features[CH_N_FEATURES] = { CH_FEATURES(CH_FEATURE_ROW) };

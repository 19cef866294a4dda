/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "models/ref/ref.h"
#include "models/network/sh.h"

#define real float
#define REF(x) nn_reff_##x
#include "models/ref/lanes.inc"
#include "models/ref/conv.inc"
#include "models/ref/layers.inc"
#include "models/ref/model.inc"

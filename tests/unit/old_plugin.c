/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin made for an interface that this program no longer has; with FITS, for the one that it has. */
#include "models/comm/collective.h"

extern const nn_collective nn_collective_plugin;
#ifdef FITS
const nn_collective nn_collective_plugin = { .abi = NN_COLLECTIVE_ABI, .name = "fits" };
#else
const nn_collective nn_collective_plugin = { .abi = NN_COLLECTIVE_ABI + 1, .name = "later" };
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/device/products.cuh"

const gpu_launches gpu_fp16 = GPU_LAUNCHES(NN_GPU_FP16);

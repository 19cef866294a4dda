/* tests/twin/device.h - a GPU, or the emulator, and numbers on it; for tests of single operations. It is included once, after cmocka.h. */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include "models/cuda/plugin.h"

static const nn_gpu_ops *ops;
static nn_gpu *gpu;

static void works(const char *fault)
{
    if (fault != NULL)
        fail_msg("%s", fault);
}

static void *room(size_t bytes)
{
    void *p = ops->alloc(gpu, bytes);

    works(p != NULL ? NULL : ops->status(gpu));
    assert_non_null(p);
    return p;
}

static float *to_device(const float *x, size_t n)
{
    float *p = room((n + 1) * sizeof *p);

    ops->upload(gpu, p, x, n * sizeof *p);
    works(ops->status(gpu)); /* x has been read */
    return p;
}

/* For setups: 0 or -1. */
static int gpu_open(void)
{
    char text[240];
    pl_error err = { 0 };

    if (nn_cuda_plugin(&ops, &err) != PL_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    gpu = ops->open(0, false, text, sizeof text);
    print_message("%s: %s\n", ops->name, text);
    return gpu != NULL ? 0 : -1;
}

#endif

/* tests/unit/model_bench.h - a model and the file that a test writes it to.
 *
 * Include it after cmocka.h. A bench is the state of a test; one with more begins with it. */
#ifndef TESTS_MODEL_BENCH_H
#define TESTS_MODEL_BENCH_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/made_network.h"

typedef struct bench {
    pl_arena *mem;
    nn_model_file m;
    nn_target target[3];
    char path[64];
} bench;

/* The memory and the empty file of a zeroed bench. */
static bool bench_make(bench *b)
{
    int fd;

    strcpy(b->path, "/tmp/molsieve-model-XXXXXX");
    b->mem = pl_arena_new(0);
    return b->mem != NULL && (fd = mkstemp(b->path)) >= 0 && close(fd) == 0;
}

static int bench_close(void **state)
{
    bench *b = *state;

    (void)unlink(b->path);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

/* A small network, without its parameters, and the graphs that it reads. */
static __attribute__((unused)) void bench_describe(bench *b, int32_t layers, int32_t degrees, int32_t outputs)
{
    b->m = (nn_model_file){ .name = "tiny", .target = b->target, .provenance = "{\"a\":1}" };
    b->m.graph = (ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 4.5f, .max_neighbours = 20 };
    b->m.conf = (nn_se3_conf){ .layers = layers,
                               .degrees = degrees,
                               .channels = 4,
                               .heads = 2,
                               .channels_div = 2,
                               .norm = true,
                               .layer_norm = true,
                               .pooling = NN_POOL_MEAN,
                               .fusion = NN_FUSE_FULL,
                               .outputs = outputs };
}

/* The network of b->m.conf, for the elements H, C and Br, with random weights. */
static __attribute__((unused)) bool bench_network(bench *b)
{
    b->m.inputs = (nn_inputs){ .n_elements = 3, .element = { 1, 6, 35 }, .z = true, .bonds = true };
    return made_network(&b->m, 5, b->mem);
}

static __attribute__((unused)) nn_model_file *written_and_read(bench *b)
{
    nn_model_file *back = NULL;
    pl_error err = { 0 };

    if (nn_model_write(&b->m, b->path, &err) != PL_OK || nn_model_read(&back, b->path, b->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return back;
}

#endif

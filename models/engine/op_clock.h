/* models/engine/op_clock.h - the time of each operation of a training step, for `molsieve bench --roofline`.
 *
 * The engine's own thread reads the clock where an operation ends and all workers wait,
 * so the seconds add up to the step for any number of threads. */
#ifndef NN_OP_CLOCK_H
#define NN_OP_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* PREPARE: frames, order of the edges, memory, copy of the input. RADIAL: tables of radial nodes; in exact mode
 * this is a part of EDGES, which gathers, contracts and scatters. ATTENTION: queries, softmax, projection, the norm
 * after it. SUM: the last convolution at nodes. HEAD: pooling and the last two layers.
 *
 * .._BACK: the gradients of the same. RADIAL_BACK makes the tables again, transposed; in exact mode it is a part of EDGES_BACK.
 * ATTENTION_BACK computes queries and softmax again and adds the gradients of edges to nodes, as does SUM_BACK.
 * WEIGHTS: folds the last radial layers before the step, and unfolds and adds up their gradients after it. */
typedef enum nn_op {
    NN_OP_PREPARE,
    NN_OP_RADIAL,
    NN_OP_EDGES,
    NN_OP_ATTENTION,
    NN_OP_SUM,
    NN_OP_HEAD,
    NN_OP_HEAD_BACK,
    NN_OP_SUM_BACK,
    NN_OP_EDGES_BACK,
    NN_OP_RADIAL_BACK,
    NN_OP_ATTENTION_BACK,
    NN_OP_WEIGHTS,
    NN_OPS
} nn_op;

typedef struct nn_op_clock {
    double (*now)(int threads); /* seconds                                       */
    int threads;
    double last, seconds[NN_OPS]; /* seconds: added up; the caller sets them to zero */
    int64_t radial_rows;          /* of the last forward: pairs or radial nodes whose matrices each convolution makes */
} nn_op_clock;

/* Starts a part of a step: what passed since the last call is of no operation. NULL is fine, here and below. */
static inline void nn_op_start(nn_op_clock *c)
{
    if (c != NULL)
        c->last = c->now(c->threads);
}

/* What passed since the last call was `op`. */
static inline void nn_op_lap(nn_op_clock *c, nn_op op)
{
    double now;

    if (c == NULL)
        return;
    now = c->now(c->threads);
    c->seconds[op] += now - c->last;
    c->last = now;
}

#endif

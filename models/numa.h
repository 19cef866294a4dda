/* models/numa.h - a process near its GPU.
 *
 * The processors of the NUMA node that a PCI device hangs on, unless the launcher
 * has already chosen processors: who gave this process fewer than the machine has
 * knew better. */
#ifndef NN_NUMA_H
#define NN_NUMA_H

#include <sched.h>
#include <stdbool.h>

typedef struct nn_binding {
    bool bound;
    int node;          /* -1: the machine does not say */
    cpu_set_t was;     /* to go back to                */
} nn_binding;

/* The node of PCI device "0000:3b:00.0" (letters of either case), or -1. sys: "/sys". */
int nn_numa_node(const char *sys, const char *pci);

/* The processors of a node; false when the machine does not say. */
bool nn_numa_processors(const char *sys, int node, cpu_set_t *out);

/* Binds the calling thread, and those it starts from now on. */
nn_binding nn_numa_bind(const char *sys, const char *pci);
void nn_numa_restore(const nn_binding *b);

#endif

/* models/comm/numa.h - binds a thread to the processors of its GPU's NUMA node.
 *
 * Nothing is bound if the process already has fewer processors than the machine: then
 * the launcher or the batch system has chosen them. */
#ifndef NN_NUMA_H
#define NN_NUMA_H

#include <sched.h>
#include <stdbool.h>

typedef struct nn_binding {
    bool bound;
    int node;      /* -1: unknown                  */
    cpu_set_t was; /* affinity before, for nn_numa_restore */
} nn_binding;

/* The NUMA node of PCI device "0000:3b:00.0" (upper or lower case), or -1 if unknown. sys: "/sys". */
int nn_numa_node(const char *sys, const char *pci);

/* The processors of a node; false: the system does not list them. */
bool nn_numa_processors(const char *sys, int node, cpu_set_t *out);

/* Binds the calling thread and all threads that it starts later. */
nn_binding nn_numa_bind(const char *sys, const char *pci);
void nn_numa_restore(const nn_binding *b);

#endif

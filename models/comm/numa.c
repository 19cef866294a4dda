/* SPDX-License-Identifier: Apache-2.0 */
#include "models/comm/numa.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First line of a small kernel file; "" if it cannot be read. */
static void line_read(char *line, int size, const char *path)
{
    FILE *f = fopen(path, "re");

    if (f == NULL || fgets(line, size, f) == NULL)
        line[0] = '\0';
    if (f != NULL)
        (void)fclose(f);
}

int nn_numa_node(const char *sys, const char *pci)
{
    char path[512], line[64], name[64];
    size_t n = strlen(pci);

    if (n == 0 || n >= sizeof name)
        return -1;
    for (size_t i = 0; i <= n; i++)
        name[i] = (char)tolower((unsigned char)pci[i]);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sys, name);
    line_read(line, sizeof line, path);
    return line[0] ? (int)strtol(line, NULL, 10) : -1;
}

/* Parses a list such as "0-3,8,10-11". */
static bool list_parse(const char *text, cpu_set_t *out)
{
    CPU_ZERO(out);
    while (isdigit((unsigned char)*text)) {
        char *end;
        long first = strtol(text, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET((int)i, out);
        text = *end == ',' ? end + 1 : end;
    }
    return CPU_COUNT(out) > 0;
}

bool nn_numa_processors(const char *sys, int node, cpu_set_t *out)
{
    char path[512], line[4096];

    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node);
    line_read(line, sizeof line, path);
    return list_parse(line, out);
}

/* Whether this process may use all online processors of the machine. */
static bool is_free(const char *sys, const cpu_set_t *now)
{
    char path[512], line[4096];
    cpu_set_t all, both;

    snprintf(path, sizeof path, "%s/devices/system/cpu/online", sys);
    line_read(line, sizeof line, path);
    if (!list_parse(line, &all))
        return false;
    CPU_AND(&both, &all, now);
    return CPU_EQUAL(&both, &all);
}

nn_binding nn_numa_bind(const char *sys, const char *pci)
{
    nn_binding b = { .node = nn_numa_node(sys, pci) };
    cpu_set_t near;

    CPU_ZERO(&b.was);
    if (sched_getaffinity(0, sizeof b.was, &b.was) != 0)
        return b;
    if (is_free(sys, &b.was) && nn_numa_processors(sys, b.node, &near)) {
        CPU_AND(&near, &near, &b.was);
        b.bound = CPU_COUNT(&near) > 0 && sched_setaffinity(0, sizeof near, &near) == 0;
    }
    return b;
}

void nn_numa_restore(const nn_binding *b)
{
    if (b->bound)
        (void)sched_setaffinity(0, sizeof b->was, &b->was);
}

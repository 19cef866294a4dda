/* stages/registry/registry.h - what this program consists of: its stages and its commands.
 *
 * A new stage or command is one file, one line here, and one in CMakeLists.txt. */
#ifndef ST_REGISTRY_H
#define ST_REGISTRY_H

#include "pipeline/cli/cmd.h"

/* st_read in stages/steps/ingest/read.c and so on; those that are ready run in this order. */
#define ST_STAGES(X) \
    X(read)          \
    X(prepare)       \
    X(graph)         \
    X(basis)         \
    X(external)      \
    X(split)         \
    X(train)         \
    X(evaluate)      \
    X(score)         \
    X(rank)          \
    X(acquire)       \
    X(write)

/* st_cmd_init in stages/commands/cmd_init.c and so on; help lists them in this order. */
#define ST_COMMANDS(X) \
    X(init)            \
    X(predict)         \
    X(fit)             \
    X(check)           \
    X(plan)            \
    X(run)             \
    X(repeat)          \
    X(merge)           \
    X(explain)         \
    X(status)          \
    X(failures)        \
    X(retry)           \
    X(script)          \
    X(submit)          \
    X(top)             \
    X(show)            \
    X(search)          \
    X(next)            \
    X(label)           \
    X(campaign)        \
    X(query)           \
    X(report)          \
    X(export)          \
    X(conformers)      \
    X(db)              \
    X(model)           \
    X(energy)          \
    X(bench)           \
    X(doctor)          \
    X(help)            \
    X(completion)

#define ST_DECLARE_STAGE(name) extern const pl_stage st_##name;
#define ST_DECLARE_COMMAND(name) extern const pl_cmd st_cmd_##name;
ST_STAGES(ST_DECLARE_STAGE)
ST_COMMANDS(ST_DECLARE_COMMAND)

extern const pl_stage *const st_stages[]; /* NULL-terminated */
extern const pl_cmd *const st_commands[]; /* NULL-terminated */

#endif

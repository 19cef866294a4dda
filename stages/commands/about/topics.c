/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/about/topics.h"

#include <stddef.h>

static const char yaml_text[] = "A workflow is one YAML file: `format: 1`, the input files, and the stages with\n"
                                "their settings. `molsieve help workflow` lists the settings of the whole file,\n"
                                "`molsieve help STAGE` those of a stage, `molsieve help --defaults` all of them.\n"
                                "\n"
                                "  format: 1\n"
                                "  name: my-screen\n"
                                "  inputs:\n"
                                "    - path: library/*.smi.gz\n"
                                "  stages:\n"
                                "    read: {}\n"
                                "    prepare: {}\n"
                                "\n"
                                "Unknown and duplicate keys, tabs, tags, wrong types and values out of range are\n"
                                "errors, all reported together. File names are relative to the YAML file.\n"
                                "Times are written 2s, 10m, 3h50m; sizes 64MiB, 20GB, always with a unit.\n"
                                "Booleans are true and false.\n"
                                "\n"
                                "${vars.name}, ${env:NAME} and ${env:NAME:-default} are replaced inside values;\n"
                                "inside { } and [ ] put them in quotes; $${ stands for ${ itself.\n"
                                "\n"
                                "A setting can be given on the command line: stages.graph.cutoff=4.5,\n"
                                "inputs.0.path=other.smi, vars.name=value. The value is read as YAML and replaces\n"
                                "that of the file; `molsieve check FILE --show` prints the origin of each value.\n"
                                "To add a stage that the file does not have, put + in front: +stages.rank.top=20.\n";

static const char exit_text[] = "  0    all done\n"
                                "  1    a stage failed; doctor: something is bad; model diff: they differ\n"
                                "  2    usage or configuration; of commands that read a file: it has no records\n"
                                "  3    more records failed than limits.failures allows; see run --keep-going;\n"
                                "       of predict, conformers and energy: a record has no answer, the others do\n"
                                "  4    another run holds the work directory\n"
                                "  5    a database, checkpoint or model file is damaged, or not the expected one\n"
                                "  6    no disk space, quota, input or output error\n"
                                "  7    GPU, or another rank of a training\n"
                                "  75   stopped early, state good: run the same command again to continue\n"
                                "  130, 143   second signal: stopped without waiting; run it again to continue\n";

static const char environment_text[] = "  NO_COLOR          no colours\n"
                                       "  MOLSIEVE_CHEM     the chemistry worker program, if not beside molsieve\n"
                                       "  MOLSIEVE_SHARE    the folder with the demo workflows and data\n"
                                       "  MOLSIEVE_CPU      forces a set of CPU kernels: portable, avx2, avx512 or amx\n"
                                       "                    (avx512, with bf16 products on AMX tiles). `molsieve doctor`\n"
                                       "                    shows the choice. A workflow chooses one with `kernels` in\n"
                                       "                    train, evaluate or score\n"
                                       "  MOLSIEVE_PLUGINS  the folder of the plugins, if not beside molsieve or in\n"
                                       "                    ../lib/molsieve\n"
                                       "  MOLSIEVE_CUDA_TABLE_KB, _GRAPHS, _PARTS, _STREAMS, _UNITS, _FENCES\n"
                                       "                    of the GPU engine, see docs/GPU.md\n"
                                       "  XDG_CACHE_HOME    where plan keeps what structures cost; default: ~/.cache\n"
                                       "  BABEL_DATADIR, BABEL_LIBDIR\n"
                                       "                    where Open Babel's files are, if it was moved\n"
                                       "  OMPI_COMM_WORLD_*, PMI_*, PALS_*, PMIX_RANK, RANK, WORLD_SIZE, LOCAL_RANK\n"
                                       "                    set by mpirun, mpiexec, srun or torchrun when it starts\n"
                                       "                    several ranks\n"
                                       "  MOLSIEVE_MASTER   host:port of rank 0 of a training over TCP; also MASTER_ADDR\n"
                                       "                    and MASTER_PORT\n"
                                       "  MOLSIEVE_RUN      a name that distinguishes trainings over TCP in one folder\n"
                                       "  SLURM_*, PBS_*, LSB_*, SGE_*\n"
                                       "                    describe the job; for `--max-time auto` its time limit comes\n"
                                       "                    from scontrol, qstat or bjobs\n";

static const char workflow_text[] = "";

const st_topic st_topics[] = { { "yaml", "how a workflow file is written", yaml_text },
                               { "workflow", "the settings of the whole file", workflow_text },
                               { "exit-codes", "what the exit status says", exit_text },
                               { "environment", "environment variables", environment_text },
                               { NULL, NULL, NULL } };

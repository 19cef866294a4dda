/* stages/steps/ingest/read.h - the stage `read`: input files into records.
 *
 * Every record of every input, good or bad, gets a row in `record`, numbered in
 * the order of the workflow's inputs; raw texts and numeric data fields of the
 * good ones go to features.db (block kind "record", stages/steps/ingest/record_block.h). A
 * unit is `unit` consecutive records, across file boundaries, or 8 MiB of text. A shard
 * stores its own units only; the records of others it only splits. */
#ifndef ST_READ_H
#define ST_READ_H

#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

#endif

/* stages/predict/unused.h - options of `molsieve predict` that would have no effect, or name another format than they give. */
#ifndef ST_UNUSED_H
#define ST_UNUSED_H

#include "chem/records/record.h"
#include "stages/predict/predictor.h"

/* ECONFIG: the name of the output ends as a file of another format than the answers can have. */
pl_code st_unused_ending(const char *output, pl_error *err);
/* ECONFIG: a column is named for an input that is no table. format: of the reader; input: its name, for the message. */
pl_code st_unused_columns(const ch_reader_opts *opts, const char *format, const char *input, pl_error *err);
/* ECONFIG: structures are asked for that no model reads, or a number of structures where none are built. */
pl_code st_unused_structures(const st_predictor *p, const st_predict_conf *conf, pl_error *err);

/* Options that were given and change no answer: "--seed", "--engine", both, or NULL. seed, engine: whether they were given. */
const char *st_unused_options(const st_predictor *p, bool seed, bool engine);

#endif

/* stages/files/force_field.h - where the tables of the force field are: in the data folder of Open Babel. */
#ifndef ST_FORCE_FIELD_H
#define ST_FORCE_FIELD_H

#include "pipeline/base/arena.h"

/* $BABEL_DATADIR or its folder of the version, else where the Open Babel was that this program was built with. Where none of them has
 * the tables, the first, so that the message about a missing table names it. "" when memory is refused. */
const char *st_force_field_folder(pl_arena *mem);

#endif

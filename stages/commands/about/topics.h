/* stages/commands/about/topics.h - the parts of the manual that do not come from a table of settings,
 * and the manual page that is made of all of them. */
#ifndef ST_TOPICS_H
#define ST_TOPICS_H

#include "pipeline/cli/cmd.h"

typedef struct st_topic {
    const char *name, *title, *text; /* "exit-codes", one line, paragraphs */
} st_topic;

extern const st_topic st_topics[]; /* name NULL ends it */

/* A manual page (man 7 man) of every command, stage and topic. */
void st_man_write(const pl_app *app, pl_text *out);

#endif

/* stages/expression/expression_parts.h - what the two files of a condition's parser share (stages/expression/expression.h). */
#ifndef ST_EXPRESSION_PARTS_H
#define ST_EXPRESSION_PARTS_H

#include <stdbool.h>

#include "stages/expression/expression.h"

enum { ST_ARGUMENTS_MAX = 100 };

/* result: ST_ANY is the type of the arguments, which then must have the same type. */
typedef struct st_function {
    const char *name;
    int min, max;
    st_type takes, result;
    bool structural; /* takes one 'text'; the molecule is added as its first value */
} st_function;

/* The function of the list with that name, or NULL; n bytes of it. */
const st_function *st_function_find(const char *name, size_t n);
extern const char st_function_words[]; /* most of them, for messages */

typedef enum kind { END, WORD, QUOTED, NUMBER, STRING, SIGN } kind;

typedef struct token {
    kind kind;
    size_t at, n; /* bytes of the text; of a quoted name without its quotes */
    st_type type; /* of a number                                            */
} token;

/* The last value, if it is nothing but a column or a text. */
typedef struct bare {
    int column; /* -1: none              */
    size_t at;  /* of the column's name  */
    token text; /* n is 0 if it is none  */
} bare;

typedef struct parser {
    const char *text;
    const st_column *columns;
    token now;
    bare value;
    size_t next; /* the first byte after `now`  */
    int depth;
    uint64_t used;
    st_structural *structural; /* or NULL */
    size_t *at;
    pl_error *err;
    pl_code code;
} parser;

/* The first refusal counts; after it every token is the end. */
void st_refuse(parser *p, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void st_advance(parser *p);                            /* the next token into p->now           */
bool st_is(const parser *p, kind k, const char *text); /* in upper or lower case               */
bool st_take(parser *p, kind k, const char *text);     /* if it is the current token: skips it */
void st_need(parser *p, kind k, const char *text);     /* refuses if it is not                 */

#endif

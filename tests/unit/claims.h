/* tests/unit/claims.h - a folder for a claim, and its text. Include it once. */
#ifndef CLAIMS_H
#define CLAIMS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/lock/claim.h"
#include "tests/unit/entries.h"
#include "toy.h"

static char dir[256], path[300];

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    (void)snprintf(path, sizeof path, "%s/.lock.host", dir);
    return dir[0] == '\0';
}

static int drop(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static void write_claim(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void read_claim(char out[700])
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    out[fread(out, 1, 699, f)] = '\0';
    (void)fclose(f);
}

/* It is renewed only after the end of the test. */
static pl_code take_slowly(pl_claim **c, pl_error *err)
{
    return pl_claim_take(c, path, "screen", "host here, pid 1, since today", 60000, err);
}

#endif

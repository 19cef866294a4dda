/* tests/golden/command.h - a command of the program in this process, with what it prints. Include this once. */
#ifndef GOLDEN_COMMAND_H
#define GOLDEN_COMMAND_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"
#include "pipeline/cli/cmd.h"
#include "stages/database/schema.h"
#include "stages/files/version.h"
#include "stages/registry/registry.h"

typedef struct said {
    int status;
    pl_text out, err;
} said;

static void file_read(const char *path, pl_text *text)
{
    char part[4096];
    FILE *f = fopen(path, "r");
    size_t n;

    assert_non_null(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        pl_text_add_n(text, part, n);
    (void)fclose(f);
}

static int replaced(int fd, const char *path)
{
    int kept = dup(fd), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(kept >= 0 && to >= 0 && dup2(to, fd) == fd);
    (void)close(to);
    return kept;
}

/* line: the command and its words; the line is cut up. */
static int call(char *line)
{
    static const pl_app app = {
        .commands = st_commands, .stages = st_stages, .schema = &st_schema, .version = st_version, .details = st_version_details
    };
    char *argv[24] = { "molsieve" };
    int argc = 1, status, out, err;

    for (char *word = strtok(line, " "); word != NULL && argc < 23; word = strtok(NULL, " "))
        argv[argc++] = word;
    (void)fflush(NULL);
    out = replaced(STDOUT_FILENO, "said.out");
    err = replaced(STDERR_FILENO, "said.err");
    status = pl_main(&app, argc, argv);
    (void)fflush(NULL);
    assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    (void)close(out);
    (void)close(err);
    return status;
}

/* The words with `%ld` replaced by a number that no earlier call had: settings that make a stage run again. */
static said say(const char *words)
{
    static long number = 100;
    char line[400];
    said s = { 0 };

    (void)snprintf(line, sizeof line, words, ++number);
    s.status = call(line);
    file_read("said.out", &s.out);
    file_read("said.err", &s.err);
    return s;
}

static void said_free(said *s)
{
    pl_text_free(&s->out);
    pl_text_free(&s->err);
}

#endif

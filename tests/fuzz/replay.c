/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a libFuzzer target over the files of a folder, so that every build repeats all earlier findings. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    uint8_t *data;

    if (f != NULL && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    data = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    if (data == NULL || fseek(f, 0, SEEK_SET) != 0 || fread(data, 1, (size_t)size, f) != (size_t)size) {
        perror(path);
        return 1;
    }
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *folder = argc == 2 ? argv[1] : CORPUS;
    DIR *dir = opendir(folder);
    char path[PATH_MAX];
    struct dirent *e;
    int n = 0, bad = 0;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        bad += run_file(path);
        n++;
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)printf("%d inputs\n", n);
    return bad > 0 || n == 0;
}

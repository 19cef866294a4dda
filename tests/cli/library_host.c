/* SPDX-License-Identifier: Apache-2.0 */
/* library_host.c - a host of libmolsieve_predict.so, for library_e2e.py: one word a check, its answers as lines.
 *
 *   host smiles MODEL SMILES ...    value, half-width, similarity, domain, problem of each
 *   host atoms MODEL FILE.xyz       the same of one plain XYZ record
 *   host open MODEL ...             the code and text of each
 *   host guest MODEL                what a library must leave alone
 *   host threads MODEL SMILES ...   as smiles, by four threads with models of their own and four with one */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <molsieve_predict.h>

static molsieve_model *opened(const char *name)
{
    molsieve_model *m;
    molsieve_error error;
    if (molsieve_open(&m, name, &error) != MOLSIEVE_OK) {
        printf("open %d %s\n", error.code, error.text);
        exit(1);
    }
    return m;
}

static void print(FILE *out, const molsieve_answers *a)
{
    molsieve_prediction p;
    for (size_t i = 0; i < molsieve_n_answers(a); i++)
        if (molsieve_answer(a, i, 0, &p, sizeof p) == MOLSIEVE_OK)
            fprintf(out, "%.17g\t%.17g\t%.17g\t%d\t%s\t%s\n", p.value, p.half_width, p.similarity, (int)p.domain, p.reason,
                    p.problem);
}

static int predicted(FILE *out, molsieve_model *m, char **smiles, int n)
{
    molsieve_answers *a;
    molsieve_error error;
    int code = molsieve_predict_smiles(m, (const char *const *)smiles, (size_t)n, &a, &error);
    if (code != MOLSIEVE_OK)
        fprintf(out, "predict %d %s\n", code, error.text);
    print(out, a);
    molsieve_answers_free(a);
    return code;
}

static int atoms(const char *model, const char *file)
{
    static const char *const symbol[] = { "", "H", "He", "Li", "Be", "B", "C", "N", "O", "F" };
    static int32_t element[100];
    static double xyz[300];
    molsieve_atoms mol = { element, xyz, 0, 0 };
    molsieve_model *m = opened(model);
    molsieve_answers *a;
    molsieve_error error;
    FILE *f = fopen(file, "r");
    char word[8];
    if (f == NULL || fscanf(f, "%zu", &mol.n) != 1 || mol.n > 100)
        return 1;
    for (size_t i = 0; i < mol.n; i++) {
        if (fscanf(f, "%7s %lf %lf %lf", word, &xyz[3 * i], &xyz[3 * i + 1], &xyz[3 * i + 2]) != 4)
            return 1;
        for (int z = 1; z < 10; z++)
            element[i] = strcmp(word, symbol[z]) == 0 ? z : element[i];
    }
    fclose(f);
    if (molsieve_predict_atoms(m, &mol, 1, &a, &error) != MOLSIEVE_OK)
        printf("atoms %d %s\n", error.code, error.text);
    print(stdout, a);
    molsieve_answers_free(a);
    element[0] = 300;
    if (molsieve_predict_atoms(m, &mol, 1, &a, NULL) == MOLSIEVE_OK)
        print(stdout, a);
    molsieve_answers_free(a);
    molsieve_close(m);
    return 0;
}

static int say(const char *what, int good)
{
    printf("%s %s\n", good ? "good" : "BAD", what);
    return good ? 0 : 1;
}

static int handlers_are(void (*handler)(int))
{
    static const int of[] = { SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM };
    struct sigaction now;
    int good = 1;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        good &= sigaction(of[i], NULL, &now) == 0 && now.sa_handler == handler;
    good &= sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
    return good & (sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
}

static int guest(const char *model)
{
    char ethanol[] = "CCO", broken[] = "C1CC", two[] = "CC\nCO", none[] = "", *all[] = { ethanol, broken, two, none, NULL };
    char quit[8192] = { 0 };
    int reaper = 1, bad = 0;
    molsieve_prediction p = { .reason = "untouched" };
    molsieve_answers *a;
    molsieve_error error;
    FILE *text = fmemopen(quit, sizeof quit, "w");
    const locale_t own = newlocale(LC_ALL_MASK, "C.utf8", (locale_t)0);
    molsieve_model *m;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)uselocale(own);
    m = opened(model);
    bad += say("the thread's locale is that of before opening", own != (locale_t)0 && uselocale((locale_t)0) == own);
    bad += say("predicts", predicted(text, m, all, 5) == MOLSIEVE_OK);
    bad += say("the thread's locale is that of before predicting", uselocale(LC_GLOBAL_LOCALE) == own);
    freelocale(own);
    fclose(text);
    bad += say("no handler is left", handlers_are(SIG_DFL));
    (void)prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    bad += say("orphans go where they went", reaper == 0);
    bad += say("NULL is refused",
               molsieve_predict_smiles(m, NULL, 1, &a, &error) == MOLSIEVE_BAD_ARGUMENT && a == NULL && error.code == 1);
    bad += say("no molecules are no error",
               molsieve_predict_smiles(m, (const char *const *)all, 0, &a, &error) == 0 && molsieve_n_answers(a) == 0);
    bad += say("an index is checked", molsieve_answer(a, 0, 0, &p, sizeof p) == MOLSIEVE_BAD_ARGUMENT);
    molsieve_answers_free(a);
    bad += say("an older struct is filled", molsieve_predict_smiles(m, (const char *const *)all, 1, &a, NULL) == 0 &&
                                                molsieve_answer(a, 0, 0, &p, sizeof p.value) == 0 && p.value == p.value &&
                                                strcmp(p.reason, "untouched") == 0);
    molsieve_answers_free(a);
    molsieve_close(m);
    molsieve_close(NULL);
    molsieve_answers_free(NULL);
    bad += say("no child is left", waitpid(-1, NULL, WNOHANG) < 0);
    return bad;
}

typedef struct job {
    molsieve_model *m;
    char **smiles, *text;
    size_t len;
    int n;
} job;

static void *work(void *arg)
{
    job *j = arg;
    FILE *out = open_memstream(&j->text, &j->len);
    (void)predicted(out, j->m, j->smiles, j->n);
    fclose(out);
    return NULL;
}

static int threads(const char *model, char **smiles, int n)
{
    molsieve_model *shared = opened(model);
    pthread_t thread[8];
    job j[8] = { 0 };
    int bad = 0;
    for (int k = 0; k < 8; k++) {
        j[k] = (job){ .m = k < 4 ? opened(model) : shared, .smiles = smiles, .n = n };
        (void)pthread_create(&thread[k], NULL, work, &j[k]);
    }
    for (int k = 0; k < 8; k++) {
        (void)pthread_join(thread[k], NULL);
        bad += strcmp(j[k].text, j[0].text) != 0;
        if (k < 4)
            molsieve_close(j[k].m);
    }
    printf("%s", j[0].text);
    molsieve_close(shared);
    return bad;
}

int main(int argc, char **argv)
{
    const char *word = argc > 2 ? argv[1] : "";
    (void)setlocale(LC_ALL, "");
    if (strcmp(word, "guest") == 0)
        return guest(argv[2]);
    if (strcmp(word, "atoms") == 0 && argc > 3)
        return atoms(argv[2], argv[3]);
    if (strcmp(word, "threads") == 0)
        return threads(argv[2], argv + 3, argc - 3);
    if (strcmp(word, "smiles") == 0) {
        molsieve_model *m = opened(argv[2]);
        int code = predicted(stdout, m, argv + 3, argc - 3);
        molsieve_close(m);
        return code;
    }
    for (int i = 2; i < argc; i++) {
        molsieve_model *m;
        molsieve_error error;
        int code = molsieve_open(&m, argv[i], &error);
        printf("%d %s %s\n", code, code == error.code && (m == NULL) == (code != 0) ? "same" : "BAD", error.text);
        molsieve_close(m);
    }
    return 0;
}

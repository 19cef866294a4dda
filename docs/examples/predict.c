/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - predicts the SMILES of the command line: predict MODEL SMILES ... (docs/C-LIBRARY.md) */
#include <math.h>
#include <stdio.h>

#include <molsieve_predict.h>

static void print_answer(const char *smiles, const char *unit, const molsieve_prediction *p)
{
    printf("%s\t", smiles);
    if (p->problem[0] != '\0')
        printf("%s\n", p->problem);
    else if (isnan(p->half_width))
        printf("%.17g %s\toutside of the domain: %s\n", p->value, unit, p->reason);
    else
        printf("%.17g +- %.17g %s\tsimilarity %.17g\n", p->value, p->half_width, unit, p->similarity);
}

int main(int argc, char **argv)
{
    molsieve_model *model = NULL;
    molsieve_answers *answers = NULL;
    molsieve_error error = { 0 };
    molsieve_prediction p;
    int code;

    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL SMILES ...\n", argv[0]);
        return 2;
    }
    code = molsieve_open(&model, argv[1], &error);
    if (code == MOLSIEVE_OK)
        code = molsieve_predict_smiles(model, (const char *const *)argv + 2, (size_t)argc - 2, &answers, &error);
    for (size_t i = 0; i < molsieve_n_answers(answers); i++)
        for (size_t k = 0; k < molsieve_n_properties(model); k++)
            if (molsieve_answer(answers, i, k, &p, sizeof p) == MOLSIEVE_OK)
                print_answer(argv[2 + i], molsieve_property_unit(model, k), &p);
    if (code != MOLSIEVE_OK)
        fprintf(stderr, "error %d: %s\n", code, error.text);
    molsieve_answers_free(answers);
    molsieve_close(model);
    return code;
}

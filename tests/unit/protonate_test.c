/* SPDX-License-Identifier: Apache-2.0 */
/* Molecules at a pH. The expected forms come from general chemistry. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/prepared.h"

/* Without positions; ph < 0: as drawn. All fragments are kept. */
static ch_prepared at(double ph, const char *smiles)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_NONE;
    o.largest_fragment = false;
    o.ph = ph;
    return prepare(smiles, "smi", &o);
}

static ch_prepared neutral(const char *smiles)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_NONE;
    o.largest_fragment = false;
    o.neutralise = true;
    return prepare(smiles, "smi", &o);
}

typedef struct pair {
    double ph;
    const char *given, *must;
} pair;

static const pair pairs[] = {
    /* where Open Babel's own rules go wrong (openbabel#1611, #2397, #2869) */
    { 7.4, "CO/C=C/C(C)=O", "CO/C=C/C(C)=O" }, /* an ether is not an acid */
    { 7.4, "COC1=CC(=O)CCC1", "COC1=CC(=O)CCC1" },
    { 7.4, "Cc1nnn[nH]1", "Cc1nnn[n-]1" }, /* a ring that is not opened */
    { 7.4, "Cc1nn[nH]n1", "Cc1nn[n-]n1" },
    { 7.4, "C1CNCCN1", "C1CNCC[NH2+]1" }, /* one proton, not two */
    { 7.4, "CC(=O)NS(C)(=O)=O", "CC(=O)[N-]S(C)(=O)=O" },
    { 7.4, "OP(O)(O)=O", "[O-]P([O-])(O)=O" },
    { 7.4, "C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]" },
    { 7.4, "C[N+](C)(C)CC(=O)O", "C[N+](C)(C)CC(=O)[O-]" },
    /* carboxylic and other acids of carbon */
    { 7.4, "CC(=O)O", "CC(=O)[O-]" },
    { 7.4, "OC=O", "[O-]C=O" },
    { 7.4, "OC(=O)C(F)(F)F", "[O-]C(=O)C(F)(F)F" },
    { 7.4, "OC(=O)CCC(=O)O", "[O-]C(=O)CCC(=O)[O-]" },
    { 7.4, "CC(S)=O", "CC([S-])=O" },
    { 7.4, "OC(O)=O", "[O-]C(O)=O" },
    { 7.4, "OCC(O)C1OC(=O)C(O)=C1O", "OCC(O)C1OC(=O)C(O)=C1[O-]" }, /* ascorbic acid */
    { 7.4, "CC1(C)CC(=O)C=C(O)C1", "CC1(C)CC(=O)C=C([O-])C1" },     /* dimedone, enol */
    { 7.4, "CC1(C)CC(=O)CC(=O)C1", "CC1(C)CC(=O)C=C([O-])C1" },     /* and ketone */
    { 7.4, "O=C1CC(=O)OC(C)(C)O1", "[O-]C1=CC(=O)OC(C)(C)O1" },     /* Meldrum's acid */
    { 7.4, "CC(=O)CC(C)=O", "CC(=O)CC(C)=O" },
    { 7.4, "CC(=O)C=C(C)O", "CC(=O)C=C(C)O" },
    { 7.4, "CC(=O)NO", "CC(=O)NO" },
    /* sulfur and phosphorus */
    { 7.4, "CS(=O)(=O)O", "CS(=O)(=O)[O-]" },
    { 7.4, "Cc1ccc(cc1)S(=O)O", "Cc1ccc(cc1)S(=O)[O-]" },
    { 7.4, "COS(=O)(=O)O", "COS(=O)(=O)[O-]" },
    { 7.4, "OS(=O)(=O)O", "[O-]S(=O)(=O)[O-]" },
    { 7.4, "COP(=O)(O)O", "COP(=O)([O-])[O-]" },
    { 7.4, "COP(=O)(OC)O", "COP(=O)(OC)[O-]" },
    { 7.4, "CP(=O)(O)O", "CP(=O)(O)[O-]" },
    { 7.4, "OP(=O)(O)c1ccccc1", "[O-]P(=O)([O-])c1ccccc1" },
    { 7.4, "CP(C)(=O)O", "CP(C)(=O)[O-]" },
    { 7.4, "Sc1ccccc1", "[S-]c1ccccc1" },
    { 7.4, "CCS", "CCS" },
    { 7.4, "CNC(=O)O", "CNC(=O)[O-]" },
    { 7.4, "OP(=O)(O)C(F)(F)C", "[O-]P(=O)([O-])C(F)(F)C" },
    /* acids of selenium and arsenic */
    { 7.4, "C[SeH]", "C[Se-]" },
    { 7.4, "N[C@@H](C[SeH])C(=O)O", "[NH3+][C@@H](C[Se-])C(=O)[O-]" }, /* selenocysteine */
    { 4, "C[SeH]", "C[SeH]" },
    { 7.4, "O[Se](=O)c1ccccc1", "[O-][Se](=O)c1ccccc1" },
    { 7.4, "O[Se](=O)(=O)O", "[O-][Se](=O)(=O)[O-]" },
    { 7.4, "O[Se](=O)O", "[O-][Se](=O)O" },
    { 11, "O[Se](=O)O", "[O-][Se](=O)[O-]" },
    { 7.4, "C[As](C)(=O)O", "C[As](C)(=O)[O-]" },
    { 5, "C[As](C)(=O)O", "C[As](C)(=O)O" },
    { 7.4, "Nc1ccc(cc1)[As](=O)(O)O", "Nc1ccc(cc1)[As](=O)([O-])O" }, /* arsanilic acid */
    { 7.4, "O[As](=O)(O)O", "O[As](=O)([O-])[O-]" },
    /* small acids and their salts */
    { 7.4, "OCl(=O)(=O)=O", "[O-]Cl(=O)(=O)=O" },
    { 2, "[O-]Br(=O)=O", "[O-]Br(=O)=O" },
    { 7.4, "ON=O", "[O-]N=O" },
    { 7.4, "O[N+](=O)[O-]", "[O-][N+](=O)[O-]" },
    { 2, "ON=O", "ON=O" },
    { 7.4, "[S-]C#N", "[S-]C#N" },
    { 7.4, "N=C=S", "[N-]=C=S" },
    { 7.4, "OC#N", "[O-]C#N" },
    { 7.4, "CN=C=O", "CN=C=O" },
    { 7.4, "N#CNC#N", "N#C[N-]C#N" },
    { 7.4, "NC#N", "NC#N" },
    { 7.4, "OS(=O)O", "[O-]S(=O)[O-]" },
    { 5, "OS(=O)O", "OS(=O)[O-]" },
    { 7.4, "OS(=O)(=O)S", "[O-]S(=O)(=O)[S-]" },
    { 7.4, "S", "[SH-]" },
    { 6, "S", "S" },
    { 7.4, "[SeH2]", "[SeH-]" },
    { 9, "CC(=O)OO", "CC(=O)O[O-]" },
    { 7.4, "CC(=O)OO", "CC(=O)OO" },
    { 13, "OO", "O[O-]" },
    { 9, "OCl", "[O-]Cl" },
    /* nitrogen that is an acid, or is not */
    { 2, "CS(=O)(=O)NS(C)(=O)=O", "CS(=O)(=O)[N-]S(C)(=O)=O" },
    { 7.4, "CS(=O)(=O)Nc1ccc(cc1Oc1ccccc1)[N+](=O)[O-]", "CS(=O)(=O)[N-]c1ccc(cc1Oc1ccccc1)[N+](=O)[O-]" }, /* nimesulide */
    { 7.4, "C/C([O-])=N/S(C)(=O)=O", "C/C([O-])=N/S(C)(=O)=O" }, /* the charge drawn elsewhere */
    { 7.4, "O=S(=O)(N=c1scc[nH]1)c1ccccc1", "O=S(=O)(N=c1scc[n-]1)c1ccccc1" },
    { 7.4, "[O-]C1=NC(=O)CS1", "[O-]C1=NC(=O)CS1" },
    { 7.4, "Sc1nnnn1C", "[S-]c1nnnn1C" },
    { 7.4, "O=C1NS(=O)(=O)c2ccccc12", "O=C1[N-]S(=O)(=O)c2ccccc12" }, /* saccharin */
    { 7.4, "O=C1CCC(=O)N1", "O=C1CCC(=O)N1" },
    { 7.4, "CCC1(CC)C(=O)NC(=O)NC1=O", "CCC1(CC)C(=O)NC(=O)NC1=O" }, /* barbital */
    { 7.4, "NS(=O)(=O)c1ccccc1", "NS(=O)(=O)c1ccccc1" },
    { 7.4, "O=c1cc[nH]c(=O)[nH]1", "O=c1cc[nH]c(=O)[nH]1" }, /* uracil */
    { 7.4, "O=C1NC(=O)CS1", "O=C1[N-]C(=O)CS1" },
    { 7.4, "c1ccc2[nH]ccc2c1", "c1ccc2[nH]ccc2c1" },
    { 7.4, "c1cc[nH]c1", "c1cc[nH]c1" },
    { 7.4, "CC(=O)Nc1ccccc1", "CC(=O)Nc1ccccc1" },
    /* a hydroxyl group on a ring with a charge that stays */
    { 7.4, "[O-]c1c[n+](C)no1", "[O-]c1c[n+](C)no1" }, /* a sydnone */
    { 2, "[O-]c1c[n+](C)no1", "[O-]c1c[n+](C)no1" },
    { 7.4, "CCOC(=O)[N-]c1c[n+](no1)N1CCOCC1", "CCOC(=O)[N-]c1c[n+](no1)N1CCOCC1" }, /* molsidomine */
    { 2, "CCOC(=O)[N-]c1c[n+](no1)N1CCOCC1", "CCOC(=O)Nc1c[n+](no1)N1CCOCC1" },
    { 7.4, "Oc1ccc[n+](C)c1", "[O-]c1ccc[n+](C)c1" },
    { 4, "Oc1ccc[n+](C)c1", "Oc1ccc[n+](C)c1" },
    { 7.4, "CN(C)C(=O)Oc1ccc[n+](C)c1", "CN(C)C(=O)Oc1ccc[n+](C)c1" }, /* pyridostigmine */
    /* phenols */
    { 7.4, "Oc1ccccc1", "Oc1ccccc1" },
    { 7.4, "Oc1ccc(cc1)[N+](=O)[O-]", "[O-]c1ccc(cc1)[N+](=O)[O-]" },
    { 7.4, "Oc1cccc(c1)[N+](=O)[O-]", "Oc1cccc(c1)[N+](=O)[O-]" },
    { 7.4, "Oc1c(F)c(F)c(F)c(F)c1F", "[O-]c1c(F)c(F)c(F)c(F)c1F" },
    { 5, "Oc1ccc(cc1[N+](=O)[O-])[N+](=O)[O-]", "[O-]c1ccc(cc1[N+](=O)[O-])[N+](=O)[O-]" },
    { 5, "Oc1c(cccc1[N+](=O)[O-])[N+](=O)[O-]", "[O-]c1c(cccc1[N+](=O)[O-])[N+](=O)[O-]" },
    /* bases, and nitrogen that is none */
    { 7.4, "CCN", "CC[NH3+]" },
    { 7.4, "CCN(CC)CC", "CC[NH+](CC)CC" },
    { 7.4, "N", "[NH4+]" },
    { 7.4, "C1CCNC1", "C1CC[NH2+]C1" },
    { 7.4, "Nc1ccccc1", "Nc1ccccc1" },
    { 7.4, "CN(C)c1ccccc1", "CN(C)c1ccccc1" },
    { 7.4, "c1ccncc1", "c1ccncc1" },
    { 7.4, "c1c[nH]cn1", "c1c[nH]cn1" },
    { 7.4, "Nc1ccncc1", "Nc1cc[nH+]cc1" },
    { 7.4, "CN(C)c1ccncc1", "CN(C)c1cc[nH+]cc1" },
    { 7.4, "Nc1ccccn1", "Nc1ccccn1" },
    { 7.4, "Nc1ncccn1", "Nc1ncccn1" },
    { 7.4, "NC(N)=N", "NC(N)=[NH2+]" },
    { 7.4, "CC(N)=N", "CC(N)=[NH2+]" },
    { 7.4, "C1CCC2=NCCCN2CC1", "C1CCC2=[NH+]CCCN2CC1" }, /* DBU */
    { 7.4, "NC(=N)NC#N", "NC(=N)NC#N" },
    { 7.4, "CC=NO", "CC=NO" },
    { 7.4, "NO", "NO" },
    { 7.4, "NCCN", "NCC[NH3+]" },
    { 7.4, "NCCCN", "[NH3+]CCC[NH3+]" },
    { 7.4, "C1CN2CCN1CC2", "C1C[NH+]2CCN1CC2" },
    { 7.4, "CN1CCOCC1", "CN1CCOCC1" },
    { 7.4, "C1COCCN1", "C1COCC[NH2+]1" },
    { 7.4, "CN1CCN(CC1)C(C)=O", "CN1CCN(CC1)C(C)=O" },
    { 7.4, "CN1CCN(CC1)c1ccccc1", "C[NH+]1CCN(CC1)c1ccccc1" },
    { 7.4, "NCC(F)(F)F", "NCC(F)(F)F" },
    { 7.4, "CC(N)=O", "CC(N)=O" },
    { 7.4, "CN(C)C=C(C)C(C)=O", "CN(C)C=C(C)C(C)=O" },
    /* charges that no proton explains */
    { 7.4, "C[N+](=O)[O-]", "C[N+](=O)[O-]" },
    { 7.4, "[O-][n+]1ccccc1", "[O-][n+]1ccccc1" },
    { 7.4, "C[N+](C)(C)[O-]", "C[N+](C)(C)[O-]" },
    { 7.4, "CN=[N+]=[N-]", "CN=[N+]=[N-]" },
    { 7.4, "C[n+]1ccccc1", "C[n+]1ccccc1" },
    { 7.4, "CC(=O)O.[Na+]", "CC(=O)[O-].[Na+]" },
    { 7.4, "CN.Cl", "C[NH3+].Cl" },
    { 7.4, "CB(O)O", "CB(O)O" },
    { 7.4, "[2H]N([2H])[2H]", "[2H][NH+]([2H])[2H]" },
    /* amino acids */
    { 7.4, "NCC(=O)O", "[NH3+]CC(=O)[O-]" },
    { 7.4, "N[C@@H](CC(=O)O)C(=O)O", "[NH3+][C@@H](CC(=O)[O-])C(=O)[O-]" },
    { 7.4, "N[C@@H](CCCCN)C(=O)O", "[NH3+][C@@H](CCCC[NH3+])C(=O)[O-]" },
    { 7.4, "N[C@@H](CCCNC(=N)N)C(=O)O", "[NH3+][C@@H](CCCNC(=[NH2+])N)C(=O)[O-]" },
    { 7.4, "N[C@@H](Cc1cnc[nH]1)C(=O)O", "[NH3+][C@@H](Cc1cnc[nH]1)C(=O)[O-]" },
    { 7.4, "N[C@@H](CS)C(=O)O", "[NH3+][C@@H](CS)C(=O)[O-]" },
    { 7.4, "N[C@@H](Cc1ccc(O)cc1)C(=O)O", "[NH3+][C@@H](Cc1ccc(O)cc1)C(=O)[O-]" },
    { 7.4, "OC(=O)[C@@H]1CCCN1", "[O-]C(=O)[C@@H]1CCC[NH2+]1" },
    { 7.4, "NCC(=O)NCC(=O)O", "[NH3+]CC(=O)NCC(=O)[O-]" },
    /* biomolecules */
    { 7.4, "Nc1ncnc2n(cnc12)C1OC(COP(=O)(O)OP(=O)(O)OP(=O)(O)O)C(O)C1O",
      "Nc1ncnc2n(cnc12)C1OC(COP(=O)([O-])OP(=O)([O-])OP(=O)([O-])[O-])C(O)C1O" }, /* ATP */
    { 7.4, "Nc1ccn(C2OC(COP(=O)(O)O)C(O)C2O)c(=O)n1", "Nc1ccn(C2OC(COP(=O)([O-])[O-])C(O)C2O)c(=O)n1" },
    { 7.4, "NCCc1cnc[nH]1", "[NH3+]CCc1cnc[nH]1" },                   /* histamine */
    { 7.4, "NCCc1c[nH]c2ccc(O)cc12", "[NH3+]CCc1c[nH]c2ccc(O)cc12" }, /* serotonin */
    { 7.4, "NCCCNCCCCNCCCN", "[NH3+]CCC[NH2+]CCCC[NH2+]CCC[NH3+]" },  /* spermine */
    { 7.4, "OC(=O)CC(O)(CC(=O)O)C(=O)O", "[O-]C(=O)CC(O)(CC(=O)[O-])C(=O)[O-]" },
    { 7.4, "O=c1[nH]c(=O)c2[nH]c(=O)[nH]c2[nH]1", "O=c1[nH]c(=O)c2[nH]c(=O)[nH]c2[n-]1" }, /* uric acid */
    { 7.4, "C[N+](C)(C)CCOP(=O)(O)OC", "C[N+](C)(C)CCOP(=O)([O-])OC" },
    /* drugs */
    { 7.4, "CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Oc1ccccc1C(=O)[O-]" }, /* aspirin */
    { 7.4, "OC(=O)c1ccccc1O", "[O-]C(=O)c1ccccc1O" },
    { 7.4, "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "CC(C)Cc1ccc(cc1)C(C)C(=O)[O-]" },
    { 7.4, "CC(=O)Nc1ccc(O)cc1", "CC(=O)Nc1ccc(O)cc1" },
    { 7.4, "CN(C)C(=N)NC(N)=N", NULL }, /* metformin: +1, below */
    { 7.4, "CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5",
      "C[NH+]1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5" }, /* morphine */
    { 7.4, "OC(=O)c1cn(C2CC2)c2cc(N3CCNCC3)c(F)cc2c1=O", "[O-]C(=O)c1cn(C2CC2)c2cc(N3CC[NH2+]CC3)c(F)cc2c1=O" },
    { 7.4, "CCCCc1nc(Cl)c(CO)n1Cc1ccc(cc1)-c1ccccc1-c1nnn[nH]1",
      "CCCCc1nc(Cl)c(CO)n1Cc1ccc(cc1)-c1ccccc1-c1nnn[n-]1" },                           /* losartan */
    { 7.4, "C[C@H](CS)C(=O)N1CCC[C@H]1C(=O)O", "C[C@H](CS)C(=O)N1CCC[C@H]1C(=O)[O-]" }, /* captopril */
    { 7.4, "CCCc1nn(C)c2c1[nH]c(nc2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
      "CCCc1nn(C)c2c1[nH]c(nc2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1" },                                   /* sildenafil */
    { 7.4, "Cc1cc(NS(=O)(=O)c2ccc(N)cc2)no1", "Cc1cc([N-]S(=O)(=O)c2ccc(N)cc2)no1" },                     /* sulfamethoxazole */
    { 7.4, "Nc1ccc(cc1)S(=O)(=O)Nc1ccccn1", "Nc1ccc(cc1)S(=O)(=O)Nc1ccccn1" },                            /* sulfapyridine */
    { 7.4, "CC(=O)CC(c1ccccc1)c1c(O)c2ccccc2oc1=O", "CC(=O)CC(c1ccccc1)c1c([O-])c2ccccc2oc1=O" },         /* warfarin */
    { 7.4, "CCN(CC)CCCC(C)Nc1ccnc2cc(Cl)ccc12", "CC[NH+](CC)CCCC(C)Nc1cc[nH+]c2cc(Cl)ccc12" },            /* chloroquine */
    { 7.4, "COc1cc(Cc2cnc(N)nc2N)cc(OC)c1OC", "COc1cc(Cc2cnc(N)nc2N)cc(OC)c1OC" },                        /* trimethoprim */
    { 7.4, "CC(C)NCC(O)COc1cccc2ccccc12", "CC(C)[NH2+]CC(O)COc1cccc2ccccc12" },                           /* propranolol */
    { 7.4, "CC(C)(C)NCC(O)c1ccc(O)c(CO)c1", "CC(C)(C)[NH2+]CC(O)c1ccc(O)c(CO)c1" },                       /* salbutamol */
    { 7.4, "Cc1ccc(cc1)S(=O)(=O)NC(=O)NCCCC", "Cc1ccc(cc1)S(=O)(=O)[N-]C(=O)NCCCC" },                     /* tolbutamide */
    { 7.4, "Clc1cccc(Cl)c1NC1=NCCN1", "Clc1cccc(Cl)c1NC1=[NH+]CCN1" },                                    /* clonidine */
    { 7.4, "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc12", "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc12" },                /* diazepam */
    { 7.4, "Cn1c(=O)c2[nH]cnc2n(C)c1=O", "Cn1c(=O)c2[nH]cnc2n(C)c1=O" },                                  /* theophylline */
    { 7.4, "NCC1(CC(=O)O)CCCCC1", "[NH3+]CC1(CC(=O)[O-])CCCCC1" },                                        /* gabapentin */
    { 7.4, "NCCCC(O)(P(=O)(O)O)P(=O)(O)O", "[NH3+]CCCC(O)(P(=O)([O-])O)P(=O)([O-])O" },                   /* alendronic acid */
    { 7.4, "CN1C(C(=O)Nc2ccccn2)=C(O)c2ccccc2S1(=O)=O", "CN1C(C(=O)Nc2ccccn2)=C([O-])c2ccccc2S1(=O)=O" }, /* piroxicam */
    { 7.4, "CCCCC1C(=O)N(c2ccccc2)N(c2ccccc2)C1=O", "CCCCC1=C([O-])N(c2ccccc2)N(c2ccccc2)C1=O" },         /* phenylbutazone */
    { 7.4, "Clc1ccc(cc1)C(c1ccccc1)N1CCN(CCOCC(=O)O)CC1", "Clc1ccc(cc1)C(c1ccccc1)N1CC[NH+](CCOCC(=O)[O-])CC1" }, /* cetirizine */
    { 7.4, "Oc1c(I)cc(cc1I)Oc1c(I)cc(CC(N)C(=O)O)cc1I", "[O-]c1c(I)cc(cc1I)Oc1c(I)cc(CC([NH3+])C(=O)[O-])cc1I" }, /* thyroxine */
    { 7.4, "NNC(=O)c1ccncc1", "NNC(=O)c1ccncc1" },                                                                /* isoniazid */
    { 7.4, "N=C(N)c1ccc(OCCCCCOc2ccc(cc2)C(=N)N)cc1", "[NH2+]=C(N)c1ccc(OCCCCCOc2ccc(cc2)C(=[NH2+])N)cc1" },      /* pentamidine */
    { 7.4, "NCc1cc(=O)[nH]o1", "[NH3+]Cc1cc(=O)[n-]o1" },                                                         /* muscimol */
    { 7.4, "Cc1nc(=O)[n-]s1", NULL }, /* unusual drawings: no crash */
    /* an acid's and a base's water */
    { 2, "CC(=O)O", "CC(=O)O" },
    { 2, "NCC(=O)O", "[NH3+]CC(=O)O" },
    { 2, "NCC(=O)[O-]", "[NH3+]CC(=O)O" },
    { 2, "OP(O)(O)=O", "[O-]P(O)(O)=O" },
    { 2, "CS(=O)(=O)O", "CS(=O)(=O)[O-]" },
    { 2, "C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)O" },
    { 2, "c1ccncc1", "c1cc[nH+]cc1" },
    { 2, "Nc1ccccc1", "[NH3+]c1ccccc1" },
    { 2, "Nc1ccc(cc1)[N+](=O)[O-]", "Nc1ccc(cc1)[N+](=O)[O-]" },
    { 2, "C1CNCCN1", "C1C[NH2+]CC[NH2+]1" },
    { 2, "c1c[nH]cn1", "c1c[nH]c[nH+]1" },
    { 2, "CC(N)=O", "CC(N)=O" },
    { 2, "O=C1NS(=O)(=O)c2ccccc12", "O=C1[N-]S(=O)(=O)c2ccccc12" },
    { 2, "CC1(C)CC(=O)CC(=O)C1", "CC1(C)CC(=O)CC(=O)C1" },
    { 6, "c1c[nH]cn1", "c1c[nH]c[nH+]1" },
    { 4, "NO", "[NH3+]O" },
    { 4, "CON", "CO[NH3+]" },
    { 4, "CN(C)O", "C[NH+](C)O" },
    { 4, "CC(=O)NO", "CC(=O)NO" },
    { 4, "CNOC(C)=O", "CNOC(C)=O" },
    { 2, "CN1OC1C", "CN1OC1C" }, /* an oxaziridine */
    { 11, "CCN", "CCN" },
    { 11, "NCC(=O)O", "NCC(=O)[O-]" },
    { 11, "NC(N)=N", "NC(N)=[NH2+]" },
    { 11, "Oc1ccccc1", "[O-]c1ccccc1" },
    { 11, "CCS", "CC[S-]" },
    { 11, "OC(=O)c1ccccc1O", "[O-]C(=O)c1ccccc1O" },
    { 11, "NS(=O)(=O)c1ccccc1", "[NH-]S(=O)(=O)c1ccccc1" },
    { 11, "O=C1CCC(=O)N1", "O=C1CCC(=O)[N-]1" },
    { 11, "CC(=O)NO", "CC(=O)N[O-]" },
    { 11, "Oc1ccc(O)cc1", "Oc1ccc([O-])cc1" },
    { 11, "CCO", "CCO" },
    { 13, "OP(O)(O)=O", "[O-]P([O-])([O-])=O" },
};

enum { N_PAIRS = sizeof pairs / sizeof *pairs };

static void groups_are_as_they_are_in_water_of_that_ph(void **state)
{
    int bad = 0;

    (void)state;
    for (int i = 0; i < N_PAIRS; i++) {
        ch_prepared is = at(pairs[i].ph, pairs[i].given), must;
        if (pairs[i].must == NULL)
            continue;
        must = at(-1, pairs[i].must);
        if (strcmp(is.smiles, must.smiles) != 0)
            print_error("%s at pH %g: %s, not %s\n", pairs[i].given, pairs[i].ph, is.smiles, must.smiles);
        bad += strcmp(is.smiles, must.smiles) != 0 || strcmp(is.inchikey, must.inchikey) != 0 || is.charge != must.charge ||
               is.mol.n_atoms != must.mol.n_atoms || is.charge_read != at(-1, pairs[i].given).charge;
    }
    assert_int_equal(bad, 0);
}

/* ---- laws ---- */

static const double some_ph[] = { 0, 2, 5, 7.4, 9, 11, 14 };

enum { N_PH = sizeof some_ph / sizeof *some_ph };

static void what_is_at_a_ph_stays_as_it_is(void **state)
{
    (void)state;
    for (int i = 0; i < N_PAIRS; i++)
        for (int k = 0; k < N_PH; k++) {
            ch_prepared once = at(some_ph[k], pairs[i].given), twice = at(some_ph[k], once.smiles);
            if (strcmp(once.smiles, twice.smiles) != 0 || twice.n_neutralised != 0)
                fail_msg("%s at pH %g: %s, then %s", pairs[i].given, some_ph[k], once.smiles, twice.smiles);
        }
}

/* The key's first block does not know protons of acids and bases; it does know a ketone from its enol. */
static bool is_another_form(const ch_prepared *a, const ch_prepared *b) { return strncmp(a->inchikey, b->inchikey, 14) != 0; }

static void the_way_it_is_drawn_does_not_matter(void **state)
{
    int forms = 0;

    (void)state;
    for (int i = 0; i < N_PAIRS; i++) {
        ch_prepared drawn[3] = { neutral(pairs[i].given), at(0, pairs[i].given), at(14, pairs[i].given) };
        for (int k = 0; k < N_PH; k++) {
            ch_prepared must = at(some_ph[k], pairs[i].given);
            for (int j = 0; j < 3; j++) {
                ch_prepared is = at(some_ph[k], drawn[j].smiles);
                if (strcmp(is.smiles, must.smiles) == 0)
                    continue;
                if (!is_another_form(&is, &must))
                    fail_msg("%s as %s at pH %g: %s, not %s", pairs[i].given, drawn[j].smiles, some_ph[k], is.smiles, must.smiles);
                forms++;
            }
        }
    }
    assert_int_equal(forms, 4 * 2); /* of four rows with diketones, at 0 and 2: they come back from 14 as enols */
}

static void protons_come_and_go_and_nothing_else(void **state)
{
    (void)state;
    for (int i = 0; i < N_PAIRS; i++) {
        ch_prepared drawn = at(-1, pairs[i].given);
        int last = 100;
        for (double ph = 0; ph <= 14; ph += 0.5) {
            ch_prepared is = at(ph, pairs[i].given);
            if (is.n_heavy != drawn.n_heavy || is.mol.n_atoms - drawn.mol.n_atoms != is.charge - drawn.charge)
                fail_msg("%s at pH %g: %s", pairs[i].given, ph, is.smiles);
            if (is.charge > last)
                fail_msg("%s at pH %g: %s has more charge than at less", pairs[i].given, ph, is.smiles);
            assert_int_equal(is.charge_read, drawn.charge);
            assert_true((is.n_neutralised == 0) == (strcmp(is.smiles, drawn.smiles) == 0));
            last = is.charge;
        }
    }
}

/* A SMILES of the same molecule with its atoms in another order. */
static const char *renumbered(const ch_mol *m, uint32_t seed)
{
    const int n = m->n_atoms;
    ch_mol other = *m;
    uint8_t *z = PL_NEW(mem, uint8_t, n);
    int8_t *q = PL_NEW(mem, int8_t, n);
    int32_t(*bond)[2] = pl_arena_get(mem, (size_t)m->n_bonds + 1, sizeof *bond), *to = PL_NEW(mem, int32_t, n);
    const char *text = NULL;
    pl_error err = { 0 };

    for (int i = 0; i < n; i++)
        to[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)((seed = seed * 1664525u + 1013904223u) >> 8) % (i + 1), t = to[i];
        to[i] = to[j];
        to[j] = t;
    }
    for (int i = 0; i < n; i++) {
        z[to[i]] = m->z[i];
        q[to[i]] = m->charge[i];
    }
    for (int b = 0; b < m->n_bonds; b++) {
        bond[b][0] = to[m->bond[b][0]];
        bond[b][1] = to[m->bond[b][1]];
    }
    other.z = z;
    other.charge = q;
    other.bond = bond;
    other.isotope = NULL;
    other.xyz = NULL;
    if (ch_worker_write(worker, &other, NULL, "sdf", &text, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return text;
}

static void neither_the_order_of_atoms_nor_written_hydrogens_matter(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    o.largest_fragment = false;
    for (int i = 0; i < N_PAIRS; i++) {
        ch_prepared drawn = at(-1, pairs[i].given), must, is;
        if (strpbrk(pairs[i].given, "@/") != NULL || strstr(pairs[i].given, "[2H]") != NULL)
            continue; /* these arrays have no stereo */
        o.ph = pairs[i].ph;
        must = at(o.ph, pairs[i].given);
        for (uint32_t seed = 1; seed <= 3; seed++) {
            is = prepare(renumbered(&drawn.mol, seed), "sdf", &o);
            if (strcmp(is.smiles, must.smiles) != 0 || is.mol.n_atoms != must.mol.n_atoms)
                fail_msg("%s at pH %g, renumbered: %s, not %s", pairs[i].given, o.ph, is.smiles, must.smiles);
        }
    }
}

/* Of two amines that are mirror images of each other, one gets the proton: always the same one. */
static void the_halves_of_a_meso_form_are_told_apart(void **state)
{
    static const char *const drawn[] = { "N[C@H]([C@@H](C)N)C", "N[C@H](C)[C@@H](N)C", "N[C@@H](C)[C@H](N)C" };
    ch_prepared all = at(-1, drawn[0]), one = at(7.4, drawn[0]);

    (void)state;
    assert_int_equal(one.charge, 1);
    for (int i = 1; i < 3; i++) {
        assert_string_equal(at(-1, drawn[i]).smiles, all.smiles);
        assert_string_equal(at(7.4, drawn[i]).smiles, one.smiles);
    }
}

/* ---- in three dimensions ---- */

static void a_3d_input_changes_at_its_protons_only(void **state)
{
    static const char *const smiles[] = { "NCC(=O)O", "CN(C)CCc1c[nH]cn1", "C[C@H](N)C(=O)NCCS(=O)(=O)O", "CC(=O)CC1CC(=O)CC(=O)C1",
                                          "C[NH+](CC)CCC" };

    (void)state;
    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        ch_prepare_opts o = ch_prepare_defaults();
        ch_prepared built = prepare(smiles[i], "smi", NULL), is, must = at(7.4, smiles[i]);
        const char *sdf = NULL;
        pl_error err = { 0 };
        if (ch_worker_write(worker, &built.mol, NULL, "sdf", &sdf, mem, &err) != PL_OK)
            fail_msg("%s", err.text);
        o.conformer = CH_3D_KEEP;
        built = prepare(sdf, "sdf", &o);
        o.ph = 7.4;
        is = prepare(sdf, "sdf", &o);
        assert_string_equal(is.smiles, must.smiles);
        assert_string_equal(is.geometry, "input");
        assert_int_equal(is.mol.n_atoms, must.mol.n_atoms);
        for (int k = 0; k < built.mol.n_atoms && built.mol.z[k] != 1; k++)
            assert_memory_equal(is.mol.xyz[k], built.mol.xyz[k], sizeof is.mol.xyz[k]);
    }
}

static void an_amine_that_has_a_proton_has_no_hand(void **state)
{
    ch_prepared a = at(7.4, "C[N@H+](CC)CCC"), b = at(7.4, "C[N@@H+](CC)CCC"), c = at(7.4, "CN(CC)CCC");

    (void)state;
    assert_string_equal(a.smiles, c.smiles);
    assert_string_equal(b.smiles, c.smiles);
    assert_null(strchr(a.smiles, '@'));
    assert_non_null(strchr(at(7.4, "C[N@+](CC)(CCC)CCCC").smiles, '@')); /* one without does not invert */
}

static void molecules_with_several_resonance_forms_get_one_charge(void **state)
{
    static const struct {
        double ph;
        const char *smiles;
        int charge;
    } of[] = {
        { 7.4, "CN(C)C(=N)NC(N)=N", 1 }, /* metformin, and another tautomer of it */
        { 7.4, "CN(C)C(N)=NC(N)=N", 1 },
        { 2, "CN(C)C(=N)NC(N)=N", 2 },
        { 7.4, "NCCNCCNCCN", 2 },
        { 7.4, "OC(=O)CN(CCN(CC(=O)O)CC(=O)O)CC(=O)O", -3 }, /* EDTA */
        { 7.4, "CC(=O)NC(N)=N", 1 },
        { 7.4, "Nc1nc(N)c(Cl)nc1C(=O)N=C(N)N", 1 }, /* amiloride */
        { 7.4, "CN1CC(=O)N=C1N", 0 },               /* creatinine */
        { 7.4, "C1N2CN3CN1CN(C2)C3", 0 },           /* methenamine */
        { 7.4, "C1CNCCNCCNCCN1", 2 },               /* cyclen */
        { 7.4, "CNN", 1 },
        { 7.4, "NNc1ccccc1", 0 },
        { 7.4, "CN1C2CCC1C(C(=O)OC)C(OC(=O)c1ccccc1)C2", 1 },                            /* cocaine */
        { 7.4, "COC(=O)C(c1ccccc1Cl)N1CCc2sccc2C1", 0 },                                 /* clopidogrel */
        { 7.4, "CN1CCN(CC1)C1=Nc2cc(Cl)ccc2Nc2ccccc12", 1 },                             /* clozapine */
        { 7.4, "Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(CN2CCN(C)CC2)cc1", 1 },       /* imatinib */
        { 7.4, "CN(C)C1C2CC3C(=C(O)C2(O)C(=O)C(C(N)=O)=C1O)C(=O)c1c(O)cccc1C3(C)O", 0 }, /* tetracycline */
        { 7.4, "NC(=O)C1=C(O)CCCC1=O", -1 },
        { 7.4, "OP(=O)(O)C(O)(Cc1cccnc1)P(=O)(O)O", -2 }, /* risedronic acid */
        { 7.4, "OP(=O)(O)OP(=O)(O)O", -3 },
        { 7.4, "[O-]S(=O)[O-]", -2 },
        { 7.4, "F[B-](F)(F)CCN", 0 },
        { 7.4, "C[N+](C)(C)CC(C([O-])=O)[N+](C)(C)C", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        ch_prepared p = at(of[i].ph, of[i].smiles);
        if (p.charge != of[i].charge)
            fail_msg("%s at pH %g: %s has charge %d, not %d", of[i].smiles, of[i].ph, p.smiles, p.charge, of[i].charge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_as_they_are_in_water_of_that_ph),
        cmocka_unit_test(molecules_with_several_resonance_forms_get_one_charge),
        cmocka_unit_test(what_is_at_a_ph_stays_as_it_is),
        cmocka_unit_test(the_way_it_is_drawn_does_not_matter),
        cmocka_unit_test(protons_come_and_go_and_nothing_else),
        cmocka_unit_test(neither_the_order_of_atoms_nor_written_hydrogens_matter),
        cmocka_unit_test(the_halves_of_a_meso_form_are_told_apart),
        cmocka_unit_test(a_3d_input_changes_at_its_protons_only),
        cmocka_unit_test(an_amine_that_has_a_proton_has_no_hand),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

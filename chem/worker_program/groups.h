/* chem/worker_program/groups.h - acidic and basic groups and their pKa.
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Our own table, from general chemistry: SMARTS whose first atom gives or takes the proton, and the pKa in water at
 * 25 degrees Celsius, rounded, of the named compound or the usual value of such compounds (as collected by Perrin 1965,
 * Serjeant and Dempsey 1979, Prankerd 2007 and in the CRC Handbook). They are values of groups, not of the molecule at
 * hand. For a base it is the pKa of the conjugate acid.
 *
 * For each atom the first matching row counts, so special groups precede general ones, and rows with very low (for
 * acids very high) values protect an atom from later rows. Acids match only with a hydrogen, bases only without a charge:
 * rows with a charged neighbour are for the second step of a group. The pattern of an acid must not depend on whether a base
 * is protonated, nor the reverse, else a higher pH could give a higher charge. Patterns must match with explicit hydrogens, too. */
#ifndef CH_GROUPS_H
#define CH_GROUPS_H

typedef struct ch_group {
    const char *name, *smarts;
    double pka;
    const char *from; /* the compound that has this pKa */
} ch_group;

#define NITRO "N(~[OX1])~[OX1]"
#define HALOGEN "[F,Cl,Br,I]"
/* An amine bonded only to hydrogen and saturated carbon, and an amine on an aromatic ring. */
#define AMINE "[NX3;+0;!$(N[!$([CX4]);!#1])"
#define ANILINE "[NX3;+0;$(Nc);!$(N[!$([CX4]);!$(c);!#1]);!$(Nc:[#7,#8,#16]);!$(Nc1ccncc1)"
/* An amino group on an aromatic ring, not an amide. */
#define AMINO "[NX3;!$(N[!#6;!#1]);!$(NC=[#7,#8,#16])]"
/* A cation, but no nitro group or N-oxide. */
#define CATION "[#7;+;!$([#7]~[#8-])]"
/* An aromatic nitrogen whose charge no proton takes away, no N-oxide. */
#define QUATERNARY "[n+;H0;!$(n~[#8-])]"

/* clang-format off */
static const ch_group ch_acids[] = {
    /* sulfur */
    { "hydrogen sulfate",       "[OX2;H1]S(=O)(=O)[O-]", 2.0, "sulfuric acid, second" },
    { "sulfonic acid",          "[OX2;H1]S(=O)=O", -2, "methanesulfonic acid" },
    { "sulfurous acid, second", "[OX2;H1][SX3](=O)[O-]", 7.2, "sulfurous acid, second" },
    { "thiosulfuric acid",      "[SX2;H1]S(=O)=O", 1.7, "thiosulfuric acid, second" },
    { "hydrogen sulfide",       "[SX2;H2]", 7.0, "hydrogen sulfide" },
    { "sulfinic acid",          "[OX2;H1][SX3;!$(S[O-])]=O", 2.0, "benzenesulfinic acid" },
    /* phosphorus */
    { "phosphate, third",       "[O,S;X2;H1]P(=[O,S])([O-,S-])[O-,S-]", 12.3, "phosphoric acid, third" },
    { "fluorophosphonate, second", "[OX2;H1]P(=O)([O-])[#6](F)F", 5.7, "difluoromethylphosphonic acid, second" },
    { "alkoxymethylphosphonate, second", "[OX2;H1]P(=O)([O-])[CX4][OX2;H0]", 6.8, "tenofovir, second" },
    { "arylphosphonate, second", "[OX2;H1]P(=O)([O-])c", 7.1, "phenylphosphonic acid, second" },
    { "alkylphosphonate, second", "[OX2;H1]P(=O)([O-])[#6]", 7.7, "methylphosphonic acid, second" },
    { "dihydrogen phosphate",   "[OX2;H1]P(=O)([O-])[OX2;H1]", 7.2, "phosphoric acid, second" },
    { "diphosphate, fourth",    "[OX2;H1]P(=O)([O-])OP(=O)([O-])[O-]", 9.3, "diphosphoric acid, fourth" },
    { "triphosphate, fifth",    "[OX2;H1]P(=O)([O-])OP(=O)([O-])OP(=O)([O-])[O-]", 9.2, "triphosphoric acid, fifth" },
    { "phosphate ester, second", "[O,S;X2;H1]P(=[O,S])[O-,S-]", 6.5, "ATP, last; phosphate esters 6 to 7" },
    { "phosphoric, phosphonic, phosphinic acid", "[O,S;X2;H1]P=[O,S]", 1.8, "phosphoric acid 2.1, methyl phosphate 1.5" },
    /* selenium and arsenic */
    { "hydrogen selenide",      "[#34;X2;H2]", 3.9, "hydrogen selenide" },
    { "selenol",                "[#34;X2;H1][#6]", 5.2, "selenocysteine" },
    { "selenic acid",           "[OX2;H1][Se](=O)=O", 1.7, "selenic acid, second" },
    { "selenous acid, second",  "[OX2;H1][#34;X3](=O)[O-]", 8.3, "selenous acid, second" },
    { "selenous acid",          "[OX2;H1][#34;X3](=O)[OX2]", 2.6, "selenous acid" },
    { "seleninic acid",         "[OX2;H1][#34;X3]=O", 4.8, "benzeneseleninic acid" },
    { "arsenate, third",        "[OX2;H1][As](=O)([O-])[O-]", 11.5, "arsenic acid, third" },
    { "arsenate, second",       "[OX2;H1][As](=O)([O-])[OX2]", 6.9, "arsenic acid, second" },
    { "arsonic acid, second",   "[OX2;H1][As](=O)[O-]", 8.7, "phenylarsonic acid, second" },
    { "arsinic acid",           "[OX2;H1][As](=O)([#6])[#6]", 6.3, "cacodylic acid" },
    { "arsenic, arsonic acid",  "[OX2;H1][As]=O", 3.0, "arsenic acid 2.2, phenylarsonic acid 3.6" },
    /* of halogens, of nitrogen, and peroxides */
    { "chloric, perchloric acid", "[OX2;H1][Cl,Br,I](=O)=O", 0, "iodic acid 0.8; perchloric acid less" },
    { "chlorous acid",          "[OX2;H1][Cl,Br,I]=O", 2.0, "chlorous acid" },
    { "hypochlorous acid",      "[OX2;H1][Cl,Br,I]", 7.5, "hypochlorous acid" },
    { "nitric acid",            "[OX2;H1][N+](=O)[O-]", -1.4, "nitric acid" },
    { "nitrous acid",           "[OX2;H1][NX2]=O", 3.3, "nitrous acid" },
    { "peroxycarboxylic acid",  "[OX2;H1][OX2][CX3]=[OX1]", 8.2, "peroxyacetic acid" },
    { "hydroperoxide",          "[OX2;H1][OX2]", 11.6, "hydrogen peroxide" },
    /* carboxylic and other acids of carbon */
    { "thiocyanic acid, dicyanamide", "[$([SX2;H1]C#N),$([NX2;H1]=C=S),$([NX3;H1](C#N)C#N)]", -1, "thiocyanic acid" },
    { "cyanic, isocyanic acid", "[$([OX2;H1]C#N),$([NX2;H1]=C=O)]", 3.7, "isocyanic acid" },
    { "hydrogen carbonate",     "[OX2;H1]C(=O)[O-]", 10.3, "carbonic acid, second" },
    { "carbonic acid",          "[OX2;H1]C(=O)[OX2]", 6.4, "carbonic acid, carbon dioxide counted" },
    { "carbamic acid",          "[OX2;H1]C(=O)[#7]", 5.8, "carbamic acid" },
    { "dihaloacetic acid",      "[OX2;H1]C(=O)[CX4]([F,Cl])[F,Cl]", 0.9, "dichloroacetic 1.3, trifluoroacetic 0.2" },
    { "amino acid",             "[OX2;H1]C(=O)[CX4][#7;!$([#7][!#6;!#1]);!$([#7][#6]=[#7,#8,#16]);!$([#7]c)]", 2.3, "glycine" },
    { "aromatic carboxylic acid", "[OX2;H1]C(=O)a", 4.2, "benzoic acid" },
    { "carboxylic acid",        "[OX2;H1][CX3]=[OX1]", 4.8, "acetic acid" },
    { "thioacid",               "[$([SX2;H1][CX3]=[OX1,SX1]),$([OX2;H1][CX3]=[SX1])]", 3.4, "thioacetic acid" },
    /* nitrogen */
    { "beside its own anion",   "[#7;X3;H1;$([#7][#6](=[O,S])[#7-]),$([#7]:[#7-])]", 12.7, "barbital, second" },
    { "tetrazole",              "[nX3;H1;$(n1nnnc1),$(n1nncn1)]", 4.9, "tetrazole; 5-aryltetrazoles 4 to 5" },
    { "saccharin",              "[NX3;H1;$(N1C(=O)[#6]~[#6]S1(=O)=O)]", 1.6, "saccharin" },
    { "sulfonimide",            "[NX3;H1](S(=O)=O)S(=O)=O", 1.5, "dibenzenesulfonimide" },
    { "sulfonylurea",           "[NX3;H1](S(=O)=O)C(=[O,S])[#7]", 5.3, "tolbutamide, glibenclamide" },
    { "acyl sulfonamide",       "[NX3;H1](S(=O)=O)C=[O,S]", 4.5, "N-acylsulfonamides 3 to 5.4" },
    { "acyl sulfonamide, imidic acid", "[OX2;H1]C=NS(=O)=O", 4.5, "the same as another form draws it" },
    { "triflamide",             "[NX3;H1,H2]S(=O)(=O)C(F)(F)F", 6.3, "trifluoromethanesulfonamide" },
    { "sulfanilide of a nitro compound", "[NX3;H1;$(N(S(=O)=O)c1ccc(" NITRO ")cc1)]S", 6.5, "nimesulide" },
    { "isoxazolyl sulfonamide", "[NX3;H1](S(=O)=O)[c;$(c:n:o),$(c:o:n)]", 5.6, "sulfamethoxazole" },
    { "thiadiazolyl sulfonamide", "[NX3;H1](S(=O)=O)[c;$(c(:s):n:n)]", 5.4, "sulfamethizole" },
    { "thiazolyl sulfonamide",  "[NX3;H1](S(=O)=O)[c;$(c(:s):n)]", 7.1, "sulfathiazole" },
    { "diazinyl sulfonamide",   "[NX3;H1](S(=O)=O)[c;$(c1ncccn1),$(c1nnccc1),$(c1ncncc1),$(c1nccnc1)]", 6.5, "sulfadiazine" },
    { "iminosulfonamide of a diazine", "[#7;X3;H1;$([#7]1[#6](=NS(=O)=O)[#7]~[#6]~[#6]~[#6]1),$([#7]1[#6](=NS(=O)=O)~[#6]~[#7]~[#6]~[#6]1)]", 6.5, "sulfadiazine as another form draws it" },
    { "iminosulfonamide of an azole", "[#7;X3;H1;$([#7]1[#6](=NS(=O)=O)~*~*~*1)]", 7.1, "sulfathiazole as another form draws it" },
    { "aryl sulfonamide N-H",   "[NX3;H1](S(=O)=O)c", 8.5, "benzenesulfonanilide, sulfapyridine" },
    { "primary sulfonamide",    "[NX3;H2]S(=O)=O", 10.1, "benzenesulfonamide" },
    { "secondary sulfonamide",  "[NX3;H1]S(=O)=O", 11.3, "N-methylbenzenesulfonamide" },
    { "thiazolidinedione, rhodanine", "[#7;X3;H1;$([#7]1[#6](=[O,S])[O,S;X2][#6][#6]1=[O,S])]", 6.5, "pioglitazone; rhodanine 5.2" },
    { "thiazolidinedione, imidic acid", "[O,S;X2;H1][#6]1=[#7][#6](=[O,S])[#6][O,S;X2]1", 6.5, "the same as another form draws it" },
    { "barbiturate",            "[#7;X3;H1;$([#7]1[#6](=[O,S])[#7][#6](=O)[CX4;H0][#6]1=O)]", 7.9, "barbital" },
    { "uric acid",              "[#7;X3;H1;$([#7]1[#6](=O)[#7][#6](=O)[#6]2~[#6]1[#7][#6](=O)[#7]2)]", 5.4, "uric acid" },
    { "isoxazol-3-ol",          "[$([OX2;H1]c:n:o),$([#7;X3;H1]1[#6](=O)[#6]~[#6]~[#8]1)]", 4.9, "muscimol" },
    { "imide, uracil",          "[#7;X3;H1;$([#7]([#6]=O)[#6]=O)]", 9.6, "succinimide 9.6, uracil 9.5" },
    { "pyrimidin-4-one",        "[#7;X3;H1;$([#7]1[#6](=O)[#6]~[#6]~[#7]~[#6]1)]", 9.1, "guanosine 9.2, sildenafil 9.1" },
    { "xanthine, five-ring",    "[#7;X3;H1;$([#7]1[#6]~[#7]~[#6]~[#6]1[#6](=O)[#7][#6]=O),$([#7]1[#6]~[#7]~[#6]~[#6]1[#7][#6](=O)[#7])]", 8.6, "theophylline" },
    { "benzotriazole",          "[nX3;H1;$(n1nnc2ccccc12),$(n1nc2ccccc2n1)]", 8.3, "benzotriazole" },
    { "1,2,3-triazole",         "[nX3;H1;$(n1nncc1),$(n1nccn1)]", 9.3, "1,2,3-triazole" },
    { "1,2,4-triazole",         "[nX3;H1;$(n1ncnc1),$(n1cnnc1)]", 10.2, "1,2,4-triazole" },
    { "N-hydroxyimide",         "[OX2;H1][#7]([#6]=O)[#6]=O", 6.1, "N-hydroxysuccinimide" },
    { "hydroxybenzotriazole",   "[OX2;H1][n;r5]n", 4.6, "1-hydroxybenzotriazole" },
    { "hydroxamic acid",        "[OX2;H1][NX3]C=O", 8.9, "benzohydroxamic acid" },
    /* vinylogous acids, as enols and, the last row, as diketones: their carbon gives the proton, their oxygen has the charge */
    { "oxicam",                 "[OX2;H1][#6]1=[#6](C(=O)[#7])[#7]S(=O)(=O)~*~*~1", 5.0, "meloxicam 4.1, piroxicam 6.3" },
    { "vinylogous acid, ring of five", "[OX2;H1][#6]1=,:[#6][#6](=[OX1])~*~*~1", 4.2, "ascorbic acid" },
    { "vinylogous acid, ring of six", "[OX2;H1][#6]1=,:[#6][#6](=[OX1])~*~*~*~1", 4.9, "dimedone 5.2, 4-hydroxycoumarin 4.1, warfarin 5.0" },
    { "cyclic diketone of five, ketone",   "[CX4;R1;!H0;+0;$(C1C(=O)~*~*~C1=O)][CX3;R;$(C([#6])[#6])]=[OX1]", 4.2, "cyclopentane-1,3-dione" },
    { "cyclic diketone of five", "[CX4;R1;!H0;+0;$(C1C(=O)~*~*~C1=O)][CX3;R;!$(C([#6])[#6])]=[OX1]", 4.2, "phenylbutazone 4.5, tetronic acid 3.8" },
    { "cyclic diketone of six, ketone",    "[CX4;R1;!H0;+0;$(C1C(=O)~*~*~*~C1=O)][CX3;R;$(C([#6])[#6])]=[OX1]", 4.9, "dimedone 5.2" },
    { "cyclic diketone of six", "[CX4;R1;!H0;+0;$(C1C(=O)~*~*~*~C1=O)][CX3;R;!$(C([#6])[#6])]=[OX1]", 4.9, "Meldrum's acid 5.0, barbituric acid 4.0" },
    /* beside an aromatic charge that stays: what is left is a betaine or a mesoionic ring */
    { "sydnone and others, mesoionic", "[O,S;X2;H1;$(*[c;r5]:" QUATERNARY "),$(*[c;r5]:*:" QUATERNARY ")]", -3, "sydnones take no proton in water" },
    { "acyl sydnone imine",     "[#7;X3;H1;$([#7](C=[O,S])[c;r5]:" QUATERNARY "),$([#7](C=[O,S])[c;r5]:*:" QUATERNARY ")]", 3.0, "molsidomine" },
    { "hydroxypyridinium",      "[OX2;H1;$(O[c;r6]:" QUATERNARY "),$(O[c;r6]:[c;r6]:" QUATERNARY "),$(O[c;r6]:[c;r6]:[c;r6]:" QUATERNARY ")]", 5.0, "1-methylpyridinium: 3-hydroxy 5.0, 4-hydroxy 3.3" },
    /* phenols */
    { "2,4-dinitrophenol",      "[OX2;H1]c1c(" NITRO ")cc(" NITRO ")cc1", 4.1, "2,4-dinitrophenol" },
    { "2,6-dinitrophenol",      "[OX2;H1]c1c(" NITRO ")cccc1" NITRO, 3.7, "2,6-dinitrophenol" },
    { "pentahalophenol",        "[OX2;H1]c1c(" HALOGEN ")c(" HALOGEN ")c(" HALOGEN ")c(" HALOGEN ")c1" HALOGEN, 5.0, "pentafluorophenol 5.5, pentachlorophenol 4.7" },
    { "2- or 4-nitrophenol",    "[OX2;H1;$(Oc:c" NITRO "),$(Oc:c:c:c" NITRO ")]", 7.2, "4-nitrophenol" },
    { "2,6-dihalophenol",       "[OX2;H1]c(:c" HALOGEN "):c" HALOGEN, 6.8, "2,6-dichlorophenol, thyroxine" },
    { "salicylic acid, second", "[OX2;H1]c:c[CX3](=O)[O;H1,-]", 13.0, "salicylic acid, second" },
    { "catechol, second",       "[OX2;H1]c:c[O-]", 13.0, "catechol, second" },
    { "resorcinol, hydroquinone, second", "[OX2;H1;$(Oc:c:c[O-]),$(Oc:c:c:c[O-])]", 11.3, "resorcinol, hydroquinone, second" },
    { "hydroxyazine",           "[OX2;H1]c:n", 11.7, "2-pyridone" },
    { "phenol",                 "[OX2;H1]c", 10.0, "phenol" },
    /* thiols */
    { "mercapto-tetrazole, -oxadiazole, -thiadiazole", "[SX2;H1][c;$(c1nnnn1),$(c1nnco1),$(c1nncs1)]", 5.0, "1-phenyl-5-mercaptotetrazole 3.0; the others 5 to 6" },
    { "mercaptoazine",          "[SX2;H1]c:n", 9.0, "thiones 8 to 10" },
    { "thiophenol",             "[SX2;H1]c", 6.6, "thiophenol" },
    { "aminothiol",             "[SX2;H1][CX4][CX4][#7;!$([#7][#6]=[#7,#8,#16])]", 8.3, "cysteine" },
    { "thiol",                  "[SX2;H1][CX4]", 10.3, "ethanethiol 10.6, captopril 9.8" },
};

static const ch_group ch_bases[] = {
    /* amidines and guanidines: the doubly bonded nitrogen */
    { "beside its own cation",  "[NX2;+0;$(N=C[N+]),$(N=C[#7]C=[N+]),$(N(=C)C=[N+])]", 2.8, "biguanide, second" },
    { "guanidine with an acceptor", "[NX2;+0;$(N(=C[#7])[$(C#N),$(S=O),$(N~[OX1])]),$(N=C[#7][$(C#N),$(S=O),$(N~[OX1])])]", 0, "cyanoguanidine, nitroguanidine" },
    { "creatinine",             "[NX2;+0;$(N=C1[#7]C(=O)C[#7]1),$(N1=C([#7])[#7]CC1=O)]", 4.8, "creatinine" },
    { "arylated acylguanidine", "[NX2;+0;$(N(=C([#7])[#7]C=[O,S])c),$(N(=C([#7])[#7]c)C=[O,S])]", 5.0, "less than each of the two; a guess" },
    { "acylguanidine",          "[NX2;+0;$(N=C([#7])[#7]C=[O,S]),$(N(=C([#7])[#7])C=[O,S])]", 8.3, "acetylguanidine, amiloride 8.7" },
    { "acylamidine",            "[NX2;+0;$(N=C[#7]C=[O,S]),$(N(=C[#7])C=[O,S])]", 5.0, "benzoylbenzamidine" },
    { "guanylhydrazone",        "[NX2;+0;$(N(=C([NX3])[NX3])[#7])]", 8.1, "guanabenz" },
    { "oxime, hydrazone",       "[NX2;+0;$(N(=[#6])[#7,#8,#16])]", 3.0, "amidoximes 4.8, hydrazones 3" },
    { "arylguanidine",          "[NX2;+0;$(N(=C([NX3])[NX3])c),$(N=C([NX3])[NX3]c)]", 10.0, "phenylguanidine 10.8, clonidine 8.1" },
    { "guanidine",              "[NX2;+0;$(N=C([NX3])[NX3])]", 13.0, "guanidine 13.6, metformin 12.4" },
    { "arylamidine by nitrogen", "[NX2;+0;$(N(=C[NX3])c),$(N=C[NX3]c)]", 7.0, "xylazine; clozapine less" },
    { "isourea, isothiourea",   "[NX2;+0;$(N=C([NX3])[OX2,SX2])]", 9.8, "S-methylisothiourea" },
    { "amidine",                "[NX2;+0;$(N=[CX3][NX3])]", 11.8, "acetamidine 12.4, benzamidine 11.6" },
    { "imine of an aromatic amine", "[NX2;+0;$(N(=[CX3])c)]", 3.4, "diazepam" },
    { "imine",                  "[NX2;+0;$(N=[CX3])]", 6.5, "imines 5 to 7" },
    /* aromatic nitrogen */
    { "in a ring with a cation", "[nX2;+0;$(n:[n+]),$(n:*:[n+]),$(n:*:*:[n+])]", -3, "diazines, second" },
    { "4-aminopyridine",        "[nX2;+0;$(n1ccc(" AMINO ")cc1);!$(n:c" HALOGEN ");!$(n:c:c[$(C#N),$(C=O),$(N~[OX1])])]", 9.1, "4-aminopyridine; chloroquine 8.1" },
    { "2-aminopyridine",        "[nX2;+0;$(n1c(" AMINO ")cccc1);!$(n:c" HALOGEN ");!$(n:*:c[$(C#N),$(C=O),$(N~[OX1])])]", 6.9, "2-aminopyridine" },
    { "2-halopyridine",         "[nX2;+0;$(n1ccccc1);$(n:c" HALOGEN ")]", 0.7, "2-chloropyridine" },
    { "pyridine with an acceptor", "[nX2;+0;$(n1ccccc1);$(n:c[$(C=O),$(C#N),$(N~[OX1])]),$(n:c:c[$(C=O),$(C#N),$(N~[OX1])]),$(n1ccc([$(C=O),$(C#N),$(N~[OX1])])cc1)]", 3.3, "nicotinamide" },
    { "pyridine, quinoline",    "[nX2;+0;$(n1ccccc1)]", 5.2, "pyridine" },
    { "2,4-diaminopyrimidine",  "[nX2;+0;$(n1c(" AMINO ")nc(" AMINO ")cc1)]", 7.1, "trimethoprim" },
    { "4-aminopyrimidine",      "[nX2;+0;$(n1c(" AMINO ")ccnc1)]", 4.3, "adenine 4.2, cytosine 4.6" },
    { "diazine, triazine",      "[nX2;+0;r6]", 1.3, "pyrimidine" },
    { "nitroimidazole",         "[nX2;+0;r5;$(n:*" NITRO "),$(n:*:*" NITRO ")]", 2.0, "metronidazole" },
    { "2-aminoimidazole",       "[nX2;+0;$(n1c(" AMINO ")[nX3][c;!r6][c;!r6]1)]", 8.5, "2-aminoimidazole" },
    { "benzimidazole",          "[nX2;+0;$(n1c[nX3]c2ccccc12)]", 5.5, "benzimidazole" },
    { "purine",                 "[nX2;+0;$(n1c[nX3][c;r6][c;r6]1)]", 2.4, "purine" },
    { "imidazole",              "[nX2;+0;$(n1c[nX3]cc1)]", 7.0, "imidazole" },
    { "2-aminothiazole",        "[nX2;+0;$(n1c(" AMINO ")scc1)]", 5.4, "2-aminothiazole" },
    { "pyrazole, thiazole",     "[nX2;+0;$(n1[nX3]ccc1),$(n1cscc1)]", 2.5, "pyrazole, thiazole" },
    /* hydroxylamines and hydrazines */
    { "hydroxylamine",          "[NX3;+0;!r3;$(N[$([OX2;H1]),$([OX2][CX4])]);!$(N[!$([CX4]);!$([OX2]);!#1])]", 5.0, "hydroxylamine 6.0, methoxyamine 4.6" },
    { "hydrazine",              "[NX3;+0;$(N[NX3;!$(N[!$([CX4]);!$([NX3]);!#1])]);!$(N[!$([CX4]);!$([NX3]);!#1])]", 8.0, "hydrazine, methylhydrazine" },
    { "acylhydrazine, arylhydrazine", "[NX3;+0;$(N[NX3]);!$(N[!$([CX4]);!$([NX3]);!#1])]", 3.2, "benzhydrazide 3.0, phenylhydrazine 5.2" },
    /* amines */
    { "aminal, second",         AMINE ";$(N[CX4]" CATION ")]", 0, "aminals" },
    { "piperazine, second",     AMINE ";$(N1CC" CATION "CC1)]", 5.3, "piperazine, second" },
    { "1,2-diamine, second",    AMINE ";$(N[CX4][CX4]" CATION ")]", 6.9, "ethylenediamine, second" },
    { "1,3-diamine, second",    AMINE ";$(N[CX4][CX4][CX4]" CATION ")]", 8.9, "propane-1,3-diamine, second" },
    { "trifluoroethylamine",    AMINE ";$(N[CX4]C(F)(F)F)]", 5.7, "2,2,2-trifluoroethylamine" },
    { "aminonitrile",           AMINE ";$(N[CX4]C#N)]", 5.3, "aminoacetonitrile" },
    { "aminal",                 AMINE ";$(N[CX4]" AMINE "])]", 4.9, "methenamine" },
    { "hemiaminal",             AMINE ";$(N[CX4][OX2])]", 5.5, "oxazolidines" },
    { "arylglycine ester",      AMINE ";$(N[CX4](c)C(=O)[OX2][#6])]", 4.6, "clopidogrel" },
    { "acylpiperazine",         AMINE ";H0;$(N1CCN([#6,#16]=[O,S])CC1)]", 6.8, "sildenafil, zopiclone 6.7" },
    { "alkylmorpholine",        AMINE ";H0;$(N1CCOCC1)]", 7.4, "N-methylmorpholine" },
    { "morpholine",             AMINE ";H1;$(N1CCOCC1)]", 8.4, "morpholine" },
    { "diarylmethylamine",      AMINE ";$(N[CX4](c)c)]", 8.0, "cetirizine" },
    { "amino acid",             AMINE ";$(N[CX4]C(=O)[OX2H1,O-])]", 9.7, "glycine" },
    { "amino ester, amino amide", AMINE ";$(N[CX4]C(=O)[#7,#8])]", 7.8, "glycine ethyl ester, glycinamide 8.0" },
    { "aziridine",              AMINE ";r3]", 8.0, "aziridine" },
    { "ammonia",                AMINE ";H3]", 9.2, "ammonia" },
    { "benzylamine",            AMINE ";$(N[CX4]c)]", 9.3, "benzylamine" },
    { "tertiary amine",         AMINE ";H0]", 9.8, "trimethylamine" },
    { "amine",                  AMINE "]", 10.6, "methylamine" },
    /* amines on aromatic rings */
    { "phenylenediamine, second", ANILINE ";$(Nc:c[NX4+]),$(Nc:c:c[NX4+]),$(Nc:c:c:c[NX4+]),$(Nc:*:[n+])]", 2.5, "p-phenylenediamine, second" },
    { "diarylamine",            ANILINE ";$(N(c)c)]", 0.8, "diphenylamine" },
    { "nitroaniline",           ANILINE ";$(Nc:c" NITRO "),$(Nc:c:c:c" NITRO ")]", 0.5, "4-nitroaniline 1.0, 2-nitroaniline -0.3" },
    { "aniline with an acceptor", ANILINE ";$(Nc:c[$([CX3]=O),$(S(=O)=O),$(C#N)]),$(Nc:c:c:c[$([CX3]=O),$(S(=O)=O),$(C#N)])]", 2.3, "4-aminobenzoic acid 2.4, sulfanilamide 2.0" },
    { "aniline",                ANILINE "]", 4.7, "aniline" },
};
/* clang-format on */

#undef NITRO
#undef HALOGEN
#undef AMINE
#undef ANILINE
#undef AMINO
#undef CATION
#undef QUATERNARY

#endif

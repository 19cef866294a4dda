/* chem/structures/type_names.h - the numeric types of MMFF94 by their symbols (paper I), and atomic numbers. Used by typing only. */
#ifndef CH_TYPE_NAMES_H
#define CH_TYPE_NAMES_H

/* Types by the names of their symbols in paper I. */
enum {
    CR = 1, C_C = 2, C_O = 3, CSP = 4, HC = 5, OR = 6, O_C = 7, NR = 8, N_C = 9, NC_O = 10, FLUORINE = 11, CHLORINE = 12, BROMINE = 13,
    IODINE = 14, SULFIDE = 15, S_C = 16, S_O = 17, SO2 = 18, SI = 19, CR4R = 20, HOR = 21, CR3R = 22, HNR = 23, HOCO = 24,
    PO4 = 25, PHOSPHINE = 26, HN_C = 27, HNCO = 28, HOCC = 29, CE4R = 30, HOH = 31, O2CM = 32, HOS = 33, NR_PLUS = 34, OM = 35,
    HNR_PLUS = 36, CB = 37, NPYD = 38, NPYL = 39, NC_C = 40, CO2M = 41, NSP = 42, NSO2 = 43, STHI = 44, NO2 = 45, N_O = 46,
    NAZT = 47, NSO = 48, O_PLUS = 49, HO_PLUS = 50, O_DOUBLE_PLUS = 51, HO_DOUBLE_PLUS = 52, N_TWICE = 53, N_PLUS_C = 54,
    NCN_PLUS = 55, NGD_PLUS = 56, CGD_PLUS = 57, NPD_PLUS = 58, OFUR = 59, ISONITRILE_C = 60, NR_TRIPLE = 61, NM = 62, C5A = 63,
    C5B = 64, N5A = 65, N5B = 66, N2OX = 67, N3OX = 68, NPOX = 69, OH2 = 70, HS = 71, S2CM = 72, SO2M = 73, S_SULFINYL = 74,
    P_DOUBLE = 75, N5M = 76, CLO4 = 77, C5 = 78, N5 = 79, CIM_PLUS = 80, NIM_PLUS = 81, N5OX = 82
};

enum { H = 1, C = 6, N = 7, O = 8, F = 9, SILICON = 14, P = 15, S = 16, CL = 17, BR = 35, I = 53 };

#endif

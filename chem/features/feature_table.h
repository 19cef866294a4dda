/* chem/features/feature_table.h - the descriptors that models learn from, one line each: name, unit (NULL: none), meaning.
 * To add one: a line at its block's end, its computation in chem/features, and CH_FEATURES_VERSION + 1. */
#ifndef CH_FEATURE_TABLE_H
#define CH_FEATURE_TABLE_H

/* clang-format off */
#define CH_FEATURES(X) \
    X(mw, "u", "molecular weight, average isotopic masses") \
    X(logp, NULL, "octanol-water log P by atom contributions (Wildman and Crippen 1999)") \
    X(mr, "cm^3/mol", "molar refractivity by atom contributions (Wildman and Crippen 1999)") \
    X(tpsa, "Angstrom^2", "topological polar surface area of N and O (Ertl 2000)") \
    X(donors, NULL, "hydrogen bond donors: N, O and S with hydrogen, of usual valence") \
    X(acceptors, NULL, "hydrogen bond acceptors: O, S and N with a free lone pair") \
    X(rotors, NULL, "rotatable bonds, without amides and symmetric ends (CF3, tert-butyl)") \
    X(fsp3, NULL, "share of carbons with four neighbours") \
    X(n_heavy, NULL, "atoms other than hydrogen") \
    X(n_hetero, NULL, "atoms other than carbon and hydrogen") \
    X(nh_oh, NULL, "hydrogens on N and O") \
    X(nitrogen_oxygen, NULL, "N and O atoms") \
    X(rings, NULL, "rings: those that are no sum of smaller ones") \
    X(rings_aromatic_carbo, NULL, "aromatic rings of carbon") \
    X(rings_aromatic_hetero, NULL, "aromatic rings with other elements") \
    X(rings_aliphatic_carbo, NULL, "rings of carbon with a bond that is not aromatic") \
    X(rings_aliphatic_hetero, NULL, "rings with other elements and a bond that is not aromatic") \
    X(rings_saturated_carbo, NULL, "rings of carbon with single bonds only") \
    X(rings_saturated_hetero, NULL, "rings with other elements, with single bonds only") \
    X(valence_electrons, NULL, "electrons of the outer shells") \
    X(labute_asa, "Angstrom^2", "approximate surface area (Labute 2000)") \
    X(n_h, NULL, "hydrogen atoms") \
    X(n_b, NULL, "boron atoms") \
    X(n_c, NULL, "carbon atoms") \
    X(n_n, NULL, "nitrogen atoms") \
    X(n_o, NULL, "oxygen atoms") \
    X(n_f, NULL, "fluorine atoms") \
    X(n_si, NULL, "silicon atoms") \
    X(n_p, NULL, "phosphorus atoms") \
    X(n_s, NULL, "sulphur atoms") \
    X(n_cl, NULL, "chlorine atoms") \
    X(n_se, NULL, "selenium atoms") \
    X(n_br, NULL, "bromine atoms") \
    X(n_i, NULL, "iodine atoms") \
    X(n_other, NULL, "atoms of all other elements") \
    X(aromatic_atoms, NULL, "aromatic atoms") \
    X(aromatic_carbons, NULL, "aromatic carbons") \
    X(aromatic_hetero, NULL, "aromatic atoms other than carbon") \
    X(positive, NULL, "atoms with a positive formal charge") \
    X(negative, NULL, "atoms with a negative formal charge") \
    X(charge, "e", "sum of formal charges") \
    X(bonds_single, NULL, "single bonds between heavy atoms") \
    X(bonds_double, NULL, "double bonds") \
    X(bonds_triple, NULL, "triple bonds") \
    X(bonds_aromatic, NULL, "aromatic bonds") \
    X(carbonyls, NULL, "C=O bonds") \
    X(rings_3, NULL, "rings of 3 atoms") \
    X(rings_4, NULL, "rings of 4 atoms") \
    X(rings_5, NULL, "rings of 5 atoms") \
    X(rings_6, NULL, "rings of 6 atoms") \
    X(rings_7, NULL, "rings of 7 atoms") \
    X(rings_8, NULL, "rings of 8 and more atoms") \
    X(fused_bonds, NULL, "bonds that are all that two rings share") \
    X(spiro_atoms, NULL, "atoms that are all that two rings share") \
    X(bridgeheads, NULL, "atoms at which two rings that share several bonds part") \
    X(degree_1, NULL, "heavy atoms with 1 heavy neighbour") \
    X(degree_2, NULL, "heavy atoms with 2 heavy neighbours") \
    X(degree_3, NULL, "heavy atoms with 3 heavy neighbours") \
    X(degree_4, NULL, "heavy atoms with 4 and more heavy neighbours") \
    X(sp3_carbons, NULL, "carbons with four neighbours") \
    X(amides, NULL, "N-C=O bonds of amides, ureas and carbamates") \
    X(stereo_atoms, NULL, "possible stereo centres: atoms with four different neighbours") \
    X(stereo_bonds, NULL, "double bonds that can be E or Z") \
    X(parts, NULL, "parts without bonds between them, such as ions") \
    X(slogp_vsa1, "Angstrom^2", "surface of heavy atoms with log P contribution below -0.4") \
    X(slogp_vsa2, "Angstrom^2", "surface of heavy atoms with log P contribution -0.4 to -0.2") \
    X(slogp_vsa3, "Angstrom^2", "surface of heavy atoms with log P contribution -0.2 to 0") \
    X(slogp_vsa4, "Angstrom^2", "surface of heavy atoms with log P contribution 0 to 0.1") \
    X(slogp_vsa5, "Angstrom^2", "surface of heavy atoms with log P contribution 0.1 to 0.15") \
    X(slogp_vsa6, "Angstrom^2", "surface of heavy atoms with log P contribution 0.15 to 0.2") \
    X(slogp_vsa7, "Angstrom^2", "surface of heavy atoms with log P contribution 0.2 to 0.25") \
    X(slogp_vsa8, "Angstrom^2", "surface of heavy atoms with log P contribution 0.25 to 0.3") \
    X(slogp_vsa9, "Angstrom^2", "surface of heavy atoms with log P contribution 0.3 to 0.4") \
    X(slogp_vsa10, "Angstrom^2", "surface of heavy atoms with log P contribution 0.4 to 0.5") \
    X(slogp_vsa11, "Angstrom^2", "surface of heavy atoms with log P contribution 0.5 to 0.6") \
    X(slogp_vsa12, "Angstrom^2", "surface of heavy atoms with log P contribution from 0.6") \
    X(smr_vsa1, "Angstrom^2", "surface of heavy atoms with refractivity contribution below 1.29") \
    X(smr_vsa2, "Angstrom^2", "surface of heavy atoms with refractivity contribution 1.29 to 1.82") \
    X(smr_vsa3, "Angstrom^2", "surface of heavy atoms with refractivity contribution 1.82 to 2.24") \
    X(smr_vsa4, "Angstrom^2", "surface of heavy atoms with refractivity contribution 2.24 to 2.45") \
    X(smr_vsa5, "Angstrom^2", "surface of heavy atoms with refractivity contribution 2.45 to 2.75") \
    X(smr_vsa6, "Angstrom^2", "surface of heavy atoms with refractivity contribution 2.75 to 3.05") \
    X(smr_vsa7, "Angstrom^2", "surface of heavy atoms with refractivity contribution 3.05 to 3.63") \
    X(smr_vsa8, "Angstrom^2", "surface of heavy atoms with refractivity contribution 3.63 to 3.8") \
    X(smr_vsa9, "Angstrom^2", "surface of heavy atoms with refractivity contribution 3.8 to 4") \
    X(smr_vsa10, "Angstrom^2", "surface of heavy atoms with refractivity contribution from 4") \
    X(peoe_vsa1, "Angstrom^2", "surface of heavy atoms with Gasteiger charge below -0.3") \
    X(peoe_vsa2, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.3 to -0.25") \
    X(peoe_vsa3, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.25 to -0.2") \
    X(peoe_vsa4, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.2 to -0.15") \
    X(peoe_vsa5, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.15 to -0.1") \
    X(peoe_vsa6, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.1 to -0.05") \
    X(peoe_vsa7, "Angstrom^2", "surface of heavy atoms with Gasteiger charge -0.05 to 0") \
    X(peoe_vsa8, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0 to 0.05") \
    X(peoe_vsa9, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0.05 to 0.1") \
    X(peoe_vsa10, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0.1 to 0.15") \
    X(peoe_vsa11, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0.15 to 0.2") \
    X(peoe_vsa12, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0.2 to 0.25") \
    X(peoe_vsa13, "Angstrom^2", "surface of heavy atoms with Gasteiger charge 0.25 to 0.3") \
    X(peoe_vsa14, "Angstrom^2", "surface of heavy atoms with Gasteiger charge from 0.3") \
    X(charge_max, "e", "largest Gasteiger charge of a heavy atom (Gasteiger and Marsili 1980)") \
    X(charge_min, "e", "smallest Gasteiger charge of a heavy atom") \
    X(charge_abs_max, "e", "the larger of both without sign") \
    X(charge_abs_min, "e", "the smaller of both without sign") \
    X(estate_max, NULL, "largest E-state index of an atom (Hall and Kier 1991)") \
    X(estate_min, NULL, "smallest E-state index") \
    X(estate_abs_max, NULL, "largest E-state index without sign") \
    X(estate_abs_min, NULL, "smallest E-state index without sign")
/* clang-format on */

#endif

// SPDX-License-Identifier: GPL-2.0-only
// bench_openbabel library.smi [n]: the bare calls that molsieve-chem makes, in a
// plain loop in one process: bench_chem is compared with it.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include <openbabel/builder.h>
#include <openbabel/descriptor.h>
#include <openbabel/forcefield.h>
#include <openbabel/mol.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/ring.h>

using namespace OpenBabel;

static double cpu()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

static void describe(OBMol &mol, OBConversion &can, OBConversion &key)
{
    can.WriteString(&mol, true);
    key.WriteString(&mol, true);
    mol.GetFormula();
    mol.GetMolWt();
    for (const char *name : { "logP", "TPSA", "HBD" })
        OBDescriptor::FindType(name)->Predict(&mol);
    mol.NumRotors();
    mol.GetSSSR();
}

static void build(OBMol &mol, OBForceField *ff)
{
    OBBuilder builder;
    if (!builder.Build(mol, false))
        return;
    mol.AddHydrogens(false, false);
    if (!ff->Setup(mol))
        return;
    ff->SteepestDescent(50, 1e-4);
    ff->ConjugateGradients(200, 1e-6);
    ff->Energy(false);
    ff->GetCoordinates(mol);
}

int main(int argc, char **argv)
{
    const size_t n = argc > 2 ? static_cast<size_t>(atol(argv[2])) : 1000;
    std::vector<std::string> lines;
    std::string line;
    if (argc < 2)
        return 2;
    std::ifstream in(argv[1]);
    while (lines.size() < n && std::getline(in, line))
        lines.push_back(line);
    obErrorLog.StopLogging();
    for (int with_3d = 0; with_3d < 2; with_3d++) {
        OBConversion smi, can, key;
        OBForceField *ff = OBForceField::FindForceField("MMFF94");
        smi.SetInFormat("smi");
        can.SetOutFormat("can");
        key.SetOutFormat("inchikey");
        const size_t m = with_3d ? lines.size() / 10 : lines.size();
        OBMol warm;
        smi.ReadString(&warm, "c1ccccc1CC");
        describe(warm, can, key);
        build(warm, ff);
        const double t = cpu();
        for (size_t i = 0; i < m; i++) {
            OBMol mol;
            smi.ReadString(&mol, lines[i]);
            describe(mol, can, key);
            if (with_3d)
                build(mol, ff);
            else
                mol.AddHydrogens(false, false);
        }
        std::printf("bare calls, %s %8zu records %10.1f /s of CPU\n", with_3d ? "3D   " : "no 3D", m,
                    static_cast<double>(m) / (cpu() - t));
    }
    return 0;
}

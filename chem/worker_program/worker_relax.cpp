// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_relax.cpp - minimises the force-field energy of a structure.
//
// L-BFGS (Nocedal, Math. Comput. 1980, 35, 773; Nocedal and Wright, Numerical Optimization, 2006, algorithms 7.4 and 3.1)
// on Open Babel's energies and gradients. Open Babel's own minimisers compute 13 energies per step to find its length; here
// one is usually enough, and the steps are better (docs/decisions/0048-lbfgs.md).
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

#include <openbabel/atom.h>
#include <openbabel/forcefield.h>
#include <openbabel/obiter.h>

using namespace OpenBabel;

namespace worker {

namespace {
using Numbers = std::vector<double>;

enum { REMEMBERED = 8, TRIES = 12 }; // earlier steps used for the next one; maximum tries of a step length
const double FIRST = 0.05, LONGEST = 0.2,
             FLAT = 0.05; // Angstrom per atom in the first and in any step; gradient, kcal/mol/Angstrom

double dot(const Numbers &a, const Numbers &b)
{
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++)
        sum += a[i] * b[i];
    return sum;
}

// to += s * a
void add(Numbers &to, double s, const Numbers &a)
{
    for (size_t i = 0; i < to.size(); i++)
        to[i] += s * a[i];
}

// The largest displacement of an atom.
double farthest(const Numbers &d)
{
    double max = 0;
    for (size_t i = 0; i < d.size(); i += 3)
        max = std::max(max, std::sqrt(d[i] * d[i] + d[i + 1] * d[i + 1] + d[i + 2] * d[i + 2]));
    return max;
}

// Energy in kcal/mol of positions in Angstrom, [atom][3], and its gradient.
class Surface {
public:
    Surface(OBForceField &field, OBMol &molecule) : ff(field), mol(molecule), unit(field.GetUnit() == "kJ/mol" ? 1 / 4.184 : 1) {}

    Numbers start()
    {
        Numbers x;
        FOR_ATOMS_OF_MOL(a, mol)
            x.insert(x.end(), { a->GetX(), a->GetY(), a->GetZ() });
        return x;
    }

    void put(const Numbers &x)
    {
        const double *at = x.data();
        FOR_ATOMS_OF_MOL(a, mol) {
            a->SetVector(at[0], at[1], at[2]);
            at += 3;
        }
    }

    double at(const Numbers &x, Numbers &gradient)
    {
        put(x);
        ff.SetCoordinates(mol);
        const double energy = ff.Energy(true) * unit;
        const double *downhill = ff.GetGradientPtr(); // Open Babel's "gradients" point downhill
        for (size_t i = 0; i < x.size(); i++)
            gradient[i] = -unit * downhill[i];
        return energy;
    }

private:
    OBForceField &ff;
    OBMol &mol;
    const double unit;
};

struct Step {
    Numbers by, change; // differences of positions and of gradients
    double curve;       // their dot product
};

class Descent {
public:
    Descent(Surface &surface, Numbers &from)
        : on(surface), x(from), g(x.size()), next(x.size()), next_g(x.size()), energy(on.at(x, g))
    {
    }

    double run(int steps)
    {
        while (steps-- > 0 && std::isfinite(energy) && dot(g, g) > FLAT * FLAT * static_cast<double>(g.size()))
            if (!step()) {
                if (steps_before.empty())
                    break;
                steps_before.clear();
            }
        return energy;
    }

private:
    // The search direction: minus the approximate inverse Hessian from the last steps times the gradient (two-loop recursion).
    Numbers direction()
    {
        Numbers d = g;
        std::vector<double> share(steps_before.size());
        for (size_t k = steps_before.size(); k-- > 0;) {
            share[k] = dot(steps_before[k].by, d) / steps_before[k].curve;
            add(d, -share[k], steps_before[k].change);
        }
        if (!steps_before.empty()) {
            const Step &last = steps_before.back();
            for (double &v : d)
                v *= last.curve / dot(last.change, last.change);
        }
        for (size_t k = 0; k < steps_before.size(); k++)
            add(d, share[k] - dot(steps_before[k].change, d) / steps_before[k].curve, steps_before[k].by);
        for (double &v : d)
            v = -v;
        return d;
    }

    // Backtracking line search: shortens the step until the energy decreases enough; false: no length does.
    bool step()
    {
        const Numbers d = direction();
        const double slope = dot(g, d);
        double length = std::min(1.0, (steps_before.empty() ? FIRST : LONGEST) / farthest(d));

        for (int i = 0; i < TRIES && slope < 0; i++) {
            next = x;
            add(next, length, d);
            const double there = on.at(next, next_g);
            if (std::isfinite(there) && there <= energy + 1e-4 * length * slope) {
                take(there);
                return true;
            }
            const double parabola = -slope * length * length / (2 * (there - energy - slope * length));
            length = std::isfinite(parabola) ? std::min(std::max(parabola, 0.1 * length), 0.5 * length) : 0.1 * length;
        }
        return false;
    }

    void take(double there)
    {
        Step s = { next, next_g, 0 };
        add(s.by, -1, x);
        add(s.change, -1, g);
        s.curve = dot(s.by, s.change);
        if (s.curve > 1e-10 * dot(s.change, s.change))
            steps_before.push_back(s);
        if (steps_before.size() > REMEMBERED)
            steps_before.pop_front();
        x.swap(next);
        g.swap(next_g);
        energy = there;
    }

    Surface &on;
    Numbers &x;
    Numbers g, next, next_g;
    double energy;
    std::deque<Step> steps_before;
};
} // namespace

// UFF's SetupCalculations depends on an uninitialised local variable (found by valgrind), so old stack contents
// would affect a result, sometimes as NaN. Therefore it is called again after the stack has been zeroed.
static __attribute__((noinline)) void clean_stack()
{
    char room[128 << 10];
    std::memset(room, 0, sizeof room);
    asm volatile("" : : "r"(room) : "memory");
}

bool relax(OBMol &mol, const char *field, int steps, double *energy)
{
    OBForceField *ff = OBForceField::FindForceField(field);
    if (ff == nullptr)
        return false;
    ff->SetLogFile(nullptr);
    ff->SetLogLevel(OBFF_LOGLVL_NONE);
    if (!ff->Setup(mol))
        return false;
    clean_stack();
    if (std::strcmp(field, "UFF") == 0 && !(ff->SetupCalculations() && ff->SetupPointers()))
        return false;
    Surface surface(*ff, mol);
    Numbers x = surface.start();
    *energy = Descent(surface, x).run(steps);
    surface.put(x);
    return std::isfinite(*energy);
}

} // namespace worker

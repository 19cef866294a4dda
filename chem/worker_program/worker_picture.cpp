// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_picture.cpp - a drawing as SVG and as molfile, which show the stereo of their molecule or say that they do not.
//
// The molfile is read again and must give the molecule's InChIKey and SMILES. Where it does not with Open Babel's wedges, they are chosen
// here (worker_wedges.cpp), and where it still does not, all marks of stereo are left out and a note stands in both.
#include "chem/worker_program/worker.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <openbabel/atom.h>
#include <openbabel/bond.h>
#include <openbabel/obconversion.h>
#include <openbabel/oberror.h>
#include <openbabel/obiter.h>
#include <openbabel/ring.h>

using namespace OpenBabel;

namespace worker {

static const int tries_max = 24, tried_atoms_max = 3000;       // choices of wedges, and their atoms in all
static const unsigned keyed_atoms_max = 200;                   // of a molecule that is drawn for its InChIKey
static const int smallest_ring = 8;                            // whose double bonds have two forms, for InChI
static const double bond_px = 40, margin_px = 40, half_px = 4; // as Open Babel draws

// The second line of an MDL text has program, date and dimension: because of the date, every export would differ.
std::string without_date(std::string s, const std::string &format)
{
    size_t line = s.find('\n') + 1, end = s.find('\n', line);
    if ((format != "sdf" && format != "sd" && format != "mol" && format != "mdl") || line == 0 || end == std::string::npos)
        return s;
    std::string dimension = end - line >= 22 ? s.substr(line + 20, 2) : "  ";
    return s.replace(line, end - line, "  molsieve          " + dimension);
}

static std::string molfile_of(OBMol &mol, const char *options)
{
    const std::string text = without_date(mol_write(mol, "mol", options), "mol"); // of more than 999 atoms it is V3000
    return text.empty() || text.back() == '\n' ? text : text + "\n";
}

// ---- does it read back? --------------------------------------------------------

namespace {
struct Whole {
    std::string inchi, smiles;
    int n_defined = 0;   // items of stereo in the InChI
    size_t n_planes = 0; // of C=C=C=C and the like: InChI sees them in positions only
};
} // namespace

// Writing takes marks away, so a copy is written.
static void see_inchi(Whole &w, const OBMol &mol)
{
    OBMol copy = mol;
    std::string rest;
    w.inchi = first_word(mol_write(copy, "inchi", ""));
    w.n_defined = inchi_defined(w.inchi, rest);
}

static std::string smiles_of(const OBMol &mol)
{
    OBMol copy = mol;
    return canonical_smiles(copy);
}

static Whole whole_of(const OBMol &mol)
{
    Whole w;
    see_inchi(w, mol);
    w.smiles = smiles_of(mol);
    return w;
}

// Marks in a SMILES that are none, as at C(N)N, are not in what is read back.
static bool same_smiles(const Whole &wanted, const OBMol &back, const OBMol &mol)
{
    const std::string smiles = smiles_of(back);
    if (wanted.smiles == smiles)
        return true;
    OBMol copy = mol;
    copy.SetChiralityPerceived(false);
    StereoFrom0D(&copy);
    stereo_in_order(copy);
    return canonical_smiles(copy) == smiles;
}

// Without the items of double bonds, which stand in *bonds.
static std::string without_bonds(const std::string &inchi, std::vector<std::string> *bonds)
{
    std::string rest;
    std::istringstream layers(inchi);
    for (std::string layer; std::getline(layers, layer, '/');) {
        std::istringstream items(layer.empty() ? layer : layer.substr(1));
        const bool is_bonds = !layer.empty() && layer[0] == 'b';
        for (std::string item; is_bonds && std::getline(items, item, ',');)
            bonds->push_back(item);
        rest += is_bonds ? "" : layer + "/";
    }
    return rest;
}

// With planes, what is read back has items of theirs, too.
static bool same_inchi(const Whole &wanted, const Whole &w)
{
    std::vector<std::string> has, should;
    if (wanted.n_planes == 0)
        return wanted.inchi == w.inchi;
    const bool rest = without_bonds(w.inchi, &has) == without_bonds(wanted.inchi, &should);
    return rest && std::all_of(should.begin(), should.end(), [&](const std::string &item) {
               return item.back() == '?' || std::find(has.begin(), has.end(), item) != has.end();
           });
}

static std::string marked_smiles(OBMol &mol, const Marks &beside)
{
    OBMol copy = mol;
    Marks m = marks_of(copy);
    m.axes = beside.axes;
    m.planes = beside.planes;
    return smiles_with_marks(smiles_of(mol), copy, m);
}

// 0: yes; less: how many items of stereo are missing or wrong.
static int judged(const std::string &molfile, const Whole &wanted, const OBMol &mol)
{
    OBMol back;
    OBConversion conv;
    if (!conv.SetInFormat("mol") || !conv.ReadString(&back, molfile))
        return -1000;
    stereo_in_order(back);
    Whole w;
    see_inchi(w, back);
    if (same_inchi(wanted, w) && same_smiles(wanted, back, mol))
        return 0;
    return -1 - std::max(wanted.n_defined - w.n_defined, 0);
}

// Whether the molfile has the axes and planes, too, and InChI sees each of them.
static bool shows_axes(const std::string &molfile, const Whole &wanted, OBMol &mol, const Marks &beside)
{
    OBMol back;
    OBConversion conv;
    if (!conv.SetInFormat("mol") || !conv.ReadString(&back, molfile))
        return false;
    Whole w;
    see_inchi(w, back);
    return w.n_defined == wanted.n_defined + static_cast<int>(beside.axes.size() + beside.planes.size()) &&
           marked_smiles(back, axes_placed(back)) == marked_smiles(mol, beside);
}

// Whether positions could say something about stereo that the molecule does not, or the other way round.
static bool may_have_stereo(OBMol &mol)
{
    if (!mol.GetAllData(OBGenericDataType::StereoData).empty())
        return true;
    for (OBRing *r : mol.GetSSSR())
        if (r->Size() >= smallest_ring)
            return true;
    return false;
}

// ---- wedges in an SVG ------------------------------------------------------------

namespace {
struct Line {
    size_t from, length; // of its text
    double x1, y1, x2, y2;
};
} // namespace

static double value_of(const std::string &tag, const char *name)
{
    const size_t at = tag.find(std::string(" ") + name + "=\"");
    return at == std::string::npos ? NAN : std::strtod(tag.c_str() + at + std::strlen(name) + 3, nullptr);
}

static std::vector<Line> lines_of(const std::string &svg)
{
    std::vector<Line> all;
    for (size_t at = svg.find("<line "); at != std::string::npos; at = svg.find("<line ", at + 1)) {
        const size_t end = svg.find("/>", at);
        const std::string tag = svg.substr(at, end == std::string::npos ? end : end + 2 - at);
        all.push_back({ at, tag.size(), value_of(tag, "x1"), value_of(tag, "y1"), value_of(tag, "x2"), value_of(tag, "y2") });
    }
    return all;
}

// Where the atoms are in the SVG.
static std::vector<vector3> places_of(OBMol &mol)
{
    std::vector<vector3> at;
    double sum = 0, left = INFINITY, top = INFINITY;
    FOR_BONDS_OF_MOL(b, mol)
        sum += b->GetLength();
    const double scale = bond_px * mol.NumBonds() / sum;
    FOR_ATOMS_OF_MOL(a, mol) {
        at.push_back(vector3(a->GetX() * scale, -a->GetY() * scale, 0));
        left = std::min(left, at.back().x());
        top = std::min(top, at.back().y());
    }
    for (vector3 &p : at)
        p += vector3(margin_px - left, margin_px - top, 0);
    return at;
}

// Both ends of the line on the bond, at most a label away from its atoms, and in its direction or the opposite one.
static bool is_on(const Line &l, const vector3 &a, const vector3 &b)
{
    const vector3 along = (b - a) / (b - a).length(), p(l.x1, l.y1, 0), q(l.x2, l.y2, 0);
    const double label = 13.5, near = 0.3;
    for (const vector3 &x : { p, q }) {
        const vector3 from_a = x - a;
        const double t = dot(from_a, along);
        if (!((from_a - along * t).length() < near) || t < -near || t > (b - a).length() + near)
            return false;
    }
    return (p - q).length() > (b - a).length() - 2 * label;
}

static std::string point(const vector3 &p)
{
    char text[64];
    (void)std::snprintf(text, sizeof text, "%.4f %.4f ", p.x(), p.y());
    return text;
}

// As Open Babel's, from the narrow end a to b.
static std::string wedge_text(const vector3 &a, const vector3 &b, bool up)
{
    const vector3 along = b - a;
    const vector3 across = vector3(along.y(), -along.x(), 0) * (half_px / along.length());
    std::string text;
    if (up)
        return "<polygon points=\"" + point(a) + point(b + across) + point(b - across) +
               "\" stroke-width=\"2\" fill=\"rgb(0,0,0)\"  stroke=\"rgb(0,0,0)\" />";
    for (int k = 0; k < 6; k++) {
        const double w = 0.2 + 0.16 * k;
        const vector3 p = a + along * w + across * w, q = a + along * w - across * w;
        char line[200];
        (void)std::snprintf(line, sizeof line,
                            "%s<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" opacity=\"1.0\" stroke=\"rgb(0,0,0)\"  "
                            "stroke-width=\"1.0\"/>",
                            k > 0 ? "\n" : "", p.x(), p.y(), q.x(), q.y());
        text += line;
    }
    return text;
}

// The text of a bond's wedge instead of its line. A label shortens a wedge by a third. false: there is not one line for the bond.
static bool put_wedge(std::string &svg, OBBond &bond, const std::vector<vector3> &at)
{
    const vector3 a = at[bond.GetBeginAtomIdx() - 1], b = at[bond.GetEndAtomIdx() - 1];
    std::vector<Line> found;
    for (const Line &l : lines_of(svg))
        if (is_on(l, a, b))
            found.push_back(l);
    if (found.size() != 1)
        return false;
    const Line &l = found[0];
    const vector3 p(l.x1, l.y1, 0), q(l.x2, l.y2, 0);
    const auto cut = [&](const vector3 &end) { return std::min((p - end).length(), (q - end).length()) > 2; };
    const vector3 third = (b - a) * 0.33;
    const vector3 from = cut(a) ? a + third : a;
    const vector3 to = cut(b) ? b - third : b;
    svg.replace(l.from, l.length, wedge_text(from, to, bond.IsWedge()));
    return true;
}

static void remove_centres(OBMol &mol)
{
    for (OBGenericData *d : mol.GetAllData(OBGenericDataType::StereoData))
        if (static_cast<OBStereoBase *>(d)->GetType() == OBStereo::Tetrahedral)
            mol.DeleteData(d);
}

static std::string svg_of(OBMol &mol)
{
    const std::string svg = mol_write(mol, "svg", "dC");
    size_t from = svg.find("<svg"), to = svg.rfind("</svg>");
    if (from == std::string::npos || to == std::string::npos)
        fail(CH_INTERNAL, "no drawing");
    return svg.substr(from, to + 6 - from);
}

// The wedges are flags of the bonds. "": they could not be drawn.
static std::string svg_with_wedges(OBMol &mol)
{
    OBMol plain = mol;
    remove_centres(plain);
    std::string svg = svg_of(plain);
    const std::vector<vector3> at = places_of(mol);
    FOR_BONDS_OF_MOL(b, mol)
        if ((b->IsWedge() || b->IsHash()) && !put_wedge(svg, *b, at))
            return "";
    return svg;
}

// ---- the drawing -----------------------------------------------------------------

static void set_specified(OBCisTransStereo &c, bool yes)
{
    OBCisTransStereo::Config config = c.GetConfig();
    config.specified = yes;
    c.SetConfig(config);
}

// The note is the comment of the molfile, and text in the margin of the drawing.
static void leave_out_stereo(Picture &p, OBMol &mol)
{
    remove_centres(mol);
    for (OBGenericData *d : mol.GetAllData(OBGenericDataType::StereoData))
        if (auto *c = dynamic_cast<OBCisTransStereo *>(d))
            set_specified(*c, false);
    p.svg = svg_of(mol);
    const size_t inner = p.svg.find("<svg", p.svg.find("<g ")), behind = p.svg.find('>', inner);
    if (inner == std::string::npos || behind == std::string::npos)
        fail(CH_INTERNAL, "no drawing");
    p.svg.insert(behind + 1, "\n<text x=\"4\" y=\"14\" fill=\"rgb(0,0,0)\" font-size=\"12\">" CH_NO_STEREO "</text>");
    p.molfile = molfile_of(mol, "");
    const size_t comment = p.molfile.find('\n', p.molfile.find('\n') + 1) + 1;
    p.molfile.insert(comment, CH_NO_STEREO);
}

// Open Babel takes a double bond of a ring of eight without a mark for cis, and InChI for undefined unless positions define it: the molfile says
// that it is open, if that brings the stereo back. Returns how well it does.
static int open_ring_bonds(OBMol &mol, const Whole &wanted, int now)
{
    std::vector<OBCisTransStereo *> opened;
    for (OBGenericData *d : mol.GetAllData(OBGenericDataType::StereoData)) {
        auto *c = dynamic_cast<OBCisTransStereo *>(d);
        OBBond *b =
            c == nullptr ? nullptr : mol.GetBond(mol.GetAtomById(c->GetConfig().begin), mol.GetAtomById(c->GetConfig().end));
        if (b != nullptr && c->GetConfig().specified && b->IsInRing() && b->FindSmallestRing() != nullptr &&
            b->FindSmallestRing()->Size() == smallest_ring) {
            set_specified(*c, false);
            opened.push_back(c);
        }
    }
    const int then = opened.empty() ? now : judged(molfile_of(mol, ""), wanted, mol);
    for (OBCisTransStereo *c : opened)
        if (then <= now)
            set_specified(*c, true);
    return std::max(now, then);
}

// Axes and planes of allenes and longer cumulenes, which Open Babel does not read.
static Marks marks_beside(OBMol &mol, const std::string &smiles)
{
    if (unread_marks() == 0 && !may_mark_planes(mol, smiles))
        return Marks();
    const Marks m = marks_written(mol, smiles);
    marks_put(mol, m);
    stereo_in_order(mol);
    return m;
}

// As Open Babel draws it. false: that does not show the stereo.
static bool draw_plainly(Picture &p, OBMol &mol, const Whole *wanted)
{
    p.molfile = molfile_of(mol, "");
    int right = wanted != nullptr ? judged(p.molfile, *wanted, mol) : 0;
    if (right < 0 && (right = open_ring_bonds(mol, *wanted, right)) == 0)
        p.molfile = molfile_of(mol, "");
    if (right == 0)
        p.svg = svg_of(mol);
    return right == 0;
}

static void draw_with_wedges(Picture &p, OBMol &mol, const Whole &wanted, const Marks &beside)
{
    Wedges wedges(mol);
    const auto judge = [&](OBMol &m) { return judged(molfile_of(m, "w"), wanted, m); };
    if (!wedges.solve(judge, std::min(tries_max, tried_atoms_max / static_cast<int>(mol.NumAtoms()))) ||
        !put_axis_wedges(mol, beside.axes))
        return;
    p.molfile = molfile_of(mol, "w");
    if ((beside.axes.empty() && beside.planes.empty()) || shows_axes(p.molfile, wanted, mol, beside))
        p.svg = svg_with_wedges(mol);
}

Picture picture_of(const std::string &smiles)
{
    OBMol mol;
    Picture p;
    mol_read(mol, smiles, "smi");
    mol.SetTitle("");
    bool clear = true;
    const Marks beside = marks_beside(mol, smiles);
    const bool axes = !beside.axes.empty() || !beside.planes.empty(), check = axes || may_have_stereo(mol);
    Whole wanted = check ? whole_of(mol) : Whole();
    wanted.n_planes = beside.planes.size();
    p.overlaps = mol_lay_out(mol, beside.planes, clear);
    if (clear && !axes && draw_plainly(p, mol, check ? &wanted : nullptr))
        return p;
    if (clear)
        draw_with_wedges(p, mol, wanted, beside);
    if (p.svg.empty())
        leave_out_stereo(p, mol);
    return p;
}

std::string inchikey_of_axes(const std::string &smiles, const std::string &key)
{
    OBMol plain, drawn;
    OBConversion conv;
    mol_read(plain, smiles, "smi");
    const Marks beside = marks_beside(plain, smiles);
    if (plain.NumAtoms() > keyed_atoms_max || inchikey(plain) != key)
        return key;
    const Picture p = picture_of(smiles);
    const bool shown =
        p.molfile.find(CH_NO_STEREO) == std::string::npos && conv.SetInFormat("mol") && conv.ReadString(&drawn, p.molfile);
    return shown ? inchikey(drawn) : key;
}

} // namespace worker

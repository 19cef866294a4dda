#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/cut_lines.py MOLSIEVE

Formats that Open Babel writes and MOLSIEVE reads: in a file of one molecule the last word of one line after the other is left out.
Prints for each format of how many lines the molecule stays the same, is refused, or is another one. Needs obabel."""
import os
import subprocess
import sys
import tempfile

CHECKED = set("sdf mol mdl sd mol2 ml2 sy2 pdb ent pdbqt cif mmcif mcif cml cmlr mrv xyz smi smiles can inchi inchikey rxn rsmi".split())
NO_MOLECULE = set("fasta fa fsa text txt title copy fs png cdx cdxml".split())
LINES = 80


def formats(way):
    out = subprocess.run(["obabel", "-L", "formats", way], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in out.splitlines() if line.strip()}


def structure(molsieve, path, name):
    """What MOLSIEVE builds of the file; "": it is refused."""
    try:
        p = subprocess.run([molsieve, "conformers", path, "-f", name], capture_output=True, text=True, timeout=20)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return p.stdout if p.returncode == 0 else ""


def cut(molsieve, name, path):
    """Same, refused, another; None: the whole file is not read."""
    with open(path) as f:
        lines = f.read().splitlines()
    whole = structure(molsieve, path, name)
    if not whole:
        return None
    seen = [0, 0, 0]
    for k, line in enumerate(lines[:LINES]):
        if len(line.split()) < 2:
            continue
        short = line.rstrip()[:-len(line.split()[-1])].rstrip()
        with open(path, "w") as f:
            f.write("\n".join(lines[:k] + [short] + lines[k + 1:]) + "\n")
        got = structure(molsieve, path, name)
        seen[0 if got == whole else 2 if got else 1] += 1
    return seen


def main():
    molsieve = os.path.abspath(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as d:
        source = os.path.join(d, "m.sdf")
        subprocess.run(["obabel", "-:CC(=O)NCCO", "--gen3d", "-osdf", "-O", source], capture_output=True, check=True)
        for name in sorted((formats("read") & formats("write")) - CHECKED - NO_MOLECULE):
            path = os.path.join(d, "o." + name)
            subprocess.run(["obabel", source, "-o" + name, "-O", path], capture_output=True)
            try:
                seen = cut(molsieve, name, path)
            except (OSError, UnicodeDecodeError):
                continue
            print(name, "is not read back" if seen is None else "same %d, refused %d, another %d" % tuple(seen), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check_layers.sh finds each fault that it must find, in a small tree and in this one."""
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CHECK = os.path.join(TOP, "scripts", "check_layers.sh")

ORDER = """room pipeline/base:
room pipeline: pipeline/base
room chem: pipeline/base
room models: pipeline/base chem
room stages: pipeline/base pipeline chem models
made: stages/made.h
pipeline/base: text
pipeline/run: runs
    pipeline/base
chem/mol: molecules
    pipeline/base
models/net: networks
    pipeline/base chem/mol
stages/steps: steps
    pipeline/base pipeline/run models/net
"""
SMALL = {
    "scripts/folders.txt": ORDER,
    "pipeline/base/text.h": "",
    "pipeline/run/run.c": '#include "pipeline/base/text.h"\n',
    "pipeline/run/run.h": "",
    "chem/mol/mol.hpp": '#include "pipeline/base/text.h"\n',
    "models/net/net.cuh": '#include "pipeline/base/text.h"\n#include "chem/mol/mol.hpp"\n',
    "stages/steps/a.h": '#include "models/net/net.cuh"\n',
    "stages/steps/a.c": '#include <stdio.h>\n#include "stages/steps/a.h"\n  #  include "pipeline/base/text.h"\n#include "stages/made.h"\n',
    "stages/steps/b.h": '#include "pipeline/run/run.h"\n',
}
# (what is added, to which file, which may be new, and the message that must appear)
FAULTS = [
    ("pipeline/base/text.h", '#include "pipeline/run/run.h"\n', "pipeline/base/text.h:1: pipeline/base may not include pipeline/run/run.h"),
    ("pipeline/run/run.c", '#include "stages/steps/a.h"\n', "pipeline/run/run.c:2: pipeline/run may not include stages/steps/a.h"),
    ("chem/mol/mol.hpp", '#include "models/net/net.cuh"\n', "chem/mol/mol.hpp:2: chem/mol may not include models/net/net.cuh"),
    ("models/net/net.cuh", '#include "pipeline/run/run.h"\n', "models/net/net.cuh:3: models/net may not include pipeline/run/run.h"),
    ("chem/mol/body.inc", '#include "stages/steps/a.h"\n', "chem/mol/body.inc:1: chem/mol may not include stages/steps/a.h"),
    ("chem/mol/kernel.cu", '#include "models/net/net.cuh"\n', "chem/mol/kernel.cu:1: chem/mol may not include models/net/net.cuh"),
    ("chem/mol/x.cpp", '\t#\tinclude "pipeline/run/run.h"\n', "chem/mol/x.cpp:1: chem/mol may not include pipeline/run/run.h"),
    ("chem/mol/y.c", '#include "mol.hpp"\n', "chem/mol/y.c:1: there is no mol.hpp"),
    ("chem/mol/z.c", '#include "stages/made.h"\n', "chem/mol/z.c:1: there is no stages/made.h"),
    ("chem/other/x.c", "", "chem/other/x.c: its folder is not in scripts/folders.txt"),
    ("stages/steps/b.h", '#include "stages/steps/c.h"\n', None),
    ("stages/steps/c.h", '#include "stages/steps/b.h"\n', None),
    ("stages/steps/b.c", '#include "stages/steps/d.h"\n', None),
    ("stages/steps/d_parts.h", '#include "stages/steps/b.h"\n', None),
    ("scripts/folders.txt", "stages/more: nothing\n", "scripts/folders.txt: stages/more has no source"),
    ("scripts/folders.txt", "    chem/mol\n", "scripts/folders.txt: stages/steps does not need chem/mol"),
    ("scripts/folders.txt", "    stages/steps\n", "scripts/folders.txt:16: stages/steps is not above stages/steps"),
    ("scripts/folders.txt", "pipeline/late: late\n    chem/mol\n", "scripts/folders.txt:17: room pipeline may not use chem/mol"),
]


def tree(files):
    top = tempfile.mkdtemp()
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), "w") as f:
            f.write(text)
    return top


def said(top):
    p = subprocess.run([CHECK, top], capture_output=True, text=True)
    assert p.returncode in (0, 1) and bool(p.stdout) == bool(p.returncode) and p.stderr == "", p
    return p.stdout.splitlines()


def with_changes(*changes):
    files = dict(SMALL)
    for path, more in changes:
        files[path] = files.get(path, "") + more
    top = tree(files)
    lines = said(top)
    shutil.rmtree(top)
    return lines


def a_tree_in_order_passes_and_every_fault_is_said():
    assert with_changes() == [], with_changes()
    for path, more, want in FAULTS:
        if want:
            assert want in " | ".join(with_changes((path, more))), (want, with_changes((path, more)))


def circles_are_seen():
    headers = with_changes(("stages/steps/b.h", '#include "stages/steps/c.h"\n'), ("stages/steps/c.h", '#include "stages/steps/b.h"\n'))
    assert "these include each other in a circle: stages/steps/b.h stages/steps/c.h" in headers, headers
    knots = ("stages/steps/b.c", '#include "stages/steps/d.h"\n'), ("stages/steps/d.h", ""), ("stages/steps/d_parts.h", '#include "stages/steps/b.h"\n')
    assert with_changes(*knots) == ["these know each other in a circle: stages/steps/b stages/steps/d"], with_changes(*knots)


def a_bad_include_in_this_tree_is_caught():
    top = tempfile.mkdtemp()
    for room in ("pipeline", "chem", "models", "stages", "scripts"):
        shutil.copytree(os.path.join(TOP, room), os.path.join(top, room))
    assert said(top) == [], said(top)
    for path, header in (("chem/molecule/mol.h", "chem/worker/worker_client.h"), ("pipeline/store/store.c", "pipeline/run/run.h"),
                         ("models/ref/conv.inc", "models/cpu/table.h"), ("chem/worker_program/worker.hpp", "chem/molecule/mol.h"),
                         ("models/cuda/device/mma.cuh", "models/cuda/cuda_layout.h")):
        with open(os.path.join(top, path), "r+") as f:
            text = f.read()
            f.seek(0)
            f.write('#include "%s"\n%s' % (header, text))
        lines = said(top)
        assert any(line.startswith(path + ":1: ") and header in line for line in lines), (path, lines)
        with open(os.path.join(top, path), "w") as f:
            f.write(text)
    shutil.rmtree(top)


for test in (a_tree_in_order_passes_and_every_fault_is_said, circles_are_seen, a_bad_include_in_this_tree_is_caught):
    test()
    print("ok   " + test.__name__)

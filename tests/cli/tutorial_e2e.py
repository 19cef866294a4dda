#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/TUTORIAL.md as printed: pip install, commands, Python, the notebook. Then the installed package alone.

The flags of this build and ccache keep the price of the wheel low: its objects are those of the build."""
import json
import os
import re
import shutil
import subprocess

import sieve
from python_env import BUILD, SOURCE, environment
from sieve import Project


def script():
    """All blocks of the page as one text for bash."""
    with open(os.path.join(SOURCE, "docs/TUTORIAL.md")) as f:
        blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", f.read(), re.M | re.S)
    assert {x for x, _ in blocks} == {"sh", "python"} and len(blocks) > 5, blocks
    return "set -e\n" + "\n".join(text if kind == "sh" else "python - <<'END_OF_PYTHON'\n%sEND_OF_PYTHON" % text for kind, text in blocks)


def of_this_build(home):
    env = dict(os.environ, HOME=home, PIP_NO_COMPILE="1", PIP_CACHE_DIR=os.path.expanduser("~/.cache/pip"), CCACHE_NOHASHDIR="1",
               CCACHE_DIR=os.environ.get("CCACHE_DIR", os.path.expanduser("~/.cache/ccache")), CCACHE_BASEDIR=os.environ.get("CCACHE_BASEDIR", SOURCE),
               SKBUILD_BUILD_DIR=BUILD + "-wheel", SKBUILD_CMAKE_BUILD_TYPE="RelWithDebInfo",
               SKBUILD_CMAKE_DEFINE="MOLSIEVE_TESTS=OFF;MOLSIEVE_CUDA=OFF;MOLSIEVE_WERROR=ON;CMAKE_DISABLE_FIND_PACKAGE_MPI=ON")
    if shutil.which("ccache"):
        env.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    del env["MOLSIEVE"]
    return env


def printed(home):
    done = subprocess.run(["bash"], input=script(), cwd=SOURCE, env=of_this_build(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1000)
    assert done.returncode == 0, done.stdout[-4000:]
    for said in (r"^,CC\(=O\)Oc1|aspirin,CC\(=O\)O", r"^1 +NaN +NaN +NaN .*not closed", r"errors on \d+ held-out", r"CCCCO +-?\d", r"CID-1755 ",
                 r"400 records: 400 ok", r"^0 +400 +400 +0 +395 +50$"):
        assert re.search(said, done.stdout, re.M), (said, done.stdout)


def notebook(path):
    with open(path) as f:
        cells = [x for x in json.load(f)["cells"] if x["cell_type"] == "code"]
    outputs = [out for x in cells for out in x["outputs"]]
    assert all(x["execution_count"] for x in cells) and not [x for x in outputs if x["output_type"] == "error"], outputs
    assert sum("image/png" in x.get("data", {}) for x in outputs) == 2 and sum("text/html" in x.get("data", {}) for x in outputs) >= 5


def alone(folder, home):
    """What pip installed, in an environment without variables."""
    env = {"PATH": "/usr/bin:/bin", "HOME": home}
    ask = {"env": env, "cwd": home, "capture_output": True, "text": True, "check": True}
    version = subprocess.run([sieve.PROGRAM, "--version"], **ask).stdout
    assert subprocess.run([folder + "/bin/molsieve", "--version"], **ask).stdout == version
    told = subprocess.run([folder + "/bin/molsieve", "predict", "esol", "-"], input="CCO\n", **ask).stdout
    assert told.splitlines()[1].startswith(",CCO,"), told
    assert abs(float(told.splitlines()[1].split(",")[2]) - 1.10) < 0.5, told # what was measured
    where = subprocess.run([folder + "/bin/python", "-c", "import molsieve; print(molsieve.__version__, molsieve.program.path())"], **ask).stdout
    assert where.split()[0] == version.split()[1] and where.split()[1].startswith(folder + "/lib"), where
    files = subprocess.run([folder + "/bin/pip", "show", "-f", "molsieve"], **ask).stdout
    assert "Version: " + version.split()[1] in files and "models/esol.safetensors" in files and "share/man" not in files, files


def the_tutorial_runs_as_printed():
    environment()  # or skipped: PyPI is not reachable
    with Project() as p:
        printed(p.dir)
        assert os.path.getsize(p.path("molsieve-demo/runs/screen/report.html")) > 10000
        notebook(p.path("molsieve-demo/tutorial.ipynb"))
        alone(p.path("molsieve-env"), p.dir)


sieve.main([the_tutorial_runs_as_printed])

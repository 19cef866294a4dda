# SPDX-License-Identifier: Apache-2.0
"""A Python environment with packages of PyPI, made once for each build and kept in its folder."""
import fcntl
import os
import shutil
import subprocess
import sys

from sieve import PROGRAM, skip

BUILD = os.path.dirname(os.path.dirname(PROGRAM))
SOURCE = os.environ["MOLSIEVE_SOURCE"]
PACKAGES = ["ipykernel", "matplotlib", "nbclient", "pandas", "pyarrow", "safetensors"]


def quiet(step, **more):
    """Runs a step; what it said if it failed."""
    done = subprocess.run(step, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, **more)
    return "" if done.returncode == 0 else done.stdout.strip()[-1500:] or "status %d" % done.returncode


def environment(name="python-env", packages=PACKAGES):
    """The python of the environment; skips the test if it cannot be made."""
    folder, made = os.path.join(BUILD, name), " ".join([sys.version] + packages)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = os.path.join(folder, "made")
        if not os.path.exists(mark) or open(mark).read() != made:
            shutil.rmtree(folder, ignore_errors=True)
            for step in ([sys.executable, "-m", "venv", folder],
                         [folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "--no-compile"] + packages):
                wrong = quiet(step)
                if wrong:
                    skip("needs packages of PyPI: " + wrong.splitlines()[-1])
            with open(mark, "w") as f:
                f.write(made)
    return folder + "/bin/python"


def python(code, project, program=PROGRAM, expect=0, **more):
    """Runs a text of Python with this tree's package and a program, in the project's folder; its output, or (status, out, err)."""
    env = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"), MOLSIEVE=program, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([environment(), "-c", code], cwd=project.dir, env=env, capture_output=True, text=True, timeout=280, **more)
    if expect is not None and done.returncode != expect:
        raise AssertionError("%s\n%s\nstatus %d" % (done.stdout, done.stderr, done.returncode))
    return done.stdout if expect is not None else (done.returncode, done.stdout, done.stderr)

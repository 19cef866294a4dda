# SPDX-License-Identifier: Apache-2.0
"""molsieve from Python: a thin layer over the program, which is inside this package.

    import molsieve
    molsieve.predict("esol", ["CCO", "c1ccccc1"])                  # a DataFrame, one row for each molecule
    model = molsieve.fit(frame, target="pIC50")                    # a model of your table
    found = molsieve.run("screen.yaml", {"stages.rank.top": 50})   # a workflow; interrupt it, call it again
    found.hits, found.query("SELECT * FROM v_funnel")              # DataFrames
    molsieve.search(found, smarts="[NX3;H2]c1ccccc1")

Names and options are those of the program (`molsieve help`). What the program refuses is an exception with its text and status
(`molsieve.errors`). Needs pandas where a DataFrame is returned, else nothing.
"""
from __future__ import annotations

import os

from . import errors, program
from ._version import __version__
from .errors import (ConfigurationError, Crashed, DeviceError, Error, IntegrityError, Interrupted, ProgramError, StageFailed, Stopped,
                     SystemResourceError, TooManyFailures, WorkDirectoryLocked)
from .models import Model, fit
from .molecules import conformers, predict
from .runs import Results, results, run, search


def command(*args: "str | os.PathLike[str]") -> str:
    """Any other command: `command("plan", "screen.yaml")` runs `molsieve plan screen.yaml` and returns its output."""
    return program.call(*args).out


__all__ = ["ConfigurationError", "Crashed", "DeviceError", "Error", "IntegrityError", "Interrupted", "Model", "ProgramError", "Results",
           "StageFailed", "Stopped", "SystemResourceError", "TooManyFailures", "WorkDirectoryLocked", "__version__", "command",
           "conformers", "errors", "fit", "predict", "program", "results", "run", "search"]

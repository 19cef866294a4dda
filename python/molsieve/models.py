# SPDX-License-Identifier: Apache-2.0
"""Models: `fit` trains one from a table, `Model` is a model file."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Union

from . import program
from ._table import flags
from .molecules import predict

if TYPE_CHECKING:
    import pandas


class Model:
    """A model file. `predict` and other functions take it in place of its path."""

    def __init__(self, path: "str | os.PathLike[str]"):
        self.path = Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return "molsieve.Model(%r)" % str(self.path)

    @property
    def info(self) -> Dict[str, Any]:
        """All metadata of the file (`molsieve model info --json`)."""
        told: Dict[str, Any] = json.loads(program.call("model", "info", "--json", self.path).out)
        return told

    def summary(self) -> str:
        """What the model predicts, how it was trained, its errors."""
        return program.call("model", "info", self.path).out

    def predict(self, molecules: Any, **options: Any) -> "pandas.DataFrame":
        """`molsieve.predict` with this model."""
        return predict(self, molecules, **options)


def fit(table: "pandas.DataFrame | os.PathLike[str] | str", target: str, *, output: "str | os.PathLike[str] | None" = None,
        split: Optional[str] = None, task: Optional[str] = None, family: "str | Sequence[str] | None" = None,
        unit: Optional[str] = None, better: Optional[str] = None, smiles_column: Optional[str] = None,
        id_column: Optional[str] = None, input_format: Optional[str] = None, seed: Optional[int] = None,
        engine: Optional[str] = None, jobs: Optional[int] = None, max_time: Optional[str] = None, progress: bool = True) -> Model:
    """Trains a model on a table of measurements: a DataFrame with a column of SMILES, or a file.

    target  the column to learn; 0 and 1 are two classes. The other arguments are the options of `molsieve fit`.

    The model is written to `output` (TARGET.safetensors in this folder), its workflow and results to the folder of that name with
    .fit; a DataFrame is kept there as measured.csv. The same call continues after an interrupt.
    """
    to = Path(output) if output is not None else Path(target.replace("/", "_") + ".safetensors")
    given = _kept(table, to.with_suffix(".fit")) if hasattr(table, "to_csv") else os.fspath(table)
    options = flags(output=to, split=split, task=task, family=family, unit=unit, better=better, smiles_column=smiles_column,
                    id_column=id_column, input_format=input_format, seed=seed, engine=engine, jobs=jobs, max_time=max_time)
    program.call("fit", given, "--target", target, *options, progress=progress)
    return Model(to)


def _kept(table: Any, folder: Path) -> str:
    """The table as a file that stays, so that the same call finds what it has done."""
    text = table.to_csv(index=False)
    path = folder / "measured.csv"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return str(path)

# SPDX-License-Identifier: Apache-2.0
"""Molecules in, answers out, without a workflow: `predict` and `conformers`."""
from __future__ import annotations

import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from . import errors, program
from ._table import Molecules, Texts, flags, frame_of, json_lines, pandas_get

if TYPE_CHECKING:
    import pandas

ModelLike = Union[str, "os.PathLike[str]"]


def predict(model: "ModelLike | Sequence[ModelLike]", molecules: Molecules, *, smiles_column: Optional[str] = None,
            columns: "str | Sequence[str] | None" = None, id_column: Optional[str] = None, input_format: Optional[str] = None,
            set: Optional[Mapping[str, float]] = None, structures: Optional[str] = None,  # noqa: A002 - the option --set
            count: Optional[int] = None, seed: Optional[int] = None,
            engine: Optional[str] = None, jobs: Optional[int] = None) -> "pandas.DataFrame":
    """Predicts with a model; one row for each molecule, in order, with the index of the input.

    model      "esol", "qm9-gap", "qm9-homo", a model file, a `Model`; several are an ensemble
    molecules  SMILES as a list or Series, a dict of names and SMILES, a DataFrame with a column of SMILES, or a file as pathlib.Path
    set        {"temperature": 37}: one value for all molecules of a column that the model reads

    A model that reads columns, such as a temperature, finds them in the DataFrame; a missing value there is a `problem`. `columns` may
    name columns of the DataFrame, too: a list, or the text of the option, "smiles,mw".

    The columns of a property P are those of `molsieve help predict`: P, P_unit, P_interval90 (half-width of the 90 % prediction
    interval), P_similarity, P_domain ("inside" or "outside"), P_reasons; and `problem`. A molecule without a prediction is a row
    with a `problem`, not an exception. The other arguments are the options of `molsieve predict`.

    >>> molsieve.predict("esol", ["CCO", "c1ccccc1"])[["logS", "logS_interval90", "logS_domain"]]
    """
    pandas_get()
    models = _models_word(model)
    options = flags(set=_set_word(set), structures=structures, count=count, seed=seed, engine=engine, jobs=jobs)
    with tempfile.TemporaryDirectory(prefix="molsieve-") as folder:
        answers = os.path.join(folder, "answers.jsonl")
        if isinstance(molecules, os.PathLike):
            texts, given = None, os.fspath(molecules)
            options += flags(smiles_column=smiles_column, id_column=id_column, input_format=input_format, columns=columns)
        else:
            texts, given = Texts(molecules, smiles_column), os.path.join(folder, "molecules.csv")
            id_name, smiles_name = texts.write(given, others=True)
            options += flags(smiles_column=smiles_name, id_column=id_name, columns=_titled(columns))
        done = program.call("predict", models, given, "--output", answers, "--quiet", *options, allowed=(0, 3))
        rows = json_lines(answers)
    _warn(done)
    return _indexed(rows, texts)


def _titled(columns: "str | Sequence[str] | None") -> "str | List[str] | None":
    """With the title, which tells whose row an answer is."""
    if isinstance(columns, str):
        return columns if "title" in columns.split(",") else "title," + columns
    return None if columns is None else ["title", *(c for c in columns if c != "title")]


def _set_word(values: Optional[Mapping[str, float]]) -> Optional[str]:
    for name in values or ():
        if "," in name:
            raise ValueError("set: %r has a comma, which the program reads as the end of a value" % name)
    return ",".join("%s=%r" % (name, float(value)) for name, value in values.items()) if values else None


def _models_word(model: "ModelLike | Sequence[ModelLike]") -> str:
    """As the program reads it: one path whole if there is such a file, else several with commas between."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    paths = [os.fspath(m) for m in model]
    if not paths:
        raise ValueError("model: the list has no model")
    for path in paths:
        if "," in path and not (len(paths) == 1 and os.path.exists(path)):
            raise ValueError("model: %r has a comma, which the program reads as the end of a path; rename the file%s" % (
                path, "" if os.path.exists(path) else ", or write several models as items of the list"))
    return ",".join(paths)


def _warn(done: program.Done) -> None:
    """With status 3 the last line counts the rows that have a problem, which the rows say themselves."""
    lines = done.text().splitlines()
    for line in lines[:-1] if done.status == 3 else lines:
        warnings.warn(line, errors.Warning, stacklevel=3)


def _indexed(rows: List[Any], texts: Optional[Texts]) -> "pandas.DataFrame":
    frame = frame_of(rows)
    if texts is None:
        return frame
    if [r["title"] for r in rows] != [str(i) for i in range(max(1, len(texts.smiles)))]:
        raise errors.Error("the program answered %d rows for %d molecules" % (len(rows), len(texts.smiles)))
    frame = frame.drop(columns="title").iloc[:len(texts.smiles)]
    return frame if texts.index is None else frame.set_axis(texts.index, axis=0)


def conformers(molecules: Molecules, *, smiles_column: Optional[str] = None, count: Optional[int] = None,
               window: Optional[float] = None, force_field: Optional[str] = None, seed: Optional[int] = None,
               device: Optional[str] = None, jobs: Optional[int] = None) -> "pandas.DataFrame":
    """Builds 3D structures; one row for each structure, by increasing energy for each molecule.

    Columns: `molecule`, the index of the input; `molfile`, the structure as an MDL molfile; and the data fields that `molsieve help
    conformers` describes: smiles, rank, energy (kcal/mol), built_by, force_field. A molecule without a structure has no row, and a
    warning says why.
    """
    frames = pandas_get()
    texts = Texts(molecules, smiles_column)
    labels = list(range(len(texts.smiles))) if texts.index is None else list(texts.index)
    with tempfile.TemporaryDirectory(prefix="molsieve-") as folder:
        given, built = os.path.join(folder, "molecules.csv"), os.path.join(folder, "built.sdf")
        texts.write(given)
        options = flags(count=count, window=window, force_field=force_field, seed=seed, device=device, jobs=jobs)
        done = program.call("conformers", given, "--output", built, *options, allowed=(0, 3))
        with open(built, encoding="utf-8", errors="replace") as f:
            rows = [_structure(x, labels) for x in f.read().split("$$$$\n") if x.strip()]
    if texts.smiles:
        for line in done.text().splitlines():
            if done.status == 3:
                warnings.warn(line, errors.Warning, stacklevel=2)
    frame: "pandas.DataFrame" = frames.DataFrame(rows, columns=None if rows else ["molecule", "molfile", "smiles", "rank", "energy"])
    return frame


def _structure(record: str, labels: List[Any]) -> Dict[str, Any]:
    molfile, end, fields = record.partition("M  END\n")
    row: Dict[str, Any] = {"molecule": labels[int(record.partition("\n")[0])], "molfile": molfile + end}
    for field in fields.split("> ")[1:]:
        head, _, value = field.partition("\n")
        row[head.partition("<")[2].partition(">")[0]] = _number(value.strip())
    return row


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text

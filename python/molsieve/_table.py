# SPDX-License-Identifier: Apache-2.0
"""From what users have to files of the program, and back to DataFrames."""
from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping as MappingABC
from itertools import repeat
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Optional, Tuple, Union

if TYPE_CHECKING:
    import pandas

Molecules = Union[Iterable[Optional[str]], Mapping[Any, Optional[str]], "pandas.Series", "pandas.DataFrame", "os.PathLike[str]"]


def pandas_get() -> Any:
    """The module pandas, which is needed only where a DataFrame is returned."""
    try:
        import pandas
    except ImportError as e:
        raise ImportError("the answer is a pandas DataFrame: pip install pandas") from e
    return pandas

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # a SMILES has none; a question mark makes it a row with a problem


class Texts:
    """SMILES and the index of their rows."""

    def __init__(self, molecules: Any, smiles_column: Optional[str]):
        if isinstance(molecules, (str, bytes)):
            raise TypeError("molecules: a list of SMILES such as ['CCO'], a Series, a DataFrame, or pathlib.Path('FILE')")
        self.others: List[Tuple[str, Any]] = []
        if hasattr(molecules, "columns"):
            smiles = smiles_column_of(molecules, smiles_column)
            self.others = [(name, molecules.iloc[:, at]) for at, name in enumerate(molecules.columns)
                           if isinstance(name, str) and name != smiles and name.strip()]
            molecules = molecules[smiles]
        elif smiles_column is not None:
            raise TypeError("smiles_column is for a DataFrame or a file")
        if isinstance(molecules, MappingABC):
            self.index: Any = pandas_get().Index(list(molecules), tupleize_cols=False)
            molecules = molecules.values()
        else:
            self.index = getattr(molecules, "index", None)
            self.index = None if callable(self.index) else self.index  # list.index
        self.smiles: List[str] = [x if isinstance(x, str) else _empty(x, i) for i, x in enumerate(molecules)]

    def write(self, path: str, others: bool = False) -> Tuple[str, str]:
        """As CSV with the columns id and smiles, and with the others of a DataFrame; one empty row where there is none, so that the
        answer has its columns. Returns the names of the first two, which have a line behind them if others have these names."""
        columns = self.others if others else []
        taken = {name.lower() for name, _ in columns}
        names = [name + "_" * next(n for n in range(len(taken) + 1) if name + "_" * n not in taken) for name in ("id", "smiles")]
        with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as f:
            out = csv.writer(f, quoting=csv.QUOTE_ALL, lineterminator="\n")
            out.writerow((*names, *(_CONTROL.sub("?", name) for name, _ in columns)))
            cells = zip(*(values for _, values in columns)) if columns else repeat(())
            for i, (x, row) in enumerate(zip(self.smiles, cells)):
                out.writerow((i, _CONTROL.sub("?", x), *map(_cell, row)))
            if not self.smiles:
                out.writerow((0, "", *("" for _ in columns)))
        return names[0], names[1]


def _is_missing(x: Any) -> bool:
    return x is None or type(x).__name__ in ("NAType", "NaTType") or (isinstance(x, float) and x != x)


def _cell(x: Any) -> Any:
    """As the writer of CSV takes it."""
    if type(x) is float or type(x) is int:  # of a large table nearly all
        return x if x == x else ""
    return "" if _is_missing(x) else _CONTROL.sub(" ", str(x))


def _empty(x: Any, row: int) -> str:
    """None, NaN and NA are rows without a SMILES."""
    if _is_missing(x):
        return ""
    raise TypeError("row %d: a SMILES is a str, and this is a %s" % (row, type(x).__name__))


def smiles_column_of(frame: "pandas.DataFrame", name: Optional[str]) -> Any:
    """The column with SMILES: the given one, else the one called smiles in upper or lower case."""
    found = [c for c in frame.columns if c == name or (name is None and str(c).lower() == "smiles")]
    if len(found) != 1:
        raise KeyError("%s; smiles_column names the column with SMILES, among %s" % (
            "no column %r" % name if name is not None else "%d columns called smiles" % len(found), ", ".join(map(str, frame.columns))))
    return found[0]


def frame_of(rows: List[Mapping[str, Any]], columns: Optional[List[str]] = None) -> "pandas.DataFrame":
    """Rows of JSON. Numbers are numbers also where all of them are missing."""
    frame: "pandas.DataFrame" = pandas_get().DataFrame(rows, columns=columns)
    names = set(frame.columns)
    for name in frame.columns:
        of = next((name[:-len(end)] for end in ("_interval90", "_similarity", "_stdev") if name.endswith(end)), name)
        if of + "_unit" in names and frame[name].isna().all():
            frame[name] = frame[name].astype("float64")
    return frame


def json_lines(path: str) -> List[Mapping[str, Any]]:
    with open(path, encoding="utf-8", errors="replace") as f:
        return [json.loads(line) for line in f]


def flags(**options: Any) -> List[str]:
    """Options of the program: at_least=0.5 becomes --at-least=0.5; None and False are left out."""
    out: List[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + name.rstrip("_").replace("_", "-")
        out += [option] if value is True else [option, _word(value)]
    return out


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join('"%s"' % x if "," in str(x) else str(x) for x in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)

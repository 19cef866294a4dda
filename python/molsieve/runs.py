# SPDX-License-Identifier: Apache-2.0
"""Workflows and what they leave: `run`, `results`, `search`."""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from . import errors, program
from ._table import flags, frame_of

if TYPE_CHECKING:
    import pandas

Where = Union[str, "os.PathLike[str]", "Results"]
_ALL = str(2**31 - 1)


class Results:
    """The results of a run: a work directory, a workflow or a results.db. Reading is safe during a run."""

    def __init__(self, where: Where):
        self.path = Path(os.fspath(where))

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return "molsieve.results(%r)" % str(self.path)

    @property
    def hits(self) -> "pandas.DataFrame":
        """The ranking, best first, with the columns of `molsieve top`; its index is the rank."""
        frame = frame_of(json.loads(program.call("top", "--json", "--number", _ALL, self.path).out))
        return frame.set_index("rank") if "rank" in frame else frame

    def query(self, sql: str) -> "pandas.DataFrame":
        """The answer to an SQL query, a table or a view (`molsieve help query`). Only reading is possible."""
        return frame_of(json.loads(program.call("query", "--json", "--", sql, self.path).out))

    def search(self, **conditions: Any) -> "pandas.DataFrame":
        """`molsieve.search` in these results."""
        return search(self, **conditions)

    @property
    def failures(self) -> "pandas.DataFrame":
        """Records and molecules that failed, and why."""
        return self.query("v_failures")

    def report(self, output: "str | os.PathLike[str] | None" = None) -> Path:
        """Writes the HTML report, and returns its path."""
        to = Path(output) if output is not None else (self.path if self.path.is_dir() else self.path.parent) / "report.html"
        program.call("report", self.path, "--output", to)
        return to

    def status(self) -> Dict[str, Any]:
        """`molsieve status --json`."""
        told: Dict[str, Any] = json.loads(program.call("status", "--json", self.path).out)
        return told

    def _repr_html_(self) -> str:
        html: str = self.hits._repr_html_()  # type: ignore[operator]
        return html


def results(where: Where) -> Results:
    """Opens the results of a run: its work directory, its workflow or its results.db. SystemResourceError: there are none."""
    found = Results(where)
    program.call("query", "--json", "SELECT 1", found.path)
    return found


def run(workflow: "str | os.PathLike[str]", overrides: Optional[Mapping[str, Any]] = None, *, progress: bool = True,
        jobs: Optional[int] = None, until: Optional[str] = None, from_: Optional[str] = None, force: Optional[str] = None,
        shard: Optional[str] = None, out: "str | os.PathLike[str] | None" = None, keep_going: bool = False,
        max_time: Optional[str] = None, grace: Optional[str] = None,
        log: "str | os.PathLike[str] | None" = None) -> Results:
    """Runs a workflow, or continues it, and returns its results; with `shard` those of this shard (of the file `out`, if given).

    overrides  settings in place of those of the file: {"stages.rank.top": 500} or {"stages": {"rank": {"top": 500}}}
    progress   shows the log and the summary while it runs

    Interrupt it whenever you like: the program ends in order, the call raises `Interrupted`, and the same call continues. The other
    arguments are the options of `molsieve run`; `from_` is --from.
    """
    settings = ["%s=%s" % (name, _yaml(value)) for name, value in _flat(overrides or {})]
    done_where = json.loads(program.call("plan", "--json", workflow, *settings).out)["results"]
    options = flags(jobs=jobs, until=until, from_=from_, force=force, shard=shard, out=out, keep_going=keep_going, max_time=max_time,
                    grace=grace, log=log)
    done = program.call("run", workflow, *settings, *options, progress=progress)
    if shard is None:
        return Results(done_where)
    part = re.search(r"^shard \d+ of \d+ is done.*?: (.+)", done.out)  # it has a results.db of its own
    if part is None:
        raise errors.Error("the program did not say where the results of the shard are: " + done.out)
    return Results(part[1] if out is None else out)


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, before + name + ".")
        else:
            yield before + name, value


def _yaml(value: Any) -> str:
    """JSON is YAML, but for characters above U+FFFF, which JSON escapes as two; a path is its name."""
    text = json.dumps(os.fspath(value) if isinstance(value, os.PathLike) else value, ensure_ascii=False)
    return re.sub(r"[^\x00-\x7e]", lambda c: ("\\u%04x" if ord(c[0]) < 0x10000 else "\\U%08x") % ord(c[0]), text)


def search(where: Where, *, smarts: Optional[str] = None, similar: Optional[str] = None, at_least: Optional[float] = None,
           scaffold: Optional[str] = None, condition: Optional[str] = None, limit: Optional[int] = None,
           jobs: Optional[int] = None) -> "pandas.DataFrame":
    """Molecules of a run by substructure, similarity or scaffold. `condition` is the option --where, such as "mw < 300".

    Columns as in `Results.hits`. TooManyFailures: some molecules could not be compared.
    """
    options: List[str] = flags(smarts=smarts, similar=similar, at_least=at_least, scaffold=scaffold, where=condition, limit=limit, jobs=jobs)
    return frame_of(json.loads(program.call("search", "--json", *options, where).out))

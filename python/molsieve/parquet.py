# SPDX-License-Identifier: Apache-2.0
"""python3 -m molsieve.parquet RUN -o FILE [--all] [--where CONDITION] [--table NAME] - results as a Parquet file.

Without --table the columns are those of `molsieve export csv`: the ranking, or with --all every molecule. --table writes a table of
results.db, such as prediction or molecule. Columns keep their types, NULL is null, and unit and description of a column are in the
metadata of its field. Rows are written as they come, so memory does not grow with them; the file appears complete or not at all.
Needs pyarrow: pip install 'molsieve[parquet]'."""
from __future__ import annotations

import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import errors, program
from .runs import Results, Where

if TYPE_CHECKING:
    import pyarrow

_ROWS = 65536  # of a group of rows
_TEXTS = {"title", "smiles", "inchikey", "formula", "alerts", "removed", "geometry"}
_INTEGERS = {"rank", "front", "cluster", "n_similar", "undefined_stereo", "hbd", "hba", "rotb", "rings", "n_heavy", "charge"}
_PARTS = ("", "_unit", "_stdev", "_interval90", "_similarity", "_domain", "_reasons", "_measured")  # in the order of the columns
_ENDS_OF_TEXT, _ENDS_WITH_UNIT = ("_unit", "_domain", "_reasons"), ("", "_stdev", "_interval90", "_measured")


def write(where: Where, output: "str | os.PathLike[str]", *, all: bool = False,  # noqa: A002 - the option --all
          condition: Optional[str] = None, table: Optional[str] = None) -> int:
    """Writes results as Parquet, and returns the number of rows. `condition` is the option --where."""
    import pyarrow
    import pyarrow.parquet

    if table is not None and (all or condition is not None):
        raise TypeError("table is written whole; all and condition are for molecules")
    to, part = os.fspath(output), os.fspath(output) + ".part"
    try:
        with open(part, "wb") as file:
            schema, batches = _table(where, table) if table is not None else _molecules(where, all, condition)
            with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
                n = 0
                for batch in batches:
                    writer.write_batch(batch)
                    n += batch.num_rows
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, to)
    finally:
        if os.path.exists(part):
            os.remove(part)
    return n


def _field(name: str, kind: "pyarrow.DataType", unit: Optional[str], description: Optional[str]) -> "pyarrow.Field":
    import pyarrow

    told = {key: value for key, value in (("unit", unit), ("description", description)) if value}
    return pyarrow.field(name, kind, metadata=told or None)


def _docs(where: Where, tables: str) -> Dict[str, Tuple[Optional[str], str]]:
    """Unit and description of the columns of these tables."""
    asked = "SELECT col, unit, description FROM column_doc WHERE tbl IN (%s)" % tables
    return {r["col"]: (r["unit"], r["description"]) for r in _query(where, asked)}


def _query(where: Where, sql: str) -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = json.loads(program.call("query", "--json", sql, os.fspath(where)).out)
    return rows


# ---- molecules: the columns of `molsieve export csv` ----


# What there is of a property, as stages/steps/rank/table_columns.c asks.
_PROPERTIES = """SELECT name, unit, json_array(n>0, unit NOT IN ('','1'), n>1,
    EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.interval90 IS NOT NULL),
    EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.similarity IS NOT NULL),
    EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.domain IS NOT NULL),
    EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.reasons IS NOT NULL), measured) AS parts
  FROM (SELECT *, (SELECT coalesce(max(n_models),0) FROM score s WHERE s.property_id=q.property_id) AS n,
    EXISTS(SELECT 1 FROM label l WHERE l.property_id=q.property_id) AS measured FROM property q) p WHERE n>0 OR measured ORDER BY name"""


def _bases(plain: str) -> Iterator[str]:
    """What the columns of a property may begin with; another column may have its name."""
    yield plain
    yield plain + "_predicted"
    for k in range(2, 1000):
        yield "%s_%d" % (plain, k)


def _of_properties(names: List[str], where: Where) -> Dict[str, Tuple[str, str, Optional[str]]]:
    """The property of a column, what follows its name, and its unit. The name alone does not tell: y_domain may be the domain of y or a
    property. But the columns stand in the order of the properties and of their parts."""
    found: Dict[str, Tuple[str, str, Optional[str]]] = {}
    at = names.index("objective") + 1
    for r in _query(where, _PROPERTIES):
        ends = [end for end, there in zip(_PARTS, json.loads(r["parts"])) if there]
        unit = " (%s)" % r["unit"]
        plain = r["name"][:-len(unit)] if r["unit"] and r["name"].endswith(unit) and r["name"] != unit else r["name"]
        base = next((b for b in _bases(plain) if names[at:at + len(ends)] == [b + end for end in ends]), None)
        if base is None:
            raise errors.Error("%s: the columns changed while they were read (property %s); call again" % (os.fspath(where), r["name"]))
        found.update((base + end, (plain, end, r["unit"] if end in _ENDS_WITH_UNIT else None)) for end in ends)
        at += len(ends)
    return found


def _molecule_field(name: str, of: Dict[str, Tuple[str, str, Optional[str]]], docs: Dict[str, Any]) -> "pyarrow.Field":
    import pyarrow

    if name in of:
        plain, end, unit = of[name]
        return _field(name, pyarrow.string() if end in _ENDS_OF_TEXT else pyarrow.float64(), unit, "property " + plain if not end else None)
    kind = pyarrow.string() if name in _TEXTS else pyarrow.int64() if name in _INTEGERS else pyarrow.float64()
    return _field(name, kind, *docs.get(name, (None, None)))


def _molecules(where: Where, everything: bool, condition: Optional[str]) -> "Tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]":
    import pyarrow

    docs = _docs(where, "'molecule','hit'")
    options = (["--all"] if everything else []) + (["--where", condition] if condition is not None else [])
    command = [program.path(), "export", "csv", *options, os.fspath(where)]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stderr is not None
    try:
        head = child.stdout.readline()
        names = next(csv.reader([head.decode()])) if head else []
        if not names:
            _end(child)
        of = _of_properties(names, where) if names else {}
        schema = pyarrow.schema([_molecule_field(name, of, docs) for name in names])
    except BaseException:
        _close(child)
        raise
    return schema, _rows(child, schema)


def _rows(child: "subprocess.Popen[bytes]", schema: "pyarrow.Schema") -> "Iterator[pyarrow.RecordBatch]":
    import pyarrow
    import pyarrow.csv

    read = pyarrow.csv.ReadOptions(column_names=schema.names, block_size=1 << 22)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
    try:
        try:
            batches = pyarrow.csv.open_csv(child.stdout, read, parse, convert)
        except pyarrow.ArrowInvalid as e:
            if "Empty CSV file" not in str(e):  # only the head
                raise
            batches = []
        for batch in batches:
            yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema)
        _end(child)
    finally:
        _close(child)


def _close(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _end(child: "subprocess.Popen[bytes]") -> None:
    """What the program refused is an exception, as everywhere."""
    assert child.stderr is not None
    said = child.stderr.read().decode(errors="replace")
    status = child.wait()
    if status != 0:
        raise errors.of_status(status, program.Done(status, "", said).text())


# ---- a table of results.db ----


def _database(where: Where) -> str:
    path = os.fspath(where)
    if os.path.isdir(path):
        return os.path.join(path, "results.db")
    if path.endswith((".yaml", ".yml")):
        return str(json.loads(program.call("plan", "--json", path).out)["results"])
    return path


def _table(where: Where, table: str) -> "Tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]":
    import pyarrow

    kinds = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string(), "BLOB": pyarrow.binary()}
    tables = [r["tbl"] for r in _query(where, "SELECT DISTINCT tbl FROM column_doc ORDER BY 1")]  # says what is wrong with the database
    columns = _query(where, "SELECT name, type FROM pragma_table_info('%s')" % table) if table in tables else []
    unknown = [c["name"] for c in columns if c["type"] not in kinds]
    if not columns or unknown:
        real = [t for t in tables if not t.startswith("v_")]
        raise errors.of_status(2, "--table %s: %s; tables: %s" % (
            table, "a view, whose columns have no type" if unknown else "no such table", ", ".join(real)))
    docs = _docs(where, "'%s'" % table)
    schema = pyarrow.schema([_field(c["name"], kinds[c["type"]], *docs.get(c["name"], (None, None))) for c in columns],
                            metadata={"table": table})
    return schema, _stored(_database(where), table, schema)


def _stored(path: str, table: str, schema: "pyarrow.Schema") -> "Iterator[pyarrow.RecordBatch]":
    import pyarrow

    db = sqlite3.connect(_uri(path), uri=True)
    try:
        cursor = db.execute('SELECT * FROM "%s"' % table)
        for rows in iter(lambda: cursor.fetchmany(_ROWS), []):
            columns = [pyarrow.array(values, kind) for values, kind in zip(zip(*rows), schema.types)]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)
    except sqlite3.Error as e:
        raise errors.of_status(5, "%s: %s" % (path, e)) from e
    finally:
        db.close()


def _uri(path: str) -> str:
    from pathlib import Path

    return Path(path).resolve().as_uri() + "?mode=ro"


# ---- the command ----


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m molsieve.parquet", description="results of molsieve as a Parquet file")
    parser.add_argument("run", help="work directory, workflow or results.db")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the Parquet file")
    parser.add_argument("-a", "--all", action="store_true", help="every molecule, not only the ranking")
    parser.add_argument("-w", "--where", metavar="CONDITION", help='only molecules for which this holds, e.g. "mw < 300"')
    parser.add_argument("--table", metavar="NAME", help="a table of results.db, whole, in place of molecules")
    given = parser.parse_args(arguments)
    if given.table is not None and (given.all or given.where is not None):
        parser.error("--table is written whole; --all and --where are for molecules")
    try:
        n = write(Results(given.run), given.output, all=given.all, condition=given.where, table=given.table)
    except errors.Error as e:
        print("molsieve: " + e.text, file=sys.stderr)
        return e.status if e.status is not None else 127
    except ImportError as e:
        print("molsieve: %s; pip install 'molsieve[parquet]'" % e, file=sys.stderr)
        return 6
    except OSError as e:
        print("molsieve: %s" % e, file=sys.stderr)
        return 6
    print("%d rows: %s" % (n, given.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: a scratch project, the program, and an
independent look at what it stored (nothing here uses the program's own digest)."""
import gzip
import hashlib
import json
import os
import random
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

SKIP = 77
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# ctest sets these; in a test run by hand they follow from the place of this file.
for name, value in (("MOLSIEVE_SOURCE", os.path.dirname(TESTS)),
                    ("MOLSIEVE", os.path.join(os.path.dirname(TESTS), "build/dev/bin/molsieve")),
                    ("MOLSIEVE_EMULATED", os.path.join(os.path.dirname(TESTS), "build/dev/tests/emulated"))):
    os.environ.setdefault(name, value)
PROGRAM = os.environ["MOLSIEVE"] = os.path.abspath(os.environ["MOLSIEVE"])


def skip(why):
    print("skipped:", why)
    sys.exit(SKIP)


def data(path):
    """A file or folder of tests/data."""
    return os.path.join(TESTS, "data", path)


def more(path):
    """A file or folder of $MOLSIEVE_SHARED/data, which has more than tests/data; None if that variable is not set."""
    shared = os.environ.get("MOLSIEVE_SHARED")
    if not shared:
        return None
    path = os.path.abspath(os.path.join(shared, "data", path))
    assert os.path.exists(path), path + ", which MOLSIEVE_SHARED names, is not there"
    return path


def lines_of(path, n):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as f:
        return b"".join(line for line, _ in zip(f, range(n)))


def sdf_records(path, n):
    """The first n records of an SDF."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as f:
        return b"$$$$\n".join(f.read().split(b"$$$$\n")[:n]) + b"$$$$\n"


class Project:
    """A directory with a workflow; removed at the end of the block. Its path has PATH bytes wherever temporary files lie, unless
    these lie deep: texts are folded at 80 columns with the paths in them."""
    PATH = 48

    def __enter__(self):
        prefix, drawn = "molsieve-e2e-", 8
        self.dir = tempfile.mkdtemp(prefix=prefix, suffix="-" * (self.PATH - len(os.path.join(tempfile.gettempdir(), prefix)) - drawn))
        os.chmod(self.dir, 0o755)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def put(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def workflow(self, inputs, stages, name="w.yaml", workdir="run", extra=""):
        text = "format: 1\nname: e2e\nseed: 11\nworkdir: %s\n%sinputs:\n" % (workdir, extra)
        for one in inputs:
            text += "  - %s\n" % (one if one.startswith("{") else '{path: "%s"}' % one)
        return self.put(name, text + "stages:\n" + stages)

    def command(self, *args):
        return [PROGRAM] + list(args)

    def run(self, *args, expect=0, **more):
        """The program's exit status, stdout and stderr; a status that is not expected ends the test."""
        p = subprocess.run(self.command(*args), cwd=self.dir, capture_output=True, timeout=280, **more)
        out, err = p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
        if expect is not None and p.returncode != expect:
            print(out, err)
            raise AssertionError("%s: exit status %d, %d expected" % (" ".join(args), p.returncode, expect))
        return p.returncode, out, err

    def rows(self, sql, *values, workdir="run"):
        db = sqlite3.connect("file:%s?mode=ro" % self.path(workdir, "results.db"), uri=True)
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def one(self, sql, *values, workdir="run"):
        return self.rows(sql, *values, workdir=workdir)[0][0]


def until(good, what, seconds=120, pause=0.02):
    """Waits for an event. The limit is for what never comes, not for a slow machine."""
    end = time.time() + seconds
    while not good():
        assert time.time() < end, what
        time.sleep(pause)


def free_port():
    """A port that nobody listens at, and none that the system gives to a connection meanwhile: those begin at 32768."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def without_checksum(model):
    """The bytes of a model file without its own checksum, for a test that changes something else in it."""
    n = int.from_bytes(model[:8], "little")
    head = json.loads(model[8:8 + n])
    del head["__metadata__"]["sha256"]
    text = json.dumps(head, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + model[8 + n:]


def forget(path):
    """Removes what no earlier format had, so that the digests of both can be compared."""
    db = sqlite3.connect(path)
    db.executescript("UPDATE molecule SET structures=NULL, undefined_stereo=NULL; DELETE FROM fingerprint; DELETE FROM row_sum")
    db.close()


def in_format(path, to, version=2):
    """The same results as a program of that database format would have left them."""
    db = sqlite3.connect(to)
    for sql in ("pipeline/store/store.sql", "tests/golden/schema%d.sql" % version):
        text = open(os.path.join(os.environ["MOLSIEVE_SOURCE"], sql)).read()
        text = text.replace(",\n  cpu_s REAL, worker_cpu_s REAL)", ")") if version < 7 else text
        db.executescript(text.replace(", kernels TEXT)", ")") if version < 6 else text)
    db.execute("ATTACH ? AS now", (path,))
    for table, in db.execute("SELECT name FROM main.sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'").fetchall():
        names = ", ".join(c[1] for c in db.execute("PRAGMA main.table_info(%s)" % table))
        db.execute("INSERT INTO main.%s(%s) SELECT %s FROM now.%s" % (table, names, names, table))
    db.execute("DELETE FROM column_doc")
    db.commit()
    db.executescript("PRAGMA application_id=%d; PRAGMA user_version=%d;" % (db.execute("PRAGMA now.application_id").fetchone()[0], version))
    db.close()


DUMP = {
    "input_file": "SELECT file_id, sha256, format, n_records FROM input_file ORDER BY 1",
    "record": "SELECT * FROM record ORDER BY record_id",
    "molecule": "SELECT * FROM molecule ORDER BY mol_id",
    "fingerprint": "SELECT * FROM fingerprint ORDER BY mol_id",
    "property": "SELECT * FROM property ORDER BY property_id",
    "label": "SELECT * FROM label ORDER BY 1, 2",
    "hit": "SELECT * FROM hit ORDER BY rank",
    "failure": "SELECT stage, record_id, mol_id, code, message, signal, attempt FROM failure ORDER BY 1, 2, 3, 4",
    "unit": "SELECT name, unit, first, last, n_ok, n_failed FROM unit JOIN stage USING(stage_id) ORDER BY 1, 2",
}


def dump(project, workdir="run"):
    """Everything the stages stored, row ids included: they are part of the promise."""
    out = {name: project.rows(sql, workdir=workdir) for name, sql in DUMP.items()}
    db = sqlite3.connect("file:%s?mode=ro" % project.path(workdir, "features.db"), uri=True)
    out["block"] = [(kind, unit, first, n, hashlib.sha256(blob).hexdigest()) for kind, unit, first, n, blob in
                    db.execute("SELECT kind, unit, first, n_items, data FROM block ORDER BY kind, unit")]
    db.close()
    return out


def same(a, b, what):
    for name in a:
        if a[name] != b[name]:
            for x, y in zip(a[name], b[name]):
                if x != y:
                    raise AssertionError("%s: %s differs:\n  %r\n  %r" % (what, name, x, y))
            raise AssertionError("%s: %s has %d rows and %d" % (what, name, len(a[name]), len(b[name])))


def accounted(project, workdir="run"):
    """records = ok + duplicate + filtered + failed, each failed one with its reason, each ok one with its molecule."""
    def one(sql):
        return project.one(sql, workdir=workdir)
    records, good = one("SELECT count(*) FROM record"), one("SELECT sum(status IN('ok','duplicate')) FROM record") or 0
    failed = one("SELECT count(*) FROM record WHERE status='failed'")
    assert records == good + failed + one("SELECT count(*) FROM record WHERE status='filtered'"), (records, good, failed)
    assert one("SELECT sum(n_records) FROM input_file") == records
    assert one("SELECT count(*) FROM record WHERE status='failed' AND record_id NOT IN"
               "(SELECT record_id FROM failure WHERE record_id IS NOT NULL AND length(message)>3)") == 0
    assert one("SELECT count(*) FROM failure WHERE record_id IN (SELECT record_id FROM record WHERE status<>'failed')") == 0
    assert one("SELECT count(*) FROM record r LEFT JOIN molecule m USING(mol_id) WHERE status IN('ok','duplicate') "
               "AND m.mol_id IS NULL") == 0
    assert one("SELECT count(*) FROM molecule") == one("SELECT count(*) FROM record WHERE status='ok'")
    assert one("SELECT count(*) FROM record WHERE status='ok' AND mol_id<>record_id") == 0
    assert one("PRAGMA integrity_check") == "ok"
    assert project.rows("PRAGMA foreign_key_check", workdir=workdir) == []
    return records, good, failed


def older_model(path, to, change):
    """The same model as an earlier version wrote it: without a checksum, and with what `change` does to its metadata."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    del header["__metadata__"]["sha256"]
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[8 + n:])


def main(tests):
    """One name on the command line: the test to run."""
    tests = {t.__name__: t for t in tests}
    if len(sys.argv) != 2 or sys.argv[1] not in tests:
        print("one of:", *tests)
        sys.exit(2)
    tests[sys.argv[1]]()
    print("passed:", sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single bits of the files of a work directory are flipped at random: every command then either reports it or gives the answer
of the undamaged file. MOLSIEVE_FLIPS: how many; MOLSIEVE_FLIPS_S: for so many seconds at most; MOLSIEVE_SEED: which."""
import glob
import json
import os
import random
import re
import socket
import sqlite3
import subprocess
import time
import zlib

from victim import Screen, Victim, sieve

READING = [["top", "-n", "20", "@"], ["query", "SELECT * FROM v_hits", "@"], ["query", "SELECT * FROM record", "@"],
           ["query", "SELECT m.mol_id, inchikey, s.mean FROM molecule m LEFT JOIN score s USING(mol_id)", "@"],
           ["query", "SELECT * FROM v_funnel", "@"], ["failures", "@"], ["status", "@"], ["status", "--json", "@"],
           ["query", "metric", "@"], ["export", "csv", "--all", "@"], ["report", "-o", "page.html", "@"], ["db", "digest", "--results-only", "@"]]


class Flips:
    """Draws random bits, and counts the outcomes."""

    def __init__(self, few):
        self.n = int(os.environ.get("MOLSIEVE_FLIPS", few))
        self.seed = int(os.environ.get("MOLSIEVE_SEED", "1"))
        self.noticed = self.harmless = 0
        self.wrong = []

    def each(self, data):
        rng = random.Random(self.seed)
        end = time.time() + float(os.environ.get("MOLSIEVE_FLIPS_S", "1e9"))
        for k in range(self.n):
            if time.time() > end:
                self.n = k
                break
            self.at, self.bit = rng.randrange(len(data)), rng.randrange(8)
            yield data[:self.at] + bytes([data[self.at] ^ 1 << self.bit]) + data[self.at + 1:]

    def judge(self, noticed, same, what=""):
        self.noticed += noticed and same
        self.harmless += same and not noticed
        if not same:
            self.wrong.append((self.at, self.bit, what))
            print(("WRONG: byte %d, bit %d: %s" % self.wrong[-1])[:400], flush=True)

    def end(self, what):
        print("%s: %d flips, %d noticed, %d harmless, %d wrong" % (what, self.n, self.noticed, self.harmless, len(self.wrong)))
        assert not self.wrong and self.noticed + self.harmless == self.n


def ask(v, workdir, commands=READING):
    """(status, output) of each reading command."""
    out = []
    for args in commands:
        p = subprocess.run(v.command(*[a.replace("@", workdir) for a in args]), cwd=v.dir, capture_output=True, timeout=280)
        assert p.returncode in (0, 5), (args, p.returncode, p.stderr)
        said = open(v.path("page.html"), "rb").read() if args[0] == "report" and p.returncode == 0 else p.stdout
        out.append((p.returncode, said))
    return out


def put(v, name, data):
    """Replaces the database and removes the files that SQLite left beside the earlier one."""
    for path in glob.glob(v.path(name) + "-*"):
        os.unlink(path)
    v.put(name, data)


def finish(v, *args):
    """Status of `run`, and if it is 0 the digests: None where `db digest` refuses."""
    status, _, err = v.run("run", "w.yaml", "-q", "-j", "2", "workdir=hurt", *args, expect=None)
    assert status in (0, 5), (status, err)
    if status != 0:
        return status, None, err
    digest, out, err = v.run("db", "digest", "hurt", expect=None)
    assert digest in (0, 5), (digest, err)
    return status, out if digest == 0 else None, err


def a_flipped_bit_of_results_is_noticed_or_harmless():
    flips = Flips(10)
    with Victim(60) as v:
        v.go("hurt")
        want, digest = ask(v, "hurt"), v.digest("hurt")
        assert all(status == 0 for status, _ in want), want
        data = open(v.path("hurt/results.db"), "rb").read()
        for hurt in flips.each(data):
            put(v, "hurt/results.db", hurt)
            got = ask(v, "hurt")
            status, after, _ = finish(v)
            wrong = [args for args, g, w in zip(READING, got, want) if g[0] == 0 and g[1] != w[1]]
            if status == 0 and after not in (digest, None):  # all is done: `run` need not meet the page, `db digest` reads all rows
                wrong.append("run")
            flips.judge(status != 0 or after is None or any(g[0] for g in got), not wrong, wrong)
        flips.end("results.db, %d bytes, %d commands and `run`" % (len(data), len(READING)))


def results_only(v):
    """The digest of results.db alone: nothing in features.db may change it."""
    return v.run("db", "digest", "--results-only", "hurt")[1]


def a_damaged_page_of_any_table_is_never_passed_over():
    """The first page of each table and index: `status` once printed empty tables instead of an error."""
    with Victim(60) as v:
        v.go("hurt")
        quick = [args for args in READING if args[0] in ("status", "failures", "top")]
        data, want = open(v.path("hurt/results.db"), "rb").read(), ask(v, "hurt", quick)
        size = int.from_bytes(data[16:18], "big")
        for name, page in v.rows("SELECT name, rootpage FROM sqlite_master WHERE rootpage>0", workdir="hurt"):
            at = (page - 1) * size + (104 if page == 1 else 4)  # the number of its rows or children
            put(v, "hurt/results.db", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            for args, g, w in zip(quick, ask(v, "hurt", quick), want):
                assert g[0] == 5 or g == w, (name, args, g)
                assert g[0] == 5 or name not in ("stage", "unit") or args[0] != "status", (name, args)


def a_damaged_name_in_the_sums_of_rows_is_refused():
    """A table with another name in row_sum is reported as damage (earlier: status 1, also from `db check`)."""
    with Victim(60) as v:
        v.go("hurt")
        data = open(v.path("hurt/results.db"), "rb").read()
        size = int.from_bytes(data[16:18], "big")
        page = v.one("SELECT rootpage FROM sqlite_master WHERE name='row_sum'", workdir="hurt")
        for name, in v.rows("SELECT tbl FROM row_sum WHERE tbl IN('label','score','hit','stage','molecule')", workdir="hurt"):
            at = data.index(name.encode(), (page - 1) * size, page * size) + 1
            put(v, "hurt/results.db", data[:at] + bytes([data[at] ^ 4]) + data[at + 1:])
            for args in (["db", "check", "hurt"], ["run", "w.yaml", "-q", "workdir=hurt"]):
                _, out, err = v.run(*args, expect=5)
                assert "row_sum" in out + err or "the checksum of its rows differs" in out + err, (name, out, err)


def features_hold(v, flips, results, hurt, want, alone):
    """A run that ends with 0 has the right results, and the digest of features.db is right or `db digest` and `db check` refuse it."""
    put(v, "hurt/results.db", results)
    put(v, "hurt/features.db", hurt)
    check, said, _ = v.run("db", "check", "hurt", expect=None)
    status, got, err = finish(v, "--until", "basis")
    right = status != 0 or (results_only(v) == alone and (got == want or (got is None and check == 5)))
    flips.judge(status != 0 or check != 0 or "damaged" in err, right, (check, said, err, got, want))
    return status == 0 and got is None


def a_flipped_bit_of_features_is_noticed_or_harmless():
    """The stages up to `prepare` are done; those after it read their blocks."""
    flips, refused = Flips(8), 0
    with Victim(60) as v:
        v.go("hurt", "--until", "prepare")
        data = {name: open(v.path("hurt", name), "rb").read() for name in ("results.db", "features.db")}
        _, want, _ = finish(v, "--until", "basis")
        alone = results_only(v)
        for hurt in flips.each(data["features.db"]):
            refused += features_hold(v, flips, data["results.db"], hurt, want, alone)
        flips.end("features.db, %d bytes, `run`, `db check` and `db digest`; results right and the digest refused %d" %
                  (len(data["features.db"]), refused))


def names_of_blocks(data):
    """Places of a block's kind or key, in a row or in the index: (byte, bit)."""
    found = [m.start() + 1 for m in re.finditer(b"record|conformer", data)]
    return [(at, bit) for at in found for bit in (0, 4)]


def a_flipped_bit_of_a_name_of_a_block_is_noticed():
    """Two bits of each kind's name, at each of its places: in the rows, which an index finds, and in the index."""
    flips = Flips(0)
    with Victim(60) as v:
        v.go("hurt", "--until", "prepare")
        data = {name: open(v.path("hurt", name), "rb").read() for name in ("results.db", "features.db")}
        _, want, _ = finish(v, "--until", "basis")
        alone, whole = results_only(v), data["features.db"]
        for flips.at, flips.bit in names_of_blocks(whole):
            flips.n += 1
            hurt = whole[:flips.at] + bytes([whole[flips.at] ^ 1 << flips.bit]) + whole[flips.at + 1:]
            features_hold(v, flips, data["results.db"], hurt, want, alone)
        assert flips.n > 20, flips.n
        flips.end("names of blocks in features.db")


def verified(v):
    """The outcome of `model verify`, of `model info` and of a screen with a model."""
    out = []
    for args in (["model", "verify", "m.safetensors"], ["model", "info", "m.safetensors"]):
        status, said, _ = v.run(*args, expect=None)
        assert status in (0, 5), (args, status)
        out.append(status or said)
    status, _, err = v.run("run", "w.yaml", "-q", "-j", "2", "workdir=hurt", expect=None)
    assert status in (0, 2, 5), (status, err)
    return out + [status or v.rows("SELECT mol_id, mean FROM score ORDER BY 1", workdir="hurt")]


def without_sums(said):
    return [line for line in said.splitlines() if "sha256" not in line] if isinstance(said, str) else said


def a_flipped_bit_of_a_model_is_noticed_or_harmless():
    """`model verify`, `model info` and the screen each refuse the file, or print the same as for the undamaged one."""
    flips = Flips(20)
    with Screen(60) as v:
        v.go("half", "--until", "basis")
        v.copy("half", "hurt")
        data, want = open(v.path("m.safetensors"), "rb").read(), verified(v)
        for hurt in flips.each(data):
            v.copy("half", "hurt")
            v.put("m.safetensors", hurt)
            got = verified(v)
            wrong = [k for k in range(3) if got[k] not in (2, 5) and without_sums(got[k]) != without_sums(want[k])]
            flips.judge(any(g in (2, 5) for g in got), not wrong, (wrong, got[:2]))
        flips.end("a model file, %d bytes, `model verify`, `model info`, `run`" % len(data))


def a_flipped_bit_of_a_checkpoint_is_noticed_or_harmless():
    flips = Flips(3)
    with Victim(60) as v:
        v.go("half", "--until", "split")
        env = dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:3")
        v.go("half", expect=137, env=env)
        v.copy("half", "hurt")
        want = finish(v)[1], v.answer("hurt")
        name = os.path.relpath(glob.glob(v.path("half/checkpoints/*/latest.ckpt"))[0], v.path("half"))
        data = open(v.path("half", name), "rb").read()
        for hurt in flips.each(data):
            v.copy("half", "hurt")
            v.put("hurt/" + name, hurt)
            status, got, _ = finish(v)
            said = v.rows("SELECT message FROM event WHERE level='warn' AND message LIKE '%previous.ckpt%'", workdir="hurt")
            flips.judge(status != 0 or len(said) > 0, status != 0 or (got, v.answer("hurt")) == want)
        flips.end("latest.ckpt, %d bytes, resumed trainings" % len(data))


def a_flipped_bit_of_the_heartbeat_is_noticed_or_harmless():
    flips = Flips(40)
    with Victim(60) as v:
        v.go("run", "--until", "read")
        beat = json.load(open(v.path("run/heartbeat.json")))
        assert beat.pop("crc32"), beat
        beat.update(host="not-" + socket.gethostname(), state="running", at_utc="2020-01-01T00:00:00Z")
        text = json.dumps(beat)[:-1].encode()
        data = text + b',"crc32":"%08x"}\n' % zlib.crc32(text)
        v.put("run/heartbeat.json", data)
        _, want, _ = v.run("status", "run", "--json")
        assert "not-" in want, want
        for hurt in flips.each(data):
            v.put("run/heartbeat.json", hurt)
            _, got, err = v.run("status", "run", "--json")
            flips.judge("heartbeat.json: damaged" in err, got == want or "heartbeat.json: damaged" in err, got)
        flips.end("heartbeat.json, %d bytes, `status`" % len(data))


def same(got, want, what):
    for args, g, w in zip(READING, got, want):
        assert g == w, (what, args, g[0], g[1][-300:], w[1][-300:])


def by_hand(path, sql):
    db = sqlite3.connect(path)
    db.executescript(sql)
    db.close()


# SQLite likes to read from an index that has all columns of a query, in its order.
INDEXES = ["molecule(mw)", "record(mol_id,title)", "property(name,unit)", "failure(mol_id,stage)", "score(mol_id,mean)", "label(mol_id,value)",
           "stage(name,key,params_json,extra_json,code_version)"]
OTHERS = ["CREATE TABLE mine(a); INSERT INTO mine SELECT mol_id FROM molecule;" + "".join(
              "CREATE INDEX my_%d ON %s;" % pair for pair in enumerate(INDEXES)),
          "VACUUM;", "PRAGMA journal_mode=DELETE;", "DROP TABLE mine; ANALYZE;", "CREATE VIEW my_view AS SELECT * FROM molecule;"]


def other_programs_may_write_tables_of_their_own():
    with Victim(60) as v:
        # Records that repeat a molecule have a title of their own, before the first one in the alphabet.
        *records, end = open(v.path("in.sdf"), "rb").read().split(b"$$$$\n")
        records[-3:] = [b"again\n" + r.split(b"\n", 1)[1] for r in records[-3:]]
        v.put("in.sdf", b"$$$$\n".join(records + [end]))
        v.go("run")
        want, digest = ask(v, "run"), v.digest("run")
        assert sum(b"; again" in said for _, said in want) >= 2
        for sql in OTHERS:
            by_hand(v.path("run/results.db"), sql)
            same(ask(v, "run"), want, sql)
            v.run("db", "check", "run")
            before = os.path.getmtime(v.path("run/results.db"))
            assert ask(v, "run") == want and os.path.getmtime(v.path("run/results.db")) == before, sql  # a reader writes nothing
            v.go("run")
            assert v.digest("run") == digest, sql
            want = ask(v, "run")  # `status` shows that run
        v.run("db", "check", "run")
        # After that run all pages have checksums again: a page is never left unchecked for good.
        data = bytearray(open(v.path("run/results.db"), "rb").read())
        assert data[20] == 8, data[20]
        root, = v.rows("SELECT rootpage FROM sqlite_master WHERE name='molecule'")[0]
        size = int.from_bytes(data[16:18], "big")
        data[root * size - data[20] - 1] ^= 1  # of the last cell: a bit that no cell has is harmless, as is one of a free page
        put(v, "run/results.db", bytes(data))
        assert any(status for status, _ in ask(v, "run")) or v.run("db", "check", "run", expect=None)[0] == 5


def a_table_changed_by_others_is_reported_and_can_be_kept():
    with Victim(60) as v:
        v.go("run")
        path = v.path("run/results.db")
        before = ask(v, "run")
        by_hand(path, "UPDATE score SET mean=mean+1 WHERE mol_id=(SELECT min(mol_id) FROM score)")
        _, _, err = v.run("query", "SELECT sum(mean) FROM score", "run", expect=5)
        assert "results.db" in err and "table score" in err and "another program" in err, err
        _, out, _ = v.run("db", "check", "run", expect=5)
        assert "table score" in out, out
        by_hand(path, "DELETE FROM row_sum")
        assert v.run("query", "SELECT sum(mean) FROM score", "run")[0] == 0 and ask(v, "run") != before
        v.run("db", "check", "run")
        v.go("run")  # computes the sums again
        v.run("db", "check", "run")
        by_hand(path, "DELETE FROM hit WHERE rank=1")
        v.run("query", "SELECT * FROM hit", "run", expect=5)


if __name__ == "__main__":
    sieve.main([a_flipped_bit_of_results_is_noticed_or_harmless, a_damaged_page_of_any_table_is_never_passed_over,
                a_damaged_name_in_the_sums_of_rows_is_refused, a_flipped_bit_of_features_is_noticed_or_harmless,
                a_flipped_bit_of_a_name_of_a_block_is_noticed, a_flipped_bit_of_a_model_is_noticed_or_harmless,
                a_flipped_bit_of_a_checkpoint_is_noticed_or_harmless, a_flipped_bit_of_the_heartbeat_is_noticed_or_harmless,
                other_programs_may_write_tables_of_their_own, a_table_changed_by_others_is_reported_and_can_be_kept])

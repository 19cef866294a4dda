#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a person sees in a terminal of 80 columns: no line is longer, and no word is broken. Pipes get one line a message."""
import fcntl
import os
import re
import sqlite3
import struct
import subprocess
import termios

from sieve import PROGRAM, Project, main

COLUMNS = 80
TOPICS = "stages yaml workflow exit-codes environment read prepare graph basis split train evaluate score rank write".split()


def terminal(args, folder, columns=COLUMNS):
    """Exit status and lines of the program in a terminal; of a line that was overwritten, what stays."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([PROGRAM, *args], cwd=folder, stdin=subprocess.DEVNULL, stdout=its, stderr=its,
                             env=dict(os.environ, TERM="xterm", NO_COLOR="1"))
    os.close(its)
    out = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        out += part
    os.close(ours)
    text = out.decode().replace("\r\n", "\n")
    return child.wait(120), [line.rpartition("\r")[2].replace("\033[K", "") for line in text.split("\n")]


def commands(p):
    return re.findall(r"^  ([a-z]+) ", p.run("--help")[1], re.M)


def help_fits_80_columns_in_terminals_and_pipes():
    with Project() as p:
        names = commands(p)
        assert len(names) > 20, names
        for args in [["--help"]] + [[name, "--help"] for name in names] + [["help", topic] for topic in TOPICS]:
            status, lines = terminal(args, p.dir)
            assert status == 0 and max(map(len, lines)) <= COLUMNS, (args, max(lines, key=len))
            assert p.run(*args)[1].split("\n") == lines, args
        assert max(map(len, p.run("help", "--defaults")[1].splitlines())) <= COLUMNS
        for name in names:  # what is said about a command was written for 80 columns: no line of it is broken
            about = terminal([name, "--help"], p.dir, 300)[1]
            about = about[1:about.index("Options:")] if "Options:" in about else about[1:]
            assert max(map(len, about)) <= COLUMNS, (name, max(about, key=len))
        wide = terminal(["run", "--help"], p.dir, 200)[1]
        assert max(map(len, wide)) > COLUMNS and "Options:" in wide


# Longer lines: a command to copy, one word that does not fit (a path, a SMILES, JSON), or a line of a script or file.
def is_too_long(line):
    word = max(line.split(), key=len, default="")
    return len(line) > COLUMNS and not line.startswith("  molsieve ") and line.strip() != word


def output_of_a_screen_fits_80_columns():
    with Project() as p:
        assert p.run("init", "demo")[1]
        folder = p.path("demo")
        w = "workflows/screen.yaml"
        top = "stages.rank.top=20"
        with open(os.path.join(folder, "workflows/data/library.smi")) as f:
            some = f.readlines()[:40]  # with a record that no model knows
        p.put("demo/workflows/data/library.smi", "".join(some))
        for args in (("check", w), ("plan", w), ("run", w, "-j", "2"), ("run", w), ("plan", w, top), ("explain", w, "score", top), ("status",),
                     ("failures",), ("failures", "--code", "element"), ("top",), ("query",), ("query", "v_hits"), ("query", "v_funnel"),
                     ("report",), ("db", "check"), ("db", "digest"), ("db", "schema"), ("model", "info", "workflows/models/esol.safetensors"),
                     ("model", "verify", "workflows/models/esol.safetensors"), ("doctor",), ("retry", w, "-n"), ("run", w, top),
                     ("conformers", "workflows/data/qm9-30.sdf", "-o", "c.sdf"), ("energy", "c.sdf"), ("merge", w), ("merge", w, "--of", "3"),
                     ("check", "none.yaml"), ("check", w, "stages.rank.topp=3"), ("rum",), ("run", "--jbos"), ("check", w, "stages.rank.top=x"),
                     ("run", w, "--log", "runs/screen/results.db")):
            _, lines = terminal(args, folder)
            long = [line for line in lines if is_too_long(line)]
            assert not long and not any(line.endswith(" ") and line.strip() for line in lines if args[0] not in ("query", "top")), (args, long)


def output_about_molecules_fits_80_columns():
    """Also what is said of a wrong model, pattern, table or database."""
    with Project() as p:
        assert p.run("init", "demo")[1]
        folder, esol = p.path("demo"), "workflows/data/esol.csv"
        rows = open(os.path.join(folder, esol)).readlines()
        p.put("demo/few.csv", "".join(rows[:60]))
        p.put("demo/noble.smi", "CCO ethanol\n[Xe] noble\n")
        p.put("demo/cut.smi", "CCO ethanol\nCC")
        p.put("demo/text.db", "no database\n" * 100)
        sqlite3.connect(p.path("demo/other.db")).execute("CREATE TABLE t(a)").connection.commit()
        with open(os.path.join(folder, "workflows/data/library.smi")) as f:
            some = f.readlines()[:40]
        p.put("demo/workflows/data/library.smi", "".join(some))
        for args in (("run", "workflows/screen.yaml", "-q"), ("init", "second folder"), ("init",), ("fit", "few.csv", "--target", "logS", "--family", "trees", "-o", "m"),
                     ("fit", "few.csv", "--target", "logP"), ("predict", "esol", "few.csv", "-o", "out.csv"), ("predict", "esol", "noble.smi", "-o", "o.csv"),
                     ("predict", "esl", "few.csv"), ("predict", "esol", "none.smi"), ("predict", "esol", "cut.smi", "-o", "p.csv"), ("show", "1"), ("show", "CCO"),
                     ("search", "--smarts", "c1ccccc1"), ("search", "--similar", "CCO"), ("search", "--scaffold", "c1ccccc1"),
                     ("search", "--smarts", "c1ccc("), ("search", "--smarts", "C", "other.db"), ("search", "--smarts", "C", "text.db"),
                     ("show", "1", "other.db"), ("next", "-n", "5"), ("next", "-n", "5", "--by", "ucb"), ("next", "--by", "best"),
                     ("export", "csv", "-o", "e.csv"), ("label", "runs/screen", "few.csv")):
            _, lines = terminal(args, folder)
            long = [line for line in lines if is_too_long(line)]
            assert not long, (args, long)


def a_pipe_gets_each_message_on_one_line():
    with Project() as p:
        p.put("a.smi", "CCO\n")
        w = p.workflow(["a.smi"], "  read: {}\n")
        err = p.run("merge", w, expect=2)[2]
        assert err.count("\n") == 1 and len(err) > COLUMNS, err
        _, lines = terminal(["merge", w], p.dir)
        assert len(lines) > 2 and " ".join(line.strip() for line in lines).strip() == err.strip(), lines


if __name__ == "__main__":
    main([help_fits_80_columns_in_terminals_and_pipes, output_of_a_screen_fits_80_columns, output_about_molecules_fits_80_columns,
          a_pipe_gets_each_message_on_one_line])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine around the program: too few open files or inodes, no /dev/null, files that cannot be read. A failure names its cause."""
import ctypes
import os
import resource

from sieve import Project, main, skip

FLAT = "  read: {}\n  prepare: {conformers: {source: none}}\n"
SMILES = "CCO one\nCCN two\nc1ccccc1O three\n"


def with_files(n):
    """For preexec_fn: at most n open files."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def project(p):
    p.put("a.smi", SMILES)
    return p.workflow(["a.smi"], FLAT)


def a_database_that_cannot_be_opened_is_named():
    with Project() as p:
        p.run("run", project(p), "-q")
        seen = set()
        for words in (["db", "check", "run"], ["db", "digest", "run"], ["top", "-n", "1", "run"], ["run", "w.yaml", "-q", "--from", "read"]):
            for n in range(4, 10):
                status, out, err = p.run(*words, expect=None, preexec_fn=with_files(n))
                if "database file" in err:
                    assert status == 6 and "Too many open files" in err and "ulimit -n" in err, (words, n, status, err)
                    seen |= {name for name in ("results.db", "features.db") if name in err}
                    assert "results.db" in err or "features.db" in err, (words, n, err)
        assert seen == {"results.db", "features.db"}, seen
        os.unlink(p.path("run/features.db"))
        os.mkdir(p.path("run/features.db"))
        err = p.run("db", "digest", "run", expect=6)[2]
        assert "run/features.db" in err, err


def libc_of_root():
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() != 0:
        skip("needs root")
    return libc


def a_file_system_without_inodes_is_named():
    libc = libc_of_root()
    with Project() as p:
        w, small = project(p), p.path("small")
        os.mkdir(small)
        for n in range(2, 10):
            if libc.mount(b"tmpfs", small.encode(), b"tmpfs", 0, b"size=100m,nr_inodes=%d" % n) != 0:
                skip("no tmpfs can be mounted here")
            try:
                status, _, err = p.run("run", w, "-q", "workdir=small", expect=None)
                assert status == 6 and "inodes" in err and "/small/" in err, (n, status, err)
                assert libc.mount(b"tmpfs", small.encode(), b"tmpfs", 32, b"nr_inodes=1000") == 0  # MS_REMOUNT
                p.run("run", w, "-q", "workdir=small")
                assert p.one("SELECT count(*) FROM molecule", workdir="small") == 3
            finally:
                libc.umount(small.encode())


if __name__ == "__main__":
    main([a_database_that_cannot_be_opened_is_named, a_file_system_without_inodes_is_named])

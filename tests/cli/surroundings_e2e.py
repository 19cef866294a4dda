#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine around the program: too few open files or inodes, no /dev/null, files that cannot be read. A failure names its cause."""
import ctypes
import os
import resource
import shutil
import signal
import subprocess

from transcript import screened
from sieve import PROGRAM, Project, main, older_model, skip, until

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


def a_backup_on_a_read_only_disk_says_so():
    libc = libc_of_root()
    with Project() as p:
        p.run("run", project(p), "-q")
        run = p.path("run").encode()
        if libc.mount(run, run, None, 4096, None) != 0:  # MS_BIND
            skip("no folders can be mounted here")
        try:
            assert libc.mount(None, run, None, 4096 | 32 | 1, None) == 0  # MS_BIND | MS_REMOUNT | MS_RDONLY
            for words in (["db", "backup", "run"], ["report", "run"], ["run", "w.yaml"], ["label", "run", "a.smi", "-p", "x"]):
                err = p.run(*words, expect=6)[2]
                assert "Read-only file system" in err and "run" in err, (words, err)
            p.run("db", "check", "run")
        finally:
            libc.umount(run)


def failed_records_do_not_hide_a_full_disk():
    """Status 3 says that some records failed; if the others could not be written, that is 6."""
    if not os.path.exists("/dev/full"):
        skip("there is no /dev/full")
    with Project() as p:
        methane = "methane\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0 0.0 0.0 %s\nM  END\n$$$$\n"
        p.run("conformers", p.put("a.smi", "C one\nCC two\n"), "-o", "a.sdf")
        p.put("b.sdf", open(p.path("a.sdf")).read() + methane % "Qq")
        p.put("bad.smi", "C one\nC(( two\n")
        for words in (["energy", "b.sdf"], ["energy", "--csv", "b.sdf"], ["predict", "esol", "bad.smi"], ["conformers", "bad.smi"]):
            p.run(*words, expect=3)
            with open("/dev/full", "w") as full:
                done = subprocess.run(p.command(*words), cwd=p.dir, stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 6 and "standard output" in done.stderr, (words, done)


def a_features_db_deleted_meanwhile_is_noticed():
    with Project() as p:
        p.put("a.smi", "".join("%s%s m%d\n" % ("C" * (n % 7 + 1), "O" * (n % 2), n) for n in range(400)))
        w = p.workflow(["a.smi"], "  read: {unit: 4}\n" + FLAT.splitlines(True)[1])
        run = subprocess.Popen(p.command("run", w, "-q", "-j", "1"), cwd=p.dir, stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(p.path("run/features.db-wal")) and os.path.getsize(p.path("run/features.db-wal")) > 60000, "no blocks")
        os.kill(run.pid, signal.SIGSTOP)
        for tail in ("", "-wal", "-shm"):
            os.unlink(p.path("run/features.db" + tail))
        os.kill(run.pid, signal.SIGCONT)
        err = run.communicate()[1]
        assert run.returncode == 6 and "features.db was moved or deleted" in err, (run.returncode, err)
        p.run("run", w, "-q")
        p.run("run", w, "-q", "workdir=whole")
        assert p.run("db", "digest", "run")[1] == p.run("db", "digest", "whole")[1]


def a_worker_that_cannot_start_says_what_is_lacking():
    with Project() as p:
        p.put("a.smi", SMILES)
        said = set()
        for n in range(4, 10):
            status, out, err = p.run("predict", "esol", "a.smi", expect=None, preexec_fn=with_files(n))
            if status != 0:
                assert status == 6 and "molsieve-chem" in err, (n, status, err)
                said |= {words for words in ("Too many open files", "ulimit -n") if words in err}
        assert said == {"Too many open files", "ulimit -n"}, said
        shutil.copy(PROGRAM, p.path("molsieve"))
        p.put("molsieve-chem", "#!/bin/sh\nexit 127\n")  # as one whose libraries are not there
        os.chmod(p.path("molsieve-chem"), 0o755)
        done = subprocess.run([p.path("molsieve"), "conformers", "a.smi"], cwd=p.dir, capture_output=True, text=True)
        assert done.returncode == 6 and "cannot be loaded" in done.stderr and p.path("molsieve-chem") in done.stderr, done


def only_conditions_on_structures_need_a_worker():
    with Project() as p:
        screened(p)
        p.run("run", "w.yaml", "-q")
        os.mkdir(p.path("alone"))
        shutil.copy(PROGRAM, p.path("alone/molsieve"))
        for words in (["export", "csv", "runs/one"], ["next", "runs/one", "-n", "2", "--goal", "maximise"]):
            for where, works in (([], True), (["--where", "mw > 60"], True), (["--where", "smarts('CO')"], False)):
                done = subprocess.run([p.path("alone/molsieve"), *words, *where], cwd=p.dir, capture_output=True, text=True)
                assert (done.returncode == 0) == works and ("molsieve-chem" in done.stderr) != works, (words, where, done)


def a_worker_without_processes_stops_the_run():
    """The records are not to blame for a limit of processes, also if it is met in the middle."""
    libc_of_root()
    user = 20000 + os.getpid() % 40000

    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    with Project() as p:
        p.put("a.smi", SMILES)
        w = p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: generate, builder: openbabel}}\n")
        os.chmod(p.dir, 0o777)
        lacked = 0
        for most in range(2, 16):
            status, _, err = p.run("run", w, "-q", "-j", "1", "workdir=run%d" % most, expect=None, preexec_fn=become)
            if status == 0:
                break
            assert status == 6 and "molsieve-chem" in err, (most, status, err)
            lacked += "ulimit -u" in err
        assert status == 0 and lacked > 0, (most, status, lacked)
        assert p.rows("SELECT * FROM failure", workdir="run%d" % most) == []


def a_worker_without_dev_null_says_so():
    libc = libc_of_root()

    def no_devices():
        if libc.unshare(0x00020000) != 0 or libc.mount(None, b"/", None, 0x44000, None) != 0:  # CLONE_NEWNS; MS_REC | MS_PRIVATE
            os._exit(99)
        here = os.open(p.dir, os.O_PATH)  # it may be below /dev itself, in /dev/shm
        if libc.mount(b"tmpfs", b"/dev", b"tmpfs", 0, None) != 0:
            os._exit(99)
        os.makedirs(p.dir, exist_ok=True)
        if libc.mount(b"/proc/self/fd/%d" % here, p.dir.encode(), None, 4096, None) != 0:  # MS_BIND
            os._exit(99)
        os.close(here)

    with Project() as p:
        p.put("a.smi", SMILES)
        w = p.workflow(["a.smi"], FLAT + "  rank: {objectives: [{property: mw, goal: maximise}]}\n")
        status, _, err = p.run("run", w, "-q", expect=None, preexec_fn=no_devices)
        if status == 99:
            skip("no folders can be mounted here")
        assert status == 6 and "/dev/null" in err and "signal" not in err, (status, err)
        p.run("run", w, "-q")
        err = p.run("report", "run", preexec_fn=no_devices)[2]
        assert "3 structures are shown as SMILES only" in err and "/dev/null" in err, err


def a_report_says_what_it_leaves_out():
    with Project() as p:
        p.run("init", "screen", ".")
        p.run("run", "workflows/screen.yaml", "-q", "limits.disk_free_min=0B")
        assert "left out" not in p.run("report", "-o", "a.html")[2]
        whole, model = os.path.getsize(p.path("a.html")), p.path("workflows/models/esol.safetensors")
        older_model(model, model + ".other", lambda metadata: metadata.update(note="another"))
        os.rename(model, model + ".away")
        err = p.run("report", "-o", "b.html")[2]
        assert "molsieve: what moved the scores of a model is left out: %s: No such file or directory\n" % model in err and os.path.getsize(p.path("b.html")) < whole, err
        os.rename(model + ".other", model)
        err = p.run("report", "-o", "b.html")[2]
        assert "is left out: %s: another file than the model that scored\n" % model in err and os.path.getsize(p.path("b.html")) < whole, err


if __name__ == "__main__":
    main([only_conditions_on_structures_need_a_worker, failed_records_do_not_hide_a_full_disk, a_features_db_deleted_meanwhile_is_noticed, a_backup_on_a_read_only_disk_says_so, a_report_says_what_it_leaves_out, a_worker_that_cannot_start_says_what_is_lacking, a_worker_without_dev_null_says_so, a_worker_without_processes_stops_the_run,
          a_database_that_cannot_be_opened_is_named, a_file_system_without_inodes_is_named])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over several processes: real mpirun, and srun in a real Slurm."""
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import time
import uuid

import sieve
import slurm
import train_e2e

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # the tests may run as root, loopback only
LONG = "stages.train.epochs=150"


def mpirun(n):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(n)]


class Launch:
    """One start of the program under a launcher; its ranks are found by a variable in their environment."""

    def __init__(self, p, launcher, *args, env=None):
        self.mark = "MOLSIEVE_TEST_MARK=" + uuid.uuid4().hex
        name, value = self.mark.split("=")
        self.child = subprocess.Popen(launcher + p.command("run", "w.yaml", "-q", *args), cwd=p.dir, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=dict(os.environ if env is None else env, **ROOT, **{name: value}))

    def ranks(self):
        """Rank -> process id."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid) as f:
                    env = f.read().split("\0")
                exe = os.path.basename(os.readlink("/proc/%s/exe" % pid))
            except (OSError, UnicodeDecodeError):
                continue
            rank = [e.split("=")[1] for e in env if e.startswith("PMIX_RANK=")]
            if self.mark in env and exe == "molsieve" and rank:
                found[int(rank[0])] = int(pid)
        return found

    def started(self, n):
        for _ in range(6000):
            found = self.ranks()
            if len(found) == n:
                return found
            assert self.child.poll() is None, self.end()
            time.sleep(0.02)
        raise AssertionError("not %d ranks: %s" % (n, found))

    def end(self):
        out, err = self.child.communicate(timeout=600)
        for _ in range(600):  # the launcher may end a moment before its ranks
            if not self.ranks():
                return self.child.returncode, out + err
            time.sleep(0.1)
        raise AssertionError("ranks are left over: %s" % self.ranks())


def run(p, launcher, *args, expect=0, **more):
    status, text = Launch(p, launcher, *args, **more).end()
    assert status == expect, "%s %s: %d, %d expected\n%s" % (launcher, args, status, expect, text)
    return text


def prepare(p, n=90, shards=4, mpi=True):
    """`run` has all stages before the training, `whole` the result of one process."""
    if mpi and shutil.which("mpirun") is None:
        sieve.skip("there is no mpirun; packages openmpi-bin and libopenmpi-dev")
    p.put("in.sdf", sieve.sdf_records(sieve.data(train_e2e.SDF), n))
    stages = train_e2e.train_stages().replace("molecules: 8}", "molecules: 8, shards: %d}" % shards)
    p.workflow(["in.sdf"], stages)
    p.run("run", "w.yaml", "-q", "--until", "split")


def copy(p, name):
    shutil.rmtree(p.path(name), ignore_errors=True)
    shutil.copytree(p.path("run"), p.path(name))
    return "workdir=" + name


def ranks_seen(p, workdir):
    return [m for (m,) in p.rows("SELECT message FROM event WHERE message LIKE 'training with%'", workdir=workdir)]


def any_number_of_ranks_gives_the_same_model():
    with sieve.Project() as p:
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"))
        want = train_e2e.trained(p, "whole")
        for n in (2, 3, 4, 2):
            run(p, mpirun(n), copy(p, "ranks"))
            assert train_e2e.trained(p, "ranks") == want, "%d ranks" % n
            assert ranks_seen(p, "ranks") == ["training with %d ranks" % n]
            assert p.rows("SELECT ranks FROM run ORDER BY run_id", workdir="ranks") == [(1,), (n,)]
        lamb = "stages.train.optimiser.type=lamb"
        p.run("run", "w.yaml", "-q", copy(p, "whole_lamb"), lamb)
        run(p, mpirun(3), copy(p, "ranks"), lamb)
        assert train_e2e.trained(p, "ranks") == train_e2e.trained(p, "whole_lamb")
        assert train_e2e.trained(p, "ranks")[0] != want[0]
        # a smooth loss: with l1 the sign of a rounding error decides the direction of a step
        p.run("run", "w.yaml", "-q", copy(p, "four"), "stages.train.loss=l2")
        p.run("run", "w.yaml", "-q", copy(p, "one"), "stages.train.loss=l2", "stages.train.batch.shards=1")
        for a, b in zip(p.rows(train_e2e.METRICS, workdir="one"), p.rows(train_e2e.METRICS, workdir="four")):
            assert a[:5] == b[:5] and abs(a[5] - b[5]) <= 1e-5 * abs(b[5]) + 1e-6, (a, b)
        assert train_e2e.trained(p, "one")[0][0] != train_e2e.trained(p, "four")[0][0], "shards are summed, in whatever order"


def a_killed_rank_ends_all_and_the_run_goes_on():
    """kill -9 of any rank; continued by other numbers of ranks and by one process: the same bits as an undisturbed run."""
    rng = random.Random(7)
    with sieve.Project() as p:
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where, kills = copy(p, "killed"), 0
        for n in (2, 3, 2, 2):  # during the training: while ranks start, Open MPI 4.1's mpirun itself may hang after a kill
            seen = p.one("SELECT count(*) FROM metric", workdir="killed")
            job = Launch(p, mpirun(n), where, LONG, "stages.train.checkpoint.every=1s")
            victims = job.started(n)
            wait_for_metrics(p, "killed", seen)
            time.sleep(rng.uniform(0, 0.3))
            try:
                os.kill(victims[kills % n], signal.SIGKILL)
            except ProcessLookupError:
                pass
            began = time.time()
            status, text = job.end()
            assert status in (0, 137), (status, text)
            assert time.time() - began < 60
            kills += status == 137
            if status == 0:
                break
        assert kills > 0, "never hit"
        run(p, mpirun(4), where, LONG)
        assert train_e2e.trained(p, "killed") == want, "after %d kills" % kills
        p.run("db", "check", p.path("killed"))
        print("kills:", kills)


def wait_for_metrics(p, workdir, more_than=0):
    for _ in range(6000):
        n = p.one("SELECT count(*) FROM metric", workdir=workdir)
        if n > more_than:
            return n
        time.sleep(0.02)
    raise AssertionError("no epoch ended")


def a_signal_to_any_rank_stops_all_with_75():
    """TERM to one rank, USR1 to the launcher, the time limit; one process then continues to the same bits."""
    with sieve.Project() as p:
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        slow = ["stages.train.epochs=60000"]
        where = copy(p, "stopped")
        for who in (1, 0, None):
            job = Launch(p, mpirun(2), where, *slow)
            ranks = job.started(2)
            n = wait_for_metrics(p, "stopped", p.one("SELECT count(*) FROM metric", workdir="stopped"))
            if who is None:
                job.child.send_signal(signal.SIGUSR1)
            else:
                os.kill(ranks[who], signal.SIGTERM)
            status, text = job.end()
            assert status == 75, (who, status, text)
            assert p.one("SELECT count(*) FROM event WHERE message LIKE 'training continues%'", workdir="stopped") == \
                   (0 if who == 1 else 1 if who == 0 else 2), (who, n)
        where, stops = copy(p, "stopped"), 0
        for after in (0.1, 0.4, 0.6, 0.8):
            status, text = Launch(p, mpirun(3), where, LONG, "--max-time", "%ss" % after).end()
            assert status in (0, 75), (status, text)
            stops += status == 75
        assert stops > 0, "never stopped"
        p.run("run", "w.yaml", "-q", where, LONG)
        assert train_e2e.trained(p, "stopped") == want


def a_rank_that_is_stuck_ends_all_with_7():
    with sieve.Project() as p:
        prepare(p, 60)
        for who in (0, 1):
            job = Launch(p, mpirun(2), copy(p, "stuck"), "stages.train.epochs=60000", "stages.train.rank_timeout=5s")
            ranks = job.started(2)
            wait_for_metrics(p, "stuck")
            os.kill(ranks[who], signal.SIGSTOP)
            began = time.time()
            status, text = job.end()
            assert status == 7 and "lost or stuck" in text, (who, status, text)
            assert time.time() - began < 60
        p.run("run", "w.yaml", "-q", "workdir=stuck")


def impossible_rank_settings_are_refused_before_work():
    with sieve.Project() as p:
        prepare(p, 60, shards=2)
        text = run(p, mpirun(3), "workdir=no", expect=2)
        assert "3 ranks, but a batch has only 2 shards: with stages.train.batch.shards=3 any number of ranks up to 3 gives the same model" in text, text
        p.workflow(["in.sdf"], "  read: {}\n", name="read.yaml", workdir="no")
        job = subprocess.run(mpirun(2) + p.command("run", "read.yaml", "-q"), cwd=p.dir, capture_output=True, text=True,
                             env=dict(os.environ, **ROOT))
        assert job.returncode == 2 and "this workflow has none" in job.stderr, job
        started = dict(os.environ, **ROOT, RANK="0", WORLD_SIZE="2", LOCAL_RANK="0")  # by a launcher that MPI knows nothing of
        text = p.run("run", "w.yaml", "-q", "workdir=no", "stages.train.ranks=mpi", expect=7, env=started)[2]
        assert re.search(r"the launcher started 2 ranks, the MPI of the plugin \(.+\) sees 1: are they the same MPI\?", text), text
        bare = p.path("bare")  # the program without its plugin
        os.mkdir(bare)
        here = os.path.dirname(os.path.abspath(sieve.PROGRAM))
        for name in ("molsieve", "molsieve-chem"):
            shutil.copy(os.path.join(here, name), bare)
        was, sieve.PROGRAM = sieve.PROGRAM, os.path.join(bare, "molsieve")
        try:
            text = run(p, mpirun(2), "workdir=no", expect=2)
            assert "libmolsieve_mpi.so is not beside the program, in ../lib/molsieve or in $MOLSIEVE_PLUGINS: " \
                "build it where an MPI is installed, or set stages.train.ranks=none" in text, text
            p.run("run", "w.yaml", "-q", "workdir=alone", "stages.train.batch.shards=1")
            assert "no plugin" in p.run("doctor", expect=None)[1]
            good = dict(os.environ, MOLSIEVE_PLUGINS=here)
            run(p, mpirun(2), "workdir=plugged", env=good)
            shutil.copy(p.path("w.yaml"), os.path.join(bare, "libmolsieve_mpi.so"))
            text = run(p, mpirun(2), "workdir=no", expect=2)
            assert "libmolsieve_mpi.so" in text, text
            assert "bad" in p.run("doctor", expect=1)[1]
            p.put("none.c", "int none(void) { return 0; }\n")
            for out, more in (("libnone.so", []), ("bare/libmolsieve_mpi.so", ["-Wl,--no-as-needed", "-L" + p.dir, "-lnone"])):
                subprocess.run(["cc", "-shared", "-fPIC", "-o", p.path(out), p.path("none.c"), *more], check=True)
            os.unlink(p.path("libnone.so"))  # an MPI whose module is not loaded
            text = p.run("doctor", expect=None)[1]
            assert "note  ranks" in text and "libnone.so: cannot open shared object file" in text, text
        finally:
            sieve.PROGRAM = was
        assert not os.path.exists(p.path("no")), "something was done"
        assert "Open MPI" in p.run("doctor", expect=None)[1]


class Started:
    """Ranks without an MPI: processes with the variables of torchrun, which is what any script can do."""

    def __init__(self, p, n, *args, programs={}, own={}, **more):
        self.p, self.children = p, []
        for rank in range(n):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(n), LOCAL_RANK=str(rank), **more, **own.get(rank, {}))
            command = p.command("run", "w.yaml", "-q", *args)
            command[0] = programs.get(rank, command[0])
            self.children.append(subprocess.Popen(command, cwd=p.dir, text=True, env=env,
                                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def end(self):
        ended = [c.communicate(timeout=600) for c in self.children]
        return [c.returncode for c in self.children], [a + b for a, b in ended]


def learned_from_limits(p):
    """Every other gap is only known to be below a number, or above."""
    signs = itertools.cycle(["<", "", ">", ""])
    p.put("limits.sdf", re.sub(r"(> +<gap>.*\n)", lambda m: m[1] + next(signs), open(p.path("in.sdf")).read()))
    more = ["inputs=[{path: limits.sdf}]", "stages.read.censored=bound"]
    p.run("run", "w.yaml", "-q", "workdir=bounds", "--until", "split", *more)
    shutil.copytree(p.path("bounds"), p.path("bounds_ranks"))
    p.run("run", "w.yaml", "-q", "workdir=bounds", *more)
    status, text = Started(p, 2, "workdir=bounds_ranks", *more).end()
    assert status == [0, 0] and train_e2e.trained(p, "bounds_ranks") == train_e2e.trained(p, "bounds"), (status, text)


def ranks_over_tcp_give_the_same_model():
    with sieve.Project() as p:
        prepare(p, mpi=False)
        p.run("run", "w.yaml", "-q", copy(p, "whole"))
        want = train_e2e.trained(p, "whole")
        for n, more in ((2, {}), (3, {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(sieve.free_port())}),
                        (2, {"MOLSIEVE_MASTER": "localhost:%d" % sieve.free_port()})):
            status, text = Started(p, n, copy(p, "ranks"), **more).end()
            assert status == [0] * n, (status, text)
            assert train_e2e.trained(p, "ranks") == want, "%d ranks" % n
            assert ranks_seen(p, "ranks") == ["training with %d ranks" % n]
            assert p.run("db", "digest", "ranks") == p.run("db", "digest", "whole")
            assert not [f for f in os.listdir(p.path("ranks")) if f.startswith("ranks-")], "a file is left"
        two = ["stages.prepare.labels=[gap, mu]", "stages.train.targets=[{name: gap}, {name: mu}]"]
        p.run("run", "w.yaml", "-q", copy(p, "two"), "--until", "split", *two)
        shutil.copytree(p.path("two"), p.path("two_ranks"))
        p.run("run", "w.yaml", "-q", "workdir=two", *two)
        status, text = Started(p, 2, "workdir=two_ranks", *two).end()
        assert status == [0, 0] and train_e2e.trained(p, "two_ranks") == train_e2e.trained(p, "two"), (status, text)
        learned_from_limits(p)
        status, text = Started(p, 2, copy(p, "ranks"), "stages.train.budget=1ms", "stages.train.epochs=auto").end()
        assert status == [0, 0] and "so 1 epoch for" in text[0], (status, text)
        assert p.rows("SELECT value FROM metric WHERE name='planned_epochs'", workdir="ranks") == [(1,)]
        assert p.one("SELECT max(epoch) FROM metric WHERE split='train'", workdir="ranks") == 1


def a_rank_lost_over_tcp_ends_all_and_the_run_resumes():
    """With an optimiser that keeps more than moments."""
    with sieve.Project() as p:
        prepare(p, mpi=False)
        text = open(p.path("w.yaml")).read()
        p.put("w.yaml", text.replace("    epochs:", "    optimiser: {type: soap, lr: 0.005}\n    epochs:"))
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where = copy(p, "killed")
        for who, sig in ((1, signal.SIGKILL), (2, signal.SIGSTOP), (0, signal.SIGKILL)):
            seen = p.one("SELECT count(*) FROM metric", workdir="killed")
            job = Started(p, 3, where, LONG, "stages.train.rank_timeout=5s", "stages.train.checkpoint.every=1s")
            wait_for_metrics(p, "killed", seen)
            job.children[who].send_signal(sig)
            began = time.time()
            others = [job.children[i].wait(60) for i in range(3) if i != who]
            assert time.time() - began < 40
            if sig == signal.SIGSTOP:
                job.children[who].send_signal(signal.SIGCONT)
            status, text = job.end()
            assert others == [7, 7] or status == [0, 0, 0], (who, status, text)
            assert others != [7, 7] or "rank %d" % who in text[1 if who == 0 else 0], text
        job = Started(p, 4, where, LONG, "stages.train.rank_timeout=3s")  # one rank does not start
        job.children[3].kill()
        status, text = job.end()
        assert status[:3] == [7, 7, 7], (status, text)
        job = Started(p, 4, where, LONG, "stages.train.rank_timeout=3s", own={3: {"MOLSIEVE_FAULT": "ranks.met:1"}})
        status, text = job.end()  # one rank dies when all have connected
        assert status == [7, 7, 7, 137] and "rank 3 is gone" in text[0] and "builds" not in text[0], (status, text)
        p.run("run", "w.yaml", "-q", where, LONG)
        assert train_e2e.trained(p, "killed") == want


def ranks_that_do_not_fit_are_refused_over_tcp():
    with sieve.Project() as p:
        prepare(p, 60, mpi=False)
        with open(sieve.PROGRAM, "rb") as f:
            bytes_ = f.read()
        commit = p.run("--version", "-v")[1].split("commit")[1].split()[0].encode()
        other = p.path("other/molsieve")  # the program of another commit
        os.mkdir(p.path("other"))
        with open(other, "wb") as f:
            f.write(bytes_.replace(commit, b"x" + commit[1:]))
        os.chmod(other, 0o755)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), "molsieve-chem"), p.path("other"))
        status, text = Started(p, 3, copy(p, "mixed"), programs={1: other}).end()
        assert status[0] == 2 and "ranks run different builds" in text[0] and "rank 1 has other" in text[0], (status, text)
        longer = p.path("longer")  # the program with another workflow
        with open(longer, "w") as f:
            f.write('#!/bin/sh\nexec %s "$@" stages.train.epochs=3\n' % sieve.PROGRAM)
        os.chmod(longer, 0o755)
        status, text = Started(p, 2, copy(p, "mixed"), programs={1: longer}).end()
        assert status[1] == 2 and "this rank read another workflow than rank 0, or is another version of the program" in text[1], (status, text)
        if re.search(r" kernels +portable", p.run("doctor", expect=None)[1]) is None:  # there are others
            status, text = Started(p, 2, copy(p, "mixed"), own={0: {"MOLSIEVE_CPU": "portable"}}).end()
            assert status == [2, 0] and text[1] == "", (status, text)  # rank 0 tells it for all
            assert re.search(r"ranks use different kernels: this one has .*; set stages.train.kernels to a set that all machines have", text[0]), text
        status, text = Started(p, 2, "workdir=late", "stages.train.rank_timeout=1s",
                               MOLSIEVE_MASTER="no.such.host.invalid:%d" % sieve.free_port()).end()
        assert status == [7, 7] and "no.such.host.invalid" in text[1] and "rank 1" in text[0], (status, text)
        status, text = Started(p, 2, "workdir=no", "stages.train.ranks=mpi", MOLSIEVE_PLUGINS=p.dir,
                               programs={r: other for r in (0, 1)}).end()
        assert status == [2, 2] and "libmolsieve_mpi.so is not beside" in text[0], (status, text)


def srun_starts_ranks_in_a_real_slurm():
    """Two ranks on two nodes, where only rank 0 sees the work directory; a signal; a batch job."""
    why = slurm.missing()
    if why:
        sieve.skip(why)
    with sieve.Project() as p, slurm.Cluster() as cluster:
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"))
        want = train_e2e.trained(p, "whole")
        srun = ["srun", "--mpi=pmix", "-N", "2", "-n", "2"]
        job = Launch(p, srun, copy(p, "slurm"), "stages.train.epochs=60000", env=cluster.env)
        job.started(2)
        wait_for_metrics(p, "slurm")
        assert cluster.run("scancel", "-s", "USR1", "-n", "molsieve")[0] == 0
        status, text = job.end()
        assert status == 75, (status, text)
        where = copy(p, "slurm")
        p.put("job.sh", "#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --time=5 --output=job.log\n"
              "srun --mpi=pmix %s\n" % " ".join(p.command("run", "w.yaml", "-q", where)))
        done = cluster.wait(cluster.submit("job.sh", cwd=p.dir))
        with open(p.path("job.log")) as f:
            assert done["ExitCode"] == "0:0", f.read()
        assert train_e2e.trained(p, "slurm") == want
        assert ranks_seen(p, "slurm") == ["training with 2 ranks"]
        run(p, ["srun", "-N", "2", "-n", "2"], copy(p, "slurm"), env=cluster.env)  # no PMIx: over TCP, by a file
        assert train_e2e.trained(p, "slurm") == want
        assert ranks_seen(p, "slurm") == ["training with 2 ranks"]


def a_rank_killed_under_srun_ends_all_and_the_run_goes_on():
    """kill -9 of one of 2 and of 4 ranks on two nodes; continued with other numbers, to the bits of one process. srun leaves
    the others alone (unless --kill-on-bad-exit): they give up after rank_timeout, with 7."""
    why = slurm.missing()
    if why:
        sieve.skip(why)
    with sieve.Project() as p, slurm.Cluster() as cluster:
        if "pmix" not in "".join(cluster.run("srun", "--mpi=list")[1:]):
            sieve.skip("this Slurm has no PMIx plugin")
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where, kills = copy(p, "killed"), 0
        for n, victim in ((2, 1), (4, 0), (4, 2)):
            seen = p.one("SELECT count(*) FROM metric", workdir="killed")
            srun = ["srun", "--mpi=pmix", "-N", "2", "-n", str(n)] + (["--kill-on-bad-exit=1"] if victim == 2 else [])
            job = Launch(p, srun, where, LONG, "stages.train.checkpoint.every=1s", "stages.train.rank_timeout=5s", env=cluster.env)
            ranks = job.started(n)
            wait_for_metrics(p, "killed", seen)
            try:
                os.kill(ranks[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
            status, text = job.end()  # says when a rank is left over
            assert status in (0, 7, 137), (n, victim, status, text)
            kills += status != 0
            if status == 0:
                break
        assert kills > 0, "never hit"
        run(p, ["srun", "--mpi=pmix", "-N", "2", "-n", "2"], where, LONG, env=cluster.env)
        assert train_e2e.trained(p, "killed") == want, "after %d kills" % kills
        p.run("db", "check", p.path("killed"))
        print("kills:", kills)


if __name__ == "__main__":
    sieve.main([any_number_of_ranks_gives_the_same_model, a_killed_rank_ends_all_and_the_run_goes_on,
                a_signal_to_any_rank_stops_all_with_75, a_rank_that_is_stuck_ends_all_with_7,
                impossible_rank_settings_are_refused_before_work, ranks_over_tcp_give_the_same_model,
                a_rank_lost_over_tcp_ends_all_and_the_run_resumes, ranks_that_do_not_fit_are_refused_over_tcp,
                srun_starts_ranks_in_a_real_slurm, a_rank_killed_under_srun_ends_all_and_the_run_goes_on])

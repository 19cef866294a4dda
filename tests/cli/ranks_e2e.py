#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over several processes: real mpirun, and srun in a real Slurm."""
import os
import random
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
    """One start of the program under a launcher; its ranks are found by a mark in their environment."""

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
        for _ in range(1500):
            found = self.ranks()
            if len(found) == n:
                return found
            assert self.child.poll() is None, self.end()
            time.sleep(0.02)
        raise AssertionError("not %d ranks: %s" % (n, found))

    def end(self):
        out, err = self.child.communicate(timeout=120)
        for _ in range(100):  # the launcher may be gone a moment before its ranks
            if not self.ranks():
                return self.child.returncode, out + err
            time.sleep(0.1)
        raise AssertionError("ranks are left over: %s" % self.ranks())


def run(p, launcher, *args, expect=0, **more):
    status, text = Launch(p, launcher, *args, **more).end()
    assert status == expect, "%s %s: %d, %d expected\n%s" % (launcher, args, status, expect, text)
    return text


def prepare(p, n=90, shards=4):
    """Everything before the training is in `run`, and what one process makes of it in `whole`."""
    if shutil.which("mpirun") is None:
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
        lamb = "stages.train.optimiser.type=lamb"
        p.run("run", "w.yaml", "-q", copy(p, "whole_lamb"), lamb)
        run(p, mpirun(3), copy(p, "ranks"), lamb)
        assert train_e2e.trained(p, "ranks") == train_e2e.trained(p, "whole_lamb")
        assert train_e2e.trained(p, "ranks")[0] != want[0]
        p.run("run", "w.yaml", "-q", copy(p, "one"), "stages.train.batch.shards=1")
        for a, b in zip(p.rows(train_e2e.METRICS, workdir="one"), want[1]):
            assert a[:5] == b[:5] and abs(a[5] - b[5]) <= 1e-3 * abs(b[5]) + 1e-6, (a, b)
        assert train_e2e.trained(p, "one")[0][0] != want[0][0], "shards are summed, in whatever order"


def a_killed_rank_ends_all_and_the_run_goes_on():
    """kill -9 of any rank; resumed by other numbers of ranks and by one process: the bits of a run left alone."""
    rng = random.Random(7)
    with sieve.Project() as p:
        prepare(p)
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where, kills = copy(p, "killed"), 0
        for n in (2, 3, 2, 2):  # in the training: while its ranks start, Open MPI 4.1's mpirun itself may hang at a kill
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
    for _ in range(3000):
        n = p.one("SELECT count(*) FROM metric", workdir=workdir)
        if n > more_than:
            return n
        time.sleep(0.02)
    raise AssertionError("no epoch ended")


def a_signal_to_any_rank_stops_all_with_75():
    """TERM to one rank, USR1 to the launcher, the time limit; then on alone to the same bits."""
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
            assert p.one("SELECT count(*) FROM event WHERE message LIKE 'training goes on%'", workdir="stopped") == \
                   (0 if who == 1 else 1 if who == 0 else 2), (who, n)
        where, stops = copy(p, "stopped"), 0
        for after in (0.4, 0.6, 0.8, 1.0):
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
            job = Launch(p, mpirun(2), copy(p, "stuck"), "stages.train.epochs=60000", "stages.train.rank_timeout=2s")
            ranks = job.started(2)
            wait_for_metrics(p, "stuck")
            os.kill(ranks[who], signal.SIGSTOP)
            began = time.time()
            status, text = job.end()
            assert status == 7 and "lost or stuck" in text, (who, status, text)
            assert time.time() - began < 30
        p.run("run", "w.yaml", "-q", "workdir=stuck")


def what_cannot_work_is_said_before_any_work():
    with sieve.Project() as p:
        prepare(p, 60, shards=2)
        text = run(p, mpirun(3), "workdir=no", expect=2)
        assert "3 ranks, but a batch is cut in 2" in text and "stages.train.batch.shards=3" in text, text
        p.workflow(["in.sdf"], "  read: {}\n", name="read.yaml", workdir="no")
        job = subprocess.run(mpirun(2) + p.command("run", "read.yaml", "-q"), cwd=p.dir, capture_output=True, text=True,
                             env=dict(os.environ, **ROOT))
        assert job.returncode == 2 and "this workflow has none" in job.stderr, job
        bare = p.path("bare")  # the program without its plugin
        os.mkdir(bare)
        here = os.path.dirname(os.path.abspath(sieve.PROGRAM))
        for name in ("molsieve", "molsieve-chem"):
            shutil.copy(os.path.join(here, name), bare)
        was, sieve.PROGRAM = sieve.PROGRAM, os.path.join(bare, "molsieve")
        try:
            text = run(p, mpirun(2), "workdir=no", expect=2)
            assert "libmolsieve_mpi.so is not beside the program" in text, text
            p.run("run", "w.yaml", "-q", "workdir=alone", "stages.train.batch.shards=1")
            assert "no plugin" in p.run("doctor", expect=None)[1]
            good = dict(os.environ, MOLSIEVE_PLUGINS=here)
            run(p, mpirun(2), "workdir=plugged", env=good)
            shutil.copy(p.path("w.yaml"), os.path.join(bare, "libmolsieve_mpi.so"))
            text = run(p, mpirun(2), "workdir=no", expect=2)
            assert "libmolsieve_mpi.so" in text, text
            assert "bad" in p.run("doctor", expect=1)[1]
        finally:
            sieve.PROGRAM = was
        assert not os.path.exists(p.path("no")), "something was done"
        assert "Open MPI" in p.run("doctor", expect=None)[1]


def srun_starts_ranks_in_a_real_slurm():
    """Two ranks on two nodes, only rank 0 with the work directory of its own; a signal; a batch job."""
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


if __name__ == "__main__":
    sieve.main([any_number_of_ranks_gives_the_same_model, a_killed_rank_ends_all_and_the_run_goes_on,
                a_signal_to_any_rank_stops_all_with_75, a_rank_that_is_stuck_ends_all_with_7,
                what_cannot_work_is_said_before_any_work, srun_starts_ranks_in_a_real_slurm])

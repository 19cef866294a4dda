#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over NCCL: the plugin's source, compiled with an emulated NCCL; real processes, with and without MPI."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import sieve
import ranks_e2e
import train_e2e
from ranks_e2e import LONG, ROOT, Started, copy, mpirun, prepare, ranks_seen, wait_for_metrics

EMULATED = os.environ["MOLSIEVE_EMULATED"]
NCCL = ["stages.train.ranks=nccl"]
GPU = ["stages.train.engine=cuda", "stages.evaluate.engine=cuda"]


def env(devices, **more):
    return dict(MOLSIEVE_PLUGINS=EMULATED, MOLSIEVE_EMULATOR_DEVICES=str(devices), **more)


def ranks_over_nccl_give_the_same_model():
    """Engine cpu, sums over NCCL; other bytes over TCP or, under mpirun, over MPI."""
    with sieve.Project() as p:
        prepare(p, mpi=False)
        p.run("run", "w.yaml", "-q", copy(p, "whole"))
        want = train_e2e.trained(p, "whole")
        for n in (1, 2, 3, 4):
            status, text = Started(p, n, copy(p, "ranks"), *NCCL, **env(n)).end()
            assert status == [0] * n, (status, text)
            assert train_e2e.trained(p, "ranks") == want, "%d ranks" % n
            assert n == 1 or ranks_seen(p, "ranks") == ["training with %d ranks" % n]
        if shutil.which("mpirun") is None:
            return
        plugins = p.path("plugins")
        os.mkdir(plugins)
        here = os.path.dirname(os.path.abspath(sieve.PROGRAM))
        for folder, name in ((here, "libmolsieve_mpi.so"), (EMULATED, "libmolsieve_nccl.so")):
            shutil.copy(os.path.join(folder, name), plugins)
        text = ranks_e2e.run(p, mpirun(2), copy(p, "ranks"), *NCCL,
                             env=dict(os.environ, **dict(env(2), MOLSIEVE_PLUGINS=plugins)))
        assert train_e2e.trained(p, "ranks") == want, text


def ranks_on_emulated_gpus_give_the_same_model():
    """Steps and sums stay on the GPUs, one per rank; `auto` chooses NCCL. If a GPU has no memory, its rank reports it."""
    with sieve.Project() as p:
        prepare(p, 30, shards=3, mpi=False)
        gpu = GPU + ["stages.train.epochs=3"]  # the validation of one runs beside the steps of the next

        def model(n, *args, **more):
            status, text = Started(p, n, copy(p, "ranks"), *gpu, *args, **env(n, **more)).end()
            assert status == [0] * n, (status, text)
            return train_e2e.trained(p, "ranks")

        want = model(1)
        assert model(2) == want and model(3) == want
        assert model(2, "stages.train.evaluate_beside=false") == want
        assert model(2, MOLSIEVE_CUDA_GRAPHS="0", MOLSIEVE_EMULATOR_EAGER="1") == want
        lamb = "stages.train.optimiser.type=lamb"
        assert model(2, lamb) == model(1, lamb) != want
        fp16 = "stages.train.precision_of.linear=fp16"
        scaled = model(1, fp16)
        assert model(2, fp16) == scaled != want
        skipped = lambda trained: json.loads(trained[0][1]["provenance"])["training"]["skipped_steps"]
        assert skipped(scaled) > 0  # because of the scale of the loss
        over_tcp = model(2, fp16, "stages.train.ranks=tcp")  # sums, optimiser and scale are computed on the CPU, which rounds differently
        assert model(3, fp16, "stages.train.ranks=tcp") == over_tcp != scaled
        assert skipped(over_tcp) == skipped(scaled)
        for devices, rank in (("all", 1), ("[1, 0]", 0)):
            status, text = Started(p, 2, copy(p, "ranks"), *gpu, "stages.train.devices=" + devices,
                                   **env(2, MOLSIEVE_EMULATOR_MB="900,0")).end()
            assert status == [7, 7] and "no memory on GPU 1 for a model" in text[rank], (status, text)


def without_room_for_a_second_engine_validation_waits():
    """With the least memory that a training fits in, there is no room for a second engine that predicts held-out molecules."""
    with sieve.Project() as p:
        prepare(p, 30, shards=2, mpi=False)
        gpu = GPU + WIDER + ["stages.train.epochs=1", "stages.train.batch.molecules=4"]

        def trained(n, **more):
            status, text = Started(p, n, copy(p, "ranks"), *gpu, **env(n, **more)).end()
            return train_e2e.trained(p, "ranks") if status == [0] * n else None, text[0]

        want = trained(1)[0]
        assert want is not None
        for n, memory, why in ((1, "%d", "no memory on GPU 0 for a model"), (2, "900,%d", "another rank cannot")):
            least = next(got for got in (trained(n, MOLSIEVE_EMULATOR_MB=memory % mb) for mb in range(4, 30)) if got[0])
            assert least[0] == want and "measured between epochs: " + why in least[1], least[1]


SHARDED = "stages.train.optimiser.sharded=true"
WIDER = ["stages.train.model.channels=16", "stages.train.model.layers=2"]  # several buckets with slices of several pieces


def members_learn_one_after_the_other_on_emulated_gpus():
    """Several trainings with one engine and one communicator: the first gives what it gives alone, for any number of ranks."""
    with sieve.Project() as p:
        prepare(p, 30, shards=2, mpi=False)

        def models(n, members, *more):
            where = copy(p, "ranks")
            status, text = Started(p, n, where, *GPU, "stages.train.epochs=1", "stages.train.members=%d" % members, *more, **env(n)).end()
            assert status == [0] * n, (status, text)
            return [train_e2e.tensors(p.path("ranks/models", name))[0] for name in sorted(os.listdir(p.path("ranks/models")))]

        alone, three = models(1, 1), models(2, 3)
        assert len(alone) == 1 and len(three) == 3 and three[:1] == alone
        assert three == models(1, 3) == models(2, 3, SHARDED) and three[1] != three[2] != three[0]


def a_sharded_optimiser_gives_the_same_model():
    """Moments and average in slices: with clipping, without an average, with a scaled loss. Without NCCL, `sharded` changes nothing."""
    with sieve.Project() as p:
        prepare(p, 30, shards=3, mpi=False)
        gpu = GPU + WIDER + ["stages.train.epochs=1"]

        def model(n, *args, **more):
            status, text = Started(p, n, copy(p, "ranks"), *gpu, *args, **env(n, **more)).end()
            assert status == [0] * n, (status, text)
            return train_e2e.trained(p, "ranks")

        clipped = "stages.train.optimiser.grad_clip=0.01"
        want = model(1, clipped)
        assert model(1, clipped, SHARDED) == want
        assert model(2, clipped, SHARDED) == want
        assert model(3, clipped, SHARDED) == want
        assert model(2, clipped, SHARDED, MOLSIEVE_CUDA_GRAPHS="0", MOLSIEVE_EMULATOR_EAGER="1") == want
        plain = ["stages.train.optimiser.grad_clip=0", "stages.train.ema=0", "stages.train.model.channels=8"]
        assert model(3, SHARDED, *plain) == model(1, *plain) != want
        fp16 = ["stages.train.precision_of.linear=fp16", "stages.train.model.channels=8", "stages.train.epochs=2"]
        scaled = model(1, *fp16)
        assert model(3, SHARDED, *fp16) == scaled
        assert json.loads(scaled[0][1]["provenance"])["training"]["skipped_steps"] > 0
        cpu = ["stages.train.engine=cpu", "stages.evaluate.engine=cpu"]
        alone = model(1, *cpu)
        for ranks in ("nccl", "tcp"):
            assert model(2, SHARDED, "stages.train.ranks=" + ranks, *cpu) == alone
        other = p.path("other")  # a rank that has another workflow
        with open(other, "w") as f:
            f.write('#!/bin/sh\nexec %s "$@" %s\n' % (sieve.PROGRAM, SHARDED))
        os.chmod(other, 0o755)
        status, text = Started(p, 2, copy(p, "no"), *cpu, programs={1: other}).end()
        assert status[1] == 2 and "read another workflow than rank 0" in text[1], (status, text)
        with open(p.path("w.yaml")) as f:
            p.put("lamb.yaml", f.read().replace("    epochs:", "    optimiser: {type: lamb, sharded: true}\n    epochs:"))
        said = p.run("check", "lamb.yaml", expect=2)[2]
        assert re.search(r"lamb\.yaml:\d+:38: optimiser\.sharded: lamb needs", said), said


def a_sharded_optimiser_resumes_with_other_ranks():
    """Checkpoints are complete: after a silent rank, a stop and a kill the training continues with other numbers of ranks, sharded or not."""
    with sieve.Project() as p:
        prepare(p, 30, shards=3, mpi=False)
        gpu = GPU + ["stages.train.epochs=20", "stages.train.rank_timeout=10s", "stages.train.checkpoint.every=1s"]
        status, text = Started(p, 1, copy(p, "whole"), *gpu, **env(1)).end()
        assert status == [0], (status, text)
        want, where = train_e2e.trained(p, "whole"), copy(p, "killed")
        status, text = Started(p, 3, where, *gpu, SHARDED, "stages.train.rank_timeout=5s", **env(3, MOLSIEVE_EMULATOR_NCCL_MUTE="1:60")).end()
        assert status == [7, 7, 7] and any("waited 5 s for the other ranks (NCCL, step)" in t for t in text), (status, text)
        seen = p.one("SELECT count(*) FROM metric", workdir="killed")
        for n, more, who, sig, end in ((3, [SHARDED], 2, signal.SIGUSR1, [75, 0, 0]), (2, [], 0, signal.SIGUSR1, [75, 0]),
                                       (2, [SHARDED], 1, signal.SIGKILL, [7, -9]), (3, [SHARDED], 0, signal.SIGKILL, [-9, 7, 7])):
            job = Started(p, n, where, *gpu, *more, **env(n))
            wait_for_metrics(p, "killed", seen)
            job.children[who].send_signal(sig)
            status, text = job.end()
            assert status == end or status[0] == 0, (status, text)  # 0: the run was already finished
            seen = p.one("SELECT count(*) FROM metric", workdir="killed")
        status, text = Started(p, 2, where, *gpu, SHARDED, **env(2)).end()
        assert status == [0, 0], (status, text)
        assert train_e2e.trained(p, "killed") == want


def is_stopped(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def a_sharded_optimiser_checkpoints_within_an_epoch():
    """Only rank 0 decides that a checkpoint is due, but all ranks send their slices; killed right after it, and continued without slices."""
    with sieve.Project() as p:
        prepare(p, 90, shards=3, mpi=False)
        gpu = GPU + WIDER + ["stages.train.epochs=1", "stages.train.batch.molecules=4", "stages.train.rank_timeout=60s"]
        status, text = Started(p, 1, copy(p, "whole"), *gpu, **env(1)).end()
        assert status == [0], (status, text)
        where = copy(p, "killed")
        first = {"MOLSIEVE_FAULT": "train.checkpoint.after:1", "MOLSIEVE_EMULATOR_NCCL_PAUSE": "60"}  # in one of the first steps
        job = Started(p, 3, where, *gpu, SHARDED, own={0: first}, **env(3))
        # A checkpoint is due a second after the training began: in the step after the pause, or, where steps are very slow, before it.
        sieve.until(lambda: job.children[0].poll() is not None or is_stopped(job.children[0].pid), "rank 0 sends no 60 messages")
        time.sleep(1.1)
        job.children[0].send_signal(signal.SIGCONT)
        status, text = job.end()
        assert status == [137, 7, 7], (status, text)
        assert p.one("SELECT count(*) FROM metric", workdir="killed") == 0  # the epoch had not ended
        status, text = Started(p, 2, where, *gpu, **env(2)).end()
        assert status == [0, 0], (status, text)
        assert train_e2e.trained(p, "killed") == train_e2e.trained(p, "whole")
        went_on = p.one("SELECT message FROM event WHERE message LIKE 'training continues in epoch 1 at step%'", workdir="killed")
        assert int(went_on.split()[-1]) > 0, went_on


def a_rank_lost_between_gpus_ends_all_and_the_run_resumes():
    """A rank stops sending over NCCL in its first batch, but lives: the others' steps wait for it on their GPUs. Then a rank is killed."""
    with sieve.Project() as p:
        prepare(p, 30, shards=3, mpi=False)
        gpu = GPU + ["stages.train.epochs=7", "stages.train.rank_timeout=5s", "stages.train.checkpoint.every=1s"]
        for sharded in ([], [SHARDED]):
            status, text = Started(p, 3, copy(p, "first"), *gpu, *sharded, **env(3, MOLSIEVE_EMULATOR_MB="900,3,900")).end()
            assert status == [7, 7, 7] and "no memory on GPU 1 for a batch" in text[1], (status, text)
        status, text = Started(p, 1, copy(p, "whole"), *gpu, **env(1)).end()
        assert status == [0], (status, text)
        want, where = train_e2e.trained(p, "whole"), copy(p, "killed")
        status, text = Started(p, 3, where, *gpu, **env(3, MOLSIEVE_EMULATOR_NCCL_MUTE="1:60")).end()
        assert status == [7, 7, 7], (status, text)
        assert any("waited 5 s for the other ranks (NCCL, step)" in t for t in text), text
        seen = p.one("SELECT count(*) FROM metric", workdir="killed")
        assert seen > 0
        job = Started(p, 3, where, *gpu, **env(3))
        wait_for_metrics(p, "killed", seen)
        job.children[1].send_signal(signal.SIGKILL)
        status, text = job.end()
        assert status == [7, -signal.SIGKILL, 7] or status == [0, 0, 0], (status, text)
        status, text = Started(p, 2, where, *gpu, **env(2)).end()
        assert status == [0, 0], (status, text)
        assert train_e2e.trained(p, "killed") == want


def a_rank_lost_over_nccl_ends_all_and_the_run_resumes():
    with sieve.Project() as p:
        prepare(p, mpi=False)
        p.run("run", "w.yaml", "-q", copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where = copy(p, "killed")
        for who, sig in ((1, signal.SIGKILL), (2, signal.SIGSTOP), (0, signal.SIGKILL)):
            seen = p.one("SELECT count(*) FROM metric", workdir="killed")
            job = Started(p, 3, where, LONG, *NCCL, "stages.train.rank_timeout=5s", "stages.train.checkpoint.every=1s", **env(3))
            wait_for_metrics(p, "killed", seen)
            job.children[who].send_signal(sig)
            began = time.time()
            others = [job.children[i].wait(60) for i in range(3) if i != who]
            assert time.time() - began < 40
            if sig == signal.SIGSTOP:
                job.children[who].send_signal(signal.SIGCONT)
            status, text = job.end()
            assert others == [7, 7] or status == [0, 0, 0], (who, status, text)
        status, text = Started(p, 2, where, LONG, *NCCL, **env(2)).end()
        assert status == [0, 0], (status, text)
        assert train_e2e.trained(p, "killed") == want


def missing_parts_of_nccl_are_reported():
    with sieve.Project() as p:
        prepare(p, 60, mpi=False)

        def refused(n, *args, status, expect, **more):
            got, text = Started(p, n, copy(p, "no"), *NCCL, *args, **more).end()
            assert got[0] == status and re.search(expect, text[0]), (got, text)

        refused(2, status=2, expect="ranks 0 and 1 have the same GPU .*fewer GPUs than ranks", **env(1))
        refused(2, status=2, expect="no NVIDIA driver", **env(2, MOLSIEVE_EMULATOR_NO_DRIVER="1"))
        refused(2, status=2, expect=r"NCCL 2\.12\.12 is installed here; this program was built for 2\.14\.3 and needs it or a newer 2",
                **env(2, MOLSIEVE_EMULATOR_NCCL="21212"))
        bare = p.path("bare")
        os.mkdir(bare)
        for name in ("molsieve", "molsieve-chem"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), name), bare)
        refused(2, status=2, expect=r"libmolsieve_nccl\.so is not beside the program.*NCCL",
                programs={r: os.path.join(bare, "molsieve") for r in (0, 1)}, MOLSIEVE_PLUGINS="")
        more = ["stages.train.engine=cuda", "stages.evaluate.engine=cpu"]
        refused(3, *more, "stages.train.devices=[0, 1]", status=7, expect="rank 2", **env(3))
        job = Started(p, 3, copy(p, "no"), *NCCL, *more, "stages.train.devices=[0, 1]", **env(3))
        status, text = job.end()
        assert status[2] == 2 and "number 2 on this machine, but there are only 2 GPUs" in text[2], (status, text)
        said = subprocess.run(p.command("doctor"), cwd=p.dir, capture_output=True, text=True, env=dict(os.environ, **env(2)))
        assert re.search(r"nccl +.*NCCL 2\.14\.3", said.stdout), said


if __name__ == "__main__":
    if not os.path.isdir(EMULATED):
        sieve.skip("no emulated plugin in " + EMULATED)
    sieve.main([ranks_over_nccl_give_the_same_model, ranks_on_emulated_gpus_give_the_same_model,
                members_learn_one_after_the_other_on_emulated_gpus, without_room_for_a_second_engine_validation_waits,
                a_sharded_optimiser_gives_the_same_model, a_sharded_optimiser_resumes_with_other_ranks,
                a_sharded_optimiser_checkpoints_within_an_epoch,
                a_rank_lost_between_gpus_ends_all_and_the_run_resumes,
                a_rank_lost_over_nccl_ends_all_and_the_run_resumes, missing_parts_of_nccl_are_reported])

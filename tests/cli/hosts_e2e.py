#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts: network namespaces with a cable each to a common switch, and host names of their
own. A cable can be cut, which no process notices by itself. Needs root and iproute2."""
import os
import shutil
import subprocess
import time

import ranks_e2e
import sieve
import train_e2e

SUBNET = "10.213.77."
LONG = "stages.train.epochs=60"


class Hosts:
    def __init__(self, n):
        self.n, self.tag = n, "ms%d" % os.getpid()

    def __enter__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            sieve.skip("not root, or no iproute2")
        if subprocess.run(["ip", "netns", "add", self.host("s")], capture_output=True).returncode != 0:
            sieve.skip("no network namespaces can be made here")
        self.ip("s", "link add br0 type bridge")
        self.ip("s", "link set br0 up")
        for i in range(self.n):
            subprocess.run(["ip", "netns", "add", self.host(i)], check=True)
            self.ip("s", "link add c%d type veth peer name eth0 netns %s" % (i, self.host(i)))
            self.ip("s", "link set c%d master br0" % i)
            self.ip("s", "link set c%d up" % i)
            self.ip(i, "addr add %s%d/24 dev eth0" % (SUBNET, i + 1))
            self.ip(i, "link set eth0 up")
            self.ip(i, "link set lo up")
        return self

    def __exit__(self, *_):
        for i in ["s", *range(self.n)]:
            subprocess.run(["ip", "netns", "del", self.host(i)], capture_output=True)

    def host(self, i):
        return "%s-%s" % (self.tag, i)

    def ip(self, i, words):
        subprocess.run(["ip", "-n", self.host(i)] + words.split(), check=True)

    def cable(self, i, state):
        self.ip("s", "link set c%d %s" % (i, state))

    def start(self, p, *args):
        """One rank per host; all connect to a port of the first host."""
        children = []
        for rank in range(self.n):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(self.n), LOCAL_RANK="0", MASTER_ADDR=SUBNET + "1", MASTER_PORT="29511")
            command = p.command("run", "w.yaml", "-q", *args)
            command = ["ip", "netns", "exec", self.host(rank), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"',
                       "n%d" % rank] + command
            children.append(subprocess.Popen(command, cwd=p.dir, text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return children


def ended(children):
    texts = ["".join(c.communicate(timeout=120)) for c in children]
    return [c.returncode for c in children], texts


def ranks_on_two_hosts_agree_and_a_cut_cable_ends_all():
    with sieve.Project() as p, Hosts(3) as hosts:
        ranks_e2e.prepare(p, mpi=False)
        p.run("run", "w.yaml", "-q", ranks_e2e.copy(p, "whole"), LONG)
        want = train_e2e.trained(p, "whole")
        where = ranks_e2e.copy(p, "cut")
        for i in (2, 0):
            seen = p.one("SELECT count(*) FROM metric", workdir="cut")
            children = hosts.start(p, where, LONG, "stages.train.rank_timeout=5s", "stages.train.checkpoint.every=1s")
            ranks_e2e.wait_for_metrics(p, "cut", seen)
            hosts.cable(i, "down")
            began = time.time()
            status, text = ended(children)
            hosts.cable(i, "up")
            assert status == [7, 7, 7], (i, status, text)
            assert time.time() - began < 60, time.time() - began
            if i == 2:
                assert "rank 2" in text[0], text
        children = hosts.start(p, where, LONG)
        assert ended(children)[0] == [0, 0, 0]
        assert train_e2e.trained(p, "cut") == want


if __name__ == "__main__":
    sieve.main([ranks_on_two_hosts_agree_and_a_cut_cable_ends_all])

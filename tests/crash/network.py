#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work directories on a real network file system whose locks do not reach other hosts: sshfs, with SFTP
servers of its own. Two mounts of one folder under two host names are two hosts. Wants root, sftp-server and sshfs.

    MOLSIEVE=build/release/bin/molsieve tests/crash/network.py TEST"""
import os
import shutil
import signal
import subprocess
import tempfile
import time

from victim import Victim, sieve, workers_of

QUIET = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tool(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/lib/openssh")
    return path or sieve.skip(name + " is not installed")


class Network:
    """A folder that hosts mount, each with an SFTP server of its own."""

    def __enter__(self):
        if os.geteuid() != 0:
            sieve.skip("not root")
        self.sshfs, self.unmounter, server = tool("sshfs"), tool("fusermount3"), tool("sftp-server")
        self.dir = tempfile.mkdtemp(prefix="molsieve-net-")
        self.hosts = []
        os.mkdir(self.at("served"))
        with open(self.at("ssh"), "w") as f:  # what sshfs takes for ssh
            f.write("#!/bin/sh\nexec %s\n" % server)
        os.chmod(self.at("ssh"), 0o755)
        return self

    def __exit__(self, *_):
        for name in list(self.hosts):
            self.unmount(name)
        shutil.rmtree(self.dir)

    def at(self, *parts):
        return os.path.join(self.dir, *parts)

    def mount(self, name):
        os.makedirs(self.at(name), exist_ok=True)
        p = subprocess.run([self.sshfs, "-o", "ssh_command=" + self.at("ssh"), "server:" + self.at("served"), self.at(name)],
                           capture_output=True)
        if p.returncode != 0:
            sieve.skip("sshfs does not mount here: " + p.stderr.decode(errors="replace"))
        self.hosts.append(name)

    def unmount(self, name):
        subprocess.run([self.unmounter, "-u", "-z", self.at(name)], **QUIET)
        self.hosts.remove(name)


class Remote(Victim):
    """A victim in the folder that is served."""

    def __init__(self, net, n):
        super().__init__(n)
        self.net = net

    def __enter__(self):
        os.environ["TMPDIR"] = self.net.at("served")
        tempfile.tempdir = None
        super().__enter__()
        for host in ("a", "b"):
            self.net.mount(host)
        super().go("whole")
        self.want = self.answer("whole")
        return self

    def __exit__(self, *_):
        super().__exit__()
        del os.environ["TMPDIR"]
        tempfile.tempdir = None

    def on(self, host, *args):
        """The program, started in a UTS namespace of its own under that host's name."""
        where = self.net.at(host, os.path.basename(self.dir))
        return subprocess.Popen(["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host] +
                                self.command("run", "w.yaml", "-v", "-j", "1", "workdir=run", *args), cwd=where,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def hold(self, child, stage):
        """Waits for the stage and stops the workers; the process itself goes on, and waits for them. The first worker may be one that is
        asked for its version only, so for a second every new one is stopped, too."""
        assert any(b"stage %s:" % stage in line for line in child.stderr), "it ended early"
        while not workers_of(child.pid):
            time.sleep(0.01)
        end = time.time() + 1
        while time.time() < end:
            for pid in workers_of(child.pid):
                try:
                    os.kill(pid, signal.SIGSTOP)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        assert workers_of(child.pid), "no worker is left to be held"

    def end(self, child, status):
        err = child.communicate()[1].decode(errors="replace")
        assert child.returncode == status, (child.returncode, err)
        return err

    def right(self):
        assert not os.path.exists(self.path("run/.lock.host"))
        self.run("db", "check", "run")
        assert self.answer("run") == self.want
        left = [name for name in self.files("run") if not name.endswith("-journal")]  # empty, where there is no WAL
        assert left == self.files("whole"), left


def a_second_host_is_refused_and_harms_nothing():
    with Network() as net, Remote(net, 500) as v:
        first = v.on("a")
        v.hold(first, b"prepare")
        err = v.end(v.on("b"), 4)
        assert "in use by another host, held by host a, pid %d" % first.pid in err, err
        for pid in workers_of(first.pid):
            os.kill(pid, signal.SIGCONT)
        v.end(first, 0)
        v.end(v.on("b"), 0)
        v.right()


def the_claim_of_a_dead_host_expires():
    with Network() as net, Remote(net, 500) as v:
        first = v.on("a")
        assert any(b"stage train:" in line for line in first.stderr)
        first.kill()
        first.communicate()
        assert os.path.exists(v.path("run/.lock.host"))
        err = v.end(v.on("b"), 0)
        assert "waiting up to 30 s to see whether that run is alive" in err, err
        v.right()


def a_lost_connection_ends_with_6_and_the_run_goes_on():
    with Network() as net, Remote(net, 500) as v:
        first = v.on("a")
        v.hold(first, b"prepare")
        workers = workers_of(first.pid)
        net.unmount("a")
        subprocess.run(["pkill", "-9", "-f", "sshfs .*" + net.at("a")], check=True, **QUIET)
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        err = v.end(first, 6)
        assert "/run/" in err, err
        net.mount("a")
        v.end(v.on("a"), 0)
        v.right()


if __name__ == "__main__":
    sieve.main([a_second_host_is_refused_and_harms_nothing, the_claim_of_a_dead_host_expires,
                a_lost_connection_ends_with_6_and_the_run_goes_on])

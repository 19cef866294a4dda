# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on this machine for the length of a `with`: munged, slurmctld and
two slurmd, all files in a directory of its own, all ports on the loopback.

    with slurm.Cluster() as cluster:
        cluster.run("srun", "-n", "2", "--mpi=pmix", "hostname")
        job = cluster.submit("job.sh", "--signal=B:USR1@60")
        cluster.wait(job)

Two nodes of 4 processors are declared, however many there are. Needs root and the
packages slurm-wlm and munge; `missing()` says what is not there."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from sieve import free_port

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "sinfo", "scontrol", "scancel")
PLACES = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
NODES = 2

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/socket,cred_expire=10
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
TmpFS={dir}/tmp/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd.%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={dir}/log/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
KillWait=2
{nodes}
PartitionName=debug Nodes=n[1-{n}] Default=YES MaxTime=60 State=UP
"""
NODE = "NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=1000 State=UNKNOWN"


def missing():
    """Why there can be no cluster here; None if there can."""
    if os.geteuid() != 0:
        return "starting a Slurm needs root"
    lacks = [p for p in PROGRAMS if shutil.which(p, path=PLACES) is None]
    return "packages slurm-wlm and munge: no " + ", ".join(lacks) if lacks else None


class Cluster:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="slurm-", dir="/tmp")  # a short path: munge's socket has 108 characters
        self.children = []
        # Open MPI names shared memory by host and job, and the first job of every cluster is number 1. With Slurm's own
        # choice of fences one of 250 starts of any program crashed in MPI_Init (docs/RANKS.md).
        self.env = dict(os.environ, SLURM_CONF=self.path("slurm.conf"), PATH=PLACES, SLURM_PMIX_FENCE="tree",
                        OMPI_MCA_btl_vader_backing_directory=self.path("shm"))
        try:
            self.configure()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Nodes first, so that they end their jobs; the children are ours, by their ids."""
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def put(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def configure(self):
        os.chmod(self.dir, 0o755)
        for name in ("state", "run", "log", "munge", "shm"):
            os.makedirs(self.path(name))
        for i in range(1, NODES + 1):
            os.makedirs(self.path("spool", "n%d" % i))
            os.makedirs(self.path("tmp", "n%d" % i))
        host = socket.gethostname().split(".")[0]
        nodes = "\n".join(NODE.format(i=i, host=host, port=free_port()) for i in range(1, NODES + 1))
        self.put("slurm.conf", CONF.format(host=host, port=free_port(), dir=self.dir, nodes=nodes, n=NODES))
        self.put("cgroup.conf", "CgroupPlugin=cgroup/v1\n")

    def child(self, *command):
        log = open(self.path("log", os.path.basename(command[0]) + ".out"), "ab")
        self.children.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        log.close()

    def start(self):
        m = lambda name: self.path("munge", name)
        subprocess.run(["mungekey", "--create", "--keyfile=" + m("key")], env=self.env, check=True)
        self.child("munged", "--foreground", "--force", "--key-file=" + m("key"), "--socket=" + m("socket"),
                   "--pid-file=" + m("pid"), "--log-file=" + m("log"), "--seed-file=" + m("seed"))
        self.until(lambda: os.path.exists(m("socket")), "munged")
        self.child("slurmctld", "-D", "-c")
        for i in range(1, NODES + 1):
            self.child("slurmd", "-D", "-N", "n%d" % i)
        self.until(self.idle, "slurm")

    def idle(self):
        out = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], env=self.env, capture_output=True, text=True)
        return out.stdout.strip() == str(NODES)

    def until(self, good, what, seconds=120, pause=0.05):
        end = time.time() + seconds
        while not good():
            dead = [c.args[0] for c in self.children if c.poll() is not None]
            if dead or time.time() > end:
                raise RuntimeError("%s: %s\n%s" % (what, "ended: %s" % dead if dead else "not in time", self.logs()))
            time.sleep(pause)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.path("log"))):
            with open(self.path("log", name), errors="replace") as f:
                text += "== %s\n%s\n" % (name, f.read()[-2000:])
        return text

    # ---- for tests

    def popen(self, *command, env=None, **more):
        return subprocess.Popen(command, env=dict(self.env, **(env or {})), **more)

    def run(self, *command, env=None, timeout=120, **more):
        """Exit status, stdout, stderr."""
        p = subprocess.run(command, env=dict(self.env, **(env or {})), capture_output=True, text=True, timeout=timeout, **more)
        return p.returncode, p.stdout, p.stderr

    def submit(self, script, *options, **more):
        """Job id."""
        status, out, err = self.run("sbatch", "--parsable", *options, script, **more)
        if status:
            raise RuntimeError(err)
        return out.strip()

    def job(self, job):
        """The fields that scontrol prints for a job, as a dictionary."""
        out = self.run("scontrol", "show", "job", "-o", str(job))[1]
        return dict(word.split("=", 1) for word in out.split() if "=" in word)

    def wait(self, job, states=("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), seconds=120):
        self.until(lambda: self.job(job).get("JobState") in states, "job %s" % job, seconds, 0.5)
        return self.job(job)

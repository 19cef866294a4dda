#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of each real stage; the result is that of an undisturbed run.

    MOLSIEVE=build/release/bin/molsieve MOLSIEVE_KILLS=200 tests/crash/kills.py STAGE|together|external

The stages before run once and are copied. `together`: a screen from nothing, in
which all stages of units are at work at once; how many were is told. `external`: a workflow of its own, with a program that leaves
processes behind. Half of the kills come 1-60 ms after
the stage began, half at any moment from then to the end of the process, early
ones more often. A stage of a few milliseconds may be done by then: how many it
hit at work is told apart. Some more kills come before the stage begins; they
are not counted. After every kill the files must be sound."""
import os
import random
import signal
import sys
import time

from victim import STAGES, TOGETHER, Program, Screen, Victim, no_orphans


def wait_for_stage(child, stage):
    """Waits until the process logs that it begins the stage; False if it ended before."""
    mark = b"stage %s:" % stage.encode()
    for line in child.stderr:
        if mark in line:
            return True
    return False


class Loop:
    def __init__(self, victim, stage, rng):
        self.v, self.stage, self.rng = victim, stage, rng
        self.first = stage  # the log line of its start
        self.counted = self.at_work = self.early = self.through = 0

    def prepare(self):
        """`whole` is the undisturbed run; `ready` has the stages before the killed one."""
        self.v.go("whole")
        self.want = self.v.answer("whole")
        before = self.v.order[:self.v.order.index(self.first)]
        for earlier in [s for s in before if s in ["basis"] + before[-1:]]:  # the stages that these need run with them
            self.v.go("ready", "--until", earlier)
        self.v.copy("ready", "killed")
        child = self.v.start("killed", "--until", self.stage)
        assert wait_for_stage(child, self.first)
        began = time.time()
        child.communicate()
        self.span = time.time() - began
        assert child.returncode == 0
        self.target = self.v.answer("killed")
        self.v.copy("ready", "killed")

    def moment(self):
        if self.rng.random() < 0.5 and self.span > 0.060:
            return self.rng.uniform(0.001, 0.060)
        return self.span * self.rng.random() ** 4

    def look(self):
        """The state of the stage that is killed."""
        return self.v.sound("killed").get(self.stage)

    def told(self):
        return ""

    def one(self):
        before = self.rng.random() < 0.1  # a tenth at any moment since the start of the process
        child = self.v.start("killed", "--until", self.stage)
        if before or wait_for_stage(child, self.first):
            time.sleep(self.rng.uniform(0, 0.1) if before else self.moment())
        child.send_signal(signal.SIGKILL)
        text = child.communicate()[1]
        assert child.returncode in (0, -signal.SIGKILL), (child.returncode, text)
        state = self.look()
        killed = child.returncode != 0
        self.early += killed and before
        self.counted += killed and not before
        self.at_work += killed and not before and state == "running"
        if child.returncode == 0 or state == "done":
            self.through += 1
            self.v.go("killed", "--until", self.stage)
            assert self.v.answer("killed") == self.target, "after %d kills of %s" % (self.counted, self.stage)
            self.v.copy("ready", "killed")

    def run(self, kills):
        self.prepare()
        tries = 0
        while self.counted < kills:
            self.one()
            tries += 1
            assert tries < 10 * kills + 40, "%s is hardly ever hit: %d kills of %d" % (self.stage, self.counted, tries)
        self.v.go("killed")
        assert self.v.answer("killed") == self.want, "after %d kills of %s" % (self.counted, self.stage)
        self.v.run("db", "check", "killed")
        assert self.v.files("killed") == self.v.files("whole"), (self.v.files("killed"), self.v.files("whole"))
        no_orphans()


class Together(Loop):
    """All stages of a screen up to the last that works on units."""

    def __init__(self, victim, rng):
        super().__init__(victim, TOGETHER[-1], rng)
        self.first, self.many = TOGETHER[0], 0

    def look(self):
        states = self.v.sound("killed")
        self.many += sum(state == "running" for state in states.values()) > 2
        return "running" if "running" in states.values() else states.get(self.stage)

    def told(self):
        return ", %d with more than two stages begun" % self.many


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in STAGES + ["together", "external"]:
        print("one of:", *STAGES, "together", "external")
        return 2
    began = time.time()
    rng = random.Random("%s %s" % (os.environ.get("MOLSIEVE_SEED", "1"), sys.argv[1]))
    together = sys.argv[1] == "together"
    with {"together": Screen, "external": Program}.get(sys.argv[1], Victim)() as v:
        loop = Together(v, rng) if together else Loop(v, sys.argv[1], rng)
        loop.run(int(os.environ.get("MOLSIEVE_KILLS", "10")))
        print("%-8s %d kills (%d at work%s), %d before it began, finished %d times, same answer; %.0f s" %
              (sys.argv[1], loop.counted, loop.at_work, loop.told(), loop.early, loop.through, time.time() - began))
    return 0


if __name__ == "__main__":
    sys.exit(main())

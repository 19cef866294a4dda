# SPDX-License-Identifier: Apache-2.0
"""The program beside this package: where it is, whether it can run here, and how it is run and stopped."""
from __future__ import annotations

import errno
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from typing import IO, Callable, List, NoReturn, Optional, Sequence

from . import errors
from ._version import __version__

_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN = os.path.join(_HERE, "_program", "bin", "molsieve")
_AGAIN = "install the package again: pip install --force-reinstall molsieve"

# What a Debian or Ubuntu package has which library.
_PACKAGES = {
    "libopenbabel.so.7": "libopenbabel7", "libsqlite3.so.0": "libsqlite3-0", "libjansson.so.4": "libjansson4",
    "libyaml-0.so.2": "libyaml-0-2", "libz.so.1": "zlib1g", "libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6",
    "libgcc_s.so.1": "libgcc-s1", "libinchi.so.1": "libinchi1", "libxml2.so.2": "libxml2",
}
_MACHINES = {0x03: "i686", 0x28: "arm", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv64", 0x15: "ppc64le", 0x16: "s390x"}

_usable: "dict[str, str]" = {}  # program -> what was wrong with it, "" if nothing


def path() -> str:
    """The program: the one that MOLSIEVE names, else the one in this package. ProgramError: there is none, or it cannot run here."""
    program = os.environ.get("MOLSIEVE") or _OWN
    if program not in _usable:
        _usable[program] = _why_unusable(program)
    if _usable[program]:
        wrong = _usable.pop(program)  # it may be mended before the next call
        raise errors.ProgramError(wrong)
    return program


def _why_unusable(program: str) -> str:
    worker = os.path.join(os.path.dirname(program), "molsieve-chem")
    for one in (program, worker):
        if not os.path.isfile(one):
            return "%s is not there; %s" % (one, _AGAIN if program == _OWN else "the variable MOLSIEVE names its folder")
    status, out, err = _start(program, "--version")
    if status != 0:
        return _why_not_started(program, status, err)
    version = (out.split() or ["?"])[-1]
    if version != __version__:
        return "%s has version %s, this package %s; %s" % (program, version, __version__, _AGAIN)
    status, _, err = _start(worker)  # ends with 1 as there is no request
    return _why_not_started(worker, status, err) if status not in (0, 1) or err else ""


def _start(*command: str) -> "tuple[int, str, str]":
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace").strip()
    except OSError as e:
        return 126, "", str(e.errno)


def _why_not_started(program: str, status: int, err: str) -> str:
    missing = re.search(r"error while loading shared libraries: ([^:\s]+): cannot open", err)
    if missing:
        package = _PACKAGES.get(missing[1])
        return "%s needs the library %s; install %s" % (
            program, missing[1], "its package: apt-get install " + package if package else "the package that has it")
    libc = re.findall(r"version `(GLIBC(?:XX)?_[0-9.]+)' not found", err)
    if libc:
        return "%s was built for a newer system: it needs %s, and this system has %s; build the package here: pip install SOURCE" % (
            program, ", ".join(sorted(set(libc))), " ".join(platform.libc_ver()).strip() or "another C library")
    if status == 126 and err == str(errno.ENOEXEC):
        return "%s was built for %s, and this machine is %s; build the package here: pip install SOURCE" % (
            program, _machine_of(program), platform.machine())
    if status == 126 and err == str(errno.ENOENT):  # it is there, and what would load it is not
        return "%s was built for another C library than that of this system (glibc is needed); build the package here: pip install SOURCE" % program
    if status == 126:
        return "%s cannot be started: %s" % (program, os.strerror(int(err)))
    return "%s cannot be started (status %d): %s" % (program, status, err)


def _machine_of(program: str) -> str:
    with open(program, "rb") as f:
        head = f.read(20)
    if head[:4] != b"\x7fELF":
        return "no Linux"
    return _MACHINES.get(int.from_bytes(head[18:20], "little" if head[5] == 1 else "big"), "another processor")


class Done:
    """What an ended program left: `status`, `out`, and `err`, its messages without the lines of its log at level info."""

    def __init__(self, status: int, out: str, err: str):
        self.status, self.out = status, out
        self.err = "\n".join(x for x in err.splitlines() if not _INFO.match(x))

    def text(self) -> str:
        return "\n".join(re.sub(r"^molsieve: ", "", x) for x in self.err.splitlines()).strip()


_INFO = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z info ")


def call(*args: "str | os.PathLike[str]", allowed: Sequence[int] = (0,), progress: bool = False,
         input: Optional[str] = None) -> Done:  # noqa: A002 - as in subprocess.run
    """Runs `molsieve ARGS`. A status that is not allowed is an exception (`molsieve.errors`). progress: its messages and output
    appear on sys.stderr and sys.stdout as they come. KeyboardInterrupt stops it in order, and a second one at once."""
    command = [path(), *(os.fspath(x) for x in args)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)  # so that only this process passes Ctrl-C on
    out: List[str] = []
    err: List[str] = []
    threads = [threading.Thread(target=_read, args=(process.stdout, out, _writer(sys.stdout, progress)), daemon=True),
               threading.Thread(target=_read, args=(process.stderr, err, _writer(sys.stderr, progress)), daemon=True)]
    if input is not None:
        threads.append(threading.Thread(target=_feed, args=(process.stdin, input), daemon=True))
    for t in threads:
        t.start()
    interrupted = _wait(process)
    for t in threads:
        t.join()
    done = Done(process.returncode, "".join(out), "".join(err))
    if interrupted and done.status != 0:
        raise errors.Interrupted(done.text() or "interrupted", done.status)
    if done.status not in allowed:
        raise errors.of_status(done.status, done.text())
    return done


def _wait(process: "subprocess.Popen[bytes]") -> bool:
    """Waits until it has ended. Each KeyboardInterrupt is passed on. Whether there was one."""
    n = 0
    try:
        while True:
            try:
                process.wait()
                return n > 0
            except KeyboardInterrupt:
                n += 1
                process.send_signal(signal.SIGINT if n < 3 else signal.SIGKILL)
    finally:  # another exception, such as SystemExit of a handler
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _writer(stream: "IO[str] | None", progress: bool) -> Callable[[str], object]:
    return stream.write if progress and stream is not None else lambda line: None


def _read(pipe: "IO[bytes]", lines: List[str], write: Callable[[str], object]) -> None:
    with pipe:
        for raw in pipe:
            lines.append(raw.decode("utf-8", errors="replace"))
            try:
                write(lines[-1])
            except Exception:  # a closed stream must not stop the program
                write = lambda line: None  # noqa: E731


def _feed(pipe: "IO[bytes]", text: str) -> None:
    try:
        with pipe:
            pipe.write(text.encode("utf-8", errors="backslashreplace"))
    except BrokenPipeError:
        pass  # its status and messages say why


def main() -> NoReturn:
    """The command `molsieve` of the package: becomes the program."""
    try:
        program = path()
    except errors.ProgramError as e:
        print("molsieve: " + e.text, file=sys.stderr)
        sys.exit(127)
    os.execv(program, [program, *sys.argv[1:]])

# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one for each exit status of the program (`molsieve help exit-codes`)."""
from __future__ import annotations

import signal
from typing import Dict, Type


class Error(Exception):
    """The program ended with a status other than 0. `status` is that status (None: it was not started), `text` what it said."""

    def __init__(self, text: str, status: "int | None" = None):
        super().__init__(text if status is None else "%s (status %d)" % (text, status))
        self.text = text
        self.status = status


class ProgramError(Error):
    """The program cannot be used: it or a library is missing, or it is of another version, processor or C library."""


class StageFailed(Error):
    """Status 1: a stage failed."""


class ConfigurationError(Error, ValueError):
    """Status 2: wrong usage or configuration, or a file without records. Nothing was done."""


class TooManyFailures(Error):
    """Status 3: more records failed than `limits.failures` allows."""


class WorkDirectoryLocked(Error):
    """Status 4: another run holds the work directory."""


class IntegrityError(Error):
    """Status 5: a database, checkpoint or model file is damaged, or not the expected one."""


class SystemResourceError(Error, OSError):
    """Status 6: no disk space, quota or memory, or an input or output error, such as a missing file."""


class DeviceError(Error):
    """Status 7: a GPU, or another rank of a training."""


class Stopped(Error):
    """Status 75, 130 or 143: stopped early, the state is good. The same call continues."""


class Crashed(Error):
    """A signal that was not meant to stop it ended the program. `status` is minus its number."""


class Interrupted(KeyboardInterrupt):
    """You interrupted the call, and the program has ended in order. The same call continues. `status` and `text` as in `Error`."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.text = text
        self.status = status


class Warning(UserWarning):  # noqa: A001 - molsieve.Warning
    """What the program said although it succeeded."""


BY_STATUS: Dict[int, Type[Error]] = {
    1: StageFailed, 2: ConfigurationError, 3: TooManyFailures, 4: WorkDirectoryLocked, 5: IntegrityError,
    6: SystemResourceError, 7: DeviceError, 75: Stopped, 130: Stopped, 143: Stopped,
}


def of_status(status: int, text: str) -> Error:
    """The exception for an exit status."""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        return Crashed("ended by signal %s%s" % (name, ": " + text if text else ""), status)
    return BY_STATUS.get(status, Error)(text or "the program said nothing", status)

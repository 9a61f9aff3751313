"""Writes to objects that others write too: kubelets, controllers and people, many times a minute."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.adapters.kubernetes.problems import ApiError, Kind

ATTEMPTS = 4  # a kubelet writes its node every few seconds: four conflicts in a row are somebody's loop


def rereading(read_and_write: Callable[[], None]) -> None:
    """Do it; where the object was written between its reading and its writing, read it again.

    For acts that read what they write and are right whatever they read. Raises ``ApiError`` as the act does, a
    conflict only after the last attempt.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return read_and_write()
        except ApiError as problem:
            if problem.why is not Kind.CONFLICT:
                raise
    return read_and_write()

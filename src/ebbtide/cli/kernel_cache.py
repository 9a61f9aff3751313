"""A folder for compiled kernels where the usual ones can't be written: numba defines no kernel without one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import ebbtide
from ebbtide.errors import PermanentError

_PACKAGE = Path(ebbtide.__file__).parent


def ensure_kernel_cache(package: Path = _PACKAGE) -> None:
    """Before the first kernel is imported: a folder of this run's own, where numba would find none.

    numba takes ``NUMBA_CACHE_DIR``, else the package's folders, else the user's cache. A service user on a read-only
    install has none of them. A new private folder, since numba runs what it finds in its cache. Raises
    ``PermanentError`` where not even a temporary folder can be made.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if _writable(package) or _can_hold(_user_cache()) or (given and _can_hold(Path(given))):
        return
    try:
        own = tempfile.mkdtemp(prefix="ebbtide-")
    except OSError as refusal:
        message = "no folder can be written that compiled kernels could be kept in"
        hint = "set NUMBA_CACHE_DIR to one"
        raise PermanentError(message, kind="no_cache_folder", hint=hint) from refusal
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = own


def _user_cache() -> Path:
    # As numba's own copy of appdirs has it on Linux; on other systems the user has a home.
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"


def _can_hold(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return _writable(folder)


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)

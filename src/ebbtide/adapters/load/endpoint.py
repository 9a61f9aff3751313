"""Where requests go and how: address, form, credential by reference, TLS, time-out. Plain values, picklable."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ebbtide.errors import InputError, PermanentError, Place

MOST_SECRET_BYTES = 65_536


class Api(StrEnum):
    """How requests are built and answers read: OpenAI's three, or any HTTP."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    HTTP = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Where a secret is: never what it is, so that no message, file or traceback can hold it.

    Exactly one of ``env`` (a variable's name) and ``file`` (a path).
    """

    env: str | None = None
    file: str | None = None
    header: str = "Authorization"
    scheme: str = "Bearer"

    def __str__(self) -> str:
        return f"${self.env}" if self.env is not None else str(self.file)

    def header_value(self) -> str:
        """The header's value, read now. ``InputError`` or ``PermanentError`` where there is none to read."""
        secret = self._secret().strip()
        if not secret or not secret.isascii() or not secret.isprintable():
            problem = "is empty" if not secret else "holds characters that no header may hold"
            raise InputError(f"the credential in {self} {problem}", kind="bad_credential")
        return f"{self.scheme} {secret}" if self.scheme else secret

    def _secret(self) -> str:
        if self.env is not None:
            found = os.environ.get(self.env)
            if found is None:
                hint = f"export {self.env} before measuring"
                raise InputError(f"the variable {self.env} is not set", kind="no_credential", hint=hint)
            return found
        path = Path(str(self.file))
        try:
            with path.open("rb") as file:
                return file.read(MOST_SECRET_BYTES).decode()
        except FileNotFoundError:
            raise InputError("no such file", kind="no_credential", place=Place(file=str(path))) from None
        except (OSError, UnicodeDecodeError):
            raise PermanentError(
                "the credential can't be read", kind="no_credential", place=Place(file=str(path))
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the server proves who it is: the system's authorities, a file of them, or not at all."""

    ca_file: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address and how it is spoken to. ``headers`` hold no secret; ``timeout_s`` ends a request as failed."""

    url: str
    api: Api = Api.CHAT
    method: str = "POST"
    stream: bool = False
    model: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    credential: Credential | None = None
    tls: Tls = Tls()
    timeout_s: float = 60.0
    most_bytes: int = 16 * 2**20

    @property
    def shown(self) -> str:
        """The address as messages, claims and reports have it: without user, password and query."""
        return shown_url(self.url)


def shown_url(url: str) -> str:
    """An address without what may be secret in it.

    >>> shown_url("https://me:secret@example.org:8000/v1/chat?key=secret")
    'https://example.org:8000/v1/chat'
    """
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(url)
        host = parts.netloc.rsplit("@", 1)[-1]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return "the address"

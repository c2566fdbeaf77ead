"""Download one file over HTTP(S) so that a cut connection costs only the bytes not yet received.

pooch's own downloader begins anew after every interruption; this one asks the server for the rest.
"""

from __future__ import annotations

import time
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError as TransferError

from bgd.data.sources.progress import Bar

TIMEOUT = (10.0, 30.0)
"""Seconds to wait for a connection, and for the next bytes."""
STALLS = 3
"""Give up after so many attempts in a row that brought nothing new."""
_CHUNK = 1 << 14
"""Small, since a chunk that a stall interrupts is lost."""


class Unavailable(Exception):
    """A source that cannot deliver; the message says which and why. Others may still be tried."""

    def __init__(self, message: str, reachable: bool = True) -> None:
        super().__init__(message)
        self.reachable = reachable


def download(url: str, part: Path, label: str) -> None:
    """Bring the whole of ``url`` into ``part``, going on from the bytes that it already holds.

    Args:
        url: An HTTP or HTTPS address.
        part: Where the bytes go. After a failure it stays if the server can resume, and goes if not.
        label: What the progress bar says.

    Raises:
        Unavailable: If the server cannot be reached, refuses, or keeps breaking off.
    """
    most, stalls = _size(part), 0
    with Bar(label) as bar:
        while True:
            try:
                if _attempt(url, part, bar):
                    return
                reason = "the server kept refusing to resume"
            except (requests.HTTPError, ValueError) as error:  # refused, or not an address at all
                raise Unavailable(f"{url}: {error}") from error
            except (requests.ConnectionError, requests.Timeout) as error:
                if _size(part) == 0:
                    raise Unavailable(f"{url}: not reachable ({_root(error)})", reachable=False) from error
                reason = f"cannot be reached any more ({_root(error)})"
            except (requests.RequestException, TransferError, _Cut) as error:
                reason = f"broke off after {_size(part):,} bytes ({_root(error)})"
            stalls = stalls + 1 if _size(part) <= most else 0
            most = max(most, _size(part))
            if stalls >= STALLS:
                raise Unavailable(f"{url}: {reason}")
            time.sleep(0.2 * stalls)


class _Cut(Exception):
    """The connection ended before the announced number of bytes."""


def _attempt(url: str, part: Path, bar: Bar) -> bool:
    """Send one request; True when ``part`` is whole, False when what it held was of no use and is gone."""
    have = _size(part)
    # a file that is itself compressed must arrive as it is, or the byte counts would not match
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        resumed = response.status_code == requests.codes.partial_content
        promised = response.headers.get("Content-Range", "")
        if response.status_code == requests.codes.requested_range_not_satisfiable or (
            resumed and not promised.startswith(f"bytes {have}-")
        ):
            part.unlink(missing_ok=True)
            return False
        response.raise_for_status()
        have = have if resumed else 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else None
        resumable = resumed or response.headers.get("Accept-Ranges") == "bytes"
        try:
            with part.open("ab" if resumed else "wb") as file:
                for chunk in response.raw.stream(_CHUNK, decode_content=False):
                    have += file.write(chunk)
                    bar.at(have, total)
            if total is not None and have != total:  # older transports do not notice
                raise _Cut(f"{total:,} were announced")
        except BaseException:
            if not resumable:
                part.unlink(missing_ok=True)
            raise
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _root(error: BaseException) -> str:
    """Say the innermost reason: the outer layers only repeat addresses and object ids."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__

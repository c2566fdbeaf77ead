"""Download one file over HTTP(S) so that an interrupted connection costs only the bytes not yet received.

pooch's own downloader starts again after every interruption; this one requests the rest from the server.
"""

from __future__ import annotations

import time
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError as TransferError

from bgd.data.sources.progress import ProgressBar

TIMEOUT = (10.0, 30.0)
"""Seconds to wait for a connection, and for the next bytes."""
STALLS = 3
"""Give up after so many attempts in a row without a new byte."""
_CHUNK = 1 << 14
"""Small, since a chunk that a stall interrupts is downloaded again."""


class Unavailable(Exception):
    """A source that cannot deliver; the message names it and the reason. Others may still be tried."""

    def __init__(self, message: str, reachable: bool = True) -> None:
        super().__init__(message)
        self.reachable = reachable


def download(url: str, part: Path, label: str) -> None:
    """Download the whole of ``url`` into ``part``, resuming after the bytes that it already holds.

    Args:
        url: An HTTP or HTTPS address.
        part: The file to write. After a failure it is kept if the server can resume, and deleted if not.
        label: The text of the progress bar.

    Raises:
        Unavailable: If the server cannot be reached, refuses, or keeps interrupting.
    """
    most, stalls = _size(part), 0
    with ProgressBar(label) as bar:
        while True:
            try:
                if _attempt(url, part, bar):
                    return
                reason = "the server kept refusing to resume"
            except (requests.HTTPError, ValueError) as error:  # refused, or not an address
                raise Unavailable(f"{url}: {error}") from error
            except (requests.ConnectionError, requests.Timeout) as error:
                if _size(part) == 0:
                    raise Unavailable(f"{url}: not reachable ({_innermost_reason(error)})", reachable=False) from error
                reason = f"no longer reachable ({_innermost_reason(error)})"
            except (requests.RequestException, TransferError, _Interrupted) as error:
                reason = f"interrupted after {_size(part):,} bytes ({_innermost_reason(error)})"
            stalls = stalls + 1 if _size(part) <= most else 0
            most = max(most, _size(part))
            if stalls >= STALLS:
                raise Unavailable(f"{url}: {reason}")
            time.sleep(0.2 * stalls)


class _Interrupted(Exception):
    """The connection ended before the announced number of bytes."""


def _attempt(url: str, part: Path, bar: ProgressBar) -> bool:
    """Send one request; True when ``part`` is whole, False when what it held was useless and has been deleted."""
    have = _size(part)
    # a file that is itself compressed must arrive as it is, or the byte counts would not match
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        resumed = response.status_code == requests.codes.partial_content
        content_range = response.headers.get("Content-Range", "")
        if response.status_code == requests.codes.requested_range_not_satisfiable or (
            resumed and not content_range.startswith(f"bytes {have}-")
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
                    bar.update(have, total)
            if total is not None and have != total:  # older transports do not notice
                raise _Interrupted(f"{total:,} were announced")
        except BaseException:
            if not resumable:
                part.unlink(missing_ok=True)
            raise
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _innermost_reason(error: BaseException) -> str:
    """Return the innermost reason: the outer layers only repeat addresses and object ids."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__

"""The command ``bgd``, also as ``python -m bgd``: says in one line which extra is missing where it cannot start."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line, or name the extra that it needs (exit code 2).

    As with ``python -m``, modules are also found in the current folder, behind all others.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        from bgd.cli import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("bgd", ""):
            raise
        message = f"bgd: the command needs {error.name}, which is not installed: pip install 'bgd[experiments]'"
        print(message, file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()

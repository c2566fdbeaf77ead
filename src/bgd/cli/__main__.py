"""``python -m bgd.cli`` is the command ``bgd``."""

from bgd.cli import main

if __name__ == "__main__":
    main()

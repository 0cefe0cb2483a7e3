"""``python -m evenhand``: the command line."""

from evenhand.cli import main

if __name__ == "__main__":
    main()

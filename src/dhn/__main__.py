"""`python -m dhn`."""

from dhn.cli import command

if __name__ == "__main__":
    command()

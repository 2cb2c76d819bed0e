"""`python -m dhn.cli`."""

from dhn.cli import command

if __name__ == "__main__":
    command()

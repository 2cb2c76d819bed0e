"""One training a folder: a lock that dies with the process that holds it."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from dhn.errors import UserError, os_errors

FILE = ".lock"


@contextlib.contextmanager
def lock_run(directory: str | os.PathLike[str] | None) -> Iterator[None]:
    """Hold the run folder while the block runs; a `UserError` if another training holds it.

    The lock is the kernel's, on the open file `.lock`: it ends with the process, however that
    ends, and the file that remains has no effect. It works between threads, too. Without a
    folder there is nothing to hold.
    """
    if directory is None:
        yield
        return
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder for the run.")
    with os_errors(f"{folder} cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _acquire(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        warnings.warn(f"{folder} cannot be locked on this system.", stacklevel=4)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise UserError(
            f"{folder} is in use by another training (process {holder}); wait for its end, or "
            f"train into another folder."
        ) from None
    except OSError as error:  # some network file systems know no locks
        warnings.warn(
            f"{folder} cannot be locked ({error.strerror}); let no other training write there.",
            stacklevel=4,
        )
        return
    with contextlib.suppress(OSError):  # the number is a courtesy; a full disk must not end here
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

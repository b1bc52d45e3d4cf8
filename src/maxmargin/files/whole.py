# SPDX-License-Identifier: BSD-3-Clause
"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_CURES = {
    errno.ENOSPC: "the disk is full. Free some space or write to another disk",
    errno.EDQUOT: "the disk quota is used up. Free some space or write to another disk",
    errno.EFBIG: "the file would be larger than this process or disk allows. Write to another disk",
    errno.EACCES: "there is no permission to write there. Choose another folder or change its permissions",
    errno.EPERM: "there is no permission to write there. Choose another folder or change its permissions",
    errno.EROFS: "the disk is mounted for reading only. Choose another folder",
    errno.ENOENT: "its folder does not exist. Make the folder first",
    errno.ENOTDIR: "its folder is not a folder. Choose another path",
    errno.EISDIR: "it is a folder. Give the name of a file",
}


def write_whole(path: str | os.PathLike[str], writer: Callable[[BinaryIO], object]) -> None:
    """Let ``writer`` fill a file that appears under its name only when it is complete and on the disk.

    It is written under a temporary name in the same folder, synced and renamed. Whatever happens before
    the renaming, a full disk, an error of the writer, a killed process or a power cut, the file that had
    the name before is still there; the temporary file is removed, except where the process was killed.

    A file that is replaced passes on its permissions; a new one has those of the umask. A symbolic link
    is followed. Raises OSError with the reason and the cure.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    with writing_errors(path, temporary):
        replaced = _replaceable(target)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        try:
            with open(descriptor, "wb") as file:
                if replaced is not None:
                    _take_permissions(temporary, replaced)
                writer(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)


@contextmanager
def writing_errors(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Say of an OSError in the writing of a file what the reason and the cure are."""
    target = os.path.realpath(path)
    own = (None, target, f"{target}.part", None if temporary is None else os.fspath(temporary))
    try:
        yield
    except OSError as error:
        if error.filename not in own:
            raise  # the writer's own trouble with some other file
        reason = _CURES.get(error.errno or 0, (error.strerror or str(error)).lower())
        state = "The file of that name is unchanged" if os.path.isfile(target) else "Nothing was written"
        # OSError picks its subclass, such as PermissionError, by the number.
        raise OSError(error.errno, f"Could not be written: {reason}. {state}", str(path)) from error


def rename_whole(temporary: str, path: str | os.PathLike[str]) -> None:
    """Give a file that is complete and on the disk its name, in place of one that may have had it."""
    target = Path(os.path.realpath(path))
    replaced = _replaceable(target)
    if replaced is not None:
        _take_permissions(Path(temporary), replaced)
    os.replace(temporary, target)
    _sync_folder(target.parent)


_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def _replaceable(target: Path) -> os.stat_result | None:
    """What is known of the file to be replaced; None if there is none."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(target))
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        # Renaming would get around the wish of whoever protected it.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return found


def _take_permissions(temporary: Path, replaced: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):  # only its owner or root can give a file away
            os.chown(temporary, replaced.st_uid, replaced.st_gid)
    os.chmod(temporary, stat.S_IMODE(replaced.st_mode) & 0o777)


def _sync_folder(folder: Path) -> None:
    """Make the new name last; on systems where folders cannot be opened, renaming has to do."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""Writing a report to a file, whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile


def printable(text: str) -> str:
    """The text with lone surrogates (undecodable bytes of a file name) written as escapes: UTF-8 cannot hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text and a last line break: to a new file beside `path` that then takes its place.

    A link keeps pointing to its file; a device or pipe is written directly.

    Raises:
        OSError: the message names `path` and what the system said.
    """
    target = os.path.realpath(path)
    data = (text if text.endswith("\n") else text + "\n").encode("utf-8", "backslashreplace")
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as stream:
                stream.write(data)
            return
        _replace(target, data)
    except OSError as e:
        raise OSError(e.errno, f"cannot write the report: {e.strerror or e}", os.fspath(path)) from e


def _replace(target: str, data: bytes) -> None:
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
    handle, fresh = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".fxdoctor-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(fresh, mode)
        os.replace(fresh, target)
    except BaseException:
        os.unlink(fresh)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

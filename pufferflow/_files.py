"""Writing files so that a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write ``content`` (text as UTF-8) to ``path`` in one step, creating its folder.

    The bytes go to a temporary file beside the target, which is then renamed; a run that is
    killed midway leaves the old file or none.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()

# SPDX-License-Identifier: Apache-2.0
"""Disks that fill up: a file system of a few MiB where we may mount one, in a mount namespace of the test's own; and a
limit on the size of files, which any user may lower for a process that runs."""
import ctypes
import os
import resource

from testing import Failure, wait_for

CLONE_NEWNS = 0x00020000
MS_REC_PRIVATE = 16384 | 262144
LIBC = ctypes.CDLL(None, use_errno=True)


def may_mount():
    """The namespace goes with this process, and takes its mounts along. Once for all tests of a script."""
    if not hasattr(may_mount, "answer"):
        may_mount.answer = (LIBC.unshare(CLONE_NEWNS) == 0
                            and LIBC.mount(None, b"/", None, MS_REC_PRIVATE, None) == 0)
    return may_mount.answer


class SmallDisk:
    """with SmallDisk("/a/folder", 16) as disk: a file system of 16 MiB on it."""

    def __init__(self, folder, mebibytes):
        self.folder = folder
        self.options = f"size={mebibytes}m,mode=0711".encode()
        self.filler = os.path.join(folder, "filler")

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        if LIBC.mount(b"none", self.folder.encode(), b"tmpfs", 0, self.options) != 0:
            raise Failure(f"mount: {os.strerror(ctypes.get_errno())}")
        return self

    def __exit__(self, *_):
        LIBC.umount2(self.folder.encode(), 2)

    def free_bytes(self):
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize

    def leave(self, free_bytes):
        """Takes all but so many bytes."""
        with open(self.filler, "wb", buffering=0) as file:
            try:
                while self.free_bytes() > free_bytes:
                    file.write(bytes(min(65536, self.free_bytes() - free_bytes)))
            except OSError:
                pass

    def clear(self):
        os.unlink(self.filler)


def limit_files(daemon, size_bytes):
    """No file that the daemon writes may become longer."""
    _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def unlimit_files(daemon):
    limit_files(daemon, resource.RLIM_INFINITY)


def wait_log(daemon, text, times=1):
    wait_for(f"{daemon.name} says {text!r}", lambda: daemon.log().count(text) >= times)

# SPDX-License-Identifier: Apache-2.0
"""Heads and bodies of HTTP/1.1 over asyncio's streams, as they come: for the proxy, which passes on what it is sent."""
import asyncio
import contextlib
import socket
import struct

PIECE_BYTES = 64 << 10


class Headers:
    """In the order in which they came; looked up without regard to case."""

    def __init__(self, listed):
        self.listed = listed
        self.named = {name.lower(): value for name, value in listed}

    def get(self, name, default=None):
        return self.named.get(name, default)

    def __contains__(self, name):
        return name in self.named

    def is_chunked(self):
        return "chunked" in self.get("transfer-encoding", "").lower()

    def length(self):
        """Of the body; None: it ends as its chunks, or the connection, say."""
        return None if self.is_chunked() or "content-length" not in self else int(self.get("content-length"))


NONE = Headers([])


async def read_head(reader):
    """Up to its blank line, without the 100 that may come before an answer; None where the connection ends."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        if not head.startswith(b"HTTP/1.1 100"):
            return head


def parse_head(head):
    """The words of its first line, and the headers."""
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = [entry.split(":", 1) for entry in rest]
    return first.split(" "), Headers([(name.strip(), value.strip()) for name, value in pairs])


def text_of(first, pairs):
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in pairs), "", ""]).encode("latin-1")


async def counted(reader, count):
    """So many bytes, as they come; EOFError when there are fewer."""
    while count:
        piece = await reader.read(min(count, PIECE_BYTES))
        if not piece:
            raise EOFError
        count -= len(piece)
        yield piece


async def body_pieces(reader, headers, is_answer=False):
    """The body, without its chunks' sizes. An answer of no stated length ends with its connection."""
    headers = headers or NONE
    if headers.is_chunked():
        while size := int((await reader.readline()).split(b";")[0], 16):
            async for piece in counted(reader, size):
                yield piece
            await reader.readline()
        while (await reader.readline()).strip():
            pass  # what may follow the last chunk
    elif headers.length() is not None:
        async for piece in counted(reader, headers.length()):
            yield piece
    elif is_answer:
        while piece := await reader.read(PIECE_BYTES):
            yield piece


def abort(writer):
    """Ends the connection with a reset."""
    with contextlib.suppress(OSError):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()

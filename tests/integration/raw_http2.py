# SPDX-License-Identifier: Apache-2.0
"""A client of gRPC that says of its messages whatever it likes, and sends as much of them as the server's windows let
it: nothing of HTTP/2 but what that takes."""
import select
import struct
import time

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW = 4
FRAME_BYTES = 16384


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Http2:
    def __init__(self, connection):
        """`connection` is a socket that is connected, with TLS or without."""
        self.connection = connection
        self.windows = {}  # by stream, 0 for the connection: what may be sent
        self.initial = self.windows[0] = 65535
        self.left = {}  # what is not sent yet
        self.reset = set()
        self.gone = False
        self.input = b""
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(SETTINGS))

    @staticmethod
    def frame(kind, flags=0, stream=0, payload=b""):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    def open(self, stream, path, announced):
        """A call whose only message has `announced` bytes."""
        headers = b"".join(literal(*pair) for pair in (
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers"),
            ("content-type", "application/grpc")))
        self.windows[stream] = self.initial - 5
        self.windows[0] -= 5
        self.left[stream] = announced
        self.connection.sendall(self.frame(HEADERS, END_HEADERS, stream, headers) +
                                self.frame(DATA, 0, stream, struct.pack(">BI", 0, announced)))

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[i:i + 6])
                if key == INITIAL_WINDOW:
                    for each in self.left:
                        self.windows[each] += value - self.initial
                    self.initial = value
            self.connection.sendall(self.frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.connection.sendall(self.frame(PING, ACK, 0, payload))
        elif kind == WINDOW:
            self.windows[stream] = self.windows.get(stream, 0) + struct.unpack(">I", payload)[0]
        elif kind == RESET:
            self.reset.add(stream)
            self.left.pop(stream, None)
        elif kind == GOAWAY:
            self.gone = True

    def receive(self, patience_s):
        """Whether there was anything."""
        pending = getattr(self.connection, "pending", lambda: 0)()
        if not pending and not select.select([self.connection], [], [], patience_s)[0]:
            return False
        got = self.connection.recv(65536)
        self.gone = self.gone or not got
        self.input += got
        while len(self.input) >= 9:
            length, kind, flags, stream = struct.unpack(">IBBI", b"\0" + self.input[:9])
            if len(self.input) < 9 + length:
                break
            self.take(kind, flags, stream & 0x7fffffff, self.input[9:9 + length])
            self.input = self.input[9 + length:]
        return True

    def push(self):
        """One frame of each stream that has something to send and may; whether there was any."""
        frames = []
        for stream in self.left:
            count = min(self.left[stream] - 1, self.windows[stream], self.windows[0], FRAME_BYTES)
            if count > 0:
                self.windows[stream] -= count
                self.windows[0] -= count
                self.left[stream] -= count
                frames.append(self.frame(DATA, 0, stream, bytes(count)))
        self.connection.sendall(b"".join(frames))
        return bool(frames)

    def send_all(self, quiet_s=2):
        """All but the last byte of every message, until nothing may be sent for that long, or it is over."""
        last = time.monotonic()
        try:
            while not self.gone and self.left and time.monotonic() - last < quiet_s:
                if self.push():
                    last = time.monotonic()
                    self.receive(0)
                elif self.receive(0.05) and not any(each > 1 for each in self.left.values()):
                    last = time.monotonic() - quiet_s / 2
        except OSError:
            self.gone = True

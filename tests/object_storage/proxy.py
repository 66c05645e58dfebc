#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands before a store, or any HTTP server, and does wrong what networks and stores do wrong.

    with Proxy(store.endpoint, seed=1) as proxy:    proxy.endpoint is "http://127.0.0.1:P"
        proxy.plan.draw(**{"500": 2, "503": 2, "429": 1})
        proxy.plan.next("reset", operation="get")
        proxy.link.latency_s, proxy.link.bytes_s = 0.05, 100e6 / 8
        proxy.stop_lists()                          lists lack what is put from now on, until go_on_with_lists()
    proxy.counts()                              what was asked of the store

By hand: proxy.py URL [options], and commands on standard input, each answered by one line:

    draw KIND=PERCENT ...       next KIND [COUNT [OPERATION [KEY]]]     clear
    latency SECONDS             bandwidth BYTES-A-SECOND                clock SECONDS-AHEAD         counts
"""
import argparse
import asyncio
import collections
import contextlib
import datetime
import email.utils
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse

import faults
import lists
from http_stream import abort, body_pieces, parse_head, read_head, text_of

HOST = "127.0.0.1"
PIECE_BYTES = 64 << 10
RECORDS_MAX = 200000
SKEW_S = 900  # what S3 allows
EXTRA = b"0123456789"
BURST_S = 0.02

class Link:
    """What all connections share: the time of a round trip, which each connection and each request takes once more, and
    the bytes a second of each direction. 0: no limit. May be changed at any time."""

    def __init__(self):
        self.latency_s = 0.0
        self.bytes_s = 0.0
        self.free_at = {"up": 0.0, "down": 0.0}

    async def wait(self):
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

    async def take(self, direction, count):
        if not self.bytes_s:
            return
        now = time.monotonic()
        self.free_at[direction] = max(self.free_at[direction], now - BURST_S) + count / self.bytes_s
        if self.free_at[direction] > now:
            await asyncio.sleep(self.free_at[direction] - now)


class Proxy:
    """`tls`: a folder with cert.pem and key.pem. `clock_ahead_s`: the proxy is a store whose clock is ahead: it refuses
    requests of other times, and says its own in Date; the store behind it must allow for that."""

    def __init__(self, store, seed=1, tls=None, port=0):
        url = urllib.parse.urlsplit(store)
        self.store = (url.hostname, url.port or 80)
        self.plan, self.link = faults.Plan(seed), Link()
        self.tls, self.port = tls, port
        self.clock_ahead_s, self.slow_bytes_s = 0.0, 20000
        self.lock = threading.Lock()
        self.loop = self.thread = self.server = None
        self.held = []        # futures of requests that the store does not have yet
        self.unlisted = lists.Unlisted()
        self.serving = set()  # the loop alone does not keep a task whose two peers are gone
        self.clear_counts()

    # --- what was asked for ---

    def clear_counts(self):
        with self.lock:
            self.requests = 0
            self.connections = 0
            self.at_once = self.at_once_max = 0
            self.records = collections.deque(maxlen=RECORDS_MAX)

    def counts(self):
        """Requests by operation, answers by status, faults by kind, connections, the most requests at a time; `down`
        and `up`: bytes of bodies from and to the store."""
        with self.lock:
            records = list(self.records)
            counts = {"connections": self.connections, "at_once": self.at_once_max}
        for name in ("operation", "status", "fault"):
            counts[name] = dict(collections.Counter(getattr(one, name) for one in records))
        counts["fault"].pop(None, None)
        counts["up"] = sum(one.up for one in records)
        counts["down"] = sum(one.down for one in records)
        return counts

    def down_of(self):
        """For each "bucket/key" the bytes of it that the store gave."""
        down = collections.Counter()
        with self.lock:
            for one in self.records:
                if one.operation == "get":
                    down[one.key] += one.down
        return down

    # --- requests that are held ---

    def held_count(self):
        return len(self.held)

    def let_go(self):
        """The store gets what is held. Its answers may not be there yet; see Record.status."""
        self.loop.call_soon_threadsafe(self.let_all_go)

    def let_all_go(self):
        held, self.held = self.held, []
        for one in held:
            one.set_result(None)

    # --- lists that are old ---

    def stop_lists(self):
        self.unlisted.begin()

    def go_on_with_lists(self):
        self.unlisted.end()

    # --- begin and end ---

    @property
    def endpoint(self):
        return f"{'https' if self.tls else 'http'}://{HOST}:{self.port}"

    def __enter__(self):
        began = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(began,), daemon=True)
        self.thread.start()
        began.wait()
        if self.server is None:
            raise OSError(f"port {self.port} is taken")
        return self

    def run(self, began):
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        context = None
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(self.tls, "cert.pem"), os.path.join(self.tls, "key.pem"))
        try:
            self.server = self.loop.run_until_complete(
                asyncio.start_server(self.serve, HOST, self.port, ssl=context, backlog=1024))
            self.port = self.server.sockets[0].getsockname()[1]
        finally:
            began.set()
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    def __exit__(self, *error):
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    # --- a connection, a request ---

    async def serve(self, reader, writer):
        with self.lock:
            self.connections += 1
        task = asyncio.current_task()
        self.serving.add(task)
        try:
            await self.link.wait()
            while await self.serve_one(reader, writer):
                pass
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # the client went away, or what it sends is no HTTP
        finally:
            self.serving.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def serve_one(self, reader, writer):
        """Whether the connection goes on."""
        head = await read_head(reader)
        if head is None:
            return False
        (method, target, _), headers = parse_head(head)
        with self.lock:
            self.requests += 1
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            request = faults.Request(self.requests, method, target, headers)
            record = Record(self, request)
            self.records.append(record)
        try:
            return await Exchange(self, record, reader, writer).answer()
        finally:
            record.ended_s = time.monotonic()
            with self.lock:
                self.at_once -= 1

    def date(self):
        return time.time() + self.clock_ahead_s

    def is_skewed(self, request):
        stamp = request.headers.get("x-amz-date")
        if not self.clock_ahead_s or not stamp:
            return False
        sent = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        return abs(sent.timestamp() - self.date()) > SKEW_S


class Record:
    """One request: what was asked for, what was done wrong, the status of its answer, bytes of bodies from
    and to the store."""

    def __init__(self, proxy, request):
        self.request = request
        self.operation, self.key = faults.operation_of(request), faults.key_of(request)
        self.range = request.headers.get("range")
        self.fault = "skewed" if proxy.is_skewed(request) else proxy.plan.fault_of(request)
        self.status = self.up = self.down = 0
        self.began_s, self.ended_s = time.monotonic(), None


class Exchange:
    """What becomes of a request."""

    def __init__(self, proxy, record, reader, writer):
        self.proxy, self.record, self.reader, self.writer = proxy, record, reader, writer
        self.request, self.fault = record.request, record.fault

    async def answer(self):
        await self.proxy.link.wait()
        if self.fault == "refused":
            abort(self.writer)
            return False
        if self.fault == "skewed" or self.fault in faults.INSTEAD:
            return await self.answer_instead()
        if self.fault == "held":
            return await self.answer_late()
        store_reader, store_writer = await asyncio.open_connection(*self.proxy.store, limit=1 << 20)
        try:
            return await self.forward(store_reader, store_writer)
        finally:
            store_writer.close()

    async def answer_late(self):
        """A connection to the store only then: it closes those on which nothing comes."""
        if "expect" in self.request.headers:
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces = [piece async for piece in body_pieces(self.reader, self.request.headers)]
        waits = self.proxy.loop.create_future()
        self.proxy.held.append(waits)
        await waits
        store_reader, store_writer = await asyncio.open_connection(*self.proxy.store, limit=1 << 20)
        try:
            left_out = ("expect", "connection", "transfer-encoding", "content-length")
            sent = [(name, value) for name, value in self.request.headers.listed if name.lower() not in left_out]
            store_writer.write(text_of(f"{self.request.method} {self.request.target} HTTP/1.1",
                                       [*sent, ("Content-Length", str(sum(map(len, pieces)))),
                                        ("Connection", "close")]) + b"".join(pieces))
            (_, status, *reason), headers = parse_head(await read_head(store_reader))
            self.record.status = int(status)
            return await self.give(f"HTTP/1.1 {status} {' '.join(reason)}", headers, store_reader)
        finally:
            store_writer.close()

    async def answer_instead(self):
        expects = "expect" in self.request.headers
        if not expects:  # else the body is not sent, and the connection is of no use afterwards
            async for piece in body_pieces(self.reader, self.request.headers):
                await self.proxy.link.take("up", len(piece))
        self.record.status, headers, body = faults.instead(self.fault, self.request)
        headers = {**headers, "Content-Length": str(len(body)),
                   "Date": email.utils.formatdate(self.proxy.date(), usegmt=True)}
        if expects:
            headers["Connection"] = "close"
        self.writer.write(text_of(f"HTTP/1.1 {self.record.status} {self.fault}", headers.items()))
        if self.request.method != "HEAD":
            self.writer.write(body)
        await self.writer.drain()
        return not expects

    async def forward(self, store_reader, store_writer):
        left_out = ("expect", "connection")
        sent = [(name, value) for name, value in self.request.headers.listed if name.lower() not in left_out]
        store_writer.write(text_of(f"{self.request.method} {self.request.target} HTTP/1.1",
                                   [*sent, ("Connection", "close")]))
        if "expect" in self.request.headers:
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pump = asyncio.ensure_future(self.pump_up(store_writer))
        try:
            head = await read_head(store_reader)
            was_read = pump.done() and pump.exception() is None
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
        if head is None:
            abort(self.writer)
            return False
        (_, status, *reason), headers = parse_head(head)
        self.record.status = int(status)
        keeps = await self.give(f"HTTP/1.1 {status} {' '.join(reason)}", headers, store_reader)
        return keeps and was_read

    async def pump_up(self, store_writer):
        chunked = self.request.headers.is_chunked()
        try:
            async for piece in body_pieces(self.reader, self.request.headers):
                await self.proxy.link.take("up", len(piece))
                self.record.up += len(piece)
                store_writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                await store_writer.drain()
        except EOFError:
            store_writer.close()  # the client went away: the store is not to wait for the rest
            raise
        if chunked:
            store_writer.write(b"0\r\n\r\n")

    # --- the store's answer, on its way to the client ---

    async def give(self, first, headers, store_reader):
        """Whether the connection goes on."""
        has_body = self.request.method != "HEAD" and self.record.status not in (204, 304)
        length = headers.length() if has_body else 0
        body = body_pieces(store_reader, headers, is_answer=True) if has_body else body_pieces(store_reader, {})
        self.proxy.unlisted.note(self.record)
        if self.record.operation == "list" and self.proxy.unlisted.hides():
            return await self.give_list(first, headers, body)
        if self.fault == "lost":
            async for piece in body:
                self.record.down += len(piece)
            abort(self.writer)
            return False
        sent, chunked, end = self.changed_head(headers, length, has_body)
        head = text_of(first, sent)
        if length == 0 and self.fault in ("cut", "reset", "stall"):
            return await self.break_off(head[:len("HTTP/")])
        self.writer.write(head)
        passed = 0
        async for piece in body:
            self.record.down += len(piece)
            if self.fault == "flipped" and passed == 0:
                piece = bytes([piece[0] ^ 1]) + piece[1:]
            if end is not None and passed + len(piece) >= end:
                piece, rest = piece[:end - passed], None
            else:
                rest = piece
            await self.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked and piece else piece)
            passed += len(piece)
            if rest is None:
                break
        if self.fault in ("cut", "reset", "stall"):
            return await self.break_off(b"")
        if self.fault == "extra":
            await self.send(EXTRA)
        elif chunked:
            await self.send(b"0\r\n\r\n")
        return self.fault not in ("extra", "longer")

    async def give_list(self, first, headers, body):
        """Without what the proxy hides."""
        text = b"".join([piece async for piece in body])
        self.record.down += len(text)
        text = self.proxy.unlisted.left_of(text, self.record.key)
        sent = [(name, value) for name, value in headers.listed
                if name.lower() not in ("connection", "transfer-encoding", "content-length")]
        self.writer.write(text_of(first, [*sent, ("Content-Length", str(len(text)))]))
        await self.send(text)
        return True

    def changed_head(self, headers, length, has_body):
        """The headers to send, whether the body is chunked, and after how many bytes it ends (None: with it)."""
        chunked = has_body and length is None
        sent = [(name, value) for name, value in headers.listed
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date")]
        end, said_length = None, headers.length() if "content-length" in headers else None
        if self.fault in ("cut", "reset", "stall", "shorter"):
            end = (length or 2) // 2
        if has_body and said_length is not None:  # the answer to a HEAD says how long the object is
            said_length = {"shorter": end, "longer": said_length + len(EXTRA)}.get(self.fault, said_length)
        if chunked:
            sent.append(("Transfer-Encoding", "chunked"))
        elif said_length is not None:
            sent.append(("Content-Length", str(said_length)))
        sent.append(("Date", email.utils.formatdate(self.proxy.date(), usegmt=True)))
        return sent, chunked, end

    async def send(self, piece):
        step = max(1, self.proxy.slow_bytes_s // 10) if self.fault == "slow" else PIECE_BYTES
        for at in range(0, len(piece), step):
            part = piece[at:at + step]
            await self.proxy.link.take("down", len(part))
            self.writer.write(part)
            await self.writer.drain()
            if self.fault == "slow":
                await asyncio.sleep(len(part) / self.proxy.slow_bytes_s)

    async def break_off(self, last):
        self.writer.write(last)
        await self.writer.drain()
        if self.fault == "reset":
            abort(self.writer)
        elif self.fault == "stall":
            await self.reader.read()  # until the client has had enough
        return False


# --- by hand ---


def carry_out(proxy, words):
    """Does what a command says: what is printed."""
    verb, *rest = words
    if verb == "draw":
        proxy.plan.draw(**{kind: float(percent) for kind, percent in (word.split("=") for word in rest)})
    elif verb == "next":
        kind, count, operation, key = [*rest, *[None] * 4][:4]
        proxy.plan.next(kind, int(count or 1), operation, key)
    elif verb == "clear":
        proxy.plan.clear()
        proxy.clear_counts()
    elif verb == "latency":
        proxy.link.latency_s = float(rest[0])
    elif verb == "bandwidth":
        proxy.link.bytes_s = float(rest[0])
    elif verb == "clock":
        proxy.clock_ahead_s = float(rest[0])
    elif verb == "counts":
        return proxy.counts()
    else:
        raise ValueError(f"{verb} is no command; there are draw, next, clear, latency, bandwidth, clock, counts")
    return "done"


def serve_commands(proxy):
    for command in sys.stdin:
        if command.strip():
            try:
                print(json.dumps(carry_out(proxy, command.split())), flush=True)
            except (ValueError, IndexError) as error:
                print(json.dumps({"error": str(error)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="faults:\n" + "\n".join(f"  {kind:13} {text}" for kind, text in
                                                                    faults.KINDS.items()))
    parser.add_argument("store", help="http://HOST:PORT")
    parser.add_argument("--port", type=int, default=0, help="where it listens (a free one)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", metavar="FOLDER", help="with cert.pem and key.pem")
    options = parser.parse_args()
    with Proxy(options.store, options.seed, options.tls, options.port) as proxy:
        print(proxy.endpoint, flush=True)
        serve_commands(proxy)


if __name__ == "__main__":
    main()

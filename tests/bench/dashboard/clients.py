# SPDX-License-Identifier: Apache-2.0
"""Browsers that look at a job, without a browser: each has one connection, and asks once a second for the cluster and
for the job.

    clients.py PORT JOB COUNT SECONDS     prints answers=, p50_ms= and p99_ms= of an answer"""
import asyncio
import sys
import time


async def ask(reader, writer, path):
    began_s = time.monotonic()
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode(errors="replace"))
    length = next(int(row.split(b":")[1]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length"))
    await reader.readexactly(length)
    return (time.monotonic() - began_s) * 1000


async def client(port, job, number, count, end_s):
    """They ask at different times, as people do who opened the page at different times."""
    took_ms = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    next_s = time.monotonic() + number / count
    while next_s < end_s:
        await asyncio.sleep(max(0, next_s - time.monotonic()))
        for path in ("/api/cluster", f"/api/jobs/{job}"):
            took_ms.append(await ask(reader, writer, path))
        next_s += 1
    writer.close()
    return took_ms


async def main(port, job, count, seconds):
    end_s = time.monotonic() + seconds
    each = await asyncio.gather(*(client(port, job, number, count, end_s) for number in range(count)))
    took_ms = sorted(ms for answers in each for ms in answers)
    print(f"answers={len(took_ms)}")
    print(f"p50_ms={took_ms[len(took_ms) // 2]:.3f}")
    print(f"p99_ms={took_ms[len(took_ms) * 99 // 100]:.3f}")


asyncio.run(main(*(int(argument) for argument in sys.argv[1:5])))

# SPDX-License-Identifier: Apache-2.0
"""Browsers that look at a job, without a browser: each has one connection, and asks for the cluster and for the job
once a second, or as much less often as the coordinator says.

    clients.py PORT JOB COUNT SECONDS           prints answers=, p50_ms= and p99_ms= of an answer
    clients.py PORT JOB COUNT SECONDS deaf      the same, once a second whatever the coordinator says"""
import asyncio
import sys
import time


async def ask(reader, writer, path):
    began_s = time.monotonic()
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode(errors="replace"))
    rows = (row.partition(b":") for row in head.lower().split(b"\r\n"))
    headers = {name: value for name, _, value in rows}
    await reader.readexactly(int(headers[b"content-length"]))
    return (time.monotonic() - began_s) * 1000, int(headers.get(b"cadre-poll-ms", 0)) / 1000


async def client(port, job, number, count, end_s, deaf):
    """They ask at different times, as people do who opened the page at different times."""
    took_ms = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    next_s = time.monotonic() + number / count
    while next_s < end_s:
        await asyncio.sleep(max(0, next_s - time.monotonic()))
        poll_s = 1
        for path in ("/api/cluster", f"/api/jobs/{job}"):
            ms, asked_s = await ask(reader, writer, path)
            took_ms.append(ms)
            poll_s = poll_s if deaf else max(poll_s, asked_s)
        next_s += poll_s
    writer.close()
    return took_ms


async def main(port, job, count, seconds, deaf):
    end_s = time.monotonic() + seconds
    each = await asyncio.gather(*(client(port, job, number, count, end_s, deaf) for number in range(count)))
    took_ms = sorted(ms for answers in each for ms in answers)
    print(f"answers={len(took_ms)}")
    print(f"p50_ms={took_ms[len(took_ms) // 2]:.3f}")
    print(f"p99_ms={took_ms[len(took_ms) * 99 // 100]:.3f}")


asyncio.run(main(*(int(argument) for argument in sys.argv[1:5]), sys.argv[5:] == ["deaf"]))

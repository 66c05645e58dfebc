# SPDX-License-Identifier: Apache-2.0
"""Whether followers of a log slow the steps of a job: none, some that read, some that do not."""
import os
import time

from driver import amount

LINE_BYTES, LINES_PER_S = 65536, 160
WINDOW_S = amount.of(4.0, 0.5)
PARTS = ("digits", "digits-train.bin", "digits-test.bin")
CASES = amount.of(((False, 0, False), (True, 0, False), (True, 50, False), (True, 10, True)),
                  ((False, 0, False), (True, 2, True)))  # a printer, followers, do they read


def name(prints, count, reads):
    if not prints:
        return "(no log)"
    return f"{count} who {'read' if reads else 'do not read'}" if count else "none"


def content(part):
    with open(os.path.join(os.environ["CADRE_TEST_BIN"], part), "rb") as file:
        return file.read()


def measure(prints, count, reads):
    from cluster import Cluster, script
    from slow_reader import SlowReader
    from testing import cpu_s, resident_mib
    limit = ["--log-limit", "256MiB"]
    with Cluster(workers=1, slots=3, coordinator=limit, worker=limit) as cluster:
        client, pid = cluster.client, cluster.coordinator.process.pid
        if prints:
            printer = client.submit(script(
                f"line=$(head -c {LINE_BYTES - 1} /dev/zero | tr '\\0' x)\n"
                f"i=0; while :; do echo $line; i=$((i + 1)); [ $((i % {LINES_PER_S // 10})) != 0 ] || sleep 0.1; done"))
            client.wait_running(printer)
        readers = [SlowReader(cluster.new_client(), printer, 0 if reads else 3600) for _ in range(count)]
        for reader in readers:
            reader.start()
        program, *data = (content(part) for part in PARTS)
        job = client.submit(program, dict(zip(PARTS[1:], data)), "digits", arguments=["--epochs", "100000"], workers=2)
        begin = client.watch_until(job, lambda info: info.position >= 50, "it trains").position
        memory, cpu, began = resident_mib(pid), cpu_s(pid), time.monotonic()
        time.sleep(WINDOW_S)  # what is measured is a rate
        end, took = client.get(job).position, time.monotonic() - began
        found = {"steps_per_s": (end - begin) / took, "cpu_ms_per_s": (cpu_s(pid) - cpu) * 1000 / took,
                 "grown_mib": resident_mib(pid) - memory}
        for reader in readers:
            reader.stop()
        for mine in (job, printer) if prints else (job,):
            client.cancel(mine)
            client.wait(mine)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Objects of a store beside files and beside parallel curl: reading, lists, checkpoints, memory."""
import os
import resource
import shutil
import subprocess
import sys
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown
from object_storage import floor

TITLE = "objects of a store beside files, and beside curl with several connections"
MIB = 1 << 20
SHARDS, SHARD_RECORDS, RECORD_BYTES, FRAME_BYTES = amount.of((8, 463_000, 200, 16), (2, 5_000, 200, 16))
SHARD_BYTES = SHARD_RECORDS * (RECORD_BYTES + FRAME_BYTES)
BYTES = SHARDS * SHARD_BYTES
CURLS = amount.of([(1, 4), (1, 8), (2, 8), (2, 16)], [(1, 4), (2, 8)])  # processes and connections of all
# What records are read through; a shuffle of all, each record of which is a miss, has room for all of them.
BUDGETS_MIB = amount.of({"records": [64, 256], "shuffled": [1024]}, {"records": [16], "shuffled": [64]})
CHECKPOINT_BYTES = amount.of(1 << 30, 32 << 20)
SAVES = amount.of(3, 1)
STEP_MS = 1
SLOW_BYTES_S, LATENCY_S, SLOW_SHARDS = 100e6 / 8, 0.05, 1  # of the proxy; a shard takes 8 s
KEYS = amount.of([1_000, 100_000], [1_000, 3_000])
# Tasks of one job on workers of their own, which read a shuffle of all records over that slow
# link: 6 MB of each object.
SHARED_TASKS, SHARED_EPOCHS = amount.of((1, 2, 4, 8), (1, 2)), 2
SHARED_SHARDS, SHARED_RECORDS = amount.of((4, 28_000), (2, 2_000))
SHARED_LINK_BYTES_S = amount.of(SLOW_BYTES_S, 0.0)
SLOW = "50 ms, 100 Mbit/s"
LINK, LINK_BYTES_S = "2.5 Gbit/s", 2.5e9 / 8  # of the store
FASTEST = (2, 8)  # curl's processes and connections there

sys.path.append(os.path.join(programs.ROOT, "tests", "object_storage"))


def timed(function, *arguments, **named):
    """The figures that it returns, with the seconds that it took, and those of the CPUs that its processes took."""
    began_s, began = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = function(*arguments, **named) or {}
    took_s, ended = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return found | {"process_s": took_s,
                    "cpu_s": ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime}


def run_read(mode, *paths, variables=None):
    return programs.figures(programs.run(programs.program("bench_object_read"), mode, *paths, timeout_s=600,
                                         env=os.environ | (variables or {})))


def read(mode, *paths, variables=None):
    return timed(run_read, mode, *paths, variables=variables)


class Bench:
    """A store with shards of records, which are files, too: the store's own."""

    def __init__(self, store):
        self.store = store
        self.variables = store.variables() | {"CADRE_OBJECT_MEMORY_MIB": str(BUDGETS_MIB["records"][0])}
        store.make("shards")
        store.make("files")  # the same files, which have indexes of their own
        self.files = [store.path("files", f"s-{number}") for number in range(SHARDS)]
        self.paths = [f"s3://shards/s-{number}" for number in range(SHARDS)]
        self.objects = [("shards", f"s-{number}", SHARD_BYTES) for number in range(SHARDS)]
        programs.run(programs.program("bench_input_write"), store.path("shards", "s"), str(SHARDS),
                     str(SHARDS * SHARD_RECORDS), str(RECORD_BYTES))
        for number, path in enumerate(self.files):
            os.link(store.path("shards", f"s-{number}"), path)

    # --- one round of each ---

    def streams(self, samples):
        for processes, connections in CURLS:
            samples.measure(f"curl, {processes} x {connections // processes}", "stream",
                            lambda p=processes, c=connections: timed(floor.curl_download, self.store.endpoint,
                                                                     self.objects, p, c))
        processes, connections = FASTEST
        kept_in = self.store.path("kept", "")
        self.store.make("kept")
        samples.measure("curl, kept in memory", "stream", lambda: timed(
            floor.curl_download, self.store.endpoint, self.objects, processes, connections, kept_in))
        shutil.rmtree(kept_in)
        samples.measure("files", "stream", lambda: read("stream", *self.files))
        samples.measure("a dataset's source", "stream", lambda: read("stream", *self.paths, variables=self.variables))
        samples.measure("a checkpoint's reader", "stream",
                        lambda: read("ahead", *self.paths, variables=self.variables))

    def records(self, samples):
        for mode, budgets in BUDGETS_MIB.items():
            samples.measure("files", mode, lambda m=mode: read(m, *self.files))
            for budget in budgets:
                variables = self.variables | {"CADRE_OBJECT_MEMORY_MIB": str(budget)}
                samples.measure(f"objects, {budget} MiB", mode, lambda m=mode, v=variables: read(
                    m, *self.paths, variables=v))
        cache = os.path.join(self.store.folder, "cache")
        warm = self.variables | {"CADRE_CACHE_FOLDER": cache, "CADRE_CACHE_MIB": str(4 * BYTES // MIB + 64)}
        samples.measure("objects, filling a disk cache", "records",
                        lambda: read("records", *self.paths, variables=warm))
        samples.measure("objects, disk cache", "records", lambda: read("records", *self.paths, variables=warm))

    def slow(self, samples):
        from proxy import Proxy
        with Proxy(self.store.endpoint) as proxy:
            proxy.link.latency_s, proxy.link.bytes_s = LATENCY_S, SLOW_BYTES_S
            variables = self.variables | {"AWS_ENDPOINT_URL": proxy.endpoint}
            samples.measure("curl, 1 x 8", SLOW, lambda: timed(floor.curl_download, proxy.endpoint,
                                                                 self.objects[:SLOW_SHARDS], 1, 8))
            samples.measure("a dataset's source", SLOW,
                            lambda: read("stream", *self.paths[:SLOW_SHARDS], variables=variables))
            samples.measure("a checkpoint's reader", SLOW,
                            lambda: read("ahead", *self.paths[:SLOW_SHARDS], variables=variables))

    def shared(self, samples):
        """Bytes asked of the store by all tasks of a job, and the seconds of the job."""
        from cluster import Cluster
        from proxy import Proxy
        self.store.make("shared")
        programs.run(programs.program("bench_input_write"), self.store.path("shared", "s"), str(SHARED_SHARDS),
                     str(SHARED_SHARDS * SHARED_RECORDS), str(RECORD_BYTES))
        for tasks in SHARED_TASKS:
            for setting in ("off", "on"):
                with Proxy(self.store.endpoint) as proxy, Cluster(workers=tasks, slots=1) as cluster:
                    proxy.link.bytes_s = SHARED_LINK_BYTES_S
                    samples.measure(f"neighbours {setting}", ("shared", tasks),
                                    lambda c=cluster, p=proxy, t=tasks, s=setting: read_shared(c, p, t, s))
                for number in range(SHARED_SHARDS):  # each job makes them itself
                    index = self.store.path("shared", f"s-{number}.cadre-index")
                    if os.path.exists(index):
                        os.remove(index)

    def uploads(self, samples):
        parts = CHECKPOINT_BYTES // floor.PART_BYTES
        self.store.make("written")
        part = os.path.join(self.store.folder, "part")
        with open(part, "wb") as file:
            file.write(os.urandom(floor.PART_BYTES))
        for processes, connections in CURLS:
            samples.measure(f"curl, {processes} x {connections // processes}", "upload",
                            lambda p=processes, c=connections: timed(floor.curl_upload, self.store.endpoint, "written",
                                                                     "curl", part, parts, p, c))
        samples.measure("curl, parts hashed", "upload", lambda: timed(
            floor.curl_upload_hashed, self.store.endpoint, "written", "curl", part, parts, *FASTEST))
        self.store.make("checkpoints")
        folder = os.path.join(self.store.folder, "checkpoints")
        for row, where in (("files", folder), ("objects", "s3://written/run")):
            samples.measure(row, "upload", lambda w=where: save(w, self.variables))
        with floor.FloorStore(0, LINK_BYTES_S, self.store.folder) as linked:
            processes, connections = FASTEST
            variables = self.variables | linked.variables()
            samples.measure("curl", LINK, lambda: timed(floor.curl_download, linked.endpoint, self.objects, processes,
                                                        connections))
            for row, mode in (("a dataset's source", "stream"), ("a checkpoint's reader", "ahead"),
                              ("records", "records")):
                samples.measure(row, LINK, lambda m=mode: read(m, *self.paths, variables=variables))
            samples.measure("curl's upload", LINK, lambda: timed(floor.curl_upload, linked.endpoint, "written", "curl",
                                                                 part, parts, processes, connections))
            samples.measure("a checkpoint", LINK, lambda: save("s3://written/run", variables))

    def lists(self, samples):
        for count in KEYS:
            samples.measure("objects", ("list", count),
                            lambda c=count: read("list", f"s3://keys-{c}/", variables=self.variables))
            pages = [[f'url = "{self.store.endpoint}/keys-{count}?list-type=2&continuation-token={first}"']
                     for first in range(0, count, 1000)]
            samples.measure("curl, 1 x 1", ("list", count), lambda p=pages: timed(floor.run_curls, p, 1, 1))


def read_shared(cluster, proxy, tasks, setting):
    variables = floor.variables_of(proxy.endpoint) | {"CADRE_OBJECT_NEIGHBOURS": setting}
    options = [option for name, value in variables.items() for option in ("--env", f"{name}={value}")]
    began_s = time.monotonic()
    cluster.cadre("submit", "--workers", str(tasks), "--replicas", "1", *options,
                  programs.program("bench_object_shared"), "--", str(SHARED_EPOCHS),
                  *[f"s3://shared/s-{number}" for number in range(SHARED_SHARDS)])
    took_s = time.monotonic() - began_s
    down = sum(count for key, count in proxy.down_of().items() if key.startswith("shared/s-"))
    return {"process_s": took_s, "down": down}


def save(where, variables):
    said = programs.run(programs.program("bench_checkpoint_save"), str(CHECKPOINT_BYTES), str(SAVES), str(STEP_MS),
                        timeout_s=600, env=os.environ | variables | {"CADRE_CHECKPOINT_DIR": where,
                                                                     "CADRE_CHECKPOINTS_KEPT": "1"})
    return programs.figures(said)


def with_swift(samples):
    """The same stream from a real store, whose servers are in Python: it is the limit."""
    from swift_store import Swift
    with Swift() as store:
        client = store.client()
        bucket = client.bucket("shards").make()
        body = os.urandom(amount.of(32, 4) * MIB)
        for number in range(3):
            bucket.put(f"s-{number}", body)
        samples.measure("a dataset's source", "swift", lambda: read(
            "stream", *[f"s3://shards/s-{number}" for number in range(3)], variables=store.variables()) | {
                "mb": 3 * len(body) / 1e6})


def absent_swift():
    done = subprocess.run([programs.DEBIAN_PYTHON, "-c", "import swift"], capture_output=True, check=False)
    return None if done.returncode == 0 else "OpenStack Swift is not installed (Debian's python3-swift)"


def run_round(samples):
    why = floor.absent_curl()
    if why:
        samples.mark_absent("curl, and all that is set beside it", why)
        return
    with floor.FloorStore(4 * BYTES + 2 * CHECKPOINT_BYTES) as store:
        bench = Bench(store)
        bench.streams(samples)
        bench.records(samples)
        bench.slow(samples)
        bench.shared(samples)
        bench.uploads(samples)
        bench.lists(samples)
    why = absent_swift()
    if why:
        samples.mark_absent("Swift", why)
    else:
        with_swift(samples)


# --- the tables ---


def verdict(ratio, goal):
    return "-" if ratio is None else f"{goal:.2f} {'met' if ratio >= goal else 'MISSED'}"


def best_curl(samples, column):
    """The one that was fastest, and its median."""
    known = [(samples.median(row, column, "process_s"), row)
             for row in (f"curl, {processes} x {connections // processes}" for processes, connections in CURLS)]
    known = [(seconds, row) for seconds, row in known if seconds]
    return min(known, default=(None, None))


def quotient(above, below):
    return above / below if above is not None and below else None


def rate_line(samples, row, column, name, size, best_s, goal):
    """Seconds, GB/s, CPU seconds of the processes, times the fastest curl, whether the goal is met."""
    seconds = samples.median(row, column, name)
    ratio = quotient(best_s, seconds)
    others = max(samples.others.get((row, column), [0]))
    return [row, shown(seconds), shown(quotient(size / 1e9, seconds)), shown(samples.median(row, column, "cpu_s")),
            shown(ratio), verdict(ratio, goal) if goal else "", percent(others)]


def report_streams(samples):
    best_s, best = best_curl(samples, "stream")
    print(f"  {SHARDS} objects of {SHARD_BYTES / 1e6:.0f} MB, one after the other; the fastest curl: {best}\n")
    rows = [rate_line(samples, f"curl, {p} x {c // p}", "stream", "process_s", BYTES, best_s, None) for p, c in CURLS]
    rows += [rate_line(samples, row, "stream", "process_s", BYTES, best_s, goal) for row, goal in
             (("curl, kept in memory", None), ("a dataset's source", 0.9), ("a checkpoint's reader", 0.9),
              ("files", None))]
    print_table(["stream", "s", "GB/s", "CPU s", "of curl", "goal", "others"], rows)
    linked = SLOW_SHARDS * SHARD_BYTES
    allowed_s = linked / SLOW_BYTES_S
    rows = [rate_line(samples, row, SLOW, "process_s", linked, allowed_s, goal) for row, goal in
            (("curl, 1 x 8", None), ("a dataset's source", 0.9), ("a checkpoint's reader", 0.9))]
    print_table([SLOW, "s", "GB/s", "CPU s", "of the link", "goal", "others"], rows)


def report_records(samples):
    curl_s = best_curl(samples, "stream")[0]
    rows = []
    for mode, budgets in BUDGETS_MIB.items():
        for name, title in (("epoch_1_s", "first epoch"), ("epoch_2_s", "second")):
            file_s = samples.median("files", mode, name)
            link_s = max(file_s or 0, curl_s or 0)
            listed = ["files", *(f"objects, {budget} MiB" for budget in budgets)]
            listed += ["objects, disk cache"] if mode == "records" else []
            for row in listed:
                seconds = samples.median(row, mode, name)
                ratio, of_link = quotient(file_s, seconds), quotient(link_s, seconds)
                goal = verdict(ratio, 0.95) if row.endswith("cache") else \
                    verdict(of_link, 0.8) if mode == "records" and row != "files" else ""
                rows.append([f"{mode}, {title}: {row}", shown(quotient(SHARDS * SHARD_RECORDS / 1e6, seconds)),
                             shown(ratio), shown(of_link), goal, percent(samples.disturbed(row))])
    print_table([f"{RECORD_BYTES} B", "M records/s", "of files", "of files or curl", "goal", "others"], rows)
    print("  of files or curl: of the slower of the two, because a link of this machine costs the CPUs that read\n")
    rows = []
    for mode, budgets in BUDGETS_MIB.items():
        file_mib = (samples.median("files", mode, "more_kb") or 0) / 1024
        for budget in budgets:
            more = samples.median(f"objects, {budget} MiB", mode, "more_kb")
            more_mib = more / 1024 if more is not None else None
            rows.append([f"{mode}, {budget} MiB", shown(more_mib), shown(file_mib),
                         shown(more_mib - budget if more_mib is not None else None)])
    print_table(["memory at its peak, MiB", "objects", "files", "above the budget"], rows)


def report_checkpoints(samples):
    best_s, best = best_curl(samples, "upload")
    print(f"  a checkpoint of {CHECKPOINT_BYTES / MIB:.0f} MiB; the fastest curl: {best}\n")
    rows = [rate_line(samples, f"curl, {p} x {c // p}", "upload", "process_s", CHECKPOINT_BYTES, best_s, None)
            for p, c in CURLS]
    rows.append(rate_line(samples, "curl, parts hashed", "upload", "process_s", CHECKPOINT_BYTES, best_s, None))
    rows += [rate_line(samples, row, "upload", "written_s", CHECKPOINT_BYTES, best_s, goal)
             for row, goal in (("files", None), ("objects", 0.9))]
    print_table(["checkpoint", "s", "GB/s", "CPU s", "of curl", "goal", "others"], rows)
    rows = []
    for row in ("files", "objects"):
        share = samples.median(row, "upload", "stall_share")
        stall, before, meanwhile = (samples.median(row, "upload", name)
                                    for name in ("stall_s", "step_before_s", "step_meanwhile_s"))
        rows.append([row, shown(stall * 1e3 if stall is not None else None), shown(share),
                     "-" if share is None else f"0.03 {'met' if share <= 0.03 else 'MISSED'}",
                     shown(quotient(stall, samples.median(row, "upload", "copy_s"))),
                     *(shown(value * 1e3 if value is not None else None) for value in (before, meanwhile))])
    print_table(["what the training waits", "stall, ms", "of the write", "goal", "of a copy", "step before, ms",
                 "meanwhile"], rows)


def report_shared(samples):
    size = SHARED_SHARDS * SHARED_RECORDS * (RECORD_BYTES + FRAME_BYTES)
    print(f"  a shuffle of all records of {SHARED_SHARDS} objects, {size / 1e6:.0f} MB in all, {SHARED_EPOCHS} epochs, "
          f"by the tasks of one job, over 100 Mbit/s\n")
    rows = []
    for tasks in SHARED_TASKS:
        cells = [str(tasks)]
        for row in ("neighbours off", "neighbours on"):
            down = samples.median(row, ("shared", tasks), "down")
            cells += [shown(quotient(down, 1e6)), shown(quotient(down, size)),
                      shown(samples.median(row, ("shared", tasks), "process_s"))]
        times = quotient(samples.median("neighbours on", ("shared", tasks), "down"), size)
        goal = "-" if times is None else f"1.03 {'met' if times <= 1.03 else 'MISSED'}"
        rows.append([*cells, goal, percent(max(samples.others.get(("neighbours on", ("shared", tasks)), [0])))])
    print_table(["tasks", "MB asked, off", "of the data", "s", "on", "of the data", "s", "goal", "others"], rows)


def report_link(samples):
    read_s, written_s = (samples.median(row, LINK, "process_s") for row in ("curl", "curl's upload"))
    rows = [rate_line(samples, row, LINK, name, size, best_s, goal) for row, name, size, best_s, goal in (
        ("curl", "process_s", BYTES, read_s, None), ("a dataset's source", "process_s", BYTES, read_s, 0.9),
        ("a checkpoint's reader", "process_s", BYTES, read_s, 0.9), ("records", "epoch_1_s", BYTES, read_s, 0.8),
        ("curl's upload", "process_s", CHECKPOINT_BYTES, written_s, None),
        ("a checkpoint", "written_s", CHECKPOINT_BYTES, written_s, 0.9))]
    print_table([LINK, "s", "GB/s", "CPU s", "of curl", "goal", "others"], rows)


def report(samples):
    report_streams(samples)
    report_link(samples)
    report_records(samples)
    report_checkpoints(samples)
    report_shared(samples)
    print_table(["keys", "s", "curl, s", "of curl", "memory, MiB"],
                [[f"{count:,}", shown(samples.median("objects", ("list", count), "process_s")),
                  shown(samples.median("curl, 1 x 1", ("list", count), "process_s")),
                  shown(samples.ratio("curl, 1 x 1", "objects", ("list", count), "process_s")),
                  shown((samples.median("objects", ("list", count), "more_kb") or 0) / 1024)] for count in KEYS])
    seconds, size = (samples.median("a dataset's source", "swift", name) for name in ("process_s", "mb"))
    if seconds:
        print(f"  from Swift, 3 objects of {size / 3:.0f} MB: {shown(size / seconds)} MB/s\n")

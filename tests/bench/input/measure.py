# SPDX-License-Identifier: Apache-2.0
"""Records of TFRecord files from the page cache, by Cadre, by a plain C loop and by PyTorch's DataLoader."""
import os

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "TFRecord files in the page cache, one reading thread; small: 1,000,000 of 200 B, large: 20,000 of 100 KB"
SIZES = amount.of({"small": ("4", "1000000", "200"), "large": ("4", "20000", "102400")},
                  {"small": ("4", "2000", "200"), "large": ("4", "100", "102400")})
FLOOR, FLOOR_SHUFFLE = "C loop, both checksums (floor)", "C loop, shuffle of 10,000, batches (floor)"
READER, BATCH = "cadre, record views", "cadre, batches of 64"
SHUFFLE, RANDOM = "cadre, shuffle of 10,000, batches", "cadre, shuffle of all, batches"
THREADS = "cadre, shuffle of all, batches, 1 thread a CPU"
UNCHECKED = "cadre, shuffle of all, batches, no checksums"
TORCH = [("torch, a tensor each", "0", "tensors"), ("torch, joined bytes", "0", "joined"),
         ("torch, 1 worker, joined", "1", "joined"), ("torch, 2 workers, arrays", "2", "arrays")]
WORKERS = amount.of([1, 2, 4, 8], [1, 2])
FOLDER = "input-data"


def files(size):
    os.makedirs(FOLDER, exist_ok=True)
    paths = [os.path.join(FOLDER, f"{size}-{i}") for i in range(int(SIZES[size][0]))]
    if not all(map(os.path.exists, paths)):
        programs.run(programs.program("bench_input_write"), os.path.join(FOLDER, size), *SIZES[size])
    for path in paths:  # some kernels give cold pages of the cache back by themselves
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    return paths


def cadre(*arguments):
    return programs.figures(programs.run(programs.program("bench_input_read"), *arguments))


def run_round(samples):
    why = programs.absent_torch()
    for size in SIZES:
        paths = files(size)
        samples.measure(FLOOR, size, lambda: programs.figures(
            programs.run(programs.program("bench_input_floor"), "read", *paths)))
        samples.measure(READER, size, lambda: cadre("reader", *paths))
        samples.measure(BATCH, size, lambda: cadre("batch", *paths))
        samples.measure(RANDOM, size, lambda: cadre("random", *paths))
        samples.measure(THREADS, size, lambda: cadre("threads", *paths))
        samples.measure(UNCHECKED, size, lambda: cadre("unchecked", *paths))
        samples.measure(FLOOR_SHUFFLE, size, lambda: programs.figures(
            programs.run(programs.program("bench_input_floor"), "shuffle", *paths)))
        samples.measure(SHUFFLE, size, lambda: cadre("shuffle", *paths))
        for row, workers, kind in TORCH:
            if why:
                samples.mark_absent(row, why)
            else:
                samples.measure(row, size, lambda: programs.figures(programs.run(
                    programs.DEBIAN_PYTHON, os.path.join(programs.BENCH, "input", "torch_read.py"), workers, kind,
                    *paths, timeout_s=600)))
        samples.measure("restart", size, lambda: cadre("restart", *paths))
    for number in WORKERS:
        samples.measure("one of workers", str(number), lambda: cadre("worker", str(number), *files("large")))


def report(samples):
    best = {size: max((samples.median(row, size, "records_s") or 0 for row, _, _ in TORCH), default=0)
            for size in SIZES}
    rows = []
    own = [(FLOOR, FLOOR), (READER, FLOOR), (BATCH, FLOOR), (RANDOM, BATCH), (THREADS, BATCH), (UNCHECKED, BATCH),
           (FLOOR_SHUFFLE, FLOOR_SHUFFLE), (SHUFFLE, FLOOR_SHUFFLE)]
    for row, floor in own + [(row, None) for row, _, _ in TORCH]:
        cells = [row]
        for size in SIZES:
            records, rate = samples.median(row, size, "records_s"), samples.median(row, size, "bytes_s")
            ratio = samples.ratio(row, floor, size, "records_s") if floor else None
            cells += [shown(records), shown(rate / 1e9 if rate else None), shown(ratio),
                      shown(records / best[size] if records and best[size] else None)]
        memory = samples.median(row, "large", "anonymous_kb")
        rows.append(cells + [shown(memory / 1024 if memory else None), percent(samples.disturbed(row))])
    print_table(["", "small: records/s", "GB/s", "of the row", "times torch", "large: records/s", "GB/s", "of the row",
                 "times torch", "memory MB", "others"], rows)
    print("  of the row: views and batches of the floor, the shuffle of all of batches, the buffer of its floor\n")
    for size in SIZES:
        seconds = samples.median("restart", size, "seconds")
        print(f"  {size}: a new process is at its batch in the middle of an epoch after "
              f"{shown(seconds * 1e3 if seconds else None)} ms\n")
    print_table(["workers under DATA", "records of one", "MB asked for by one", "all of them MB"], [
        [str(n), shown(samples.median("one of workers", str(n), "records")),
         shown((samples.median("one of workers", str(n), "asked_bytes") or 0) / 1e6),
         shown((samples.median("one of workers", str(n), "asked_bytes") or 0) * n / 1e6)] for n in WORKERS])

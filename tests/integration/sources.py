# SPDX-License-Identifier: Apache-2.0
"""The files that learner.c reads its samples from."""
import os
import struct
import tempfile

from learning import SAMPLES, TEST
from testing import check_equal

SIZES = (40, 8, 33, 1, 50, 17, 43)  # lines of each file: 192 in all
CRC32C = 0x82F63B78


def table_entry(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (CRC32C if byte & 1 else 0)
    return byte


TABLE = [table_entry(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def folder_in(cluster):
    folder = tempfile.mkdtemp(prefix="data-", dir=cluster.folder)
    os.chmod(folder, 0o777)  # tasks run as another user when we are root
    return folder


def write_lines(cluster, numbers, sizes=SIZES):
    folder, at = folder_in(cluster), 0
    for i, size in enumerate(sizes):
        with open(os.path.join(folder, f"{i}.txt"), "w", encoding="ascii") as file:
            file.writelines(f"{number}\n" for number in numbers[at:at + size])
        at += size
    check_equal(at, len(numbers), "numbers in the files")
    return folder


def write_records(cluster, sizes, more_bytes=0):
    """`more_bytes`: of each record, behind its number."""
    folder, at = folder_in(cluster), 0
    for i, size in enumerate(sizes):
        numbers, at = range(at, at + size), at + size
        with open(os.path.join(folder, f"{i}.tfrecord"), "wb") as file:
            for number in numbers:
                head, body = struct.pack("<Q", 8 + more_bytes), struct.pack("<q", number) + bytes(more_bytes)
                file.write(head + crc32c(head) + body + crc32c(body))
    check_equal(at, SAMPLES, "records in the files")
    return folder


def lines(cluster, sizes=SIZES):
    """Arguments of the learner: source=lines."""
    return ["source=lines", f"data={write_lines(cluster, range(SAMPLES), sizes)}"]


def sieve(cluster, sizes=SIZES):
    return ["source=sieve", f"data={write_lines(cluster, range(2 * SAMPLES), [2 * size for size in sizes])}"]


def records(cluster):
    return ["source=records", f"data={write_records(cluster, (75, SAMPLES - 75))}"]


def listed(cluster, sizes=SIZES):
    """TFRecord files as the list of one source."""
    return ["source=list", f"data={write_records(cluster, sizes)}"]


def exam(cluster, sizes):
    """An evaluation by files."""
    return [f"exam={write_lines(cluster, range(TEST), sizes)}"]

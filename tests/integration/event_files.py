# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files as TensorBoard does, with nothing of Cadre: frames with their checksums, messages by
the published definitions (published_event.proto), the files of a folder by name, and SessionLog.START, which voids."""
import math
import os
import struct
import sys

from testing import Failure, check, check_equal

sys.path.insert(0, os.environ.get("CADRE_TEST_STUBS", ""))

import published_event_pb2 as event_pb2  # noqa: E402

START = event_pb2.SessionLog.START


def crc_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


TABLE = crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def events_of(content, name, whole=True):
    """The events of a file. `whole`: of a process that was not killed, so that no record is cut."""
    found = []
    at = 0
    while at + 12 <= len(content):
        length, crc = struct.unpack_from("<QI", content, at)
        check_equal(crc, masked_crc(content[at:at + 8]), f"{name}: checksum of the length at {at}")
        if at + 16 + length > len(content):
            break
        data = content[at + 12:at + 12 + length]
        check_equal(struct.unpack_from("<I", content, at + 12 + length)[0], masked_crc(data),
                    f"{name}: checksum of the record at {at}")
        event = event_pb2.Event()
        event.ParseFromString(data)
        found.append(event)
        at += 16 + length
    check(not whole or at == len(content), f"{name}: {len(content) - at} bytes are behind the last record")
    check(found and found[0].file_version == "brain.Event:2", f"{name} does not begin with its version")
    check(len(found) == 1 or found[1].session_log.status == START, f"{name} does not begin with a START")
    return found


class Run:
    """What TensorBoard shows of a folder: tag -> [(step, value)] in the order in which they came."""

    def __init__(self, files, whole=True):
        """`files`: name -> content."""
        self.series = {}
        self.starts = []
        started = False
        for name in sorted(files):
            check(name.startswith("events.out.tfevents."), f"the name {name}")
            for event in events_of(files[name], name, whole):
                if event.session_log.status == START:
                    self.starts.append(event.step)
                    if started:  # TensorBoard takes the first one for no restart
                        self.discard(event.step)
                    started = True
                for value in event.summary.value:
                    self.add(event.step, value)

    def discard(self, first):
        for tag, values in self.series.items():
            self.series[tag] = [value for value in values if value[0] < first]

    def add(self, step, value):
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            shown = value.simple_value
        elif kind == "histo":
            shown = value.histo
        elif kind == "tensor":
            check_equal(value.metadata.plugin_data.plugin_name, "text", f"the plugin of {value.tag}")
            check_equal((value.tensor.dtype, len(value.tensor.tensor_shape.dim), value.metadata.data_class), (7, 0, 2),
                        f"type, rank and class of {value.tag}")
            shown = value.tensor.string_val[0].decode()
        else:
            raise Failure(f"{value.tag} is a {kind}")
        self.series.setdefault(value.tag, []).append((step, shown))

    def steps(self, tag):
        return [step for step, _ in self.series.get(tag, [])]

    def check_each_step(self, tag, first, last, value):
        """Each step has one value, which is value(step)."""
        check_equal(self.steps(tag), list(range(first, last + 1)), f"the steps of {tag}")
        for step, seen in self.series[tag]:
            wanted = struct.unpack("f", struct.pack("f", value(step)))[0]
            check(seen == wanted or math.isnan(seen) and math.isnan(wanted), f"{tag} of step {step}: {seen}")


def files_in(folder):
    found = {}
    for name in os.listdir(folder):
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
    return found

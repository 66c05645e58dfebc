# SPDX-License-Identifier: Apache-2.0
"""What a hostile task does, drawn from a seed: frames that are right in the wrong order, and frames that are not."""
from cadre.v1 import common_pb2, task_pb2

LENGTH_BYTES = 4
MAGIC = b"CADRE\0"
NUMBERS = (0, 1, 2, 3, 7, 255, 1 << 14, 1 << 31, 1 << 32, 1 << 62, (1 << 62) + 1, (1 << 64) - 1)
ENDS = (0, 0, 3, 70, "killed", "stays")


def frame(payload, size=None):
    return (len(payload) if size is None else size).to_bytes(LENGTH_BYTES, "little") + payload


class Drawn:
    """One task's visits to its daemon."""

    def __init__(self, random, version):
        self.random = random
        self.version = version
        self.steps = []
        for key in range(random.randint(1, 4)):
            random.choice([self.talk, self.talk, self.talk, self.crowd, self.flood])(key)

    def number(self, limit):
        """Mostly a small one, sometimes one at a limit."""
        drawn = self.random.randint(0, 3) if self.random.random() < 0.7 else self.random.choice(NUMBERS)
        return min(drawn, limit)

    def generation(self):
        return common_pb2.Generation(number=1 + self.number(1 << 62), nonce=self.random.getrandbits(64))

    def text(self):
        return self.random.choice(["", "a", "unix:/nowhere", "127.0.0.1:1", "x" * 600, "line\nbreak", "%s%n"])

    def hello(self):
        begun = self.random.random() < 0.3
        return {"frame_version": self.version, "library_version": "0", "pid": 1 + self.number(1 << 30),
                "replicas": 1 + self.number(255), "mesh_address": self.text()[:64].replace("\n", ""),
                "generation": self.generation() if begun else None, "position": self.number(1 << 62) if begun else 0}

    def message(self):
        """A TaskUp that is mostly valid."""
        kind = self.random.choice(["hello", "arrive", "report", "part", "progress", "join", "stream", "stall", "shards",
                                   "preempt"])
        up = task_pb2.TaskUp()
        message = getattr(up, kind)
        message.SetInParent()
        if kind == "hello":
            for name, value in self.hello().items():
                if isinstance(value, common_pb2.Generation):
                    message.generation.CopyFrom(value)
                elif value is not None:
                    setattr(message, name, value)
            return up
        for field in message.DESCRIPTOR.fields:
            if field.name == "generation":
                message.generation.CopyFrom(self.generation())
            elif field.message_type is None and field.label != field.LABEL_REPEATED:
                self.fill(message, field)
        return up

    def fill(self, message, field):
        bits = 31 if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 63
        if field.cpp_type == field.CPPTYPE_STRING:
            raw = field.type == field.TYPE_BYTES
            setattr(message, field.name, self.random.randbytes(32) if raw else self.text())
        elif field.cpp_type == field.CPPTYPE_BOOL:
            setattr(message, field.name, self.random.random() < 0.5)
        elif field.cpp_type == field.CPPTYPE_ENUM:
            setattr(message, field.name, self.random.randint(0, 6))
        elif field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            setattr(message, field.name, self.random.choice([0.0, -1.0, 1e308, float("nan")]))
        else:
            setattr(message, field.name, self.number((1 << bits) - 1))

    def bytes_of_frame(self):
        """A frame; one in four is wrong in one way."""
        payload = self.message().SerializeToString()
        lie = self.random.randint(0, 20)
        if lie == 0:
            return frame(payload, self.random.choice([0, 1, len(payload) + 1, 4 << 20, (4 << 20) + 1, (1 << 32) - 1]))
        if lie == 1:
            return frame(payload[:self.random.randint(0, len(payload))])
        if lie == 2 and payload:
            at = self.random.randrange(len(payload))
            return frame(payload[:at] + bytes([self.random.randrange(256)]) + payload[at + 1:])
        if lie == 3:
            return frame(self.random.randbytes(self.random.randint(0, 60)))
        if lie == 4:
            return frame(bytes(4 << 20))
        if lie == 5:
            return frame(payload)[:self.random.randint(0, len(payload) + LENGTH_BYTES)]
        return frame(payload)

    def greet(self, key):
        """The preamble, and a hello mostly."""
        preamble = MAGIC + self.version.to_bytes(2, "little")
        what = self.random.randint(0, 15)
        if what == 0:
            preamble = self.random.randbytes(8)
        elif what == 1:
            preamble = preamble[:self.random.randint(0, 7)]
        elif what == 2:
            preamble = MAGIC + self.random.randbytes(2)
        if what == 3:
            self.steps.append(["drip", key, preamble.hex()])
        else:
            self.steps.append(["send", key, preamble.hex()])
        if self.random.random() < 0.8:
            up = task_pb2.TaskUp()
            up.hello.frame_version = self.version
            up.hello.pid = 1
            up.hello.replicas = 1
            self.steps.append(["send", key, frame(up.SerializeToString()).hex()])

    def talk(self, key):
        self.steps.append(["connect", key])
        self.greet(key)
        for _ in range(self.random.randint(0, 8)):
            data = self.bytes_of_frame().hex()
            if len(data) > 1 << 20:
                self.steps.append(["send", key, "00" * (1 << 16), 65])
            else:
                self.steps.append(self.random.choice([["send", key, data], ["send", key, data], ["drip", key, data],
                                                      ["give", key, data or "00", self.random.randint(1, 3)]]))
        self.leave(key)

    def leave(self, key):
        for step in (["half_close", key], ["read", key], ["close", key]):
            if self.random.random() < 0.4:
                self.steps.append(step)

    def crowd(self, key):
        """Many at one time; some of them send something."""
        first = 100 * (1 + key)
        for each in range(first, first + self.random.randint(2, 40)):
            self.steps.append(["connect", each])
            if self.random.random() < 0.3:
                self.greet(each)
            if self.random.random() < 0.3:
                self.leave(each)

    def flood(self, key):
        """The same again and again, and nothing is read."""
        self.steps.append(["connect", key])
        self.greet(key)
        times = self.random.choice([50, 2000])
        self.steps.append(["send", key, frame(self.message().SerializeToString()).hex(), times])


def draw(random, version):
    return {"steps": Drawn(random, version).steps, "end": random.choice(ENDS)}

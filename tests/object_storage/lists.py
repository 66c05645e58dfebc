# SPDX-License-Identifier: Apache-2.0
"""Lists that lack what was put lately: Swift's do when its servers have much to do, for as long as that lasts."""
import html
import re
import threading
import urllib.parse

ENTRY = re.compile(rb"<Contents>.*?</Contents>", re.S)
KEY = re.compile(rb"<Key>(.*?)</Key>", re.S)
PUTS = ("put", "finish-upload")


class Unlisted:
    """Which objects are hidden: those that were put since begin(), and were not there before as far as the proxy
    knows, until end()."""

    def __init__(self):
        self.lock = threading.Lock()
        self.keys, self.known, self.hiding = set(), set(), False

    def begin(self):
        with self.lock:
            self.hiding = True

    def end(self):
        with self.lock:
            self.hiding = False
            self.known |= self.keys
            self.keys = set()

    def hides(self):
        with self.lock:
            return bool(self.keys)

    def note(self, record):
        """An answer of the store."""
        if record.operation in PUTS and record.status == 200:
            with self.lock:
                if not self.hiding:
                    self.known.add(record.key)
                elif record.key not in self.known:
                    self.keys.add(record.key)

    def left_of(self, text, bucket):
        """The list of that bucket without them."""
        def shown(match):
            key = html.unescape(KEY.search(match.group()).group(1).decode())
            with self.lock:
                hidden = self.keys & {f"{bucket}/{key}", f"{bucket}/{urllib.parse.unquote(key)}"}
            return b"" if hidden else match.group()
        return ENTRY.sub(shown, text)

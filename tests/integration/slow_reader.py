# SPDX-License-Identifier: Apache-2.0
"""A client that follows a log and does not keep up."""
import threading

from client import jobs_pb2


class SlowReader(threading.Thread):
    """Follows a log and takes a chunk every `pause_s`: 0 reads all as it comes."""

    def __init__(self, client, job, pause_s=5):
        super().__init__(daemon=True)
        self.stream = client.jobs.Logs(jobs_pb2.LogsRequest(id=job, follow=True))
        self.pause_s = pause_s
        self.over = threading.Event()

    def run(self):
        try:
            for _ in self.stream:
                if self.over.wait(self.pause_s):
                    return
        except Exception:  # pylint: disable=broad-except
            return

    def stop(self):
        self.over.set()
        self.stream.cancel()

# SPDX-License-Identifier: Apache-2.0
"""One job of pusher.c with the interface of learning.Learning: it pushes until it is ordered to end, and then reports
whether all of it is there."""
import os
import tempfile

from client import common_pb2
from learning import ALL, RunningJob
from testing import check

PUSHER = os.environ.get("CADRE_TEST_PUSHER", "")


class Pushing(RunningJob):
    """A chief, a worker and two servers, each of which has a copy of what the other one serves."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.client = cluster.client
        self.until_path = os.path.join(tempfile.mkdtemp(prefix="until-", dir=cluster.folder), "until")
        os.chmod(os.path.dirname(self.until_path), 0o755)  # tasks run as another user when we are root
        with open(PUSHER, "rb") as file:
            content = file.read()
        self.job = self.client.submit(
            content, workers=4, workers_min=4, name="pusher", strategy="parameter_server", checkpoint_every=20,
            request_id=os.urandom(16),
            ps_job=common_pb2.PsJob(workers=1, servers=2, backups=True),
            arguments=["--rounds", "1000000", "--closures", "5", "--work-us", "2000", "--until", self.until_path])

    def allow(self, steps=ALL):
        """It pushes as fast as it can; without a number it may end."""
        if steps == ALL:
            with open(self.until_path, "w", encoding="utf-8"):
                pass

    def stand(self):
        pass

    def go_on_alone(self):
        pass

    def check(self):
        """Each push was applied once."""
        text = self.client.log(self.job).decode(errors="replace")
        check("exact: " in text and "WRONG" not in text, f"what the chief found: {text[-2000:]}")
        check(text.count("begins at round") == 1, f"it began again: {text[-2000:]}")

# SPDX-License-Identifier: Apache-2.0
"""Jobs whose data are in a bucket, which they reach through a proxy that counts and fails, on workers that are hosts of
their own."""
import contextlib
import os
import sys

from cluster import Cluster
from learning import FAST, FAST_WORKER

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "object_storage"))
from chosen import chosen_store, fresh_bucket  # noqa: E402
from proxy import Proxy  # noqa: E402


class ProxiedCluster:
    """A fresh bucket, a proxy before its store, and a cluster of workers with one slot each."""

    def __init__(self, bucket, workers, seed=1):
        self.store, self.bucket = chosen_store(), fresh_bucket(bucket)
        self.proxy = Proxy(self.store.endpoint, seed=seed)
        self.cluster = Cluster(workers=workers, slots=1, coordinator=FAST, worker=FAST_WORKER)
        self.entered = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as entered:
            entered.enter_context(self.proxy)
            entered.enter_context(self.cluster)
            self.entered = entered.pop_all()
        return self

    def __exit__(self, *error):
        return self.entered.__exit__(*error)

    def put_folder(self, folder, prefix):
        """Its files as PREFIX/NAME."""
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                self.bucket.put(f"{prefix}/{name}", file.read())

    def variables(self):
        """A job's, by which it reaches the store through the proxy."""
        return self.store.variables(endpoint=self.proxy.endpoint)

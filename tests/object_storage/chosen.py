# SPDX-License-Identifier: Apache-2.0
"""The store before which a script's tests run: CADRE_TEST_STORE, "swift" or "ceph"."""
import os

from ceph_store import Ceph
from store import started
from swift_store import Swift

PAGE = 50  # a list of more keys comes in several answers
STORES = {"swift": Swift, "ceph": Ceph}


def chosen_store():
    """Started, and the same for all tests of the script; skips them where it is not installed."""
    return started(STORES[os.environ.get("CADRE_TEST_STORE", "swift")], page=PAGE)


class ConnectedBucket:
    """The writer's bucket of that name. Each call has a connection of its own, since stores close those that rest."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, operation):
        return getattr(chosen_store().client().bucket(self.name), operation)


def fresh_bucket(name):
    """Made, and empty."""
    bucket = ConnectedBucket(name)
    bucket.make()
    return bucket


def environment_of(**named):
    """Store.variables() as a job's environment has them."""
    return [f"{name}={value}" for name, value in chosen_store().variables(**named).items()]

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


def fresh_bucket(name):
    return chosen_store().client().bucket(name).make()

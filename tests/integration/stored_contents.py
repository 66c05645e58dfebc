# SPDX-License-Identifier: Apache-2.0
"""Contents of coordinators in a real object store: places of their own, and what is in them."""
import itertools
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "object_storage"))
from chosen import chosen_store, fresh_bucket  # noqa: E402

NUMBERS = itertools.count(1)


def variables(**named):
    return chosen_store().variables(**named)


def fresh_place():
    """A --contents of which no coordinator knows yet."""
    name = f"contents-{next(NUMBERS)}"
    fresh_bucket(name)
    return f"s3://{name}/a cluster"


def bucket_and_prefix(place):
    name, _, prefix = place.removeprefix("s3://").partition("/")
    return chosen_store().client().bucket(name), prefix


def names(place):
    """The names of all objects below it, in order."""
    bucket, prefix = bucket_and_prefix(place)
    return sorted(entry.key.removeprefix(f"{prefix}/") for entry in bucket.list(f"{prefix}/"))


def read(place, name):
    bucket, prefix = bucket_and_prefix(place)
    return bucket.get(f"{prefix}/{name}")


def write(place, name, body):
    bucket, prefix = bucket_and_prefix(place)
    bucket.put(f"{prefix}/{name}", body)

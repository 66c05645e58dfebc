# SPDX-License-Identifier: Apache-2.0
"""The cache that a proxy of Swift asks for, in its own memory: what memcached is where there are several of them."""
import json
import time


class Cache:
    """As swift.common.memcached.MemcacheRing has it."""

    def __init__(self):
        self.kept = {}

    def get(self, key, **_):
        text, ends = self.kept.get(key, ("null", 0))
        return json.loads(text) if not ends or ends > now() else None

    def set(self, key, value, time=0, **_):  # the name of the argument is Swift's
        self.kept[key] = (json.dumps(value), now() + time if time else 0)

    def incr(self, key, delta=1, time=0, **_):
        value = max(0, int(self.get(key) or 0) + int(delta))
        self.set(key, value, time)
        return value

    def decr(self, key, delta=1, time=0, **_):
        return self.incr(key, -int(delta), time)

    def delete(self, key, **_):
        self.kept.pop(key, None)

    def set_multi(self, mapping, server_key=None, time=0, **_):
        for key, value in mapping.items():
            self.set(key, value, time)

    def get_multi(self, keys, server_key=None, **_):
        return [self.get(key) for key in keys]


def now():
    return time.time()


def filter_factory(global_conf, **local_conf):
    def cached(app):
        cache = Cache()

        def call(env, start_response):
            env["swift.cache"] = cache
            return app(env, start_response)
        return call
    return cached

# SPDX-License-Identifier: Apache-2.0
"""The four servers of OpenStack Swift, with the settings of a folder instead of those below /etc. What takes longest at
their start, the imports, is done once: this process makes the rings, and a process for each server by fork.

usage: swift_servers.py FOLDER HOST PORT-OF-ACCOUNT PORT-OF-CONTAINER PORT-OF-OBJECT     and FOLDER/KIND.conf
"""
import ctypes
import gc
import importlib
import os
import signal
import sys

from swift.common import utils

KINDS = ("account", "container", "object", "proxy")
MODULES = ("pkg_resources", "paste.deploy", "swift.common.wsgi", "swift.account.server", "swift.container.server",
           "swift.obj.server", "swift.proxy.server",
           *(f"swift.common.middleware.{name}" for name in (
               "s3api.s3api", "tempauth", "catch_errors", "gatekeeper", "healthcheck", "listing_formats", "copy", "slo",
               "dlo", "versioned_writes")))
PART_POWER = 4  # 16 partitions: a folder each, on the one device
PR_SET_PDEATHSIG = 1


def make_ring(folder, kind, host, port):
    """What `swift-ring-builder KIND.builder create, add, rebalance` do, for one device."""
    from swift.common.ring import RingBuilder
    builder = RingBuilder(PART_POWER, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "ip": host, "port": port, "replication_ip": host,
                     "replication_port": port, "device": "d1", "weight": 1.0, "meta": ""})
    builder.rebalance(seed="cadre")
    builder.get_ring().save(os.path.join(folder, f"{kind}.ring.gz"))


def serve(folder, kind):
    from swift.common.wsgi import run_wsgi
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.exit(run_wsgi(os.path.join(folder, f"{kind}.conf"), f"{kind}-server", verbose=True))


def main():
    folder, host, *ports = sys.argv[1:]
    utils.SWIFT_CONF_FILE = os.path.join(folder, "swift.conf")  # before other modules read it as they are imported
    for kind, port in zip(KINDS, ports):
        make_ring(folder, kind, host, int(port))
    utils.eventlet_monkey_patch()
    for module in MODULES:
        importlib.import_module(module)
    gc.freeze()  # else each server looks through all of these objects for locks to replace, once a lock
    for kind in KINDS:
        if os.fork() == 0:
            serve(folder, kind)
    os.wait()
    sys.exit("one of the servers of Swift ended, and the others end with it")


if __name__ == "__main__":
    main()

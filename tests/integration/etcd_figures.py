# SPDX-License-Identifier: Apache-2.0
"""By hand: guarded transactions one after the other, for the table in common/etcd/README.md.

    CADRE_TEST_ETCD_DRIVER=build/tests/integration/etcd_driver python3 tests/integration/etcd_figures.py [--short]
"""
import sys

from etcds import Etcds
from test_etcd import Driver, good

ROUNDS = [(1, 1000, 4000), (1, 100_000, 600), (3, 1000, 3000), (3, 100_000, 400)]


def main():
    print("| members | bytes of the put | transactions/s | p50, ms | p99, ms |\n| --- | --- | --- | --- | --- |")
    for members, size, count in ROUNDS:
        with Etcds(members) as etcds, Driver(etcds.address("cadre")) as driver:
            good(driver.txn("first"))
            figures = good(driver.ask(f"bench {count // 10 if '--short' in sys.argv else count} {size}"))
            print(f"| {members} | {size:,} | {figures['per_s']} | {int(figures['p50_us']) / 1000:.2f} | "
                  f"{int(figures['p99_us']) / 1000:.2f} |", flush=True)


if __name__ == "__main__":
    main()

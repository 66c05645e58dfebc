# SPDX-License-Identifier: Apache-2.0
"""The alerts in deploy/prometheus, as Prometheus reads them."""
import os
import shutil
import subprocess

from testing import check_equal, run, skip

RULES = os.path.join(os.path.dirname(__file__), "..", "..", "deploy", "prometheus")

if not shutil.which("promtool"):
    skip("promtool is not installed: apt-get install prometheus")


def test_alert_rules():
    for words in (["config", "prometheus.yml"], ["rules", "cadre-rules.yml"]):
        done = subprocess.run(["promtool", "check", *words], cwd=RULES, capture_output=True, check=False)
        check_equal(done.returncode, 0, f"promtool check {words}: {done.stdout + done.stderr}")


if __name__ == "__main__":
    run(globals())

# SPDX-License-Identifier: Apache-2.0
"""How much is measured: enough for figures, or with --smoke the least with which all of a part runs. `run` sets it
before it imports the parts, whose constants depend on it."""
smoke = False


def of(whole, least):
    return least if smoke else whole

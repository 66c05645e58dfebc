# SPDX-License-Identifier: Apache-2.0
"""How much is measured: enough for figures, or with --smoke the least with which all of a part runs. `run` sets it
before it imports the parts, whose constants depend on it."""
smoke = False


def of(whole, least):
    return least if smoke else whole


def deadline_s(of_whole):
    """The tests run beside others on a busy machine, with a limit of their own for what hangs."""
    return of(of_whole, 10 * of_whole)

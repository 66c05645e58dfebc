# SPDX-License-Identifier: Apache-2.0
"""A docker that has no containers, only records of them: what deploy/compose/down asks and removes. Its state is the
JSON file CADRE_TEST_DOCKER: a list of things for each kind, and in "refused" the commands that fail."""
import json
import os
import re
import sys

PROJECT = "com.docker.compose.project"
KINDS = {"ps": "containers", "network": "networks", "volume": "volumes", "images": "images"}


def options_of(arguments, name):
    return [arguments[i + 1] for i in range(len(arguments) - 1) if arguments[i] == name]


def matches(thing, condition):
    kind, _, rest = condition.partition("=")
    if kind == "dangling":
        return thing["name"] == ""
    label, _, value = rest.partition("=")
    return label in thing["labels"] and value in ("", thing["labels"][label])


def rendered(template, thing):
    """Go's template, as far as the scripts write one."""
    text = re.sub(r'\{\{\.Label "([^"]*)"\}\}', lambda match: thing["labels"].get(match[1], ""), template)
    return re.sub(r"\{\{\.Names?\}\}", thing["name"], text)


def listed(state, kind, arguments):
    template = (options_of(arguments, "--format") or ["{{.Name}}"])[0]
    for thing in state[KINDS[kind]]:
        if all(matches(thing, condition) for condition in options_of(arguments, "--filter")):
            print(thing["id"] if kind == "images" else rendered(template, thing))


def compose(state, arguments):
    """down: all of a project; what "stays" is left, as by a docker that failed to remove it. All else, as `run`: what
    "answers" has for the last words."""
    for words, answer in state.get("answers", {}).items():
        if " ".join(arguments).endswith(words):
            print(answer, end="")
    if "down" not in arguments:
        return
    project = options_of(arguments, "--project-name")[0]
    for kind in ("containers", "networks") + (("volumes",) if "--volumes" in arguments else ()):
        state[kind] = [thing for thing in state[kind] if thing["labels"].get(PROJECT) != project or thing.get("stays")]


def main():
    arguments = sys.argv[1:]
    path = os.environ["CADRE_TEST_DOCKER"]
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    state["calls"].append(" ".join(arguments))
    status = 1 if any(" ".join(arguments).startswith(refused) for refused in state["refused"]) else 0
    if status == 0 and arguments[0] in KINDS:
        listed(state, arguments[0], arguments)
    elif status == 0 and arguments[0] == "compose":
        compose(state, arguments)
    elif status == 0 and arguments[0] in ("image", "rmi"):
        found = [image for image in state["images"] if arguments[-1] in (image["name"], image["id"])]
        status = 0 if found else 1
        if arguments[0] == "rmi":
            state["images"] = [image for image in state["images"] if image not in found]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file)
    sys.exit(status)


main()

// SPDX-License-Identifier: Apache-2.0
// The keyboard: rows of lists by j, k or arrows, views by letters, and a dialog that lists the keys.

import { h } from "./dom.js";

const KEYS = [["j, k or ↓, ↑", "the next, the previous row of a list"], ["Enter", "opens it"],
  ["g", "the list of jobs"], ["w", "the list of workers"],
  ["1 to 5", "of a job: ledger, curves, logs, shards, proof"], ["/", "finds in a log"],
  ["←, →, Home, End", "in a chart or timeline: its values, its events; Shift: far"],
  ["Esc", "leaves a chart's mark, a dialog"], ["?", "this list"]];

export function help() {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, "Keys"), h("dl", {}, KEYS.map(([key, does]) =>
    [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)])),
  h("div", { class: "buttons" }, h("button", { autofocus: true, onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

function moveRow(by) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  if (rows.length === 0) return false;
  const at = rows.indexOf(document.activeElement);
  rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))].focus();
  return true;
}

export function listenToKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea, dialog[open], [role=application]")) return;
    const inRow = event.target.closest("[data-row]") !== null;
    const action = { j: () => moveRow(1), k: () => moveRow(-1), ArrowDown: inRow ? () => moveRow(1) : null,
      ArrowUp: inRow ? () => moveRow(-1) : null, g: () => app.go("#/jobs"), w: () => app.go("#/workers"), "?": help,
      "/": () => document.querySelector("input[type=search]")?.focus() }[event.key] ?? tabOf(event.key);
    if (!action) return;
    action();
    event.preventDefault();
  });
}

function tabOf(key) {
  const tab = /^[1-5]$/.test(key) ? document.querySelectorAll(".tabs a")[Number(key) - 1] : null;
  return tab ? () => tab.click() : null;
}

// SPDX-License-Identifier: Apache-2.0
// Which task reads what of a job's datasets, and what `cadre verify` proves of it from the ledger.

import { badge } from "./badges.js";
import { h } from "./dom.js";
import { clean, clock, count, plural } from "./format.js";
import { nothing, partFailure, waiting } from "./notices.js";

const SHOWN = 100;
const column = (name, classes) => h("th", { scope: "col", class: classes }, name);

export function shards(job, app) {
  const key = `shards/${job.id}`;
  const answer = app.data(key);
  const section = (title, ...body) => h("section", { class: "panel", "aria-label": "Shards", "data-key": title },
    h("div", { class: "head" }, h("h2", {}, title)), body);
  if (!answer) return [section("Shards", app.error(key) ? partFailure(app.error(key)) : waiting())];
  if (answer.datasets.length === 0) {
    return [section("Shards", nothing("The job has reported no dataset.",
      "A program that takes its batches from a distributed dataset shows here which task reads what."))];
  }
  return answer.datasets.map((dataset) => section(`Dataset ${clean(dataset.dataset)}`, h("div", { class: "body" },
    `${clean(dataset.policy)}, by ${plural(dataset.readers, "task")}; epoch ${count(dataset.epoch)}, ` +
    `step ${count(dataset.step)}` + (dataset.file_count > 0
      ? `; ${count(dataset.files_read)} of ${plural(dataset.file_count, "file")} read` : "")),
  ...files(dataset)));
}

function files(dataset) {
  const shown = dataset.files.slice(0, SHOWN);
  if (shown.length === 0) return [];
  const more = dataset.file_count - shown.length;
  return [h("table", {}, h("thead", {}, h("tr", {}, column("File"), column("Rank", "number"), column("Read", "number"),
    column("Samples", "number"))), h("tbody", {}, shown.map((file) => h("tr", {},
    h("td", { class: "mono" }, clean(file.name)), h("td", { class: "number" }, file.rank ?? "–"),
    h("td", { class: "number" }, count(file.read)),
    h("td", { class: "number" }, file.total === null ? "?" : count(file.total)))))),
  more > 0 ? h("div", { class: "foot" }, `and ${count(more)} more`) : null];
}

export function proof(job, app) {
  const key = `proof/${job.id}`;
  const answer = app.data(key);
  const section = (title, ...body) => h("section", { class: "panel", "aria-label": title, "data-key": title },
    h("div", { class: "head" }, h("h2", {}, title), title === "Proof" && answer ? badge(answer.conclusion) : null),
    body);
  if (!answer) return [section("Proof", app.error(key) ? partFailure(app.error(key)) : waiting())];
  return [section("Proof", verdict(answer)), epochs(answer, section), generations(answer, section)];
}

function verdict(answer) {
  const fact = (name, shown) => h("div", {}, h("dt", {}, name), h("dd", {}, shown));
  return h("div", { class: "body" }, h("p", {}, `${clean(answer.tiling)}.`), h("p", { class: "sentence quiet" },
    "From the ledger alone: whether each epoch consumed every sample exactly once, whatever was killed."),
  h("dl", { class: "facts progress" },
    fact("Steps proved", `${count(answer.steps_proved)} of ${count(answer.committed)}`),
    fact("Epochs exact", count(answer.exact)), fact("As defined", count(answer.as_defined)),
    fact("Differing", count(answer.differing)), fact("Not provable", count(answer.not_provable)),
    fact("States found equal", plural(answer.verified.length, "time"))));
}

// What differs first, then the newest.
function epochs(answer, section) {
  const rank = (epoch) => (epoch.verdict === "differs" ? 0 : epoch.verdict === "not provable" ? 1 : 2);
  const rows = [...answer.epochs].reverse().sort((a, b) => rank(a) - rank(b));
  if (rows.length === 0) return null;
  return section("Epochs", h("table", {}, h("thead", {}, h("tr", {}, column("Dataset"), column("Epoch", "number"),
    column("Verdict"), column("Why", "only-wide"))), h("tbody", {}, rows.slice(0, SHOWN).map((epoch) =>
    h("tr", {}, h("td", {}, clean(epoch.name)), h("td", { class: "number" }, count(epoch.epoch)),
      h("td", {}, badge(epoch.verdict), h("div", { class: "why only-narrow" }, clean(epoch.text))),
      h("td", { class: "only-wide" }, clean(epoch.text)))))),
  rows.length > SHOWN ? h("div", { class: "foot" }, `${SHOWN} of ${plural(rows.length, "epoch")}`) : null);
}

function generations(answer, section) {
  const rows = [...answer.generations].reverse();
  if (rows.length === 0) return null;
  return section("Generations", h("table", {}, h("thead", {}, h("tr", {}, column("Generation", "number"),
    column("Owns the steps"), column("Tasks", "number"), column("From", "only-wide"))),
  h("tbody", {}, rows.slice(0, SHOWN).map((g) => h("tr", {}, h("td", { class: "number" }, String(g.number)),
    h("td", {}, g.end > g.first ? `${count(g.first)} to before ${count(g.end)}` : "none",
      g.restarted ? h("span", { class: "quiet" }, ", restarted") : null),
    h("td", { class: "number" }, String(g.tasks)), h("td", { class: "only-wide" }, clock(g.planned_us)))))),
  rows.length > SHOWN ? h("div", { class: "foot" }, `${SHOWN} of ${plural(rows.length, "generation")}`) : null);
}

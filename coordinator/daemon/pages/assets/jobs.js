// SPDX-License-Identifier: Apache-2.0
// The cluster in a row of numbers, and the list of jobs, one page of the coordinator's at a time.

import { query } from "./api.js";
import { badge } from "./badges.js";
import { h } from "./dom.js";
import { age, clean, count, donePercent, fractionDone, plural, utc } from "./format.js";
import { link } from "./router.js";
import { failure, waiting } from "./notices.js";

const PAGE = 50;
const STATES = ["live", "queued", "starting", "running", "ending", "succeeded", "failed", "cancelled", "preempted"];

export const jobsView = {
  title: () => "Jobs",

  resources(route) {
    const { before, state } = route.query;
    return [{ key: `jobs?${before ?? ""}&${state ?? ""}`, path: `/api/jobs${query({ limit: PAGE, before, state })}`,
      every_ms: 1000 }];
  },

  render(route, app) {
    return [tiles(app.data("cluster")), list(route, app)];
  },
};

function tiles(cluster) {
  if (!cluster) return null;
  const tile = (name, shown, note) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, shown),
    note ? h("dd", { class: "note" }, note) : null);
  const others = [[cluster.workers_draining, "draining"], [cluster.workers_away, "away"]]
    .filter(([number]) => number > 0).map(([number, state]) => `${count(number)} ${state}`).join(", ");
  return h("section", { "aria-label": "Cluster" }, h("dl", { class: "tiles" },
    tile("Jobs running", count(cluster.jobs_running)),
    tile("Jobs queued", count(cluster.jobs_queued)),
    tile("Workers ready", count(cluster.workers_ready), others),
    tile("Slots in use", [count(cluster.slots_used), h("small", {}, ` of ${count(cluster.slots)}`)]),
    cluster.gpus > 0 ? tile("GPUs", count(cluster.gpus)) : null));
}

function filter(route, app) {
  const chosen = route.query.state ?? "";
  const options = STATES.map((state) => h("option", { value: state, selected: state === chosen }, state));
  return h("label", {}, "State", h("select", { "data-key": "state", onchange: (event) =>
    app.go(link(["jobs"], { state: event.target.value })) }, h("option", { value: "", selected: chosen === "" }, "all"),
    options));
}

function list(route, app) {
  const { before, state } = route.query;
  const key = `jobs?${before ?? ""}&${state ?? ""}`;
  const answer = app.data(key);
  const head = h("div", { class: "head" }, h("h2", {}, "Jobs"), filter(route, app));
  if (!answer) {
    const body = app.error(key) ? failure(app.error(key)) : waiting();
    return h("section", { class: "panel", "aria-label": "Jobs" }, head, body);
  }
  const rows = answer.jobs.map((job) => row(job, app.now_us()));
  return h("section", { class: "panel", "aria-label": "Jobs" }, head,
    rows.length === 0 ? empty(state, before) : h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Job"), h("th", { scope: "col" }, "Name"),
        h("th", { scope: "col", class: "only-wide" }, "State"), h("th", { scope: "col", class: "only-wide" }, "Done"),
        h("th", { scope: "col", class: "number only-wide" }, "Steps"),
        h("th", { scope: "col", class: "number only-wide" }, "Tasks"),
        h("th", { scope: "col", class: "number only-wide" }, "Age"))),
      h("tbody", {}, rows)),
    pager(route, answer));
}

function row(job, now_us) {
  const part = fractionDone(job);
  const tone = job.state === "failed" ? " is-bad" : job.final ? " is-good" : "";
  return h("tr", { "data-key": `job-${job.id}` },
    h("td", { class: "number" }, String(job.id)),
    h("td", {}, h("a", { class: "name", href: link(["jobs", job.id]), "data-row": true }, clean(job.name) || "no name"),
      job.message ? h("div", { class: "why cut", title: clean(job.message) }, clean(job.message)) : null,
      h("div", { class: "only-narrow quiet" }, badge(job.state), " ", [donePercent(job), plural(job.workers, "task"),
        age(now_us - job.submitted_us)].filter((text) => text !== "–").join(" · "))),
    h("td", { class: "only-wide" }, badge(job.state)),
    h("td", { class: "only-wide nowrap" }, part === null ? h("span", { class: "quiet" }, "–") : [
      h("progress", { class: `bar small${tone}`, max: 1, value: part, "aria-hidden": "true" }), donePercent(job)]),
    h("td", { class: "number only-wide" }, job.position > 0 ? count(job.position) : "–"),
    h("td", { class: "number only-wide" }, job.roster > 0 && job.roster !== job.workers
      ? `${job.roster} of ${job.workers}` : String(job.workers)),
    h("td", { class: "number only-wide", title: utc(job.submitted_us) }, age(now_us - job.submitted_us)));
}

function empty(state, before) {
  if (before) return h("div", { class: "empty" }, h("strong", {}, "There are no older jobs."));
  if (state) return h("div", { class: "empty" }, h("strong", {}, `No job is ${state}.`), "Other states may have some.");
  return h("div", { class: "empty" }, h("strong", {}, "There is no job yet."),
    "Submit a program, as two tasks, from the machine that has it:",
    h("div", {}, h("pre", {}, "cadre submit -n 2 ./fit")));
}

// Pages have no numbers, for jobs come and go: the next page begins behind the last job of this one.
function pager(route, answer) {
  const { before, state } = route.query;
  const last = answer.jobs.at(-1);
  if (!before && !answer.more) return null;
  return h("nav", { class: "foot pager", "aria-label": "Pages of jobs" },
    before ? h("a", { href: link(["jobs"], { state }), "data-key": "newest" }, "Newest") : null,
    answer.more && last ? h("a", { href: link(["jobs"], { state, before: last.id }), rel: "next", "data-key": "older" },
      "Older") : null,
    h("span", {}, answer.jobs.length ? `Jobs ${last.id} to ${answer.jobs[0].id}` : ""));
}

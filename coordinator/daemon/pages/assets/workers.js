// SPDX-License-Identifier: Apache-2.0
// The list of workers, a page at a time, and one worker with its GPUs.

import { query } from "./api.js";
import { askDrain, may } from "./actions.js";
import { badge, warning } from "./badges.js";
import { h } from "./dom.js";
import { age, bytes, clean, cores, count, gpuUse, moment, plural, utc } from "./format.js";
import { failure, nothing, waiting } from "./notices.js";
import { link } from "./router.js";

const PAGE = 100;
const NEAR_END_US = 14 * 86400 * 1e6;

export const workersView = {
  title: () => "Workers",

  resources(route) {
    const after = route.query.after;
    return [{ key: `workers?${after ?? ""}`, path: `/api/workers${query({ limit: PAGE, after })}`, every_ms: 1000 }];
  },

  render(route, app) {
    const key = `workers?${route.query.after ?? ""}`;
    const answer = app.data(key);
    const head = h("div", { class: "head" }, h("h2", {}, "Workers"));
    const body = answer ? list(route, app, answer) : app.error(key) ? failure(app.error(key)) : waiting();
    return [h("section", { class: "panel", "aria-label": "Workers" }, head, body)];
  },
};

function list(route, app, answer) {
  const workers = answer.workers;
  if (workers.length === 0) {
    return nothing("No worker has joined.", "Start one on each machine that is to run tasks:",
      h("div", {}, h("pre", {}, "cadre-worker --coordinator ADDRESS --state-dir DIR --slots 2")));
  }
  const column = (name, classes) => h("th", { scope: "col", class: classes }, name);
  const last = workers.at(-1);
  return [h("table", { class: "list" },
    h("thead", {}, h("tr", {}, column("Worker"), column("State"), column("Slots"), column("GPUs", "number only-wide"),
      column("CPUs", "number only-wide"), column("Memory", "number only-wide"), column("Version", "only-wide"),
      column("Certificate", "only-wide"), column("Joined", "number only-wide"))),
    h("tbody", {}, workers.map((worker) => row(worker, app)))),
  route.query.after || answer.more ? h("nav", { class: "foot pager", "aria-label": "Pages of workers" },
    route.query.after ? h("a", { href: link(["workers"]), "data-key": "first" }, "First") : null,
    answer.more ? h("a", { href: link(["workers"], { after: last.name }), rel: "next", "data-key": "next" }, "Next")
      : null, h("span", {}, `${clean(workers[0].name)} to ${clean(last.name)}`)) : null];
}

function row(worker, app) {
  const why = `by ${clean(worker.drained_by)}${worker.drained_why ? `: ${clean(worker.drained_why)}` : ""}`;
  const drained = worker.state === "draining" && worker.drained_by ? h("div", { class: "why" }, why) : null;
  return h("tr", { "data-key": `worker-${worker.name}` },
    h("td", {}, h("a", { class: "name", href: link(["workers", worker.name]), "data-row": true }, clean(worker.name)),
      worker.host && worker.host !== worker.name ? h("div", { class: "why" }, clean(worker.host)) : null,
      h("div", { class: "only-narrow" }, certificate(worker, app))),
    h("td", {}, badge(worker.state), drained),
    h("td", { class: "nowrap" }, slots(worker)),
    h("td", { class: "number only-wide", title: gpuTitle(worker), "data-use": "gpu" }, gpus(worker)),
    h("td", { class: "number only-wide" }, cpus(worker)),
    h("td", { class: "number only-wide", "data-use": "memory" }, memory(worker)),
    h("td", { class: "only-wide" }, version(worker, app)),
    h("td", { class: "only-wide nowrap" }, certificate(worker, app) ?? h("span", { class: "quiet" }, "–")),
    h("td", { class: "number only-wide", title: utc(worker.joined_us) },
      worker.joined_us ? age(app.now_us() - worker.joined_us) : "–"));
}

function slots(worker) {
  return [h("progress", { class: "bar small only-wide", max: Math.max(1, worker.slots), value: worker.slots_used,
    "aria-hidden": "true" }), `${count(worker.slots_used)} of ${count(worker.slots)}`];
}

// What is in use, where that is known, of what there is.
function cpus(worker) {
  const used = cores(worker.usage);
  return used === null ? count(worker.cpus) : `${used} of ${count(worker.cpus)}`;
}

function memory(worker) {
  if (!worker.memory_bytes) return "–";
  const used = worker.usage?.memory_bytes;
  return used ? `${bytes(used)} of ${bytes(worker.memory_bytes)}` : bytes(worker.memory_bytes);
}

// How many, and how much of the time they run kernels, where that is known.
function gpus(worker) {
  const all = worker.gpus.length + (worker.gpus_omitted ?? 0);
  if (all === 0) return "–";
  const number = worker.gpus_usable === all ? count(all) : `${count(worker.gpus_usable)} of ${count(all)}`;
  return typeof worker.usage?.gpu_percent === "number" ? `${number}, ${worker.usage.gpu_percent}%` : number;
}

function gpuTitle(worker) {
  const used = gpuUse(worker.usage);
  return used === null ? null : `in use: ${used}`;
}

// A worker of another version than the coordinator's still serves: it is shown, not refused.
function version(worker, app) {
  const own = app.data("cluster")?.version;
  if (!worker.version) return "–";
  return own && own !== worker.version ? warning(clean(worker.version)) : clean(worker.version);
}

// When a certificate ends; near its end with a warning. Null: none, or it was not reported.
export function certificate(holder, app) {
  const ends_us = holder.certificate_ends_us;
  if (!ends_us) return null;
  const left_us = ends_us - app.now_us();
  const text = left_us < 0 ? "has ended" : `ends in ${age(left_us)}`;
  return h("span", { title: utc(ends_us) }, left_us < NEAR_END_US ? warning(text) : text);
}

export const workerView = {
  title: (route) => `Worker ${clean(route.id)}`,

  resources: (route) => [
    { key: `worker/${route.id}`, path: `/api/workers/${encodeURIComponent(route.id)}`, every_ms: 1000 }],

  render(route, app) {
    const key = `worker/${route.id}`;
    const worker = app.data(key)?.workers[0];
    const title = h("div", { class: "title" }, h("h1", {}, clean(route.id)), worker ? badge(worker.state) : null,
      worker ? actions(worker, app) : null);
    const crumbs = h("p", { class: "quiet" }, h("a", { href: link(["workers"]) }, "Workers"), " / ", clean(route.id));
    if (!worker) {
      const error = app.error(key);
      const gone = nothing("There is no such worker.", "It has not joined since the coordinator's start.");
      return [h("div", {}, crumbs, title), app.data(key) ? gone : error ? failure(error) : waiting()];
    }
    return [h("div", {}, crumbs, title, worker.drained_by ? h("p", { class: "sentence" },
      `Drained by ${clean(worker.drained_by)}`, worker.drained_why ? `: ${clean(worker.drained_why)}` : "") : null),
    facts(worker, app), gpuPanel(worker)];
  },
};

function actions(worker, app) {
  if (!may(app, "drain") || worker.state === "expected") return null;
  const ends = worker.state === "draining";
  return h("div", { class: "end" }, h("button", { class: ends ? null : "danger", "data-key": "drain",
    onclick: () => askDrain(app, worker, ends) }, ends ? "Undrain" : "Drain"));
}

function facts(worker, app) {
  const fact = (name, shown) => h("div", {}, h("dt", {}, name), h("dd", {}, shown));
  return h("section", { class: "panel", "aria-label": "Facts" }, h("dl", { class: "body facts" },
    fact("Slots", slots(worker)), fact("Host", clean(worker.host) || "–"), fact("CPUs", cpus(worker)),
    fact("Memory", memory(worker)), fact("Version", version(worker, app)),
    fact("Certificate", certificate(worker, app) ?? "none"), fact("Joined", moment(worker.joined_us))));
}

function gpuPanel(worker) {
  const column = (name, classes) => h("th", { scope: "col", class: classes }, name);
  const body = worker.gpus.length === 0
    ? nothing("Tasks on this worker get no GPU.", clean(worker.gpu_reason))
    : h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, column("GPU"), column("Memory", "number"), column("Capability", "number"),
        column("Bus"), column("Use"))),
      h("tbody", {}, worker.gpus.map((gpu) => h("tr", { "data-key": gpu.uuid }, h("td", {}, clean(gpu.name)),
        h("td", { class: "number" }, bytes(gpu.memory_bytes)),
        h("td", { class: "number" }, `${gpu.compute_major}.${gpu.compute_minor}`),
        h("td", { class: "mono" }, clean(gpu.bus)), h("td", {}, gpu.unused ? clean(gpu.unused) : "by tasks"))))));
  return h("section", { class: "panel", "aria-label": "GPUs" }, h("div", { class: "head" }, h("h2", {}, "GPUs"),
    h("span", { class: "quiet", "data-use": "gpu" }, gpuTitle(worker) ?? ""),
    worker.gpu_driver ? h("span", { class: "quiet" }, `driver ${clean(worker.gpu_driver)}`) : null,
    worker.gpus_omitted > 0 ? h("span", { class: "quiet" }, `${plural(worker.gpus_omitted, "GPU")} more`) : null),
  body);
}

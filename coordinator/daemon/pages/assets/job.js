// SPDX-License-Identifier: Apache-2.0
// One job: its state as a sentence, its progress, and tabs: the ledger with the tasks, curves, logs, shards, proof.

import { askCancel, may } from "./actions.js";
import { badge } from "./badges.js";
import { curves, metricsResource } from "./curves.js";
import { h } from "./dom.js";
import { age, bytes, clean, cores, count, donePercent, duration, fractionDone, gpuUse, moment, plural, utc, value }
  from "./format.js";
import { historyResource, ledgerPanels } from "./history.js";
import { logs } from "./logs.js";
import { failure, waiting } from "./notices.js";
import { proof, shards } from "./proof.js";
import { link } from "./router.js";

const TABS = [["ledger", "Ledger"], ["curves", "Curves"], ["logs", "Logs"], ["shards", "Shards"], ["proof", "Proof"]];

export const jobView = {
  title: (route, app) => {
    const job = app.data(`job/${route.id}`);
    return job ? `${job.state}: job ${job.id}, ${clean(job.name)}` : `Job ${route.id}`;
  },

  resources(route, app) {
    const { id, tab } = route;
    const path = `/api/jobs/${id}`;
    const ended = () => app.data(`job/${id}`)?.final === true;
    const wanted = [{ key: `job/${id}`, path, every_ms: 1000, done: (job) => job.final }];
    if (tab === "ledger") wanted.push(historyResource(id));
    if (tab === "curves") wanted.push(metricsResource(id, ended));
    if (tab === "shards") wanted.push({ key: `shards/${id}`, path: `${path}/shards`, every_ms: 1000, done: ended });
    if (tab === "proof") wanted.push({ key: `proof/${id}`, path: `${path}/verification`, every_ms: 5000, done: ended });
    if (tab === "logs") wanted.push(logs.resource(id, route.query, app));
    return wanted;
  },

  render(route, app) {
    const job = app.data(`job/${route.id}`);
    const crumbs = h("p", { class: "quiet" }, h("a", { href: link(["jobs"]) }, "Jobs"), ` / ${route.id}`);
    if (!job) {
      const error = app.error(`job/${route.id}`);
      return [h("div", {}, crumbs, h("h1", {}, `Job ${route.id}`)), error ? failure(error) : waiting()];
    }
    return [heading(job, app, crumbs), facts(job, app), tabs(route, job), ...panels(route, job, app)];
  },
};

function panels(route, job, app) {
  switch (route.tab) {
    case "curves": return curves(job, app);
    case "logs": return [logs.panel(job, route.query, app)];
    case "shards": return shards(job, app);
    case "proof": return proof(job, app);
    default: return [...ledgerPanels(job, route.query, app), taskPanel(job)];
  }
}

function heading(job, app, crumbs) {
  const cancel = !job.final && may(app, "cancel") ? h("div", { class: "end" }, h("button", { class: "danger",
    "data-key": "cancel", onclick: () => askCancel(app, job) }, "Cancel job")) : null;
  return h("div", { "data-key": "heading" }, crumbs,
    h("div", { class: "title" }, h("h1", {}, clean(job.name) || "(no name)"), badge(job.state), cancel),
    job.message ? h("p", { class: "sentence", "data-key": "message" }, clean(job.message)) : null,
    job.wait ? h("p", { class: "quiet", "data-key": "wait" },
      `${job.workers > 1 ? "The others wait" : "The step waits"} for task ${job.wait.task} on ` +
      `${clean(job.wait.worker)}: ${duration(job.wait.waited_us)}.`) : null, progress(job), evaluation(job));
}

// What the evaluator of a job with parameter servers reported last.
function evaluation(job) {
  const e = job.evaluation;
  if (!e) return null;
  const texts = [h("strong", {}, "Evaluation"), `of step ${count(e.step)}`];
  for (const [name, number] of Object.entries(e.metrics)) texts.push(`${clean(name)} ${value(number)}`);
  return h("div", { class: "progress", "data-key": "evaluation" }, h("div", { class: "text" },
    texts.map((text) => h("span", {}, text))));
}

// "chief 1, workers 2, ps 2, evaluator 1"
export function roles({ workers, servers, evaluators }) {
  return `chief 1, workers ${count(workers)}, ps ${count(servers)}${evaluators > 0 ? `, evaluator ${evaluators}` : ""}`;
}

function progress(job) {
  const part = fractionDone(job);
  const p = job.progress;
  if (!p) return null;
  const texts = [];
  if (part !== null) texts.push(h("strong", {}, donePercent(job)));
  if (p.epochs > 0) texts.push(`epoch ${count(Math.min(p.epochs, p.epoch + 1))} of ${count(p.epochs)}`);
  texts.push(p.steps > 0 ? `step ${count(p.step)} of ${count(p.steps)}` : `step ${count(p.step)}`);
  if (p.samples_per_s > 0) texts.push(`${value(Math.round(p.samples_per_s))} samples/s`);
  if (p.left_s !== null && !job.final) texts.push(`${duration(p.left_s * 1e6)} left`);
  for (const [name, number] of Object.entries(p.metrics)) texts.push(`${clean(name)} ${value(number)}`);
  const tone = job.state === "failed" || job.state === "cancelled" ? " is-bad" : job.final ? " is-good" : "";
  const bar = part === null ? null : h("progress", { class: `bar${tone}`, max: 1, value: part, "aria-label": "Done" });
  return h("div", { class: "progress" }, bar, h("div", { class: "text" }, texts.map((text) => h("span", {}, text))));
}

// Where the job's tasks leave files in an object store.
export function outputsFolder({ outputs_folder: folder, id }) {
  return `${clean(folder).replace(/\/+$/, "")}/${id}`;
}

function facts(job, app) {
  const fact = (name, shown, title) => h("div", { title }, h("dt", {}, name), h("dd", {}, shown));
  const now_us = app.now_us();
  const verified = !job.verified ? "not yet" : job.verified.position === job.position ? "all of them"
    : `to step ${count(job.verified.position)}`;
  const checkpoint = clean(job.checkpoint).split("/").at(-1).replace(/\.json$/, "");
  const submitted = job.final ? moment(job.submitted_us) : `${age(now_us - job.submitted_us)} ago`;
  return h("section", { class: "panel", "aria-label": "Facts", "data-key": "facts" }, h("dl", { class: "body facts" },
    fact("Steps committed", h("span", { id: "position" }, count(job.position))),
    fact("Generation", h("span", { id: "generation" }, String(job.generation))),
    fact("Tasks", job.final ? String(job.workers) : `${job.roster} of ${job.workers}`),
    job.ps_job ? fact("Task types", h("span", { id: "roles" }, roles(job.ps_job))) : null,
    fact("Restarts", String(job.restarts)),
    fact("States found equal", verified, job.verified ? `digest ${job.verified.digest}` : null),
    fact("Checkpoint", checkpoint ? h("span", { class: "mono" }, checkpoint) : "none"),
    fact("Submitted", submitted, utc(job.submitted_us)),
    fact(job.final ? "Ran for" : "Runs for", job.started_us === 0 ? "–"
      : duration((job.final ? job.ended_us : now_us) - job.started_us), utc(job.started_us)),
    job.final ? fact("Exit status", `${job.exit_code}${job.code === "OK" ? "" : `, ${job.code}`}`) : null,
    job.priority !== 0 ? fact("Priority", String(job.priority)) : null,
    job.replicas > 0 ? fact("Replicas", String(job.replicas)) : null,
    job.outputs_folder ? fact("Outputs", h("span", { class: "mono", id: "outputs" }, outputsFolder(job))) : null,
    fact("Program", h("span", { class: "mono" }, clean(job.program)))));
}

function tabs(route, job) {
  return h("nav", { class: "tabs", "aria-label": "Parts of the job", "data-key": "tabs" }, TABS.map(([tab, name]) =>
    h("a", { href: link(tab === "ledger" ? ["jobs", job.id] : ["jobs", job.id, tab]), "data-key": tab,
      "aria-current": route.tab === tab ? "page" : null }, name)));
}

const TASKS_SHOWN = 100;

function taskPanel(job) {
  const tasks = job.tasks ?? [];
  const head = h("div", { class: "head" }, h("h2", {}, "Tasks"));
  if (tasks.length === 0) {
    return h("section", { class: "panel", "aria-label": "Tasks" }, head,
      h("div", { class: "empty" }, job.final ? "The job ended before it had tasks."
        : "The job waits for slots; it has no tasks yet."));
  }
  const runs = (task) => (task.state === "running" ? 1 : 0);
  const sorted = tasks.length > TASKS_SHOWN ? [...tasks].sort((a, b) => runs(a) - runs(b)) : tasks;
  const shown = sorted.slice(0, TASKS_SHOWN);
  const column = (name, classes) => h("th", { scope: "col", class: classes }, name);
  return h("section", { class: "panel", "aria-label": "Tasks", "data-key": "tasks" }, head, h("table", {},
    h("thead", {}, h("tr", {}, column("Task", "number"), column("State"), column("Worker"),
      column("Incarnation", "number only-wide"), column("Process", "number only-wide"),
      column("CPU", "number only-wide"), column("Memory", "number only-wide"),
      hasGpus(tasks) ? column("GPU", "number only-wide") : null, column("Waited for", "number only-wide"),
      column("Log", "number"),
      column("Exit", "only-wide"))),
    h("tbody", {}, shown.map((task) => taskRow(job, task, hasGpus(tasks))))),
  tasks.length > TASKS_SHOWN ? h("div", { class: "foot" }, `${TASKS_SHOWN} of ${plural(tasks.length, "task")}, ` +
    "those that do not run first.") : null);
}

function hasGpus(tasks) {
  return tasks.some((task) => gpuUse(task.usage) !== null);
}

// What a narrow row says in one line; "": nothing is known of it.
function useText(task) {
  const cpus = cores(task.usage);
  const gpu = gpuUse(task.usage);
  return [cpus === null ? null : `${cpus} CPUs`, task.usage?.memory_bytes ? bytes(task.usage.memory_bytes) : null,
    gpu === null ? null : `GPU ${gpu}`,
    task.waited_us > 0 ? `waited for ${duration(task.waited_us)}` : null].filter((part) => part !== null).join(" · ");
}

function taskRow(job, task, gpus) {
  const exit = task.exit_text ? clean(task.exit_text) : task.exit_signal !== null ? `signal ${task.exit_signal}`
    : task.exit_code !== null ? `status ${task.exit_code}` : "";
  const use = useText(task);
  return h("tr", { "data-key": `task-${task.task}`, "data-task": task.task },
    h("td", { class: "number" }, task.type ? `${task.type} ${task.index}` : String(task.task)),
    h("td", {}, badge(task.state), exit ? h("div", { class: "why only-narrow" }, exit) : null,
      use ? h("div", { class: "why only-narrow", "data-use": "all" }, use) : null, fetching(task)),
    h("td", {}, task.worker ? h("a", { href: link(["workers", task.worker]) }, clean(task.worker)) : "–"),
    h("td", { class: "number only-wide" }, String(task.incarnation)),
    h("td", { class: "number only-wide" }, task.pid > 0 ? String(task.pid) : "–"),
    h("td", { class: "number only-wide", "data-use": "cpu" }, cores(task.usage) ?? "–"),
    h("td", { class: "number only-wide", "data-use": "memory",
      title: task.usage?.memory_peak_bytes ? `at most ${bytes(task.usage.memory_peak_bytes)}` : null },
    task.usage?.memory_bytes ? bytes(task.usage.memory_bytes) : "–"),
    gpus ? h("td", { class: "number only-wide", "data-use": "gpu" }, gpuUse(task.usage) ?? "–") : null,
    h("td", { class: "number only-wide", "data-use": "waited",
      title: "How long the others have waited for it, since the coordinator was started" },
    task.waited_us > 0 ? duration(task.waited_us) : "–"),
    h("td", { class: "number" }, h("a", { href: link(["jobs", job.id, "logs"], { task: task.task }), "data-row": true },
      bytes(task.log_bytes))),
    h("td", { class: "only-wide" }, exit));
}

function fetching(task) {
  if (!task.fetch) return null;
  const { what, done_bytes, whole_bytes } = task.fetch;
  const whole = whole_bytes ? ` of ${bytes(whole_bytes)}` : "";
  return h("div", { class: "why" }, `${clean(what)}: ${bytes(done_bytes)}${whole}`);
}

// SPDX-License-Identifier: Apache-2.0
// The log of one task of a job: its newest text, what comes while it is open, and a search in what is shown.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { bytes, cleanLogText, clock, plural, utc } from "./format.js";
import { partFailure } from "./notices.js";
import { link } from "./router.js";

const LINES_MAX = 2000; // in the page; older ones are dropped
const pane = { key: null, box: null, lines: [], follow: true, find: "", next: null, size: 0, hits: 0 };

function begin(key) {
  const box = h("pre", { class: "log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Log" });
  Object.assign(pane, { key, box, lines: [], follow: true, next: null, size: 0 });
  box.onscroll = () => {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
    if (atEnd !== pane.follow) {
      pane.follow = atEnd;
      pane.onFollow?.();
    }
  };
}

function taskOf(id, values, app) {
  return values.task ?? String(app.data(`job/${id}`)?.tasks?.[0]?.task ?? 0);
}

export const logs = {
  resource(id, values, app) {
    const task = taskOf(id, values, app);
    const key = `log/${id}/${task}`;
    const load = async (signal) => {
      if (pane.key !== key) begin(key);
      const answer = await get(`/api/jobs/${id}/logs${query({ task, offset: pane.next })}`, signal);
      take(answer);
      return { end: answer.end_offset, whole: answer.next_offset >= answer.end_offset };
    };
    const ended = (answer) => answer.whole && app.data(`job/${id}`)?.final === true;
    return { key, load, every_ms: 1000, done: ended };
  },

  panel(job, values, app) {
    const task = taskOf(job.id, values, app);
    const key = `log/${job.id}/${task}`;
    if (pane.key !== key) begin(key);
    pane.onFollow = () => app.draw();
    const error = app.error(key);
    const empty = app.data(key) && pane.lines.length === 0;
    return h("section", { class: "panel", "aria-label": "Logs", "data-key": "logs" }, h("div", { class: "head" },
      h("h2", {}, "Logs"), chooser(job, task, app), search(app), h("button", { "data-key": "follow", "aria-pressed":
        String(pane.follow), onclick: () => follow(!pane.follow, app) }, pane.follow ? "Following" : "Follow")),
    error && !error.away ? partFailure(error) : null,
    empty ? h("div", { class: "empty" }, job.final ? "The task printed nothing."
      : "The task has printed nothing yet.") : null,
    holder(key), h("div", { class: "foot" }, h("span", {}, `${plural(pane.lines.length, "line")} shown`),
      pane.find ? h("span", { role: "status" }, `${plural(pane.hits, "line")} with “${pane.find}”`) : null,
      h("span", {}, `all of it: cadre logs ${job.id} --task ${task}`)));
  },
};

function holder(key) {
  const node = h("div", { "data-key": `pane-${key}`, "data-own": "" });
  node.own = pane.box;
  return node;
}

function chooser(job, task, app) {
  const tasks = job.tasks ?? [];
  const go = (chosen) => app.go(link(["jobs", job.id, "logs"], { task: chosen }));
  if (tasks.length > 200) {
    return h("label", {}, "Task", h("input", { type: "number", "data-key": "task", min: 0, max: tasks.length - 1,
      value: task, onchange: (event) => go(event.target.value) }));
  }
  return h("label", {}, "Task", h("select", { "data-key": "task", onchange: (event) => go(event.target.value) },
    tasks.map((one) => h("option", { value: one.task, selected: String(one.task) === task },
      `${one.type ? `${one.type} ${one.index}` : one.task} · ${bytes(one.log_bytes)}`))));
}

function search(app) {
  return h("input", { type: "search", "data-key": "find", placeholder: "Find in what is shown", "aria-label":
    "Find in what is shown", value: pane.find, oninput: (event) => {
    pane.find = event.target.value;
    redraw();
    app.draw();
  } });
}

function follow(on, app) {
  pane.follow = on;
  if (on) pane.box.scrollTop = pane.box.scrollHeight;
  app.draw();
}

// A last line without a newline comes again when it has grown: it replaces what is shown of it.
function take(answer) {
  for (const text of answer.lines) {
    const last = pane.lines.at(-1);
    if (last && last.text.offset === text.offset) {
      last.node.remove();
      pane.lines.pop();
    }
    const node = lineNode(text);
    pane.lines.push({ text, node });
    pane.box.append(node);
  }
  while (pane.lines.length > LINES_MAX) pane.lines.shift().node.remove();
  pane.next = answer.next_offset;
  pane.hits = pane.lines.filter(({ node }) => node.classList.contains("hit")).length;
  if (pane.follow) pane.box.scrollTop = pane.box.scrollHeight;
}

function lineNode(text) {
  const shown = cleanLogText(text.text);
  const found = pane.find !== "" && shown.toLowerCase().includes(pane.find.toLowerCase());
  const classes = [text.stream === "stderr" ? "stderr" : "", found ? "hit" : ""].join(" ").trim();
  const node = h("div", { class: classes || null, title: text.received_us ? utc(text.received_us) : null },
  text.received_us ? h("time", {}, clock(text.received_us)) : null, found ? marked(shown) : shown);
  if (!(text.left_out > 0)) return node;
  return h("div", { class: found ? "hit" : null },
    h("span", { class: "gap-note" }, `${bytes(text.left_out)} are not kept`), node);
}

function marked(shown) {
  const parts = [];
  const wanted = pane.find.toLowerCase();
  const lower = shown.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(shown.slice(from, at), h("mark", {}, shown.slice(at, at + wanted.length)));
    from = at + wanted.length;
  }
  return [...parts, shown.slice(from)];
}

function redraw() {
  for (const entry of pane.lines) {
    const node = lineNode(entry.text);
    entry.node.replaceWith(node);
    entry.node = node;
  }
  const hits = pane.lines.filter(({ node }) => node.classList.contains("hit"));
  pane.hits = hits.length;
  if (hits.length > 0 && pane.find) {
    pane.follow = false;
    hits.at(-1).node.scrollIntoView({ block: "center" });
  }
}

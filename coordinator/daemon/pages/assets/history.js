// SPDX-License-Identifier: Apache-2.0
// A job's history: asked for from the newest known event on, shown as the ledger's picture and as a table.

import { get, query } from "./api.js";
import { h, slot } from "./dom.js";
import { clean, clock, count, plural, utc } from "./format.js";
import { describe, isTask, kindName, readLedger } from "./ledger.js";
import { nothing, partFailure, waiting } from "./notices.js";
import { link } from "./router.js";
import { ROWS, Timeline, legend } from "./timeline.js";

const PAGES_MAX = 20; // of the coordinator's, in one round
const EVENTS_SHOWN = 50;
const pictures = new Map(); // job -> Timeline; one at a time

export function historyResource(id) {
  const history = { events: [], dropped: 0 };
  const load = async (signal) => {
    let ended = false;
    for (let page = 0, more = true; more && page < PAGES_MAX; page++) {
      const after = history.events.at(-1)?.number;
      const answer = await get(`/api/jobs/${id}/history${query({ after })}`, signal);
      history.events.push(...answer.events);
      history.dropped = answer.dropped ?? 0;
      more = answer.more === true && answer.events.length > 0;
      ended = !more && history.events.at(-1)?.kind === "ended";
    }
    return { ...history, ended };
  };
  return { key: `history/${id}`, load, every_ms: 1000, done: (answer) => answer.ended };
}

function pictureOf(id, app) {
  if (!pictures.has(id)) {
    pictures.clear();
    pictures.set(id, new Timeline(app.announce));
  }
  return pictures.get(id);
}

// The picture and the table of events of a job; route values: `by` ("step"), `rows`, `quiet`, `events`.
export function ledgerPanels(job, values, app) {
  const key = `history/${job.id}`;
  const history = app.data(key);
  const head = (...rest) => h("div", { class: "head" }, h("h2", {}, "Ledger"), rest);
  if (!history || history.events.length === 0) {
    const body = history ? nothing("This job has no recorded history.", "It ran under an earlier version.")
      : app.error(key) ? partFailure(app.error(key)) : waiting();
    return [h("section", { class: "panel", "aria-label": "Ledger" }, head(), body)];
  }
  const view = values.by === "step" ? "step" : "time";
  const picture = pictureOf(job.id, app);
  const ledger = readLedger(history.events, job, app.now_us());
  const many = ledger.tasks.length > ROWS;
  const quiet = values.quiet === "1" || (values.quiet === undefined && !many);
  const rows = view === "step" ? ledger.generations : ledger.tasks.filter((task) => quiet || task.noteworthy);
  const of = rows.length;
  const from = Math.min(Number(values.rows) || 0, Math.max(0, of - 1));
  const width = app.width - (app.width < 560 ? 26 : 34);
  picture.update({ events: history.events, job, now_us: app.now_us(), width, view, rows: { from, quiet } });
  const to = (change) => link(["jobs", job.id], { ...values, ...change });
  const toggle = (name, by) => h("button", { "data-key": by, "aria-pressed": String(view === by),
    onclick: () => app.go(to({ by, rows: null })) }, name);
  const zoom = (name, times, title) => h("button", { "data-key": name, title, "aria-label": title,
    onclick: () => picture.zoomBy(times) }, name);
  return [h("section", { class: "panel", "aria-label": "Ledger", "data-key": "ledger" },
    head(legend(),
      h("div", { class: "group" }, zoom("−", 0.5, "Show more of the axis"), zoom("+", 2, "Show more detail")),
      h("div", { class: "group" }, toggle("By time", "time"), toggle("By step", "step"))),
    h("div", { class: "body" }, slot(`picture-${job.id}`, picture.element)),
    rowPager({ view, many, quiet, of, from, to, app, all: ledger.tasks.length }),
    eventTable(job, history, values, to))];
}

// With more tasks than one picture holds, those to which nothing happened are left out, unless they are asked for.
function rowPager({ view, many, quiet, of, from, to, app, all }) {
  if (of <= ROWS && !(many && view === "time")) return null;
  const noun = view === "step" ? "generation" : "task";
  return h("nav", { class: "foot pager", "aria-label": "Rows of the picture" },
    view === "time" ? h("label", {}, h("input", { type: "checkbox", "data-key": "quiet", checked: quiet,
      onchange: (event) => app.go(to({ quiet: event.target.checked ? 1 : 0, rows: null })) }),
    `also tasks to which nothing happened (${count(all)} in all)`) : null,
    from > 0 ? h("a", { href: to({ rows: Math.max(0, from - ROWS) }), "data-key": "rows-before" }, "Before") : null,
    from + ROWS < of ? h("a", { href: to({ rows: from + ROWS }), "data-key": "rows-after" }, "After") : null,
    h("span", {}, of === 0 ? "No task was lost or waited for."
      : `Rows ${from + 1} to ${Math.min(of, from + ROWS)} of ${plural(of, noun)}`));
}

function kindOf(job, event) {
  const name = kindName(event.kind);
  return isTask(event.task) ? h("a", { href: link(["jobs", job.id, "logs"], { task: event.task }) }, name) : name;
}

function eventTable(job, history, values, to) {
  const newest = [...history.events].reverse();
  const from = Math.min(Number(values.events) || 0, Math.max(0, newest.length - 1));
  const shown = newest.slice(from, from + EVENTS_SHOWN);
  const column = (name, classes) => h("th", { scope: "col", class: classes }, name);
  return [h("table", { class: "events" }, h("caption", { class: "unseen" }, "Events, newest first"),
    h("thead", {}, h("tr", {}, column("Time"), column("Event", "only-wide"), column("What happened"),
      column("Step", "number only-wide"), column("Gen.", "number only-wide"))),
    h("tbody", {}, shown.map((event) => h("tr", { "data-key": `event-${event.number}`, "data-kind": event.kind },
      h("td", { class: "nowrap", title: utc(event.time_us) }, clock(event.time_us)),
      h("td", { class: "nowrap only-wide" }, kindOf(job, event)),
      h("td", {}, h("strong", { class: "only-narrow" }, kindName(event.kind), " "), describe(event)),
      h("td", { class: "number only-wide" }, count(event.position ?? 0)),
      h("td", { class: "number only-wide" }, clean(event.generation || "–")))))),
  newest.length <= EVENTS_SHOWN && history.dropped === 0 ? null : h("nav", { class: "foot pager",
    "aria-label": "Pages of events" },
    from > 0 ? h("a", { href: to({ events: Math.max(0, from - EVENTS_SHOWN) }) }, "Newer") : null,
    from + EVENTS_SHOWN < newest.length ? h("a", { href: to({ events: from + EVENTS_SHOWN }) }, "Older") : null,
    h("span", {}, plural(newest.length, "event") +
      (history.dropped > 0 ? `; ${count(history.dropped)} are not kept` : "")))];
}

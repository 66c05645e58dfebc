// SPDX-License-Identifier: Apache-2.0
// The ledger's picture: what readLedger() found, over time or by step, as SVG. Arrow keys go from event to event.

import { h, morph, s } from "./dom.js";
import { clock, count, duration, plural } from "./format.js";
import { describe, isTask, kindName, readLedger } from "./ledger.js";
import { generationLabels, scale, ticks, timeTicks } from "./scale.js";
import { link } from "./router.js";

export const ROWS = 24; // of tasks, or of generations, in one picture
const ROW = 24;
const COURSE = 88;
const RIGHT = 16;
const LABEL_ROOM = 40; // of the label of a generation

export class Timeline {
  constructor(announce) {
    this.announce = announce;
    this.chosen = -1; // of the events, or -1
    this.zoom = { factor: 1, centre: 1 }; // how much of the axis is shown, and what is in its middle, of 0 to 1
    this.picture = s("svg", { class: "timeline", tabindex: 0, role: "application",
      "aria-roledescription": "timeline" });
    this.text = h("p", { class: "readout" });
    this.element = h("div", { class: "timeline-box" }, this.picture, this.text);
    this.picture.onkeydown = (event) => this.key(event);
    this.picture.onpointermove = (event) => this.point(event);
    this.picture.onpointerleave = () => this.choose(-1);
  }

  // view: "time" or "step"; rows: { from, quiet } with `quiet` false to leave out tasks to which nothing happened.
  update({ events, job, now_us, width, view, rows }) {
    Object.assign(this, { events, job, view, rows, width: Math.max(240, width) });
    this.ledger = readLedger(events, job, now_us);
    this.gutter = width < 560 ? 62 : 92;
    this.draw();
  }

  draw() {
    const height = this.view === "step" ? this.drawByStep() : this.drawByTime();
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.picture.setAttribute("height", height);
    const { tasks, generations } = this.ledger;
    this.picture.setAttribute("aria-label", `Ledger of job ${this.job.id}: ${plural(tasks.length, "task")}, ` +
      `${plural(generations.length, "generation")}, ${plural(this.job.position, "step")} committed; arrow keys go ` +
      "through the events, which the table repeats");
    this.drawChosen();
  }

  // Shows `times` as much detail, around the chosen event or what was in the middle.
  zoomBy(times) {
    const event = this.events[this.chosen];
    if (event) this.zoom.centre = (this.ofEvent(event) - this.low) / (this.high - this.low || 1);
    this.zoom.factor = Math.min(4096, Math.max(1, this.zoom.factor * times));
    this.draw();
  }

  // The scale of the axis from `low` to `high`, as far as it is shown; `shown` is its range.
  axis(low, high) {
    Object.assign(this, { low, high });
    const part = 1 / this.zoom.factor / 2;
    const centre = Math.min(1 - part, Math.max(part, this.zoom.centre));
    const shown = [low + (centre - part) * (high - low), low + (centre + part) * (high - low)];
    this.x = scale(...shown, this.gutter, this.width - RIGHT);
    return { x: this.x, shown };
  }

  // What is drawn by the axis is cut at its ends.
  plot(bottom, ...children) {
    const room = 9;
    return [s("clipPath", { id: "plot" }, s("rect", { x: this.gutter - room, y: 0, height: bottom,
      width: this.width - RIGHT - this.gutter + 2 * room })), s("g", { "clip-path": "url(#plot)" }, children)];
  }

  drawByTime() {
    const { ledger, rows } = this;
    const tasks = ledger.tasks.filter((task) => rows.quiet || task.noteworthy).slice(rows.from, rows.from + ROWS);
    const top = 24 + COURSE + 14;
    const bottom = top + tasks.length * ROW + 4;
    const { x, shown } = this.axis(ledger.begin_us, Math.max(ledger.end_us, ledger.begin_us + 1e5));
    this.bottom = bottom;
    const grid = timeTicks(...shown, (this.width - RIGHT - this.gutter) / 96).map((tick) =>
      gridLine(x(tick), 24, bottom, clock(tick, shown[1] - shown[0] < 3e6)));
    const rowOf = (task, i) => this.taskRow(task, x, top + i * ROW + ROW / 2);
    const names = tasks.map((task, i) => this.rail(top + i * ROW + ROW / 2, `task ${task.task}`,
      link(["jobs", this.job.id, "logs"], { task: task.task })));
    const most = Math.max(1, ...ledger.course.map((point) => point.position));
    morph(this.picture, s("svg", {}, hatches(), grid, names, this.rowName(27 + COURSE / 2, "steps"),
      this.axisText(34, count(most)), this.axisText(28 + COURSE, "0"),
      this.plot(bottom, this.generationBands(x, bottom), this.course(x, most), tasks.map(rowOf),
        s("g", { "data-key": "chosen" }))));
    return bottom + 26;
  }

  rowName(y, text) {
    return s("text", { class: "row-name", x: this.gutter - 10, y: y + 4, "text-anchor": "end" }, text);
  }

  axisText(y, text) {
    return s("text", { class: "axis", x: this.gutter - 10, y, "text-anchor": "end" }, text);
  }

  rail(y, name, href) {
    return [s("line", { class: "rail", x1: this.gutter, x2: this.width - RIGHT, y1: y, y2: y }),
      href ? s("a", { href, tabindex: -1 }, this.rowName(y, name)) : this.rowName(y, name)];
  }

  generationBands(x, bottom) {
    const parts = [];
    const { gutter, width } = this;
    for (const g of this.ledger.generations) {
      const [from, to] = [x(g.from_us), x(g.to_us)];
      parts.push(s("rect", { class: `generation ${g.number % 2 ? "odd" : "even"}`, x: from, y: 4,
        width: Math.max(1, to - from), height: bottom - 4 }));
      parts.push(s("line", { class: g.restarted ? "mark restarted" : "mark", x1: from, x2: from, y1: 4, y2: bottom }));
    }
    const seen = this.ledger.generations.filter((g) => x(g.to_us) > gutter && x(g.from_us) <= width - RIGHT);
    const marks = seen.map((g) => ({ x: Math.max(x(g.from_us), gutter), number: g.number }));
    for (const label of generationLabels(marks, LABEL_ROOM, width - RIGHT)) {
      const ends = label.room < LABEL_ROOM;
      parts.push(s("text", { class: "mark-text", x: label.x + (ends ? -5 : 5), y: 17, "text-anchor":
        ends ? "end" : "start" }, label.alone && label.room > 96 ? `generation ${label.number}` : label.text));
    }
    return parts;
  }

  // How many steps were committed when, what was undone of them, and the checkpoints.
  course(x, most) {
    const { course, falls, checkpoints } = this.ledger;
    const y = scale(0, most, 24 + COURSE, 30);
    const at = (point) => `${x(point.time_us).toFixed(1)} ${y(point.position).toFixed(1)}`;
    const parts = [s("path", { class: "course-area", d: `M${x(course[0].time_us)} ${y(0)}L${course.map(at).join("L")}L${
        x(course.at(-1).time_us)} ${y(0)}Z` })];
    for (const area of falls) parts.push(s("path", { class: "undone", d: `M${area.map(at).join("L")}Z` }));
    parts.push(s("path", { class: "course", d: `M${course.map(at).join("L")}` }));
    for (const c of checkpoints) parts.push(diamond(x(c.time_us), y(Math.min(most, c.position)), c.lost));
    return parts;
  }

  // Bars first, then what is to be seen over them.
  taskRow(task, x, y) {
    const end = (one) => x(one.to_us ?? this.ledger.end_us);
    const bars = [];
    const marks = [];
    for (const span of task.spans) {
      const [from, to] = [x(span.from_us), end(span)];
      const joined = span.joined_us === null ? to : Math.min(to, Math.max(from, x(span.joined_us)));
      bars.push(bar("span starting", from, y, 10, atLeast(joined - from)));
      if (to > joined) bars.push(bar("span", joined, y, 12, to - joined));
      if (span.outcome === "lost" || span.outcome === "failed") marks.push(...cross(to, y));
      else if (span.outcome === "ended") marks.push(s("path", { class: "ended", d: `M${to} ${y - 8}v16` }));
    }
    for (const stall of task.stalls) {
      const from = x(stall.from_us);
      marks.unshift(bar("stall", from, y, 12, Math.max(3, end(stall) - from)),
        s("path", { class: "stall-mark", d: `M${from} ${y - 10}l5 8h-10z` }));
    }
    return [...bars, ...marks];
  }

  // A row for each generation: the steps that count, and behind them those that a newer generation did again.
  drawByStep() {
    const { ledger, rows } = this;
    const generations = [...ledger.generations].reverse().slice(rows.from, rows.from + ROWS);
    const most = Math.max(1, ...ledger.generations.map((g) => g.reached));
    const bottom = 10 + generations.length * ROW + 4;
    const { x, shown } = this.axis(0, most);
    this.bottom = bottom;
    const grid = ticks(...shown, (this.width - RIGHT - this.gutter) / 96).filter(Number.isInteger).map((tick) =>
      gridLine(x(tick), 6, bottom, count(tick)));
    const noun = this.width < 560 ? "gen." : "generation";
    const at = (i) => 10 + i * ROW + ROW / 2;
    const names = generations.map((g, i) => this.rail(at(i), `${noun} ${g.number}`));
    morph(this.picture, s("svg", {}, hatches(), grid, names,
      this.plot(bottom, generations.map((g, i) => this.generationRow(g, x, at(i))), s("g", { "data-key": "chosen" }))));
    return bottom + 26;
  }

  generationRow(g, x, y) {
    const parts = [bar("span", x(g.first), y, 12, atLeast(x(g.counted) - x(g.first)))];
    const undone = Math.max(3, x(g.reached) - x(g.counted));
    if (g.reached > g.counted) parts.push(bar("undone", x(g.counted), y, 12, undone));
    const own = this.ledger.checkpoints.filter((c) => c.time_us >= g.from_us && c.time_us <= g.to_us);
    return [...parts, ...own.map((c) => diamond(x(c.position), y, c.lost))];
  }

  ofEvent(event) {
    return this.view === "step" ? event.position ?? 0 : event.time_us;
  }

  xOf(event) {
    return this.x(this.ofEvent(event));
  }

  point(pointer) {
    const box = this.picture.getBoundingClientRect();
    const at = ((pointer.clientX - box.left) / box.width) * this.width;
    let best = -1;
    this.events.forEach((event, i) => {
      const far = Math.abs(this.xOf(event) - at);
      if (far < 14 && (best < 0 || far <= Math.abs(this.xOf(this.events[best]) - at))) best = i;
    });
    if (best !== this.chosen) this.choose(best);
  }

  choose(index) {
    this.chosen = index;
    const event = this.events[index];
    const x = event ? this.xOf(event) : this.gutter;
    if (x < this.gutter || x > this.width - RIGHT) this.zoomBy(1);
    this.drawChosen();
  }

  // Left and right: the event before, after. Up and down: of the same task.
  key(event) {
    const { events, chosen } = this;
    if (event.key === "Escape") this.choose(-1);
    if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 2 : 0.5);
    const task = events[chosen]?.task;
    const next = (from, by, fits) => {
      for (let i = from + by; i >= 0 && i < events.length; i += by) if (fits(events[i])) return i;
      return chosen;
    };
    const any = () => true;
    const same = (one) => !isTask(task) || one.task === task;
    const from = chosen < 0 ? events.length : chosen;
    const to = { ArrowLeft: () => next(from, -1, any), ArrowRight: () => next(chosen, 1, any),
      ArrowUp: () => next(from, -1, same), ArrowDown: () => next(chosen, 1, same),
      Home: () => 0, End: () => events.length - 1 }[event.key];
    if (!to || events.length === 0) return;
    event.preventDefault();
    this.choose(to());
    this.announce(this.text.textContent);
  }

  drawChosen() {
    const event = this.events[this.chosen];
    const group = this.picture.querySelector('[data-key="chosen"]');
    const fresh = s("g", {});
    if (event) {
      const x = this.xOf(event);
      fresh.append(s("line", { class: "cursor", x1: x, x2: x, y1: 4, y2: this.bottom }));
    }
    if (group) morph(group, fresh);
    const { begin_us, end_us } = this.ledger;
    morph(this.text, h("p", {}, event ? [h("span", { class: "quiet" }, `${clock(event.time_us, true)} · `),
      h("strong", {}, kindName(event.kind)), ` ${describe(event)}`] : h("span", { class: "quiet" },
      `${clock(begin_us)} to ${this.job.final ? clock(end_us) : "now"}, ${duration(end_us - begin_us)}. Point at the ` +
      "picture, or focus it and press the arrow keys, to read an event.")));
  }
}

function gridLine(x, top, bottom, name) {
  return [s("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }),
    s("text", { class: "axis", x, y: bottom + 17, "text-anchor": "middle" }, name)];
}

function bar(name, x, y, height, width) {
  return s("rect", { class: name, x, y: y - height / 2, rx: 2, height, width });
}

function atLeast(width) {
  return Math.max(1.5, width);
}

function cross(x, y) {
  const d = `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`;
  return [s("path", { class: "halo", d }), s("path", { class: "lost", d })];
}

function diamond(x, y, lost) {
  return s("path", { class: lost ? "checkpoint is-lost" : "checkpoint", d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z` });
}

function hatches() {
  const hatch = (id, name) => s("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" }, s("rect", { class: `${name}-back`, width: 6, height: 6 }),
  s("line", { class: `${name}-stroke`, x1: 0, x2: 0, y1: 0, y2: 6 }));
  return s("defs", {}, hatch("hatch-undone", "undone"), hatch("hatch-stall", "stall"));
}

// What the shapes mean, for beside the picture.
export function legend() {
  const key = (text, ...shapes) => h("span", { class: "key-item" }, s("svg", { class: "key", viewBox: "0 0 22 14",
    "aria-hidden": "true" }, shapes), text);
  const box = (name) => s("rect", { class: name, x: 1, y: 2, width: 20, height: 10, rx: 2 });
  return h("div", { class: "legend" }, key("trains", box("span")), key("starts", box("span starting")),
    key("lost", cross(11, 7)), key("undone steps", box("undone")),
    key("waited for", box("stall")), key("checkpoint", diamond(11, 7, false)));
}

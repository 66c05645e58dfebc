// SPDX-License-Identifier: Apache-2.0
// Lines by step. Behind a line is the band from the least to the greatest value of steps that are not kept one by one;
// what is not finite is a gap with a cross at the axis; dashed marks are generations. Pointer and arrow keys read it.

import { h, morph, s } from "./dom.js";
import { clean, count, value as valueText } from "./format.js";
import { generationLabels, logTicks, nearest, scale, ticks } from "./scale.js";

const HEIGHT = 190;
const LABEL_ROOM = 42; // of the label of a generation
const MARGIN = { left: 58, right: 14, top: 16, bottom: 24 };

// A series of `metrics --json` as samples in the order of steps: { step, first, value, low, high, raw, count }, `value`
// null where it is not finite.
export function samplesOf(series) {
  const merged = series.buckets.map((bucket) => ({ step: bucket.last_step, first: bucket.first_step,
    value: bucket.mean, low: bucket.minimum, high: bucket.maximum, count: bucket.count,
    raw: bucket.mean ?? bucket.last }));
  const single = series.points.map(([step, raw]) => {
    const value = typeof raw === "number" && Number.isFinite(raw) ? raw : null;
    return { step, first: step, value, low: value, high: value, count: 1, raw };
  });
  return merged.concat(single);
}

// The values from the least to the greatest, a little wider; with `log` of positive ones only. Null: there is none.
export function rangeOf(lists, log) {
  let low = Infinity;
  let high = -Infinity;
  for (const samples of lists) {
    for (const sample of samples) {
      if (sample.value === null || (log && sample.value <= 0)) continue;
      low = Math.min(low, log && sample.low <= 0 ? sample.value : sample.low);
      high = Math.max(high, sample.high);
    }
  }
  if (low > high) return null;
  if (log) return { low: low / 1.1, high: high * 1.1 };
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return { low: low - room, high: high + room };
}

// At most four samples for each column of pixels, such that the picture stays the same: the first, the least, the
// greatest, the last. Gaps stay gaps.
export function thin(samples, x) {
  if (samples.length < 1200) return samples;
  const kept = [];
  for (let from = 0; from < samples.length;) {
    const column = Math.floor(x(samples[from].step));
    let to = from + 1;
    while (to < samples.length && Math.floor(x(samples[to].step)) === column) to++;
    const chosen = new Set([from, to - 1]);
    let least = -1;
    let greatest = -1;
    let gap = -1;
    for (let i = from; i < to; i++) {
      const { value } = samples[i];
      if (value === null) gap = i;
      else if (least < 0 || value < samples[least].value) least = i;
      if (value !== null && (greatest < 0 || value > samples[greatest].value)) greatest = i;
    }
    for (const index of [least, greatest, gap]) if (index >= 0) chosen.add(index);
    for (const index of [...chosen].sort((a, b) => a - b)) kept.push(samples[index]);
    from = to;
  }
  return kept;
}

// "M1 2L3 4M...": a new run begins after each gap, and a value between two gaps is a dot.
export function pathOf(samples, x, y, drawable) {
  let path = "";
  let run = 0;
  for (const sample of samples) {
    if (!drawable(sample)) {
      if (run === 1) path += "h0";
      run = 0;
      continue;
    }
    path += `${run === 0 ? "M" : "L"}${x(sample.step).toFixed(1)} ${y(sample.value).toFixed(1)}`;
    run++;
  }
  return run === 1 ? `${path}h0` : path;
}

function bandOf(samples, x, y, bottom) {
  const inside = (value) => (value === null ? bottom : Math.min(bottom, Math.max(0, y(value))));
  let path = "";
  let run = [];
  const close = () => {
    if (run.length > 0) {
      const upper = run.flatMap((b) => [[x(b.first), inside(b.high)], [x(b.step), inside(b.high)]]);
      const lower = run.flatMap((b) => [[x(b.first), inside(b.low)], [x(b.step), inside(b.low)]]).reverse();
      path += `M${upper.concat(lower).map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L")}Z`;
    }
    run = [];
  };
  for (const sample of samples) {
    if (sample.count > 1 && sample.value !== null) run.push(sample);
    else close();
  }
  close();
  return path;
}

// What a reader is shown of a sample: "0.25", or "0.25 (0.1 to 0.4 in steps 1 to 64)".
export function readOut(sample) {
  if (sample.count <= 1) return valueText(sample.raw);
  return `${valueText(sample.raw)} (${valueText(sample.low)} to ${valueText(sample.high)} in steps ` +
    `${count(sample.first)} to ${count(sample.step)})`;
}

export class Chart {
  // announce(text): for readers of screens, when the keys move the mark.
  constructor(announce) {
    this.announce = announce;
    this.cursor = null; // a step, or null
    this.picture = s("svg", { class: "chart", tabindex: 0, role: "application", "aria-roledescription": "chart" });
    this.text = h("div", { class: "readout" });
    this.element = h("div", { class: "chart-box" }, this.text, this.picture);
    this.picture.onpointermove = (event) => this.point(event);
    this.picture.onpointerdown = (event) => this.point(event);
    this.picture.onpointerleave = () => this.move(null);
    this.picture.onblur = () => this.move(null);
    this.picture.onkeydown = (event) => this.key(event);
  }

  // series: [{ name, tone, samples }], tone a number from 0 (a class of pictures.css); generations as `metrics
  // --json` has them.
  update({ series, generations, log, width }) {
    Object.assign(this, { series, generations, log, width: Math.max(220, width) });
    this.draw();
  }

  draw() {
    const { series, width, log } = this;
    const all = series.map((entry) => entry.samples);
    const longest = all.reduce((most, samples) => (samples.length > most.length ? samples : most), []);
    const first = Math.min(...all.filter((a) => a.length).map((a) => a[0].first));
    const last = Math.max(...all.filter((a) => a.length).map((a) => a.at(-1).step));
    const range = rangeOf(all, log);
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    this.longest = longest;
    this.x = scale(first, Math.max(last, first + 1), MARGIN.left, right);
    this.y = range ? scale(range.low, range.high, bottom, MARGIN.top, log) : null;
    const fresh = s("svg", {});
    if (longest.length > 0) fresh.append(...this.axes(range, first, last, right, bottom));
    for (const entry of series) fresh.append(...this.lineOf(entry, bottom));
    if (!range && longest.length > 0) {
      fresh.append(s("text", { class: "axis", x: (MARGIN.left + right) / 2, y: HEIGHT / 2, "text-anchor": "middle" },
        log ? "No value is positive." : "No value is finite."));
    }
    fresh.append(s("g", { "data-key": "cursor" }));
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute("height", HEIGHT);
    this.picture.setAttribute("aria-label", this.summary(first, last));
    morph(this.picture, fresh);
    this.drawCursor();
  }

  summary(first, last) {
    const newest = this.series.map(({ name, samples }) =>
      `${clean(name)} ${samples.length ? valueText(samples.at(-1).raw) : "without a value"}`);
    return `${newest.join(", ")}; steps ${count(first)} to ${count(last)}; arrow keys read the values`;
  }

  axes(range, first, last, right, bottom) {
    const parts = [];
    const rows = !range ? [] : this.log ? logTicks(range.low, range.high, 5) : ticks(range.low, range.high, 4);
    for (const tick of rows) {
      const y = this.y(tick);
      parts.push(s("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }),
        s("text", { class: "axis", x: MARGIN.left - 7, y: y + 4, "text-anchor": "end" }, valueText(tick)));
    }
    for (const tick of ticks(first, last, Math.max(2, (right - MARGIN.left) / 110))) {
      if (!Number.isInteger(tick)) continue;
      parts.push(s("text", { class: "axis", x: this.x(tick), y: HEIGHT - 7, "text-anchor": "middle" }, count(tick)));
    }
    parts.push(s("line", { class: "base", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
    const shown = this.generations.filter((g) => g.generation > 1 && g.first_step >= first && g.first_step <= last);
    for (const g of shown) {
      const x = this.x(g.first_step);
      const classes = g.restarted ? "mark restarted" : "mark";
      parts.push(s("line", { class: classes, x1: x, x2: x, y1: MARGIN.top - 4, y2: bottom }));
    }
    const marks = shown.map((g) => ({ x: this.x(g.first_step), number: g.generation }));
    for (const label of generationLabels(marks, LABEL_ROOM, right)) {
      const ends = label.room < LABEL_ROOM;
      parts.push(s("text", { class: "mark-text", x: label.x + (ends ? -3 : 3), y: MARGIN.top - 4, "text-anchor":
        ends ? "end" : "start" }, label.text));
    }
    return parts;
  }

  lineOf({ tone, samples }, bottom) {
    if (samples.length === 0) return [];
    const drawable = (sample) => sample.value !== null && (!this.log || sample.value > 0);
    const shown = thin(samples, this.x);
    const crosses = [...new Set(shown.filter((sample) => sample.value === null)
      .map((sample) => Math.round(this.x(sample.step) / 9) * 9))];
    const parts = [];
    if (crosses.length > 0) {
      parts.push(s("path", { class: "gap", d: crosses.map((x) => `M${x - 3} ${bottom - 7}l6 6m0 -6l-6 6`).join("") }));
    }
    if (!this.y) return parts;
    const band = bandOf(samples, this.x, this.y, bottom);
    if (band) parts.unshift(s("path", { class: `band tone-${tone}`, d: band }));
    const path = pathOf(shown, this.x, this.y, drawable);
    if (path) parts.push(s("path", { class: `curve tone-${tone}`, d: path }));
    return parts;
  }

  point(event) {
    const box = this.picture.getBoundingClientRect();
    if (this.x) this.move(this.x.invert(((event.clientX - box.left) / box.width) * this.width));
  }

  // To the sample nearest to a step; null: away, and the newest values are shown.
  move(step) {
    const index = step === null ? -1 : nearest(this.longest, step, (sample) => sample.step);
    this.cursor = index < 0 ? null : this.longest[index].step;
    this.drawCursor();
  }

  key(event) {
    const at = this.cursor === null ? this.longest.length : nearest(this.longest, this.cursor, (one) => one.step);
    const far = event.shiftKey ? Math.max(10, Math.floor(this.longest.length / 20)) : 1;
    const to = { ArrowLeft: at - far, ArrowRight: at + far, Home: 0, End: this.longest.length - 1 }[event.key];
    if (event.key === "Escape") this.move(null);
    if (to === undefined || this.longest.length === 0) return;
    event.preventDefault();
    this.move(this.longest[Math.min(this.longest.length - 1, Math.max(0, to))].step);
    this.announce(this.text.textContent);
  }

  drawCursor() {
    const chosen = this.series.map((entry) => ({ entry, sample: this.cursor === null ? entry.samples.at(-1)
      : entry.samples[nearest(entry.samples, this.cursor, (one) => one.step)] }));
    const step = this.cursor ?? this.longest.at(-1)?.step ?? 0;
    const generation = this.generations.findLast((g) => g.first_step < Math.max(1, step));
    const pairs = chosen.map(({ entry, sample }) => h("span", { class: "pair" },
      s("svg", { class: "key", viewBox: "0 0 18 8", "aria-hidden": "true" },
        s("path", { class: `curve tone-${entry.tone}`, d: "M0 4h18" })),
      this.series.length > 1 ? `${clean(entry.name)} ` : null, h("strong", {}, sample ? readOut(sample) : "–")));
    const own = generation && this.generations.length > 1 ? `generation ${generation.generation}` : null;
    morph(this.text, h("div", {}, h("span", { class: "quiet" }, `step ${count(step)}`), " ", pairs, " ",
      own ? h("span", { class: "quiet" }, own) : null));
    const group = this.picture.querySelector('[data-key="cursor"]');
    if (!group) return;
    const fresh = s("g", {});
    if (this.cursor !== null) {
      const x = this.x(this.cursor);
      fresh.append(s("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
      for (const { entry, sample } of chosen) {
        if (!sample || sample.value === null || !this.y || (this.log && sample.value <= 0)) continue;
        const [cx, cy] = [this.x(sample.step), this.y(sample.value)];
        fresh.append(s("circle", { class: `dot tone-${entry.tone}`, r: 3.5, cx, cy }));
      }
    }
    morph(group, fresh);
  }
}

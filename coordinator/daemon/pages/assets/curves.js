// SPDX-License-Identifier: Apache-2.0
// What a job's program reported, as charts: one for each name, or all in one.

import { get, query } from "./api.js";
import { Chart, samplesOf } from "./chart.js";
import { h, slot } from "./dom.js";
import { clean, count, plural } from "./format.js";
import { nothing, partFailure, waiting } from "./notices.js";

const OVERLAP = 256;       // steps that are asked for again: the values of one step may come in several answers
const POINTS_MAX = 6000;   // more than the coordinator keeps one by one: all is asked for again
const TONES = 6;
const charts = new Map(); // key -> Chart, of one job at a time
const shown = { job: null, log: false, together: false };

// Asks for what is new; for all of it after a new generation, which may have undone steps.
export function metricsResource(id, ended) {
  let whole = null;
  const load = async (signal) => {
    const final = ended();
    const last = reached(whole?.series ?? []);
    const from = whole && last > OVERLAP ? last - OVERLAP : undefined;
    const answer = await get(`/api/jobs/${id}/metrics${query({ from })}`, signal);
    whole = from === undefined ? answer : append(whole, answer, from);
    whole ??= await get(`/api/jobs/${id}/metrics`, signal);
    return { ...whole, final };
  };
  return { key: `metrics/${id}`, load, every_ms: 1000, done: (answer) => answer.final };
}

// The step that both the training and its evaluation have reached: an evaluator's steps are those of the state that it
// evaluates, and it is behind.
export function reached(series) {
  const newest = (evaluates) => series.filter((one) => one.name.startsWith("evaluation_") === evaluates)
    .map((one) => one.points.at(-1)?.[0] ?? 0);
  const steps = [newest(false), newest(true)].filter((some) => some.length > 0).map((some) => Math.max(...some));
  return steps.length > 0 ? Math.min(...steps) : 0;
}

// Null: what is known does not go with the answer.
function append(whole, answer, from) {
  const newest = (metrics) => metrics.generations.at(-1)?.generation;
  const same = newest(whole) === newest(answer) && whole.series.length === answer.series.length;
  if (!same) return null;
  const series = answer.series.map((fresh, i) => {
    const known = whole.series[i];
    return { ...fresh, buckets: known.buckets, points: known.points.filter(([step]) => step < from).concat(fresh.points
      .filter(([step]) => step >= from)) };
  });
  const fits = series.every((one, i) => one.name === whole.series[i].name && one.points.length <= POINTS_MAX &&
    one.stride === whole.series[i].stride);
  return fits ? { ...answer, series } : null;
}

function chartOf(key, app) {
  if (!charts.has(key)) charts.set(key, new Chart(app.announce));
  return charts.get(key);
}

export function curves(job, app) {
  if (shown.job !== job.id) charts.clear();
  shown.job = job.id;
  const key = `metrics/${job.id}`;
  const metrics = app.data(key);
  const flip = (field) => {
    shown[field] = !shown[field];
    app.draw();
  };
  const toggle = (name, field) => h("button", { "data-key": field, "aria-pressed": String(shown[field]),
    onclick: () => flip(field) }, name);
  const panel = (...body) => [h("section", { class: "panel", "aria-label": "Curves", "data-key": "curves" },
    h("div", { class: "head" }, h("h2", {}, "Curves"),
      metrics?.series.length > 1 ? toggle("All in one", "together") : null,
      metrics?.series.length > 0 ? toggle("Log scale", "log") : null), body)];
  if (!metrics) return panel(app.error(key) ? partFailure(app.error(key)) : waiting());
  if (metrics.series.length === 0) {
    return panel(nothing("The program has reported no values.", "Each step may report some:",
      h("div", {}, h("pre", {}, "cadre_report(\"loss\", loss);"))));
  }
  const series = metrics.series.map((one, i) => ({ name: one.name, tone: i % TONES, samples: samplesOf(one) }));
  const notes = [
    metrics.refused > 0 ? `${plural(metrics.refused, "value")} had a name beyond the first 16, or one that the ` +
      "evaluator has." : null,
    metrics.lost_bytes > 0 ? `${count(metrics.lost_bytes)} bytes of the file of values were damaged.` : null];
  const { generations } = metrics;
  return panel(shown.together ? together(series, generations, app) : each(series, generations, app),
    notes.some((note) => note) ? h("div", { class: "foot" }, notes) : null);
}

function each(series, generations, app) {
  const columns = Math.max(1, Math.floor((app.width - 18) / 472));
  const whole = app.width - 2 - (app.width < 560 ? 16 : 28);
  const column = (whole - 12 * (columns - 1)) / columns;
  return h("div", { class: "charts" }, series.map((one, i) => {
    const alone = columns > 1 && i === series.length - 1 && i % columns === 0;
    const chart = chartOf(`one/${one.name}`, app);
    const width = (alone ? whole : column) - 22;
    chart.update({ series: [{ ...one, tone: 0 }], generations, log: shown.log, width });
    const name = h("h3", {}, clean(one.name));
    return h("div", { class: alone ? "chart-card is-alone" : "chart-card", "data-key": `card/${one.name}` }, name,
      slot(`one/${one.name}`, chart.element));
  }));
}

function together(series, generations, app) {
  const chart = chartOf("all", app);
  chart.update({ series, generations, log: shown.log, width: app.width - (app.width < 560 ? 40 : 52) });
  return h("div", { class: "charts is-one" }, h("div", { class: "chart-card", "data-key": "card-all" },
    slot("all", chart.element)));
}

// SPDX-License-Identifier: Apache-2.0
// States: each has a colour, a shape and its name, so that none of them has to be known by its colour.

import { h, s } from "./dom.js";

// Strokes in a box of 16.
const SHAPES = {
  ring: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 5v3.2l2 1.6",
  play: "M5 3.2v9.6l7.5-4.8z",
  half: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 2.5v11",
  check: "M3 8.5l3.4 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  bar: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M4.2 4.2l7.6 7.6",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  drain: "M8 2.5v8M4.5 7.5l3.5 3.5l3.5-3.5M3.5 13.5h9",
  away: "M2.5 8h3M10.5 8h3M8 2.5v3M8 10.5v3",
  warn: "M8 2.5l6 11h-12zM8 6.5v3.4M8 11.6v.4",
  question: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.8-1.1 1.6M8 12v.4",
};

// State -> kind (a class of style.css) and shape.
const STATES = {
  queued: ["wait", "ring"], starting: ["wait", "clock"], running: ["run", "play"], ending: ["run", "half"],
  succeeded: ["good", "check"], failed: ["bad", "cross"], cancelled: ["still", "bar"], preempted: ["warn", "pause"],
  ready: ["good", "check"], draining: ["warn", "drain"], away: ["bad", "away"], expected: ["wait", "clock"],
  lost: ["bad", "cross"], exited: ["still", "bar"], proved: ["good", "check"], exact: ["good", "check"],
  "as defined": ["good", "check"], "partly proved": ["warn", "half"], "nothing proved": ["wait", "ring"],
  "not provable": ["wait", "ring"], differs: ["bad", "cross"],
};

export function icon(shape) {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: SHAPES[shape] }));
}

export function badge(state, title) {
  const [kind, shape] = STATES[state] ?? ["wait", "question"];
  return h("span", { class: `badge is-${kind}`, "data-state": state, title }, icon(shape), state);
}

export function warning(text) {
  return h("span", { class: "badge is-warn" }, icon("warn"), text);
}

// SPDX-License-Identifier: Apache-2.0
// Axes: pure functions from ranges to pixels and to the numbers beside an axis.

// Maps the range from `low` to `high` to pixels; with `log` by magnitude (both are positive then).
export function scale(low, high, from, to, log = false) {
  const at = log ? Math.log10 : (value) => value;
  const span = at(high) - at(low) || 1;
  const map = (value) => from + ((at(value) - at(low)) / span) * (to - from);
  map.invert = (pixel) => {
    const value = at(low) + ((pixel - from) / (to - from || 1)) * span;
    return log ? 10 ** value : value;
  };
  return map;
}

// About `wanted` round numbers (1, 2 or 5 times a power of ten) from low to high.
export function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const found = [];
  for (let n = Math.ceil(low / size - 1e-9); n * size <= high + size * 1e-9 && found.length < 50; n++) {
    found.push(Number((n * size).toPrecision(12)));
  }
  return found;
}

// The same for a scale by magnitude: powers of ten, every so many of them, and 2 and 5 times where there are few.
export function logTicks(low, high, wanted) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const factors = last - first <= wanted / 3 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((last - first) / wanted));
  const found = [];
  for (let power = first; power <= last; power += every) {
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(12));
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
    }
  }
  return found.length > 1 ? found : ticks(low, high, wanted);
}

const SPANS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800, 604800, 1209600, 2592000];

// Round times of day here from low_us to high_us, at most about `wanted`.
export function timeTicks(low_us, high_us, wanted) {
  const span_s = (high_us - low_us) / 1e6;
  const size_s = SPANS_S.find((size) => span_s / size <= wanted) ?? SPANS_S.at(-1);
  const zone_s = size_s >= 3600 ? new Date(low_us / 1000).getTimezoneOffset() * 60 : 0;
  const found = [];
  for (let n = Math.ceil((low_us / 1e6 - zone_s) / size_s); found.length < 50; n++) {
    const time_us = Math.round((n * size_s + zone_s) * 1e6);
    if (time_us > high_us) break;
    found.push(time_us);
  }
  return found;
}

// Labels of generations at pixels, `marks` [{ x, number }] in order: those nearer than `room` to one another share one,
// "g2–4", so that none hides another. -> [{ x, text, number, alone, room }], `room` up to the next label or `right`.
export function generationLabels(marks, room, right) {
  const groups = [];
  for (const { x, number } of marks) {
    const last = groups.at(-1);
    if (last && x - last.x < room) last.to = number;
    else groups.push({ x, number, to: number });
  }
  return groups.map(({ x, number, to }, i) => ({ x, number, alone: number === to,
    text: number === to ? `g${number}` : `g${number}–${to}`, room: (groups[i + 1]?.x ?? right) - x }));
}

// The index of the item whose number is nearest to `wanted`; `items` are in order by `number`. -1: there is none.
export function nearest(items, wanted, number) {
  let low = 0;
  let high = items.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (number(items[middle]) < wanted) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && wanted - number(items[low - 1]) <= number(items[low]) - wanted) low--;
  return items.length ? low : -1;
}

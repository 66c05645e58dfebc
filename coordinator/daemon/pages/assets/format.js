// SPDX-License-Identifier: Apache-2.0
// Values as text: pure functions, the same forms as the command's listings.

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const CONTROL_BUT_TAB = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function escaped(character) {
  const code = character.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

// Text of a job for people: control characters and marks of direction are shown, not acted on.
export function clean(text) {
  return String(text ?? "").replace(CONTROL, escaped);
}

// The same of a line of a log, which may have tabs.
export function cleanLogText(text) {
  return String(text ?? "").replace(CONTROL_BUT_TAB, escaped);
}

// 12345 -> "12,345"
export function count(value) {
  return Number(value ?? 0).toLocaleString("en-US", { maximumFractionDigits: 0 });
}

// "1 task", "2 tasks"
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = Number(value ?? 0);
  for (; size >= 1024 && unit + 1 < units.length; unit++) size /= 1024;
  return unit === 0 ? `${size} B` : `${(Math.floor(size * 10) / 10).toFixed(1)} ${units[unit]}`;
}

// Of a task or host: how many of its CPUs it uses, "1.98". Null: unknown.
export function cores(usage) {
  return typeof usage?.cpu_thousandths === "number" ? (usage.cpu_thousandths / 1000).toFixed(2) : null;
}

// Of a task or host: what its GPUs do, "97%, 70.0 GiB", or the one of these that is known. Null: unknown.
export function gpuUse(usage) {
  const known = [];
  if (typeof usage?.gpu_percent === "number") known.push(`${usage.gpu_percent}%`);
  if (typeof usage?.gpu_memory_bytes === "number") known.push(bytes(usage.gpu_memory_bytes));
  return known.length > 0 ? known.join(", ") : null;
}

// How long ago, or how old: "95 s", "3 min", "5 h", "4 d".
export function age(us) {
  const seconds = Math.max(0, Math.floor(us / 1e6));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// How long: "350 ms", "4.2 s", "3:07 min", "1:02:09 h".
export function duration(us) {
  const seconds = Math.floor(Math.max(0, us) / 1e6);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds === 0) return `${Math.floor(Math.max(0, us) / 1e3)} ms`;
  if (seconds < 60) return `${(Math.floor(us / 1e5) / 10).toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
  return `${Math.floor(seconds / 3600)}:${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)} h`;
}

// The time of day here, "14:03:59"; `exact`: with milliseconds.
export function clock(us, exact = false) {
  if (!us) return "–";
  const date = new Date(us / 1000);
  const two = (number) => String(number).padStart(2, "0");
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return exact ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

// "2026-11-29 14:03:59", here.
export function moment(us) {
  if (!us) return "–";
  const date = new Date(us / 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(us)}`;
}

// The same in UTC, for titles.
export function utc(us) {
  return us ? `${new Date(us / 1000).toISOString().replace("T", " ").replace("Z", "")} UTC` : "";
}

// A value that a program reported: six digits that count; JSON has NaN and infinities as text, or null.
export function value(number) {
  if (number === null || number === undefined) return "–";
  if (typeof number === "string") return number === "Infinity" ? "∞" : number === "-Infinity" ? "−∞" : number;
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "∞" : "−∞";
  if (Number.isInteger(number) && Math.abs(number) < 1e9) return number.toLocaleString("en-US");
  return String(Number(number.toPrecision(6)));
}

// Which part of a job's work is done, of 0 to 1, or null where that is unknown; as the command's DONE.
export function fractionDone(job) {
  const p = job.progress;
  if (job.state === "succeeded" && p) return 1;
  if (!p || !p.epochs) return null;
  return Math.min(1, (p.epoch + (p.steps > 0 && p.step <= p.steps ? p.step / p.steps : 0)) / p.epochs);
}

// "41%", or "–".
export function donePercent(job) {
  const part = fractionDone(job);
  return part === null ? "–" : `${Math.floor(part * 100)}%`;
}

// SPDX-License-Identifier: Apache-2.0
// Which answers the view wants, each asked again some time after it came, or later where the coordinator asks for that.
// Nothing is asked while the tab is hidden.
// When the coordinator does not answer, the times between two tries double up to 10 s, and `away` says since when.

import { get, pollMs } from "./api.js";

const BACKOFF_MAX_MS = 10000;

export class Poller {
  // onChange() is called after each answer, failure, or change of `away`.
  constructor(onChange) {
    this.onChange = onChange;
    this.resources = new Map();
    this.results = new Map();
    this.failures = 0;
    this.away = null; // or { since_ms, retry_ms, message }
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
  }

  // The resources of the view from now on: { key, path or load(signal), every_ms, done(data) }. One whose key was
  // wanted before keeps its result and its time. `done`: no more is to be asked once it returns true.
  want(resources) {
    const keys = new Set(resources.map((resource) => resource.key));
    for (const [key, entry] of this.resources) {
      if (keys.has(key)) continue;
      this.stop(entry);
      this.resources.delete(key);
      this.results.delete(key);
    }
    for (const resource of resources) {
      if (this.resources.has(resource.key)) continue;
      const entry = { ...resource, timer: 0, abort: null };
      this.resources.set(resource.key, entry);
      this.ask(entry);
    }
  }

  data(key) {
    return this.results.get(key)?.data;
  }

  error(key) {
    return this.results.get(key)?.error ?? null;
  }

  // Asks again at once: after an action, or when the user says so. No key: all.
  refresh(key) {
    for (const entry of this.resources.values()) {
      if (key !== undefined && entry.key !== key) continue;
      this.stop(entry);
      this.ask(entry);
    }
  }

  stop(entry) {
    clearTimeout(entry.timer);
    entry.abort?.abort();
    entry.abort = null;
  }

  visibilityChanged() {
    if (!document.hidden) this.refresh();
    else for (const entry of this.resources.values()) this.stop(entry);
  }

  async ask(entry) {
    if (document.hidden) return;
    const abort = new AbortController();
    entry.abort = abort;
    let delay_ms = entry.every_ms ?? 1000;
    try {
      const load = entry.load ?? ((signal) => get(entry.path, signal));
      const data = await load(abort.signal);
      if (abort.signal.aborted) return;
      this.results.set(entry.key, { data, error: null });
      this.failures = 0;
      this.away = null;
      delay_ms = entry.done?.(data) ? null : Math.max(delay_ms, pollMs());
    } catch (error) {
      if (abort.signal.aborted) return;
      delay_ms = this.failed(entry, error, delay_ms);
    }
    entry.abort = null;
    if (delay_ms !== null) entry.timer = setTimeout(() => this.ask(entry), delay_ms);
    this.onChange();
  }

  // How long to wait. What was known stays shown while there is no answer.
  failed(entry, error, delay_ms) {
    if (!error.away && error.status === undefined) throw error; // a defect of this page: the console has it
    const known = this.results.get(entry.key)?.data;
    this.results.set(entry.key, { data: error.away || error.status === 503 ? known : undefined, error });
    if (!error.away) return Math.max(delay_ms, error.status === 429 || error.status === 503 ? 3000 : 5000);
    this.failures++;
    const wait_ms = Math.min(BACKOFF_MAX_MS, 1000 * 2 ** Math.min(4, Math.floor(this.failures / 2)));
    this.away = { since_ms: this.away?.since_ms ?? Date.now(), retry_ms: Date.now() + wait_ms, message: error.message };
    return wait_ms;
  }
}

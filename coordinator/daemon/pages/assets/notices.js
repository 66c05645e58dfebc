// SPDX-License-Identifier: Apache-2.0
// What stands where there is nothing to show: an answer that has not come, a refusal, an empty list.

import { icon } from "./badges.js";
import { h } from "./dom.js";
import { clean } from "./format.js";

export function waiting() {
  return h("div", { class: "empty", "aria-busy": "true" }, "Asking the coordinator …");
}

export function nothing(title, ...rest) {
  return h("div", { class: "empty" }, h("strong", {}, title), rest);
}

// An ApiError as a sentence, with the next step where it is known.
export function failure(error) {
  if (error.status === 401 || error.status === 403) {
    return nothing("This page may not read the cluster.", clean(error.message),
      h("div", {}, "Print an address with a login token, and open it:"), h("div", {}, h("pre", {}, "cadre dashboard")));
  }
  return nothing(error.status === 404 ? "There is none." : "The coordinator refused this.", clean(error.message));
}

// The same of a part of a job that is there: the part may be one that an earlier coordinator does not answer.
export function partFailure(error) {
  return error.status === 404 ? nothing("Not available from this coordinator.", clean(error.message)) : failure(error);
}

// What is true of the whole page: the coordinator is away, or refuses changes for want of space.
export function banner(app) {
  const away = app.poller.away;
  if (away) {
    const seconds = Math.max(0, Math.ceil((away.retry_ms - Date.now()) / 1000));
    const since = Math.max(0, Math.floor((Date.now() - away.since_ms) / 1000));
    return h("div", { class: "banner", "data-key": "away" }, icon("away"),
      h("span", {}, `The coordinator at ${location.host} does not answer.`),
      h("span", { class: "mono", "aria-hidden": "true" }, `${since} s · again in ${seconds} s`),
      h("button", { onclick: () => app.poller.refresh() }, "Try now"));
  }
  const full = app.data("cluster")?.disk_full;
  if (full) {
    return h("div", { class: "banner is-warn", "data-key": "disk" }, icon("warn"), h("span", {},
      typeof full === "string" ? clean(full) : "The coordinator's disk is full: submissions and uploads are refused."));
  }
  return null;
}

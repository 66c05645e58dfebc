// SPDX-License-Identifier: Apache-2.0
// Requests to the coordinator that served this page. A login token that `cadre dashboard` put into the fragment is
// kept for this tab only, and goes into a header, never into an address.

const KEY = "cadre.token";
const DEADLINE_MS = 15000;

let poll_ms = 0;

// How long the coordinator, which knows how many browsers it serves, asks those that poll to wait; 0: as they like.
export function pollMs() {
  return poll_ms;
}

// Takes the token out of "#/token=..." (or "#token=..."), so that it is in no history entry and no bookmark.
export function takeToken() {
  const found = /^#\/?token=([^&/]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + "#/jobs");
}

export class ApiError extends Error {
  // status 0: no answer came.
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
  get away() {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
}

async function request(path, options, signal) {
  const headers = { Accept: "application/json", ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin",
      redirect: "error", signal: signal ? AbortSignal.any([signal, deadline]) : deadline });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "UNAVAILABLE", "The coordinator does not answer.");
  }
  if (response.ok) poll_ms = Number(response.headers.get("Cadre-Poll-Ms")) || 0;
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (response.ok) throw new ApiError(0, "UNAVAILABLE", `The answer to ${path} ended before it was whole.`);
  }
  if (!response.ok) {
    throw new ApiError(response.status, body?.code ?? "UNKNOWN", body?.message ?? `HTTP ${response.status}`);
  }
  return body;
}

// The JSON at a path; throws an ApiError, or the signal's reason.
export function get(path, signal) {
  return request(path, {}, signal);
}

// Changes something; the coordinator checks whether the caller may.
export function post(path, body = {}) {
  return request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

// "?limit=50&state=live", without what is null, undefined or "".
export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

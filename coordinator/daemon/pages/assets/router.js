// SPDX-License-Identifier: Apache-2.0
// What is shown, as the fragment of the address: "#/jobs/3/logs?task=1". Links are plain anchors, so the back button,
// a second tab and a bookmark work.

// -> { view, id, tab, query }; anything unknown is the list of jobs.
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", id = "", tab = ""] = path.split("/").map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (view === "jobs" && /^[0-9]{1,19}$/.test(id)) return { view: "job", id, tab: tab || "ledger", query };
  if (view === "workers" && id !== "") return { view: "worker", id, tab: "", query };
  if (view === "workers") return { view: "workers", id: "", tab: "", query };
  return { view: "jobs", id: "", tab: "", query };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// link(["jobs", 3, "logs"], {task: 1}) -> "#/jobs/3/logs?task=1"; of values null, undefined and "" are left out.
export function link(path, values = {}) {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = pairs.length ? `?${new URLSearchParams(pairs)}` : "";
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${search}`;
}

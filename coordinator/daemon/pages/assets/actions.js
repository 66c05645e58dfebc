// SPDX-License-Identifier: Apache-2.0
// What changes something: cancel a job, drain a worker. Each is confirmed in a dialog, and offered only to a caller
// whose role allows it; the coordinator checks the role again.

import { post } from "./api.js";
import { h } from "./dom.js";
import { clean } from "./format.js";

// action: "cancel" or "drain".
export function may(app, action) {
  return app.data("cluster")?.may?.[action] === true;
}

export function askCancel(app, job) {
  const name = `job ${job.id}, "${clean(job.name)}"`;
  confirm(app, { title: `Cancel ${name}?`, does: "Cancel the job", keeps: "Let it run",
    text: "Its tasks are asked to end, and are killed when they do not. This cannot be undone; logs and outputs stay.",
    act: () => post(`/api/jobs/${job.id}/cancel`), done: `Job ${job.id} is being cancelled.` });
}

export function askDrain(app, worker, ends) {
  const name = clean(worker.name);
  const path = `/api/workers/${encodeURIComponent(worker.name)}/${ends ? "undrain" : "drain"}`;
  confirm(app, ends
    ? { title: `Undrain worker ${name}?`, does: "Undrain", keeps: "Leave it", text: "It gets tasks again.",
      act: () => post(path), done: `Worker ${name} takes tasks again.` }
    : { title: `Drain worker ${name}?`, does: "Drain", keeps: "Leave it",
      text: "It gets no new tasks; those on it are finished or handed over to other workers.",
      act: () => post(path), done: `Worker ${name} drains.` });
}

function confirm(app, { title, text, does, keeps, act, done }) {
  const dialog = document.getElementById("dialog");
  const problem = h("p", { class: "sentence", role: "alert" });
  const agree = h("button", { class: "strong", onclick: async () => {
    agree.disabled = true;
    try {
      await act();
      dialog.close();
      app.announce(done);
      app.poller.refresh();
    } catch (error) {
      problem.textContent = clean(error.message);
      agree.disabled = false;
    }
  } }, does);
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), h("p", {}, text), problem,
    h("div", { class: "buttons" }, h("button", { autofocus: true, onclick: () => dialog.close() }, keeps), agree));
  dialog.showModal();
}

// SPDX-License-Identifier: Apache-2.0
// The page's start and its one flow: an answer comes, the view of the fragment is built from what is known, and the
// page is changed where it differs.

import { takeToken } from "./api.js";
import { badge } from "./badges.js";
import { h, morph } from "./dom.js";
import { clean, clock, count, utc } from "./format.js";
import { jobView } from "./job.js";
import { jobsView } from "./jobs.js";
import { help, listenToKeys } from "./keys.js";
import { banner } from "./notices.js";
import { Poller } from "./poll.js";
import { link, parse } from "./router.js";
import { certificate, workerView, workersView } from "./workers.js";

const VIEWS = { jobs: jobsView, job: jobView, workers: workersView, worker: workerView };
const main = document.getElementById("main");

class App {
  constructor() {
    takeToken();
    this.announce = (text) => { document.getElementById("announcer").textContent = text; };
    this.poller = new Poller(() => this.answered());
    this.route = parse(location.hash);
    this.clockOffset_us = 0; // of the coordinator's clock, from ours
    this.lastState = new Map();
    addEventListener("hashchange", () => this.routed());
    addEventListener("resize", () => this.draw());
    listenToKeys(this);
    document.querySelector(".skip").onclick = (event) => {
      event.preventDefault();
      main.focus();
    };
    setInterval(() => document.hidden || this.draw(), 1000); // ages and times left
    this.want();
    this.draw();
  }

  data(key) { return this.poller.data(key); }
  error(key) { return this.poller.error(key); }
  now_us() { return Date.now() * 1000 + this.clockOffset_us; }
  get width() { return main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft); }

  go(hash) {
    location.hash = hash;
  }

  want() {
    const own = VIEWS[this.route.view].resources(this.route, this);
    this.poller.want([{ key: "cluster", path: "/api/cluster", every_ms: 1000 }, ...own]);
  }

  routed() {
    takeToken();
    const before = this.route;
    this.route = parse(location.hash);
    this.want();
    this.draw();
    if (before.view === this.route.view && before.id === this.route.id) return;
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }

  answered() {
    const time_us = this.data("cluster")?.time_us;
    if (time_us && time_us !== this.clusterTime_us) {
      this.clusterTime_us = time_us;
      this.clockOffset_us = time_us - Date.now() * 1000;
    }
    this.announceState();
    this.draw();
  }

  // A change of the state of the job in view is announced once; the numbers that change all the time are not.
  announceState() {
    const job = this.route.view === "job" ? this.data(`job/${this.route.id}`) : null;
    if (!job) return;
    const known = this.lastState.get(job.id);
    const state = `${job.state}, generation ${job.generation}`;
    if (known && known !== state) this.announce(`Job ${job.id}: ${state}. ${clean(job.message)}`);
    this.lastState = new Map([[job.id, state]]);
  }

  draw() {
    const view = VIEWS[this.route.view];
    document.title = `${view.title(this.route, this)} – Cadre`;
    morph(document.getElementById("nav"), h("nav", {}, this.links()));
    morph(document.getElementById("coordinator"), h("div", {}, this.coordinator()));
    morph(document.getElementById("banner"), h("div", {}, banner(this)));
    morph(main, h("main", {}, view.render(this.route, this)));
  }

  links() {
    const cluster = this.data("cluster");
    const here = this.route.view;
    const one = (name, path, current, number) => h("a", { href: link([path]), "aria-current": current ? "page" : null },
      name, number === undefined ? null : h("span", { class: "quiet" }, ` ${count(number)}`));
    const live = cluster && cluster.jobs_running + cluster.jobs_queued;
    return [one("Jobs", "jobs", here === "jobs" || here === "job", live),
      one("Workers", "workers", here === "workers" || here === "worker", cluster && cluster.workers_ready)];
  }

  coordinator() {
    const cluster = this.data("cluster");
    const version = cluster?.version;
    const ends = cluster?.tls && certificate(cluster.tls, this);
    return [this.poller.away ? badge("away", "The coordinator does not answer") : null,
      h("span", {}, location.host), version ? h("span", { class: "only-wide" }, `version ${clean(version)}`) : null,
      ends ? h("span", {}, "certificate ", ends) : null,
      cluster ? h("span", { title: `the coordinator's clock: ${utc(this.now_us())}` }, clock(this.now_us())) : null,
      h("button", { "data-key": "help", "aria-label": "Keys", title: "Keys", onclick: help }, "?")];
  }
}

new App();

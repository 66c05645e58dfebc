// SPDX-License-Identifier: Apache-2.0
// What a job's history says, as shapes for the ledger's picture. Pure: events in, spans, generations and marks out.

import { clean, count, duration, plural } from "./format.js";

// The events of /api/jobs/ID/history as { begin_us, end_us, tasks, generations, checkpoints, stalls, course }:
// tasks: [{ task, spans, stalls, noteworthy }], a span { from_us, joined_us, to_us, worker, incarnation, outcome },
//   outcome "open", "lost", "failed" or "ended", joined_us when the first generation with it began;
// generations: [{ number, from_us, to_us, first, reached, counted, undone, restarted, tasks, roster }]: the steps from
//   `first` to before `counted` count, those from there to `reached` were undone;
// checkpoints: [{ time_us, position, lost }]; course: [{ time_us, position }], how many steps are committed.
export function readLedger(events, job, now_us) {
  const ledger = { begin_us: events[0]?.time_us ?? job.submitted_us, end_us: job.final ? job.ended_us : now_us,
    ending: false, tasks: new Map(), generations: [], checkpoints: [], stalls: [], course: [] };
  for (const event of events) {
    ledger.end_us = Math.max(ledger.end_us, event.time_us);
    addSteps(ledger, event);
    (READERS[event.kind] ?? (() => {}))(ledger, event);
  }
  finish(ledger, job);
  return ledger;
}

const READERS = {
  task_started(ledger, event) {
    const task = taskOf(ledger, event.task);
    closeSpan(task, event.time_us, "lost");
    task.spans.push({ from_us: event.time_us, joined_us: null, to_us: null, worker: event.worker,
      incarnation: event.incarnation, outcome: "open" });
    task.noteworthy ||= task.spans.length > 1;
  },
  task_ended(ledger, event) {
    const failed = !ledger.ending && (event.exit_code > 0 || event.exit_signal > 0); // an ending job stops its tasks
    const task = taskOf(ledger, event.task);
    closeSpan(task, event.time_us, failed ? "failed" : "ended");
    task.noteworthy ||= failed;
  },
  task_lost(ledger, event) {
    const task = taskOf(ledger, event.task);
    closeSpan(task, event.time_us, "lost");
    task.noteworthy = true;
  },
  generation(ledger, event) {
    const before = ledger.generations.at(-1);
    if (before) {
      before.to_us = event.time_us;
      before.reached = Math.max(before.first, (event.position ?? 0) + (event.undone ?? 0));
    }
    for (const generation of ledger.generations) generation.counted = Math.min(generation.counted, event.position);
    ledger.generations.push({ number: event.generation, from_us: event.time_us, to_us: null, first: event.position,
      reached: event.position, counted: Infinity, undone: event.undone ?? 0, restarted: event.restarted ?? false,
      tasks: event.tasks ?? 0, roster: event.roster ?? "" });
    for (const task of ledger.tasks.values()) {
      const span = task.spans.at(-1);
      if (span && span.to_us === null) span.joined_us ??= event.time_us;
    }
  },
  ending(ledger) {
    ledger.ending = true;
  },
  checkpoint: (ledger, { time_us, position }) => ledger.checkpoints.push({ time_us, position, lost: false }),
  checkpoint_lost: (ledger, { time_us, position }) => ledger.checkpoints.push({ time_us, position, lost: true }),
  stalled(ledger, event) {
    const open = ledger.stalls.filter((stall) => stall.to_us === null); // it is another task now
    for (const stall of open) stall.to_us = event.time_us;
    const from_us = event.time_us - (open.length > 0 ? 0 : event.waited_us ?? 0);
    const stall = { from_us, to_us: null, position: event.position, task: event.task };
    ledger.stalls.push(stall);
    if (isTask(event.task)) {
      taskOf(ledger, event.task).stalls.push(stall);
      taskOf(ledger, event.task).noteworthy = true;
    }
  },
  went_on(ledger, event) {
    for (const stall of ledger.stalls) stall.to_us ??= event.time_us;
  },
};

export function isTask(task) {
  return task !== null && task !== undefined;
}

function taskOf(ledger, task) {
  if (!ledger.tasks.has(task)) ledger.tasks.set(task, { task, spans: [], stalls: [], noteworthy: false });
  return ledger.tasks.get(task);
}

function closeSpan(task, time_us, outcome) {
  const span = task.spans.at(-1);
  if (span && span.to_us === null) Object.assign(span, { to_us: time_us, outcome });
}

// A generation that undoes steps is a fall of the course: from where the one before it was to where it resumes.
function addSteps(ledger, event) {
  if (!Number.isFinite(event.position) || event.kind === "checkpoint_lost" || event.kind === "halted") return;
  const last = ledger.course.at(-1);
  const { time_us, position } = event;
  if (event.kind === "generation") {
    const reached = Math.max(last?.position ?? 0, position + (event.undone ?? 0));
    if (last && reached !== position) ledger.course.push({ time_us, position: reached });
    ledger.course.push({ time_us, position });
  } else if (event.kind !== "checkpoint" || !last || position > last.position) {
    ledger.course.push({ time_us, position: last ? Math.max(last.position, position) : position });
  }
}

function finish(ledger, job) {
  const last = ledger.course.at(-1);
  const position = Math.max(job.position, last?.position ?? 0);
  ledger.course.push({ time_us: ledger.end_us, position });
  const newest = ledger.generations.at(-1);
  if (newest) {
    newest.reached = Math.max(newest.first, position);
    newest.to_us = ledger.end_us;
  }
  for (const generation of ledger.generations) {
    generation.counted = Math.max(generation.first, Math.min(generation.counted, generation.reached));
  }
  ledger.tasks = [...ledger.tasks.values()].sort((a, b) => a.task - b.task);
  ledger.falls = fallsOf(ledger.course);
}

// Each fall of the course as the points of the area of undone steps: back to where the course first was as high as
// it is after the fall.
function fallsOf(course) {
  const falls = [];
  for (let i = 1; i < course.length; i++) {
    const low = course[i].position;
    if (low >= course[i - 1].position) continue;
    const area = [{ time_us: course[i].time_us, position: low }];
    let j = i - 1;
    for (; j >= 0 && course[j].position > low; j--) area.push(course[j]);
    if (j >= 0) {
      const [a, b] = [course[j], course[j + 1]];
      const part = b.position > a.position ? (low - a.position) / (b.position - a.position) : 1;
      area.push({ time_us: a.time_us + part * (b.time_us - a.time_us), position: low });
    }
    falls.push(area);
  }
  return falls;
}

const NAMES = {
  submitted: "Submitted", started: "Placed", task_started: "Task started", task_ended: "Task ended",
  task_lost: "Task lost", generation: "Generation", checkpoint: "Checkpoint", checkpoint_lost: "Checkpoint lost",
  stalled: "Stalled", went_on: "Went on", halted: "Halted", drained: "Drained", preempted: "Preempted",
  diverged: "Diverged", ending: "Ending", ended: "Ended", coordinator_restarted: "Coordinator restarted",
};

export function kindName(kind) {
  return NAMES[kind] ?? clean(kind).replaceAll("_", " ");
}

// One event as a sentence: the coordinator's own where it has one.
export function describe(event) {
  const where = event.worker ? ` on ${clean(event.worker)}` : "";
  const task = isTask(event.task) ? `task ${event.task}` : "a task";
  const own = event.text ? clean(event.text) : "";
  switch (event.kind) {
    case "task_started": return `${task} started${where}, incarnation ${event.incarnation}`;
    case "task_ended": return own ? `${task}${where}: ${own}` : `${task}${where} ended, ${exitOf(event)}`;
    case "task_lost": return own || `${task}${where} was lost`;
    case "generation": return generationText(event, own);
    case "checkpoint": return own || `the state behind step ${count(event.position)} was published`;
    case "stalled": return own || `step ${count(event.position)} waits for ${task}${where}`;
    case "went_on": return own || `after ${duration(event.waited_us ?? 0)}`;
    default: return own || (where ? where.trim() : kindName(event.kind).toLowerCase());
  }
}

function generationText(event, own) {
  const does = event.restarted ? "begin again at" : event.generation > 1 ? "go on from" : "begin at";
  const undone = event.undone > 0 ? `${plural(event.undone, "step")} undone` : "";
  const first = `${plural(event.tasks ?? 0, "task")} ${does} step ${count(event.position)}`;
  return [own || first, undone].filter((text) => text).join("; ");
}

function exitOf(event) {
  return event.exit_signal > 0 ? `killed by signal ${event.exit_signal}` : `exit status ${event.exit_code ?? 0}`;
}

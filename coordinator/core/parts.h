/* SPDX-License-Identifier: Apache-2.0
 * By what the files of the core use each other: a section for each file. */
#ifndef CADRE_COORDINATOR_CORE_PARTS_H
#define CADRE_COORDINATOR_CORE_PARTS_H

#include "coordinator/core/state.h"

/* core.c */
/* A new action of the step, zeroed but for its type. */
struct core_action *action_add(struct core *core, enum core_action_type type);
/* A new record of the job. */
struct core_record *record_add(
    struct core *core, const struct job *job, enum core_record_type type, bool sync);
size_t actions_left(const struct core *core);

/* words.c */
/* "task 2"; of a crew "ps 1 (slot 4)" */
void task_title(const struct job *job, uint32_t slot, struct text *text);
/* "task 2 on worker b" */
void task_name(const struct core *core, const struct job *job, uint32_t slot, struct text *text);
/* "10 s", "1500 ms" */
void text_time(struct text *text, uint64_t us);
/* The same for what a person chose: "2 h", "90 min", "45 s" */
void text_span(struct text *text, uint64_t us);
/* "1 step", "4 steps" */
void text_count(struct text *text, uint64_t count, const char *one, const char *many);
/* "Killed"; NULL for a number without a name. */
const char *signal_name(int32_t signal);

/* workers.c */
void worker_heard(struct core *core, uint32_t worker);
void worker_hello(struct core *core, struct link_id link, const struct agent_hello *hello);
void worker_link_down(struct core *core, struct link_id link);
/* Its stream is ended, and is told why; it is away. */
void worker_hang_up(struct core *core, uint32_t worker, const char *sentence);
/* For good: its tasks are lost, it is forgotten. `how` continues "was lost with worker b, which
 * ...". */
void worker_lose(struct core *core, uint32_t worker, const char *how);
/* One that is known from the store: away, and its lease runs. NONE: there is no room. */
uint32_t worker_expect(struct core *core, const char *name);
uint32_t worker_by_name(const struct core *core, const char *name);
uint32_t worker_by_link(const struct core *core, struct link_id link);
/* Counts what it offers to the queue anew. */
void worker_offer(struct core *core, uint32_t worker);
/* Whether its slots have the GPUs that the job's tasks need. */
bool worker_serves(const struct core *core, uint32_t worker, const struct job *job);
/* The task is to be ended on this stream as soon as there is room. The ring has room. */
void stray_add(struct core *core, struct link_id link, struct task_ref task);

/* drain.c */
/* Whether some of its tasks may be on workers that drain. */
void drain_note(struct core *core, struct job *job, bool draining);
void worker_draining(struct core *core, uint32_t worker);
void worker_drain(struct core *core, const struct core_drain *drain);
/* Nobody says any more that it is to be empty: it takes tasks again. */
void drain_ends(struct core *core, uint32_t worker);
/* That a client asked for; NULL: none did. */
const struct core_drained *drain_of(const struct core *core, const char *worker);
/* After a start of the coordinator: a drain; and a job, which may have tasks on such workers. */
void drain_restore(struct core *core, const struct core_drained *drained);
void drain_restored(struct core *core, struct job *job);
/* Whether the task's worker drains. */
bool task_drains(const struct core *core, const struct job *job, const struct task *task);
/* Whether the members on draining workers can go now: enough others are left, or there is room for
 * them elsewhere while some stay. *ret_stuck: they cannot, and the job has to leave with them. */
bool drain_possible(struct core *core, struct job *job, bool *ret_stuck);
/* Members did not come to the edge of a step in time: those that drain are lost. */
void drain_over(struct core *core, struct job *job);

/* party.c */
struct party *job_party(const struct core *core, const struct job *job, uint32_t party);
/* The job's party on the worker, NONE when it has none. */
uint32_t party_find(const struct core *core, const struct job *job, uint32_t worker);
/* The task is placed there. */
void party_enter(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
/* The task has no place any more; a party without tasks is gone. */
void party_leave(struct core *core, struct job *job, uint32_t slot);
/* The slots of the job's party on a worker, one after the other until NONE, while what is done with
 * each may empty slots: then it begins anew, and those left are met again. */
uint32_t party_first(const struct core *core, const struct job *job, uint32_t worker);
uint32_t party_next(const struct core *core, const struct job *job, uint32_t worker, uint32_t slot);
/* Its worker is lost: it keeps its tasks, and nobody hears of it. */
void party_orphan(struct core *core, struct job *job, uint32_t party);
/* Its worker is to be told to start those of its tasks that it does not have. */
void party_again(struct core *core, struct job *job, uint32_t party);

/* tasks.c: facts */
struct task *job_task(const struct core *core, const struct job *job, uint32_t slot);
struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot);
/* The task that `ref` names on this worker: NULL when there is none, or it is another incarnation,
 * or lost. */
struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job);
void task_move(struct job *job, struct task *task, enum task_state state);
/* An empty slot. */
void task_clear(struct task *task);
/* Gives it a place. */
void task_place(
    struct core *core, struct job *job, uint32_t slot, uint32_t worker, uint64_t incarnation);
/* It said hello. */
void task_joins_in(struct job *job, struct task *task);
/* A joiner waits at a step of the stream. */
void task_waits_to_join(struct job *job, struct task *task, uint32_t stream);
/* A frozen member said where it stands. */
void task_reports(struct job *job, struct task *task, const struct task_report *report);
/* Its worker is not connected: whether the process still stands where it said is known when the
 * worker is back. */
void task_has_to_report_again(struct job *job, struct task *task);
/* In this generation's roster. */
void task_enrols(struct core *core, struct job *job, uint32_t slot, uint32_t rank);
/* Not in it any more. */
void task_resigns(struct core *core, struct job *job, uint32_t slot);
/* It runs, and is told to end: nothing that it says counts any more (rule 7). */
void task_dismiss(struct core *core, struct job *job, uint32_t slot, enum dismissal why);
/* It is gone through no fault of its own: it gets another place also before the first plan. */
void task_owe(struct job *job, struct task *task);
/* Its slot is empty again if nothing of it is left and the job goes on. */
void task_vacate(struct core *core, struct job *job, uint32_t slot);

/* lives.c: what agents report of tasks */
void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started);
void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone);
void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected);
void task_said(struct core *core, uint32_t worker, const struct agent_said *said);
/* `how` continues "was lost with worker b, which ...". */
void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how);

/* jobs.c */
void job_submit(struct core *core, const struct core_submit *submit);
void job_cancel(struct core *core, const struct core_cancel *cancel);
void call_answer(struct core *core, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *sentence);
struct job *job_find(const struct core *core, struct job_id id);
uint32_t job_index(const struct core *core, const struct job *job);
/* A queued job; there is room for it. */
struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec);
void job_forget(struct core *core, struct job *job);
void job_move(struct core *core, struct job *job, enum job_state state);
/* Notes what is to be said. */
void job_due(struct core *core, struct job *job, uint32_t due);
/* Whether a job of so many tasks can be held; else `text` says why not. */
bool job_fits(const struct core *core, uint32_t tasks, char text[LIMIT_TEXT_BYTES]);

/* queue.c */
/* In front of all of a lower priority, and of those of its own that came later. */
void job_line_up(struct core *core, struct list *list, const struct job *job);
void queue_add(struct core *core, struct job *job);
void queue_remove(struct core *core, struct job *job);
/* The first job that the cluster could hold if it were empty; NONE when there is none. */
uint32_t queue_head(const struct core *core);
/* How many are before the job, which is queued. */
uint32_t queue_before(const struct core *core, const struct job *job);
/* The head is found without a walk until the queue or the cluster changes. */
void queue_settle_head(struct core *core);
/* And so is how many are before a job: walks the queue. */
void queue_settle(struct core *core);
/* What does not hold of it, or NULL. */
const char *queue_fault(const struct core *core);

/* offers.c */
void offers_open(struct core *core);
/* The worker's free slots, or their GPUs, changed. */
void offers_changed(struct core *core, uint32_t worker);
/* The worker that has most free slots with so many GPUs, the oldest of equals; NONE: none has. */
uint32_t offers_best(const struct core *core, uint32_t gpus);
/* For the invariants. */
const char *offers_fault(const struct core *core);

/* placement.c */
/* Places empty slots and the queue's head as long as there is room to say so. */
void placement_run(struct core *core);
/* Slots on which the job's tasks may be placed: of the cluster if it were empty, and now. */
uint32_t placement_total(const struct core *core, const struct job *job);
uint32_t placement_free(const struct core *core, const struct job *job);
/* Gives places to so many empty slots, for which there is room; `placed` may be NULL. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));
/* "waits for 3 free slots, 1 of 2 is free" */
void placement_text(const struct core *core, const struct job *job, char text[LIMIT_TEXT_BYTES]);

/* vacancy.c */
/* Whether the job has empty slots that could be filled now is looked at anew. */
void vacancy_note(struct core *core, struct job *job);
/* Fills empty slots: those that jobs need to go on, or also those that make them larger. */
void vacancy_run(struct core *core, bool grow);
/* Slots that were left alone, because a joiner found nothing to do, are looked at again. */
void vacancy_reopen(struct core *core, struct job *job);
/* How many more tasks it needs to go on. */
uint32_t vacancy_needed(const struct core *core, const struct job *job);

/* generation.c: hellos and reports */
void phase_move(struct job *job, enum phase phase);
void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello);
/* No step of the stream's epoch is left: who waits for one hears where the streams stand. */
void generation_outdate(struct core *core, struct job *job, uint32_t stream);
void generation_join(
    struct core *core, struct job *job, uint32_t slot, const struct task_join *join);
void generation_report(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);
/* Arms the deadline for the hellos that are missing, once all tasks run and one has joined. */
void generation_await(struct core *core, struct job *job);
/* That deadline passed: the job fails and names who is missing. */
void generation_overdue(struct core *core, struct job *job);

/* preempt.c */
/* Whether the job is to stop at a step, known or not. */
bool preempt_stops(const struct job *job);
/* A task's notice. */
void preempt_notice(
    struct core *core, struct job *job, uint32_t slot, const struct task_preempt *notice);
/* It cannot go on without a worker that drains. */
void preempt_drained(struct core *core, struct job *job);
/* Sets what is asked for: the step to stop at, or to save at. Once in a turn of speak.c. */
void preempt_control(struct core *core, struct job *job);
/* A plan restates it: all stand at its first position. */
void preempt_plan(struct core *core, struct job *job);
/* Members of a generation that is over stand at `position`: true when that is saved already, and
 * they are sent away. */
bool preempt_needs_nothing(struct core *core, struct job *job, uint64_t position);
/* Nothing can be saved. */
void preempt_fails(struct core *core, struct job *job, const char *why);
/* Somebody came to the step, or something was published: perhaps all are done. */
void preempt_halted(struct core *core, struct job *job);
/* It may run no longer: leaves in the same way, and does not come back. */
void preempt_overtime(struct core *core, struct job *job, const char *why);
/* Its deadline. */
void preempt_over(struct core *core, struct job *job);
/* Nobody is left of a job that was preempted: it ends, or goes back to the queue. */
void preempt_gone(struct core *core, struct job *job);
/* When all are collected. */
void preempt_requeue(struct core *core, struct job *job);
/* After a start of the coordinator. */
void preempt_restore(struct job *job, const struct core_restore_job *restore);
void preempt_resume(struct core *core, struct job *job);
/* fallback.c: a published checkpoint is damaged. */
void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged);
/* After a start of the coordinator nobody knows with which checkpoint of another job the tasks were
 * started that have not formed a generation yet: they are started again. */
void fallback_restored(struct core *core, struct job *job);
/* A client wants a checkpoint, and the training to go on. */
void checkpoint_now(struct core *core, const struct core_checkpoint_now *asked);

/* overtime.c: the time limit, which counts from the first placing */
void overtime_arm(struct core *core, struct job *job, uint64_t ran_us);
/* Its deadline. */
void overtime_over(struct core *core, struct job *job);
/* It is over while the job waits to go on. */
bool overtime_in_queue(const struct job *job);
void overtime_leaves_queue(struct core *core, struct job *job);
/* Nobody is left of it: it fails. */
void overtime_ends(struct core *core, struct job *job);

/* regroup.c */
/* Nothing of the state is left, or nobody who could stay: all tasks are started again. */
void regroup_begin_anew(struct core *core, struct job *job, enum dismissal why);
/* The generation is over and nobody goes on from it: all tasks are told to end. */
void regroup_disband(struct core *core, struct job *job, enum dismissal why);
/* The generation is at its end for want of a member: the rest freeze and report. `guess`: the
 * sentence says what was noticed, not what happened. */
void regroup_begin(struct core *core, struct job *job, const char *sentence, bool guess);
/* A report does not count any more. */
void regroup_asks_again(struct core *core, struct job *job);
/* What follows from who is there; called once in a turn of speak.c. */
void regroup_decide(struct core *core, struct job *job);
/* Something is lacking that has to be found in time. */
void regroup_waits(struct core *core, struct job *job);
/* Deadlines. */
void regroup_report_over(struct core *core, struct job *job);
void regroup_wait_over(struct core *core, struct job *job);
/* Whether a member that reported has the state of the position where it stands. */
bool regroup_holds_state(const struct job *job, const struct task *task);

/* plan.c */
/* The next generation: all members that are left but those that drain when `drains`, and the
 * joiners of the stream when `joins`. `source` is a slot or NONE. */
struct plan_choice {
    uint64_t resume;
    uint32_t source; /* slot, or NONE: nobody has the state */
    bool joins;
    uint32_t stream;
    bool drains;
    bool first; /* of tasks that said hello and were in no generation yet */
};
void plan_make(struct core *core, struct job *job, const struct plan_choice *choice);

/* control.c */
/* Whether a halt is to be set or lifted; called once in a turn of speak.c. */
void control_consider(struct core *core, struct job *job);
/* Nothing is pending. */
void control_drop(struct job *job);
/* Whether this report is the orderly one that the pending halt asks for. */
bool control_met(const struct job *job, const struct task_report *report);

/* publish.c */
void publish_part(struct core *core, struct job *job, uint32_t slot, const struct task_part *part);
/* Publishes what all have applied. */
void publish_consider(struct core *core, struct job *job);

/* barrier.c */
/* Everybody stands at `resume`. */
void barrier_open(struct core *core, struct job *job);
void barrier_arrived(struct core *core, uint32_t worker, const struct agent_arrived *arrived);
/* After a start of the coordinator: more was released than is recorded. Says it to all again. */
void barrier_raise(struct core *core, struct job *job, uint64_t released);
/* Whether a member wants a step that another has finished without: then the job fails. */
bool barrier_deserted(struct core *core, struct job *job);
/* A member's program takes at least so many steps. */
void barrier_wants(struct core *core, struct job *job, uint32_t slot, uint64_t wanted);

/* line.c */
/* Whether a party's claim agrees with what others said; if so it is kept. Else the job fails. */
bool line_claim(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived);
/* The cursor of a position. False and zeroed: nobody is known to have begun its run. */
bool line_at(const struct job *job, uint64_t position, struct cursor *ret_cursor);
/* What all have applied is not asked for again. */
void line_trim(struct job *job);
/* Party `from` is called `to` from now on; NONE: it is gone. */
void line_party_moved(struct job *job, uint32_t from, uint32_t to);

/* proof.c: feeds and positions of streams */
void proof_arrived(struct core *core, struct job *job, const struct agent_arrived *arrived);
/* Whether all steps of the stream's newest epoch are applied, as far as is known. */
bool proof_stream_is_over(const struct job *job, uint32_t stream);
void proof_stream(struct core *core, struct job *job, const struct task_stream *stream);
/* Records what is committed and not recorded: all of it, or what is complete. */
void proof_record(struct core *core, struct job *job, bool all, uint64_t applied);
/* The plan cuts the ledger at job->resume. */
void proof_cut(struct job *job);

/* ending.c */
/* The first reason stands; a later one is ignored. */
void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text);
void job_stop(struct core *core, struct job *job);
void outcome_set(struct core *core, struct job *job, enum job_state outcome, cadre_status code,
    int32_t exit_code, const char *sentence);
/* Stops it at any stage; the answer is the caller's. */
void ending_cancel(struct core *core, struct job *job);
/* Nobody is left, or will be, whom they could join. */
void ending_dismiss_joiners(struct core *core, struct job *job);
/* If all is over: it ends as it may. */
void ending_consider(struct core *core, struct job *job);
bool ending_complete(const struct job *job);
/* Its last records; then it is forgotten. */
void ending_settle(struct core *core, struct job *job);

/* failure.c: tasks that end before the job does */
/* Of a task that joined and exited with status 0. Nobody here knows which of the two it lacks. */
#define UNFINISHED " before cadre_finish (or cadre_plain_finish)"

/* A task is gone: what follows for the job. */
void failure_exited(
    struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit);
/* It is lost with its worker. */
void failure_lost(struct core *core, struct job *job, uint32_t slot, const char *how);
/* Some joined and some exited with status 0 without. */
void failure_silent(struct core *core, struct job *job);
/* A task left with status 0 before cadre_finish, and the others did not follow. */
void failure_early(struct core *core, struct job *job);
/* What a job is failed with for the death of a task. */
struct death {
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
};
/* "; all 12 steps were done by then": but maybe not what the program does behind cadre_finish. */
void text_finished(const struct job *job, struct text *text);
/* A step was applied by all: restarts have brought something. */
void failure_step_applied(struct core *core, struct job *job);
/* DEADLINE_BACKOFF: its tasks may be placed again. */
void failure_waited(struct core *core, struct job *job);
/* Counts a failure; false: it was one too many, the job has failed with it. */
bool failure_count(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *sentence);

/* crew.c: jobs whose tasks are of types; of other jobs nothing */
/* Whether the number of tasks is that of the crew, if it is one. */
bool crew_fits(const struct core_job_spec *spec);
/* Its slots are known for what they are. */
void crew_open(struct core *core, struct job *job);
/* The fewest tasks that a generation needs. */
uint32_t job_members_min(const struct job *job);
/* Slots that need nobody now. */
uint32_t crew_held(const struct core *core, const struct job *job);
/* An attendant came or went. */
void crew_changed(struct core *core, struct job *job, uint32_t slot);
/* Its chief has a plan. */
void crew_planned(struct core *core, struct job *job);
/* Whether its tasks may be told of each other now. */
bool crew_speaks(const struct job *job);
/* Takes what is due of members, or holds it back for a while. */
bool crew_holds_back(struct core *core, struct job *job);
/* Its deadline. */
void crew_members_over(struct core *core, struct job *job);
/* All of it to one task. */
void crew_tell(struct core *core, struct job *job, uint32_t slot);
/* `known`: not for the first time. */
void crew_said_hello(struct core *core, struct job *job, uint32_t slot, bool known);
/* The slot has a new task; its last is about to be forgotten. */
void crew_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
void crew_vacates(struct core *core, struct job *job, uint32_t slot);
/* A server says whose copy it counts on: recorded, then it is told. */
void crew_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed);
/* The generation is over, and all are started again. */
void crew_begins_anew(struct core *core, struct job *job);
/* Servers whose last worker has a slot go there, at most `count`; returns how many. */
uint32_t crew_go_home(struct core *core, struct job *job, uint32_t count,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));
/* Whether the chief or a server is on a worker that drains. */
bool crew_drains(const struct core *core, const struct job *job);
/* An attendant that was wanted is gone, or lost. */
void crew_exited(struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit,
    const struct death *death);
void crew_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence);
/* The chief is gone for good: the others are told to end. */
void crew_dismiss(struct core *core, struct job *job);
/* What follows; called once in a turn of speak.c. */
void crew_consider(struct core *core, struct job *job);
/* Deadlines: CREW, and WAIT. */
void crew_over(struct core *core, struct job *job);
void crew_wait_over(struct core *core, struct job *job);
/* Whether what it waits for is about to come. */
bool crew_just_waits(const struct core *core, const struct job *job);
/* After a start of the coordinator. */
void crew_relives(
    const struct job *job, struct task *task, const struct core_restore_task *restore);
void crew_restored(struct core *core, struct job *job);

/* health.c */
void health_stall(
    struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall);
/* All applied more steps, or a plan was made: nobody is waited for. */
void health_progress(struct core *core, struct job *job, uint64_t steps);
void health_slow(struct core *core, struct job *job);
/* A member stands at a halt: the others have to come there, too. */
void health_halted(struct core *core, struct job *job);
void health_over(struct core *core, struct job *job);
/* "step 120 has not ended for 12 s ..."; false: nothing of the kind. */
bool health_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES]);

/* speak.c */
/* Says what is due, as far as there is room. */
void speak_run(struct core *core);
/* Something waits for room. */
bool speak_waits(const struct core *core);
/* To one task that said hello again: what it has to know now. */
void speak_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan);
void speak_to_task(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence);

/* lease.c */
/* Its lease, or the next look at it when that is over. */
void deadline_worker(struct core *core, uint32_t worker);
/* That deadline, which was due then: what follows from its silence, if it still is silent. */
void lease_over(struct core *core, uint32_t worker, uint64_t due_us);
/* A worker that was away is about to be heard again. */
void lease_returns(struct core *core, uint32_t worker);
/* After so long a silence all of its tasks are lost. */
uint64_t lease_patience_us(const struct core *core, const struct worker *worker);
/* Whether it is known to live now. */
bool lease_hears(const struct core *core, uint32_t worker);
/* Whether nobody is heard who can carry the job on, and somebody is silent who might. */
bool lease_cut_off(const struct core *core, const struct job *job);

/* deadlines.c */
void deadline_set(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us);
void deadline_clear(struct core *core, struct job *job, enum deadline deadline);
void deadlines_clear(struct core *core, struct job *job);
bool deadline_armed(const struct job *job, enum deadline deadline);
void deadlines_run(struct core *core);

/* restore.c */
void restore_job(struct core *core, const struct core_restore_job *restore);
void restore_done(struct core *core, const struct core_restore_done *done);

#endif

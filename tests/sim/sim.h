/* SPDX-License-Identifier: Apache-2.0
 * One simulated cluster: the production cores of the coordinator, the daemons and the tasks in a
 * virtual world of time, network, processes, mesh and store. Nothing in it depends on anything but
 * the seed. */
#ifndef CADRE_SIM_SIM_H
#define CADRE_SIM_SIM_H

#include <setjmp.h>

#include "check.h"
#include "clock.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/hold.h"
#include "coordinator/engine/outdated.h"
#include "ps.h"
#include "layout.h"
#include "message.h"
#include "mutant.h"
#include "pause.h"
#include "queue.h"
#include "scenario.h"
#include "second.h"
#include "store.h"
#include "values.h"
#include "worker/core/agent_core.h"
#include "worker/core/task_core.h"

#define SIM_NONE        UINT32_MAX
#define SIM_LIMIT_US    UINT64_C(600000000) /* all jobs have ended by then, or PROGRESS is broken */
#define SIM_EVENTS_MAX  20000000
#define SIM_SWEEP_MAX   64 /* with more workers everything is checked every so often: */
#define SIM_SWEEP_EVERY 1000
#define SIM_TEXT_BYTES  1024

#define SIM_TRACE_LINES 60000
#define SIM_TRACE_BYTES 220
#define AGENT_HELD_MAX  32
#define CANCEL_CALLS    (UINT64_C(1) << 32) /* calls from here on are cancels, by job */
#define INJECTED_MAX    4
#define POSITIONS_MAX   SCENARIO_STEPS_MAX

enum happening_type {
    ON_SUBMIT = 1,            /* a: job */
    ON_CANCEL,                /* a: job */
    ON_FAULT,                 /* a: fault */
    ON_SYNC,                  /* the store's owner fsyncs what may lag; b: coordinator's life */
    ON_COORDINATOR_UP,        /* a: link, message */
    ON_COORDINATOR_LINK_DOWN, /* a: link */
    ON_COORDINATOR_TICK,      /* b: its life */
    ON_TURN_END,              /* b: its life */
    ON_UNMUTE,                /* a: link, b: whether it breaks */
    ON_AGENT_CONNECT,         /* a: agent, b: life */
    ON_AGENT_DOWN,            /* a: link, message */
    ON_AGENT_LINK_DOWN,       /* a: link */
    ON_AGENT_TICK,            /* a: agent, b: life */
    ON_AGENT_BOOT,            /* a: agent, b: the life that ended */
    ON_AGENT_SIGTERM,         /* a: agent, b: life: it is told to drain */
    ON_UNDRAIN,               /* a: agent: the client that drained it ends that */
    ON_MESH_STALL,            /* a: mesh, n: key of the collective */
    /* Of a process (n), whose agent has to be in life b still: */
    ON_PREPARED,
    ON_SPAWNED,
    ON_EXITED,
    ON_COLLECTED,
    ON_PUBLISHED, /* a: attempt */
    ON_FRAME_UP,
    /* Of a process (n), by itself; a process that is stopped does none of these. */
    ON_FRAME_DOWN,      /* a: socket */
    ON_PROGRAM,         /* a: doing. Goes on: starts, has computed, has ended */
    ON_SYNCED,          /* a: doing */
    ON_COLLECTIVE_DONE, /* a: doing */
    ON_PEER_LEFT,       /* a: doing */
    ON_APPLIED,         /* a: doing */
    ON_WAITS,           /* a: doing. Has waited for a release for long */
    ON_WRITTEN,         /* a checkpoint is on its host's disk; a: 1: again, 2: it was compared */
    ON_RECONNECT,
    ON_TASK_TICK,
    ON_DEATH, /* a: signal; 0: by itself */
    ON_CONTINUE,
    ON_RESUME,   /* a: agent, NOBODY: the coordinator; b: its pause */
    ON_SECOND,   /* the second coordinator is started, or ends */
    ON_SUPERSEDE /* the copy that is to own the workers is started, or it is too late */
};

enum program_state {
    PROGRAM_UNBORN = 0,
    PROGRAM_WARMS, /* prepares alone; the job is under way */
    PROGRAM_IDLE,  /* waits for what its core allows */
    PROGRAM_COMPUTES,
    PROGRAM_FORMS,
    PROGRAM_INSIDE, /* a collective */
    PROGRAM_SAVES,  /* in cadre_save: waits until the checkpoint is published */
    PROGRAM_APPLIES,
    PROGRAM_ENDS,
    PROGRAM_DEAD
};

/* What was fed in a step, over all members. */
struct step_consumption {
    uint64_t position;
    uint64_t samples;
    uint64_t consumed[2];
};

/* What the variables hold, and what travels with them. */
struct state {
    uint64_t once;        /* a chain over the steps that were applied */
    uint64_t timeline;    /* a chain over them and the generations that applied them */
    uint64_t value;       /* as `once`, unless a bit of it has flipped */
    uint64_t layout;      /* its variables: created.h */
    struct cursor cursor; /* of the newest step */
    struct consumption consumptions[SCENARIO_STREAMS];
    uint64_t epochs[SCENARIO_STREAMS]; /* that the feeds are of */
};

/* What members tell of their values in one collective. */
struct tally {
    uint64_t position; /* and one; 0: nothing */
    uint64_t digest;   /* of the first */
    uint32_t count;
    bool differs;
};

/* A task's process, from PREPARE on. */
struct process {
    struct task_ref ref;
    uint32_t agent;
    uint32_t incarnation; /* of its agent */
    uint32_t job;
    enum program_state program;
    struct task_core core;
    struct task_exit exit;
    bool spawned;
    bool stopped;        /* SIGSTOP */
    bool ending;         /* somebody else ended it, or it was told to */
    bool failed;         /* its program's own function failed */
    uint64_t up_last_us; /* its socket is FIFO */
    uint64_t down_last_us;
    uint32_t socket; /* numbers its connections */
    uint32_t doing;  /* numbers what it waits for: what was begun before is stale */
    struct state state;
    struct task_join asks; /* what it says when it joins */
    bool restores;         /* was started with a checkpoint: */
    uint64_t restore_position;
    struct state restored;
    uint64_t steps_begun; /* READY was said for the step below it, in this generation */
    uint64_t ready_sent;
    uint32_t ready_segment;
    uint64_t stalled_at;
    uint64_t looked_at; /* at whether a checkpoint is due before this position, in mesh: */
    uint32_t looked_in;
    uint64_t asked_at;       /* one was asked for there */
    bool distributed;        /* its datasets are */
    bool set_up;             /* the collectives before its first step are behind it */
    uint64_t entered_at;     /* what comes before this position was done by others */
    uint32_t missed;         /* of the one that others have done: it gets the result */
    uint32_t done;           /* collectives outside of steps that are done at this position */
    uint32_t collective;     /* of the step */
    uint32_t met;            /* of those before it, what variables were created in */
    struct created *created; /* its variables; NULL: its program creates none in steps */
    uint32_t calls;          /* of the step's program that are answered */
    uint64_t birth;          /* a variable that the step is creating; 0: none. All meet for: */
    bool shares;             /* its value; else its place in the list */
    bool torn;               /* a part of a step is written */
    bool adopts;             /* from the source, in the mesh that is forming */
    bool writing;            /* a checkpoint, copied in generation: */
    struct generation written_in;
    bool saves_again; /* when the upload takes too long */
    uint64_t written_at;
    struct state written;
    struct verified agreed; /* what all were found to hold where its checkpoint was copied */
    uint64_t part_position; /* newest part that it told its daemon */
    uint32_t publish;       /* numbers the uploads */
    uint64_t publishes;     /* position of the newest */
    uint64_t stored;        /* positions that were uploaded, as bits */
    uint32_t mesh;          /* that it has formed, or forms */
    uint32_t listed_in;     /* newest mesh whose roster names it */
    uint32_t listed_rank;
    uint32_t rank;
    uint64_t key; /* of the collective that it is in */
    bool doomed;  /* that one fails here although it succeeds elsewhere */
    bool left_mesh;
    bool exit_sent; /* that it was told to end without a word */
    /* Of a crew. */
    struct task_member members[SCENARIO_PS_TASKS_MAX];
    uint32_t member_count;
    struct generation members_of;
    struct server server;
    struct known_memory knows[SCENARIO_PS_TASKS_MAX];
};

/* All tasks of one generation, connected. */
struct mesh {
    uint32_t job;
    struct generation generation;
    uint32_t first; /* in sim.members */
    uint32_t count;
    uint32_t formed;
    bool whole; /* all have formed */
    uint64_t resume;
    uint32_t source;
    struct state source_state;
    uint64_t admitted; /* the most that was ever released in it */
    uint64_t key;      /* of the collective that members are in; 0: none */
    uint64_t last_key; /* of the newest that all entered */
    uint32_t entered;
    uint32_t ended; /* members that are in cadre_finish: they meet in a collective of their own */
    bool data;      /* somebody in it has data for the step */
    uint64_t birth_key; /* of the newest collective for a variable, and one: */
    uint64_t birth;
    struct step_consumption consumed[2]; /* by parity of the position */
    struct tally tally[2];               /* likewise */
    struct tally saved;
    uint32_t applied[POSITIONS_MAX];       /* members that applied the step */
    uint64_t timelines[POSITIONS_MAX + 1]; /* state of whoever came there first; 0: nobody */
    bool broken;
    bool left; /* all stood at a stop, and bye was said */
    bool stall_armed;
};

struct link {
    uint32_t agent;
    uint32_t incarnation;
    bool second; /* to the second coordinator */
    bool sent_hello;
    uint64_t sent_start; /* of the coordinator, by its welcome */
    bool agent_open;
    bool coordinator_open;
    bool cut;
    bool sent_draining; /* by the hello on it */
    bool mute_up;       /* what is said is held back */
    bool mute_down;
    bool lost_up; /* what is said never comes */
    bool lost_down;
    uint64_t mute_until_us;
    uint64_t up_last_us;
    uint64_t down_last_us;
};

struct agent {
    struct agent_core *core;
    struct machine_clock clock;
    struct pause pause;
    struct term seen;   /* what its daemon keeps: the newest coordinator that it has obeyed */
    struct term obeyed; /* the same, as we saw it */
    bool alive;
    uint32_t incarnation;
    uint64_t boot_nonce;
    uint32_t link; /* NOBODY: none */
    uint64_t tick_at_us;
    uint64_t blocked_us; /* no link comes up before */
    /* By the coordinator that is, last, by its core's clock; at first, when it was started. */
    uint64_t last_seen_us;
    uint64_t silent_us; /* for so long it was silent before that */
    bool faulty;        /* something happened that its jobs may notice; until its next welcome */
    bool draining;
    bool drain_stored; /* a client's drain of it is recorded */
    uint32_t culprit_stored;
    bool adopts; /* its next life takes its tasks over */
    char name[16];
    uint32_t held[AGENT_HELD_MAX]; /* processes, NOBODY: free */
    struct kept kept[AGENT_HELD_MAX];
};

/* Where a position lies in the program. */
struct program_position {
    uint32_t segment;
    uint64_t begin; /* position where the segment begins */
    uint64_t step;  /* of the epoch */
    bool nested;    /* as in struct cursor */
};

struct job {
    const struct scenario_job *plan;
    struct job_id id; /* 0: not submitted, or lost with the coordinator */
    uint64_t call;
    struct stored *stored;  /* as written */
    struct stored *durable; /* as it survives a crash of the host */
    bool answered;
    bool cancel_asked; /* the answer may be lost */
    bool placed;
    bool planned;      /* a plan was said, ever */
    bool stopped_long; /* a task of it was stopped for longer than it may take to join */
    uint32_t flips;    /* bits of its values that flipped */
    bool tainted;      /* where nobody could notice */
    bool noticed;      /* a task of it was told to leave its machine */
    bool damaged;      /* a checkpoint of it was */
    uint64_t saved_at; /* it went back to the queue with all its steps saved; POSITION_NONE: not */
    uint32_t touches;  /* faults that it may notice */
    uint32_t own_ends; /* tasks that ended by themselves */
    uint32_t breaks;   /* meshes that broke or did not form, with nobody dead */
    bool quit;         /* one of them ended with status 0 */
    bool early_end;    /* one of these ends came before the first plan, or after the last step */
    bool short_finished; /* the task that makes fewer steps has done so */
    bool disagreed;
    bool disagreement_reported; /* by one that had a daemon then */
    bool program_failed;
    uint32_t failed_slot; /* whose program failed first */
    uint32_t first_end;   /* whose task ended first by itself; NOBODY */
    struct task_exit first_exit;
    uint32_t deaths_done; /* bits */
    uint32_t meshes;      /* generations that were planned */
    uint32_t mesh;        /* newest */
    uint32_t *processes;  /* newest of each slot */
    struct program_position positions[POSITIONS_MAX + 1];
    uint8_t between_steps_done[POSITIONS_MAX +
                               1];            /* how few were left before one that completed; 255 */
    uint8_t between_steps[POSITIONS_MAX + 1]; /* collectives before step p, behind step p - 1 */
    uint64_t once[POSITIONS_MAX + 1];
    uint64_t layouts[POSITIONS_MAX + 1];
    struct step_consumption consumed[POSITIONS_MAX]; /* by all tasks together, in each step */
    uint64_t timeline[POSITIONS_MAX + 1];            /* of the newest generation */
    bool coordinator_crashed;
    uint64_t begun_us; /* its first start was decided, when the coordinator had been away for: */
    uint64_t away_us;
    uint32_t crashes;  /* of the coordinator, since it was started */
    uint64_t ended_us; /* 0: it has not ended */
    struct newest_messages newest;
};

struct coordinator {
    struct core *core;
    struct machine_clock clock;
    struct pause pause;
    uint64_t away_us; /* for so long it stood still, or could not write, at the end of that: */
    uint64_t away_until_us;
    struct term term;
    bool term_unstored;
    bool supersedes; /* its operator said so */
    void *memory;
    size_t memory_bytes;
    uint32_t incarnation;
    struct core_actions turn;
    struct placements *placements; /* of each action of the turn, mostly none */
    uint32_t placement_capacity;
    bool pending_update_open;
    struct hold hold;
    bool sync_armed;
    uint64_t tick_at_us;
    uint32_t submitting; /* job */
};

struct sim {
    uint64_t seed;
    struct prng prng;
    struct scenario scenario;
    struct queue queue;
    struct message_pool pool;
    struct message *shared; /* what the coordinator says, to the next of those it is for */
    struct job_spec spec;   /* as it says it */
    uint64_t now_us;
    uint64_t paused_until_us; /* nobody stands still behind that */
    uint64_t events;
    uint64_t core_events; /* steps of the coordinator's core */
    uint64_t digest;
    struct coordinator coordinator;
    struct second second;
    struct owner owner;
    struct disk disk;
    struct agent *agents;
    unsigned char *agent_memory;
    size_t agent_bytes;
    uint32_t agent_capacity;
    struct agent_actions agent_actions;
    uint32_t *worker_agents; /* by worker id */
    uint32_t worker_capacity;
    struct link *links;
    uint32_t link_count;
    uint32_t link_capacity;
    struct process *processes;
    uint32_t process_count;
    uint32_t process_capacity;
    struct memory *memories;
    uint32_t memory_count;
    uint32_t memory_capacity;
    uint64_t memory_nonce;
    struct happening *parked; /* of processes that are stopped */
    uint32_t parked_count;
    uint32_t parked_capacity;
    struct mesh *meshes;
    uint32_t mesh_count;
    uint32_t mesh_capacity;
    uint32_t *members;
    uint32_t member_count;
    uint32_t member_capacity;
    struct job jobs[SCENARIO_JOBS_MAX];
    uint64_t calls;
    uint32_t jobs_ended;
    bool links_broke; /* between daemons and the coordinator, or tasks and daemons */

    /* What befalls a run besides its scenario: at events of these numbers. */
    struct injected_fault {
        uint64_t at_event; /* 0: none */
        enum fault_kind kind;
        uint32_t which;
    } placed[INJECTED_MAX];
    uint64_t planned_us; /* when the newest generation was planned */
    uint64_t broke_us;   /* when a task died in a running job */
    uint64_t resumed_us; /* when the first step after that was applied by all */

    bool compares; /* tasks compare their values */
    enum mutant mutant;
    bool mutated;
    const char *broken; /* name of the invariant; NULL: none */
    char why[SIM_TEXT_BYTES];
    jmp_buf *panic; /* where a failed assert of a core goes */

    bool tracing;
    char (*trace)[SIM_TRACE_BYTES];
    uint64_t trace_count;
};

/* ---- sim.c ---- */

/* Runs one seed to its end, or to the first broken invariant (sim->broken). */
void sim_run(struct sim *sim, uint64_t seed, uint32_t agents);
/* The same for the scenario that is in `sim` already. */
void sim_run_scenario(struct sim *sim, uint64_t seed);
void sim_free(struct sim *sim);
void schedule(struct sim *sim, uint64_t delay_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n);
void schedule_message(struct sim *sim, uint64_t at_us, enum happening_type type, uint32_t a,
    uint32_t b, uint64_t n, struct message *message);
uint64_t draw(struct sim *sim, uint64_t low, uint64_t high);
bool one_in(struct sim *sim, uint32_t n); /* never when n is 0 */
/* An array that is at least so long; what is new in it is undefined. */
void *grown(void *items, uint32_t *capacity, uint32_t needed, size_t size);

/* ---- fault.c ---- */

void fault_happens(struct sim *sim, enum fault_kind kind, uint32_t which);
void drain_is_over(struct sim *sim, uint32_t agent);
/* The process is stopped, and what it would do now it does when it is continued. */
bool process_parks(struct sim *sim, const struct happening *happening);
void process_continue(struct sim *sim, uint32_t process);
/* It neither hears nor speaks for so long. */
void coordinator_is_away(struct sim *sim, uint64_t length_us);
/* Jobs with tasks on this worker may notice what befalls it. */
void agent_touch(struct sim *sim, uint32_t agent);

/* ---- trace.c ---- */

__attribute__((format(printf, 3, 4))) void broken(
    struct sim *sim, const char *invariant, const char *format, ...);
__attribute__((format(printf, 2, 3))) void trace(struct sim *sim, const char *format, ...);
const char *trace_up(const struct agent_up *up, char text[SIM_TRACE_BYTES]);
const char *trace_task_up(const struct task_up *up, char text[SIM_TRACE_BYTES]);
const char *trace_down(const struct agent_down *down, char text[SIM_TRACE_BYTES]);
void trace_record(struct sim *sim, const struct core_record *record);

/* ---- network.c ---- */

void link_open(struct sim *sim, uint32_t agent);
void link_cut(struct sim *sim, uint32_t link, uint64_t notice_us);
void link_refuse(struct sim *sim, uint32_t link, cadre_status code, const char *text);
enum mute { MUTE_UP = 1, MUTE_DOWN, MUTE_BOTH };
void link_mute(struct sim *sim, uint32_t link, enum mute ways, uint64_t until_us, bool breaks);
/* What is said one way is lost from now on, until each side notices by the silence. */
void link_lose(struct sim *sim, uint32_t link, enum mute way);
void send_up(struct sim *sim, uint32_t link, const struct agent_up *up);
/* One message to many: the caller keeps its reference. */
void send_down(struct sim *sim, uint32_t link, struct message *message);

/* ---- coordinator.c ---- */

void coordinator_boot(struct sim *sim);
/* `tail`: what was not fsynced may be lost. */
void coordinator_crash(struct sim *sim, bool tail);
void coordinator_step(struct sim *sim, struct core_event *event);
void coordinator_tick(struct sim *sim);
/* A tick for each time since then that its core asked for, as if it had not stood still. */
void coordinator_catches_up(struct sim *sim, uint64_t since_us);
/* By the clock of its core, which stands still while a turn is held. */
uint64_t coordinator_now(const struct sim *sim);
/* Whether a client's call reaches it, and is not refused. */
bool coordinator_takes_calls(const struct sim *sim);
void coordinator_turn_end(struct sim *sim);
void coordinator_sync(struct sim *sim);
/* What it gathered in this turn is forgotten. */
void coordinator_drop_turn(struct sim *sim);

/* ---- send.c ---- */

/* All of the turn that is no record. */
void send_turn(struct sim *sim, const struct core_actions *turn);
struct job *job_by_id(struct sim *sim, struct job_id id);

/* ---- daemon.c ---- */

void agent_boot(struct sim *sim, uint32_t agent);
void agent_connect(struct sim *sim, uint32_t agent);
/* The whole host goes, with its tasks; it comes back as another life of the same name. */
void agent_crash(struct sim *sim, uint32_t agent);
/* The daemon alone goes; the next one ends the tasks that it finds. */
void agent_kill(struct sim *sim, uint32_t agent);
/* The daemon alone goes; the next one takes over the tasks that it finds. */
void agent_restart(struct sim *sim, uint32_t agent);
void agent_step(
    struct sim *sim, uint32_t agent, struct agent_event *event, struct message *message);
void agent_of_process(struct sim *sim, const struct happening *happening);

/* ---- process.c: a task's process and its core ---- */

void process_spawned(struct sim *sim, uint32_t process);
void process_exit(struct sim *sim, uint32_t process, int32_t code, int32_t signal);
void process_signal(struct sim *sim, uint32_t process, int signal);
void process_receive(struct sim *sim, uint32_t process, const struct task_down *down);
void process_disconnect(struct sim *sim, uint32_t process, bool returns);
void process_send(struct sim *sim, uint32_t process, const struct task_up *up);
void process_send_streams(struct sim *sim, uint32_t process);
/* What its program or its core waited for has happened. */
void process_happens(struct sim *sim, const struct happening *happening);
/* One event into the task's core, its actions carried out. */
void program_event(struct sim *sim, uint32_t process, const struct task_event *event);
/* The death that the scenario has for it here and now; NULL: none. */
const struct scenario_death *process_dies(
    struct sim *sim, uint32_t process, enum death_when when, uint64_t step);
void process_die(struct sim *sim, uint32_t process, const struct scenario_death *death);

/* ---- runtime.c: the training loop of a process ---- */

/* Goes as far as its core allows. */
void program_go(struct sim *sim, uint32_t process);
void program_computed(struct sim *sim, uint32_t process);
void program_collective_done(struct sim *sim, uint32_t process);
void program_peer_left(struct sim *sim, uint32_t process);
void program_applied(struct sim *sim, uint32_t process);
void program_waits(struct sim *sim, uint32_t process);
/* Its own function failed, or the programs disagree. */
void program_fails(struct sim *sim, uint32_t process, const char *text);
/* Collectives outside of steps that are left before the step where it stands. */
uint32_t program_between_steps_left(const struct sim *sim, const struct process *process);

/* ---- join.c: how a process comes to the state that it goes on from ---- */

void join_warm(struct sim *sim, uint32_t process, const struct task_warm *warm);
void join_warmed(struct sim *sim, uint32_t process);
/* All have formed: who adopts what. */
void join_exchange(struct sim *sim, struct mesh *mesh);
void join_synced(struct sim *sim, uint32_t process);

/* ---- saving.c: checkpoints ---- */

/* Begins to write when one is due at this step. */
void saving_at_step(struct sim *sim, uint32_t process);
/* false: another is being written. */
bool saving_begin(struct sim *sim, uint32_t process);
/* The chief waits until what it saves is published. */
void saving_awaits(struct sim *sim, uint32_t process);
/* Its job stops where it stands: the chief saves, and all wait for bye. */
void saving_to_stop(struct sim *sim, uint32_t process);
/* It is on the disk; or (`again`) a save has waited for long. */
void saving_written(struct sim *sim, uint32_t process, bool again);
/* The state that a checkpoint's manifest names. */
struct state checkpoint_state(const struct job *job, uint64_t position, const uint8_t *sha256);
void checkpoint_name(uint8_t *sha256, const struct state *state);

/* ---- truth.c: what is right ---- */

void truth_make(struct job *job);
/* The newest generation owns all from `resume` on. */
void truth_plan(struct job *job, uint64_t resume, uint64_t generation);
uint64_t truth_step(const struct job *job, uint64_t position);
struct state truth_state(const struct job *job, uint64_t position);
/* Another job's checkpoint of this position, which the job goes on from. */
struct core_checkpoint origin_of(const struct job *job, uint64_t position);
/* One more step of this line: what it makes of a state. */
void state_apply(const struct job *job, struct state *state, uint64_t position,
    const struct step_consumption *consumed, uint64_t generation);
/* What the first `steps` steps of an epoch should be fed. */
struct consumption truth_consumption(
    const struct job *job, uint32_t stream, uint64_t epoch, uint64_t steps);
/* Adds what one task of so many is to feed in a step. */
void truth_slice(const struct job *job, uint64_t position, uint32_t rank, uint32_t count,
    struct step_consumption *consumed);
void truth_sample(
    const struct job *job, uint64_t position, uint64_t sample, struct step_consumption *consumed);

/* ---- mesh.c ---- */

uint32_t mesh_open(struct sim *sim, struct job *job, const struct core_job_view *view);
void mesh_form(struct sim *sim, uint32_t process);
/* It enters the collective `key`; `data`: it has some for the step. */
void mesh_enter(struct sim *sim, uint32_t process, uint64_t key, bool data);
/* It has called cadre_finish. */
void mesh_end(struct sim *sim, uint32_t process);
/* It closes its mesh; all of them when its process is gone. */
void mesh_remove(struct sim *sim, uint32_t process, bool gone);
/* Its connections break, nobody dies. */
void mesh_break(struct sim *sim, struct mesh *mesh);
void mesh_stalls(struct sim *sim, uint32_t mesh, uint64_t key);
struct mesh *mesh_of(struct sim *sim, const struct process *process);
uint32_t mesh_member(const struct sim *sim, const struct mesh *mesh, uint32_t rank);
uint32_t mesh_find(const struct sim *sim, uint32_t job, struct generation generation);

#endif

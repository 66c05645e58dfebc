/* SPDX-License-Identifier: Apache-2.0
 * One simulated cluster: the production cores of the coordinator, the daemons and the tasks in a
 * virtual world of time, network, processes, mesh and store. A run depends on the seed alone. */
#ifndef CADRE_SIM_SIM_H
#define CADRE_SIM_SIM_H

#include <setjmp.h>

#include "check.h"
#include "clock.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/hold.h"
#include "coordinator/engine/members_sent.h"
#include "coordinator/engine/outdated.h"
#include "coordinator/engine/synced_first.h"
#include "cost.h"
#include "happening.h"
#include "layout.h"
#include "lie.h"
#include "message.h"
#include "mutant.h"
#include "pause.h"
#include "process.h"
#include "ps.h"
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

/* The consumption of a step, over all members. */
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

/* What members report of their values in one collective. */
struct tally {
    uint64_t position; /* and one; 0: nothing */
    uint64_t digest;   /* of the first */
    uint32_t count;
    bool differs;
};

/* A task's process, from PREPARE on. */
struct process {
    struct task_ref ref;
    uint32_t ahead; /* the start of the coordinator that has received that it is */
    uint32_t agent;
    uint32_t incarnation; /* of its agent */
    uint64_t term;        /* newest that it has got a message of */
    uint32_t job;
    enum program_state program;
    struct task_core core;
    struct task_exit exit;
    bool spawned;
    bool stopped;        /* SIGSTOP */
    bool ending;         /* it was ended from outside, or has to end */
    bool failed;         /* its program's own function failed */
    uint64_t up_last_us; /* its socket is FIFO */
    uint64_t down_last_us;
    uint32_t socket; /* numbers its connections */
    uint32_t doing;  /* numbers its waits: events of older waits are stale */
    struct state state;
    struct task_join asks; /* its join message */
    bool restores;         /* was started with a checkpoint: */
    uint64_t restore_position;
    struct state restored;
    uint64_t steps_begun; /* READY was said for the step below it, in this generation */
    uint64_t ready_sent;
    uint32_t ready_segment;
    uint64_t stalled_at;
    uint64_t looked_at; /* whether a checkpoint is due before this position was read, in mesh: */
    uint32_t looked_in;
    uint64_t asked_at;       /* one was requested there */
    bool distributed;        /* its datasets are */
    bool set_up;             /* the collectives before its first step are behind it */
    uint64_t entered_at;     /* the work before this position was done by others */
    uint32_t missed;         /* of the one that others have done: it gets the result */
    uint32_t done;           /* collectives outside of steps that are done at this position */
    uint32_t collective;     /* of the step */
    uint32_t met;            /* of those before it, what variables were created in */
    struct created *created; /* its variables; NULL: its program creates none in steps */
    uint32_t calls;          /* of the step's program that are answered */
    uint64_t birth;          /* a variable that the step is creating; 0: none. All meet for: */
    bool shares;             /* its value; else its entry in the list */
    bool torn;               /* a part of a step is written */
    bool adopts;             /* from the source, in the mesh that is forming */
    bool writing;            /* a checkpoint, copied in generation: */
    struct generation written_in;
    uint64_t written_at;
    struct state written;
    struct verified agreed; /* what all were found to hold where its checkpoint was copied */
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
    bool exit_sent; /* its EXIT_VOID was carried out */
    /* Of a ps job. */
    struct task_member members[SCENARIO_PS_TASKS_MAX];
    uint32_t member_count;
    struct generation members_of;
    uint64_t members_number; /* of the list */
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
    bool recorded;
    uint64_t resume;
    uint32_t source;
    struct state source_state;
    uint64_t admitted; /* the most that was ever released in it */
    uint64_t key;      /* of the collective that members are in; 0: none */
    uint64_t last_key; /* of the newest that all entered */
    uint32_t entered;
    uint32_t ended;     /* members that are in cadre_finish: they meet in a separate collective */
    bool data;          /* a member in it has data for the step */
    uint64_t birth_key; /* of the newest collective for a variable, and one: */
    uint64_t birth;
    struct step_consumption consumed[2]; /* by parity of the position */
    struct tally tally[2];               /* by parity too */
    struct tally saved;
    uint32_t applied[POSITIONS_MAX];       /* members that applied the step */
    uint64_t timelines[POSITIONS_MAX + 1]; /* state of the first member there; 0: none */
    bool broken;
    bool left; /* all were at a stop, and bye was sent */
    bool stall_armed;
};

struct link {
    uint32_t agent;
    uint32_t incarnation;
    bool second;         /* to the second coordinator */
    uint32_t replica;    /* of several, to which, and */
    uint32_t leadership; /* in which start of its core */
    bool sent_hello;
    uint64_t sent_start; /* of the coordinator, by its welcome */
    bool agent_open;
    bool coordinator_open;
    bool cut;
    bool sent_draining; /* by the hello on it */
    bool mute_up;       /* messages are held back */
    bool mute_down;
    bool lost_up; /* messages are lost */
    bool lost_down;
    uint64_t mute_until_us;
    uint64_t up_last_us;
    uint64_t down_last_us;
};

struct agent {
    struct agent_core *core;
    struct machine_clock clock;
    struct pause pause;
    struct term seen;     /* what its daemon keeps: the newest coordinator that it has accepted */
    struct term accepted; /* the same, as the oracle saw it */
    bool alive;
    uint32_t incarnation;
    uint64_t boot_nonce;
    uint32_t link; /* SIM_NONE: none */
    uint64_t tick_at_us;
    uint64_t blocked_us; /* no link comes up before */
    /* By the coordinator that is, last, by its core's clock; at first, when it was started. */
    uint64_t last_seen_us;
    uint64_t silent_us; /* for so long it was silent before that */
    bool faulty;        /* a fault that its jobs may notice; until its next welcome */
    bool draining;
    bool drain_stored; /* a client's drain of it is recorded */
    uint32_t culprit_stored;
    bool adopts; /* its next incarnation adopts its tasks */
    char name[16];
    uint32_t held[AGENT_HELD_MAX]; /* processes, SIM_NONE: free */
    struct kept kept[AGENT_HELD_MAX];
};

/* A position of the program. */
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
    struct stored *stored;   /* as it is written */
    struct stored *durable;  /* as it survives a crash of the host */
    uint32_t ending_decided; /* by this start of the coordinator, recorded or not yet */
    struct stored *frozen;   /* of a disk that lies: all that survives; NULL: it tells the truth */
    bool answered;
    bool cancel_asked; /* the answer may be lost */
    bool placed;
    bool planned;      /* a plan was said, ever */
    bool stopped_long; /* a task of it was stopped for longer than it may take to join */
    uint32_t flips;    /* bits of its values that flipped */
    bool tainted;      /* where no task could notice */
    bool noticed;      /* a task of it had to leave its machine */
    bool damaged;      /* a checkpoint of it was */
    uint64_t saved_at; /* it went back to the queue with all its steps saved; POSITION_NONE: not */
    uint32_t touches;  /* faults that it may notice */
    uint32_t own_ends; /* tasks that ended by themselves */
    uint32_t breaks;   /* meshes that broke or did not form, without a dead task */
    bool quit;         /* one of them ended with status 0 */
    bool early_end;    /* one of these ends came before the first plan, or after the last step */
    bool short_finished; /* the task that makes fewer steps has done so */
    bool disagreed;
    bool disagreement_reported; /* by one that had a daemon then */
    bool program_failed;
    uint32_t failed_slot; /* the first whose program failed */
    uint32_t first_end;   /* the first whose task ended by itself; SIM_NONE */
    struct task_exit first_exit;
    cadre_status first_cause; /* why it did not start; OK: it had a process */
    uint32_t deaths_done;     /* bits */
    uint32_t meshes;          /* generations that were planned */
    uint32_t mesh;            /* newest */
    uint32_t *processes;      /* newest of each slot */
    struct program_position positions[POSITIONS_MAX + 1];
    uint8_t between_steps_done[POSITIONS_MAX +
                               1];            /* how few were left before one that completed; 255 */
    uint8_t between_steps[POSITIONS_MAX + 1]; /* collectives before step p, behind step p - 1 */
    uint64_t once[POSITIONS_MAX + 1];
    uint64_t layouts[POSITIONS_MAX + 1];
    struct step_consumption consumed[POSITIONS_MAX]; /* of all tasks together, in each step */
    uint64_t timeline[POSITIONS_MAX + 1];            /* of the newest generation */
    bool coordinator_crashed;
    uint64_t begun_us; /* its first start was decided, when the coordinator had been away for: */
    uint64_t away_us;
    uint32_t crashes;  /* of the coordinator, since it was started */
    uint64_t ended_us; /* 0: it has not ended */
    struct newest_messages newest;
    struct members_sent members_sent; /* by the coordinator's present incarnation */
};

struct coordinator {
    struct core *core;
    struct machine_clock clock;
    struct pause pause;
    struct term term;
    bool term_unstored;
    bool supersedes; /* started with --supersede */
    void *memory;
    size_t memory_bytes;
    uint32_t incarnation;
    struct core_actions turn;
    struct placements *placements; /* of each action of the turn, mostly none */
    uint32_t placement_capacity;
    bool pending_update_open;
    struct hold hold;
    bool sync_armed;
    bool ends_unsynced; /* of tasks, among the records that wait for a sync */
    uint64_t tick_at_us;
    uint32_t submitting; /* job */
};

struct sim {
    uint64_t seed;
    uint32_t behind_steps; /* that tasks claim behind a run; few, so that it is often too few */
    struct prng prng;
    struct scenario scenario;
    struct queue queue;
    struct message_pool pool;
    struct message *shared; /* a message of the coordinator to several receivers */
    struct job_spec spec;   /* as it sends it */
    uint64_t now_us;
    uint64_t paused_until_us; /* no pause lasts longer */
    uint64_t events;
    uint64_t core_events; /* steps of the coordinator's core */
    uint64_t digest;
    struct coordinator coordinator;
    uint64_t away_us; /* it was paused, or could not write, for so long, at the end of that: */
    uint64_t away_until_us;
    struct replicas *replicas; /* NULL: never several coordinators */
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
    bool lied;        /* the ledger of a job is older than what its tasks have seen */
    bool links_broke; /* between daemons and the coordinator, or tasks and daemons */

    /* Faults of a run besides its scenario: at events of these numbers. */
    struct injected_fault {
        uint64_t at_event; /* 0: none */
        enum fault_kind kind;
        uint32_t which;
    } placed[INJECTED_MAX];
    uint64_t planned_us; /* when the newest generation was planned */
    uint64_t broke_us;   /* when a task died in a running job */
    uint64_t resumed_us; /* when the first step after that was applied by all */

    struct cost *cost; /* counted here; NULL: not counted */
    bool compares;     /* tasks compare their values */
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
/* Frees everything; the struct is the caller's. */
void sim_free(struct sim *sim);
/* Plans an event after `delay_us`. */
void schedule(struct sim *sim, uint64_t delay_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n);
/* Plans the arrival of a message; takes over its reference. */
void schedule_message(struct sim *sim, uint64_t at_us, enum happening_type type, uint32_t a,
    uint32_t b, uint64_t n, struct message *message);
/* A number from low to high. */
uint64_t draw(struct sim *sim, uint64_t low, uint64_t high);
/* True once in n draws; never when n is 0. */
bool one_in(struct sim *sim, uint32_t n);
/* An array that is at least so long; new items are undefined. */
void *grown(void *items, uint32_t *capacity, uint32_t needed, size_t size);

/* ---- client.c ---- */

/* A client submits the job of this index. */
void client_submits(struct sim *sim, uint32_t job);
/* A client cancels it. */
void client_cancels(struct sim *sim, uint32_t job);

/* ---- fault.c ---- */

/* `which` selects the victim. */
void fault_happens(struct sim *sim, enum fault_kind kind, uint32_t which);
/* The client ends its drain of the worker, again until that is recorded. */
void drain_is_over(struct sim *sim, uint32_t agent);
/* Whether the process is stopped: the event then waits until it continues. */
bool process_parks(struct sim *sim, const struct happening *happening);
/* SIGCONT: its waiting events happen now. */
void process_continue(struct sim *sim, uint32_t process);
/* It receives and sends nothing for so long. */
void coordinator_is_away(struct sim *sim, uint64_t length_us);
/* A fault of this worker: jobs with tasks on it may notice it. */
void agent_touch(struct sim *sim, uint32_t agent);

/* ---- trace.c ---- */

/* Ends the run: the invariant, and the sentence for the report. */
__attribute__((format(printf, 3, 4))) void broken(
    struct sim *sim, const char *invariant, const char *format, ...);
/* Adds to the transcript, when there is one. */
__attribute__((format(printf, 2, 3))) void trace(struct sim *sim, const char *format, ...);
/* The message as text, for the transcript; returns `text`. */
const char *trace_up(const struct agent_up *up, char text[SIM_TRACE_BYTES]);
/* The same of a task's message. */
const char *trace_task_up(const struct task_up *up, char text[SIM_TRACE_BYTES]);
/* The same of a message to an agent. */
const char *trace_down(const struct agent_down *down, char text[SIM_TRACE_BYTES]);
/* Adds a record to the transcript. */
void trace_record(struct sim *sim, const struct core_record *record);

/* ---- network.c ---- */

/* The daemon connects; to which of several coordinators. */
void link_open(struct sim *sim, uint32_t agent, uint32_t replica);
/* Both ends notice the break within `notice_us`. */
void link_cut(struct sim *sim, uint32_t link, uint64_t notice_us);
/* The coordinator refuses the daemon and ends the link. */
void link_refuse(struct sim *sim, uint32_t link, cadre_status code, const char *text);
enum mute { MUTE_UP = 1, MUTE_DOWN, MUTE_BOTH };
/* Messages are held back until `until_us`; then the link heals or breaks. */
void link_mute(struct sim *sim, uint32_t link, enum mute ways, uint64_t until_us, bool breaks);
/* Messages one way are lost from now on, until each side notices the silence. */
void link_lose(struct sim *sim, uint32_t link, enum mute way);
/* One message of the daemon. */
void send_up(struct sim *sim, uint32_t link, const struct agent_up *up);
/* One message to many: the caller keeps its reference. */
void send_down(struct sim *sim, uint32_t link, struct message *message);

/* ---- coordinator.c ---- */

/* Starts the coordinator on the store. */
void coordinator_boot(struct sim *sim);
/* `tail`: what was not fsynced may be lost. */
void coordinator_crash(struct sim *sim, bool tail);
/* One event into its core, within a turn. */
void coordinator_step(struct sim *sim, struct core_event *event);
/* A tick by its clock. */
void coordinator_tick(struct sim *sim);
/* A tick for each time since then at which its core was due, as if it had not been paused. */
void coordinator_catches_up(struct sim *sim, uint64_t since_us);
/* By the clock of its core, which stops while a turn is held. */
uint64_t coordinator_now(const struct sim *sim);
/* Whether a client's call reaches it, and is not refused. */
bool coordinator_takes_calls(const struct sim *sim);
/* Commits the records of the turn, then sends its messages. */
void coordinator_turn_end(struct sim *sim);
/* Syncs the records whose sync may lag. */
void coordinator_sync(struct sim *sim);
/* What it gathered in this turn is dropped. */
void coordinator_drop_turn(struct sim *sim);
/* The same of one that is not the present one. */
void coordinator_drop_placements(struct coordinator *coordinator);
/* A turn ends soon. */
void coordinator_open_turn(struct sim *sim);
/* It was sent. */
void coordinator_turn_ended(struct sim *sim);

/* ---- send.c ---- */

/* A welcome leaves. */
void agent_is_welcomed(struct sim *sim, const struct link *link);
/* All messages of the turn. */
void send_turn(struct sim *sim, const struct core_actions *turn);
/* NULL: no job has this id. */
struct job *job_by_id(struct sim *sim, struct job_id id);

/* ---- daemon.c ---- */

/* Starts the daemon of the host. */
void agent_boot(struct sim *sim, uint32_t agent);
/* Opens a link, or retries when links are not blocked any more. */
void agent_connect(struct sim *sim, uint32_t agent);
/* The whole host ends, with its tasks; it comes back as another incarnation of the same name. */
void agent_crash(struct sim *sim, uint32_t agent);
/* The daemon alone ends; the next one ends the tasks that it finds. */
void agent_kill(struct sim *sim, uint32_t agent);
/* The daemon alone ends; the next one adopts the tasks that it finds. */
void agent_restart(struct sim *sim, uint32_t agent);
/* One event into its core, its actions executed; takes over `message`, which may be NULL. */
void agent_step(
    struct sim *sim, uint32_t agent, struct agent_event *event, struct message *message);
/* An event of a process that its daemon waits for. */
void agent_of_process(struct sim *sim, const struct happening *happening);

/* ---- mesh.c ---- */

/* Makes the mesh of a planned generation; returns its index. */
uint32_t mesh_open(struct sim *sim, struct job *job, const struct core_job_view *view);
/* Its plan is on record: the job's timeline is its own. */
void mesh_recorded(struct sim *sim, struct job *job, struct generation generation);
/* The process joins the mesh of its plan. */
void mesh_form(struct sim *sim, uint32_t process);
/* It enters the collective `key`; `data`: it has some for the step. */
void mesh_enter(struct sim *sim, uint32_t process, uint64_t key, bool data);
/* It has called cadre_finish. */
void mesh_end(struct sim *sim, uint32_t process);
/* It closes its mesh; all of its meshes when its process has ended. */
void mesh_remove(struct sim *sim, uint32_t process, bool gone);
/* Its connections break without a dead task. */
void mesh_break(struct sim *sim, struct mesh *mesh);
/* Members that wait in the collective report the stall. */
void mesh_stalls(struct sim *sim, uint32_t mesh, uint64_t key);
/* The mesh that the process has formed, or forms. */
struct mesh *mesh_of(struct sim *sim, const struct process *process);
/* The process of a rank, which may have ended. */
uint32_t mesh_member(const struct sim *sim, const struct mesh *mesh, uint32_t rank);
/* The mesh of a generation; SIM_NONE: there is none. */
uint32_t mesh_find(const struct sim *sim, uint32_t job, struct generation generation);

#endif

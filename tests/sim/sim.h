/* SPDX-License-Identifier: Apache-2.0
 * One simulated cluster: the production cores of the coordinator, the daemons and the tasks in a
 * virtual world of time, network, processes, mesh and store. Nothing in it depends on anything but
 * the seed. */
#ifndef CADRE_SIM_SIM_H
#define CADRE_SIM_SIM_H

#include <setjmp.h>

#include "coordinator/core/core.h"
#include "message.h"
#include "queue.h"
#include "scenario.h"
#include "worker/core/agent_core.h"
#include "worker/core/task_core.h"

#define NOBODY          UINT32_MAX
#define SIM_LIMIT_US    UINT64_C(400000000) /* all jobs have ended by then, or PROGRESS is broken */
#define SIM_EVENTS_MAX  20000000
#define SIM_TEXT_BYTES  1024
#define SIM_TRACE_LINES 60
#define SIM_TRACE_BYTES 200
#define AGENT_HELD_MAX  32
#define POSITIONS_MAX   64

enum happening_type {
    ON_SUBMIT = 1,            /* a: job */
    ON_CANCEL,                /* a: job */
    ON_FAULT,                 /* a: fault */
    ON_COORDINATOR_UP,        /* a: link, message */
    ON_COORDINATOR_LINK_DOWN, /* a: link */
    ON_COORDINATOR_TICK,      /* b: its life */
    ON_TURN_END,              /* b: its life */
    ON_AGENT_CONNECT,         /* a: agent, b: life */
    ON_AGENT_DOWN,            /* a: link, message */
    ON_AGENT_LINK_DOWN,       /* a: link */
    ON_AGENT_TICK,            /* a: agent, b: life */
    ON_AGENT_BOOT,            /* a: agent */
    /* Of a process (n), whose agent has to be in life b still: */
    ON_PREPARED,
    ON_SPAWNED,
    ON_EXITED,
    ON_COLLECTED,
    ON_FRAME_UP,
    ON_FRAME_DOWN,
    ON_PROGRAM, /* goes on: starts, has computed, has ended */
    ON_SYNCED,
    ON_COLLECTIVE_DONE, /* a: position */
    ON_PEER_LEFT,       /* a: position */
    ON_APPLIED,
    ON_RECONNECT,
    ON_DEATH
};

enum program_state {
    PROGRAM_UNBORN = 0,
    PROGRAM_IDLE, /* waits for what its core allows */
    PROGRAM_COMPUTES,
    PROGRAM_FORMS,
    PROGRAM_INSIDE, /* a collective */
    PROGRAM_APPLIES,
    PROGRAM_ENDS,
    PROGRAM_DEAD
};

/* A task's process, from PREPARE on. */
struct process {
    struct task_ref ref;
    uint32_t agent;
    uint32_t life; /* of its agent */
    uint32_t job;
    enum program_state program;
    struct task_core core;
    struct task_exit exit;
    uint64_t up_last_us; /* its socket is FIFO */
    uint64_t down_last_us;
    uint64_t variables; /* what training made of them: a chain over the steps applied */
    uint64_t stalled_at;
    uint32_t epoch;       /* it stands in */
    uint64_t epoch_first; /* position of its step 0 */
    uint64_t epoch_told;  /* position up to which READY was said, in this epoch */
    uint32_t mesh;
    uint32_t rank;
    uint64_t
        doomed; /* the collective of this position fails here although it succeeded elsewhere */
    uint32_t socket; /* numbers its connections */
    bool left_mesh;
};

/* All tasks of one generation, connected. */
struct mesh {
    uint32_t job;
    struct generation generation;
    uint32_t first; /* in sim.members */
    uint32_t count;
    uint32_t formed;
    uint32_t entered; /* the collective of `position` */
    uint32_t ended;   /* members that are in cadre_finish: they meet in a collective of their own */
    uint64_t position;
    uint64_t resume;
    uint64_t source_variables;
    uint32_t applied[POSITIONS_MAX + 1]; /* members that applied the step */
    bool broken;
};

struct link {
    uint32_t agent;
    uint32_t life;
    bool agent_open;
    bool coordinator_open;
    bool cut;
    bool told_draining; /* by the hello on it */
    uint64_t up_last_us;
    uint64_t down_last_us;
};

struct agent {
    struct agent_core *core;
    bool alive;
    uint32_t life;
    uint64_t boot_nonce;
    uint32_t link; /* NOBODY: none */
    uint64_t tick_at_us;
    uint64_t blocked_us; /* no link comes up before */
    bool faulty;         /* something happened that its jobs may notice; until its next welcome */
    bool draining;
    char name[16];
    uint32_t held[AGENT_HELD_MAX]; /* processes, NOBODY: free */
};

/* What is durable of a job. */
struct stored {
    bool known;
    bool started;
    uint64_t incarnation_max;
    struct generation generation;
    uint64_t resume;
    uint64_t watermark;
    bool ends[SCENARIO_EPOCHS_MAX]; /* end-of-data records, by epoch of the program */
    bool done;
    uint64_t done_position;
    bool ended;
    enum job_state state;
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
};

struct job {
    const struct scenario_job *plan;
    struct job_id id; /* 0: not submitted, or lost with the coordinator */
    uint64_t call;
    struct stored stored;
    bool answered;
    bool cancelled; /* and the answer was OK */
    bool placed;
    bool touched;        /* by a fault that it may notice */
    bool died;           /* the task that the scenario names died as it says */
    bool died_finished;  /* after it had reported that it is done */
    bool short_finished; /* the task that makes fewer steps has done so */
    bool used[SCENARIO_AGENTS_MAX];
    uint32_t mesh;
    uint32_t *processes; /* newest of each slot */
    uint64_t truth[POSITIONS_MAX + 1];
};

struct coordinator {
    struct core *core;
    void *memory;
    size_t memory_bytes;
    uint32_t life;
    struct core_actions turn;
    bool turn_open;
    uint64_t tick_at_us;
    uint32_t submitting; /* job */
};

struct sim {
    uint64_t seed;
    struct prng prng;
    struct scenario scenario;
    struct queue queue;
    struct message_pool pool;
    uint64_t now_us;
    uint64_t events;
    uint64_t digest;
    struct coordinator coordinator;
    struct agent *agents;
    unsigned char *agent_memory;
    size_t agent_bytes;
    struct agent_actions agent_actions;
    struct link *links;
    uint32_t link_count;
    uint32_t link_capacity;
    struct process *processes;
    uint32_t process_count;
    uint32_t process_capacity;
    struct mesh *meshes;
    uint32_t mesh_count;
    uint32_t mesh_capacity;
    uint32_t *members;
    uint32_t member_count;
    uint32_t member_capacity;
    struct job jobs[SCENARIO_JOBS_MAX];
    uint64_t job_max;
    uint64_t calls;
    uint32_t jobs_ended;
    bool links_broke; /* between daemons and the coordinator, or tasks and daemons */

    int mutant; /* 0: none */
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
void sim_free(struct sim *sim);
void later(struct sim *sim, uint64_t delay_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n);
void later_with(struct sim *sim, uint64_t at_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n, struct message *message);
uint64_t draw(struct sim *sim, uint64_t low, uint64_t high);

/* ---- trace.c ---- */

__attribute__((format(printf, 3, 4))) void broken(
    struct sim *sim, const char *invariant, const char *format, ...);
__attribute__((format(printf, 2, 3))) void trace(struct sim *sim, const char *format, ...);
const char *trace_up(const struct agent_up *up, char text[SIM_TRACE_BYTES]);
const char *trace_task_up(const struct task_up *up, char text[SIM_TRACE_BYTES]);
const char *trace_down(const struct agent_down *down, char text[SIM_TRACE_BYTES]);

/* ---- network.c ---- */

void link_open(struct sim *sim, uint32_t agent);
void link_cut(struct sim *sim, uint32_t link, uint64_t notice_us);
void link_refuse(struct sim *sim, uint32_t link, cadre_status code, const char *text);
void send_up(struct sim *sim, uint32_t link, const struct agent_up *up);
/* One message to many: the caller keeps its reference. */
void send_down(struct sim *sim, uint32_t link, struct message *message);

/* ---- coordinator.c ---- */

void coordinator_boot(struct sim *sim);
void coordinator_crash(struct sim *sim);
void coordinator_step(struct sim *sim, struct core_event *event);
void coordinator_tick(struct sim *sim);
void coordinator_turn_end(struct sim *sim);

/* ---- speak.c ---- */

void speak(struct sim *sim, const struct core_action *action);
struct job *job_by_id(struct sim *sim, struct job_id id);

/* ---- daemon.c ---- */

void agent_boot(struct sim *sim, uint32_t agent);
void agent_connect(struct sim *sim, uint32_t agent);
void agent_crash(struct sim *sim, uint32_t agent);
void agent_step(
    struct sim *sim, uint32_t agent, struct agent_event *event, struct message *message);
void agent_of_process(struct sim *sim, const struct happening *happening);
/* Something that jobs with tasks here may notice. */
void agent_touch(struct sim *sim, uint32_t agent);

/* ---- program.c ---- */

void process_spawned(struct sim *sim, uint32_t process);
void process_exit(struct sim *sim, uint32_t process, int32_t code, int32_t signal);
void process_signal(struct sim *sim, uint32_t process, int signal);
void process_hear(struct sim *sim, uint32_t process, const struct task_down *down);
void program_happens(struct sim *sim, const struct happening *happening);
/* One event into the task's core, its actions carried out. */
void program_event(struct sim *sim, uint32_t process, const struct task_event *event);
void job_truth(struct job *job, uint64_t variables);

/* ---- mesh.c ---- */

uint32_t mesh_open(struct sim *sim, struct job *job, const struct core_job_view *view);
void mesh_form(struct sim *sim, uint32_t process);
void mesh_enter(struct sim *sim, uint32_t process, uint64_t position);
/* It has called cadre_finish. */
void mesh_end(struct sim *sim, uint32_t process);
void mesh_leave(struct sim *sim, uint32_t process);

/* ---- check.c ---- */

void check_cores(struct sim *sim, uint32_t agent, bool whole);
void check_records(struct sim *sim, const struct core_action *action);
void check_fed(struct sim *sim, const struct agent_arrived *arrived);
void check_plan(struct sim *sim, const struct job *job, const struct task_plan *plan);
void check_release(struct sim *sim, const struct job *job, const struct task_release *release);
void check_bye(struct sim *sim, const struct job *job);
void check_enter(struct sim *sim, const struct process *process, uint64_t position);
void check_applied(struct sim *sim, struct process *process, uint64_t position);
void check_running(struct sim *sim, uint32_t agent);
void check_outcomes(struct sim *sim);

/* ---- mutant.c: planted faults in the wiring, each caught by a named invariant ---- */

enum mutant {
    MUTANT_NONE = 0,
    MUTANT_RELEASE_AHEAD,
    MUTANT_PLAN_UNRECORDED,
    MUTANT_WATERMARK_UNRECORDED,
    MUTANT_ANSWER_UNRECORDED,
    MUTANT_START_UNRECORDED,
    MUTANT_DONE_UNRECORDED,
    MUTANT_ABSENT_ARRIVAL,
    MUTANT_OTHER_NONCE,
    MUTANT_TWO_OF_A_RANK,
    MUTANT_HALT_PASSED,
    MUTANT_BYE_LOST,
    MUTANT_BYE_EARLY,
    MUTANT_START_LOST,
    MUTANT_EXIT_WHITEWASHED,
    MUTANT_STATE_NOT_TAKEN_OVER,
    MUTANT_COLLECTIVE_WITHOUT_ONE,
    MUTANT_APPLIED_TWICE,
    MUTANT_STOP_LOST,
    MUTANT_KILL_LOST,
    MUTANT_EXIT_INVENTED,
    MUTANT_ENTERED_UNRELEASED,
    MUTANT_FED_LESS,
    MUTANT_END_MOVED,
    MUTANT_END_LOST,
    MUTANT_WANT_LOST,
    MUTANT_DRAIN_UNTOLD,
    MUTANT_COUNT
};

struct mutant_case {
    const char *name;
    const char *caught_by;
};

extern const struct mutant_case mutant_cases[MUTANT_COUNT];

/* true: this mutant is planted (and has now acted). */
bool mutant_acts(struct sim *sim, enum mutant mutant);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Faults that can be planted in the wiring between the cores, each to be caught by the invariant
 * that it breaks: --mutants plants each alone, in the world in which it can show, at 3, 5 and 8
 * workers, and runs seeds until an invariant that is named for it breaks. */
#ifndef CADRE_SIM_MUTANT_H
#define CADRE_SIM_MUTANT_H

#include <stdbool.h>

struct agent_arrived;
struct sim;

enum mutant {
    MUTANT_NONE = 0,
    /* coordinator: its records */
    MUTANT_PLAN_UNRECORDED,
    MUTANT_WATERMARK_UNRECORDED,
    MUTANT_ANSWER_UNRECORDED,
    MUTANT_START_UNRECORDED,
    MUTANT_TASK_UNRECORDED,
    MUTANT_CONTROL_UNRECORDED,
    MUTANT_CHECKPOINT_UNRECORDED,
    MUTANT_DONE_UNRECORDED,
    MUTANT_DRAIN_UNRECORDED,
    MUTANT_END_UNSYNCED,
    MUTANT_END_MOVED,
    MUTANT_END_LOST,
    MUTANT_CONSUMPTION_MOVED,
    /* coordinator: its messages */
    MUTANT_RELEASE_AHEAD,
    MUTANT_OTHER_NONCE,
    MUTANT_TWO_OF_A_RANK,
    MUTANT_HALT_PASSED,
    MUTANT_GOODBYE_LOST,
    MUTANT_GOODBYE_EARLY,
    MUTANT_GOODBYE_TO_ZOMBIE,
    MUTANT_START_LOST,
    MUTANT_STOP_LOST,
    MUTANT_RAISED_UNSENT,
    MUTANT_RESUME_AT_MIN,
    MUTANT_SOURCE_ELSEWHERE,
    MUTANT_CHECKPOINT_AHEAD,
    MUTANT_RESTORE_FORGOTTEN,
    MUTANT_SAVED_ELSEWHERE,
    MUTANT_RESUMED_ELSEWHERE,
    MUTANT_ASKED_LATE,
    MUTANT_LEASE_ALONE,
    MUTANT_HELD_SENT,
    MUTANT_HELD_FORGOTTEN,
    MUTANT_HELD_CLOCK,
    MUTANT_HELD_HALF,
    MUTANT_ERROR_IGNORED,
    /* the network */
    MUTANT_SILENCE_UNNOTICED,
    MUTANT_HALF_OPEN_KEPT,
    /* clocks */
    MUTANT_PAUSE_UNSEEN,
    /* ps jobs */
    MUTANT_BACKED_UNRECORDED,
    MUTANT_CHANGES_ANYHOW,
    MUTANT_CHANGE_UNSENT,
    MUTANT_KEPT_ANYHOW,
    MUTANT_ANSWERED_ALONE,
    MUTANT_PS_TASK_PLANNED,
    MUTANT_COPY_BEHIND,
    /* two coordinators */
    MUTANT_TERMS_UNJUDGED,
    MUTANT_TERM_UNRECORDED,
    MUTANT_TERM_FORGOTTEN,
    MUTANT_SUPERSEDE_UNSTORED,
    MUTANT_SUPERSEDE_UNSENT,
    MUTANT_SUPERSEDE_IGNORED,
    /* a disk that lies */
    MUTANT_AHEAD_SUPERSEDED,
    /* values; planted where tasks compare them */
    MUTANT_VALUES_UNCOMPARED,
    MUTANT_DIGEST_INVENTED,
    /* daemons */
    MUTANT_ABSENT_ARRIVAL,
    MUTANT_APPLIED_AHEAD,
    MUTANT_EPOCH_FORGOTTEN,
    MUTANT_EPOCH_BEGUN_LATE,
    MUTANT_EXIT_WHITEWASHED,
    MUTANT_EXIT_INVENTED,
    MUTANT_KILL_LOST,
    MUTANT_DIRTY_SOURCE,
    MUTANT_OWN_STATE_GIVEN,
    MUTANT_PAUSE_UNSAVED,
    MUTANT_HELLO_AS_REPORT,
    MUTANT_HELLO_WATERMARK_IGNORED,
    MUTANT_UNORDERLY_AS_ORDERLY,
    MUTANT_REPORT_OF_ANOTHER,
    MUTANT_PLAN_TO_SUCCESSOR,
    MUTANT_PUBLISHED_UNSTORED,
    /* tasks and their mesh */
    MUTANT_STATE_NOT_TAKEN_OVER,
    MUTANT_COLLECTIVE_WITHOUT_ONE,
    MUTANT_APPLIED_TWICE,
    MUTANT_ENTERED_UNRELEASED,
    MUTANT_OWN_EXIT,
    MUTANT_TORN_NOT_DIRTY,
    MUTANT_RECEIVER_NOT_DIRTY,
    MUTANT_MESH_UNFENCED,
    MUTANT_CONSUMED_TWICE,
    MUTANT_CONSUMED_OLD_SLICE,
    MUTANT_BETWEEN_STEPS_NOT_REDONE,
    MUTANT_CHECKPOINT_TORN,
    MUTANT_STOP_UNSEEN,
    MUTANT_IDLE_UNSENT,
    /* variables that steps create */
    MUTANT_CREATION_KEPT,
    MUTANT_CREATION_LOST,
    MUTANT_CREATION_RENAMED,
    MUTANT_CREATION_UNSAVED,
    MUTANT_LAYOUT_UNSENT,
    /* several coordinators */
    MUTANT_NO_GUARD,
    MUTANT_LOOK_THEN_PUT,
    MUTANT_SENT_AS_NEW,
    MUTANT_NO_REQUEST_ID,
    MUTANT_SAID_BEFORE_LOG,
    MUTANT_RESET_AT_ONCE,
    MUTANT_TASK_END_AT_ONCE,
    MUTANT_RELEASE_OVERTAKES,
    MUTANT_OWN_COPY,
    MUTANT_GAP_APPLIED,
    MUTANT_TERM_UNLOOKED,
    MUTANT_TIME_FROM_ANSWER,
    MUTANT_TIME_UNCHECKED,
    MUTANT_SUSPENDED_TIMERS,
    MUTANT_WATERMARK_OF_COPY,
    MUTANT_TAIL_BEHIND,
    MUTANT_STATE_KEPT,
    MUTANT_SNAPSHOT_ALONE,
    MUTANT_SNAPSHOT_SKIPPED,
    MUTANT_REVISION_ONLY,
    MUTANT_RESTORED_ACCEPTED,
    MUTANT_COUNT
};

struct mutant_case {
    const char *name;
    const char *caught_by; /* one of these invariants, whichever comes first */
    int world;             /* the world that it is planted in: scenario_world */
    const char *area;      /* the part of the simulation that it is planted in; NULL: in the oldest
                            * part */
};

extern const struct mutant_case mutant_cases[MUTANT_COUNT];

/* true: this mutant is planted (and has now acted). */
bool mutant_acts(struct sim *sim, enum mutant mutant);
/* For faults that must continue once they have begun. */
bool mutant_goes_on(struct sim *sim, enum mutant mutant);
/* Those of a daemon's arrivals, before one is sent. */
void mutant_arrived(struct sim *sim, struct agent_arrived *arrived);

#endif

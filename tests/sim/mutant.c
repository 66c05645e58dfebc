/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in the wiring between the cores, to show that each invariant can fail. The cores
 * are never changed. main.c runs them. */
#include "sim.h"

const struct mutant_case mutant_cases[MUTANT_COUNT] = {
    [MUTANT_NONE] = {"none", "", 0, NULL},
    [MUTANT_PLAN_UNRECORDED] = {"plan-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_WATERMARK_UNRECORDED] = {"watermark-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_ANSWER_UNRECORDED] = {"answer-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_START_UNRECORDED] = {"start-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_TASK_UNRECORDED] = {"task-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_CONTROL_UNRECORDED] = {"control-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_CHECKPOINT_UNRECORDED] = {"checkpoint-unrecorded", "PERSIST, PREEMPT", 0, NULL},
    [MUTANT_DONE_UNRECORDED] = {"done-unrecorded", "PERSIST", 0, NULL},
    [MUTANT_DRAIN_UNRECORDED] = {"drain-unrecorded", "DRAINED", 0, NULL},
    [MUTANT_END_UNSYNCED] = {"end-unsynced", "PERSIST", 0, NULL},
    [MUTANT_END_MOVED] = {"end-moved", "END", 0, NULL},
    [MUTANT_END_LOST] = {"end-lost", "END", 0, NULL},
    [MUTANT_CONSUMPTION_MOVED] = {"consumption-moved", "CONSUMED", 0, NULL},
    [MUTANT_RELEASE_AHEAD] = {"release-ahead", "ARRIVED", 0, NULL},
    [MUTANT_OTHER_NONCE] = {"other-nonce", "GEN_UP", 0, NULL},
    [MUTANT_TWO_OF_A_RANK] = {"two-of-a-rank", "RANKS", 0, NULL},
    [MUTANT_HALT_PASSED] = {"halt-passed", "HALT", 0, NULL},
    [MUTANT_GOODBYE_LOST] = {"goodbye-lost", "PROGRESS", 0, NULL},
    [MUTANT_GOODBYE_EARLY] = {"goodbye-early", "HALT", 0, NULL},
    [MUTANT_GOODBYE_TO_ZOMBIE] = {"goodbye-to-zombie", "HALT", 0, NULL},
    [MUTANT_START_LOST] = {"start-lost", "PROGRESS", 0, NULL},
    [MUTANT_STOP_LOST] = {"stop-lost", "PROGRESS", 0, NULL},
    [MUTANT_RAISED_UNSENT] = {"raised-unsent", "PROGRESS", 0, NULL},
    [MUTANT_RESUME_AT_MIN] = {"resume-at-min", "TIMELINE", 0, NULL},
    [MUTANT_SOURCE_ELSEWHERE] = {"source-elsewhere", "TIMELINE", 0, NULL},
    [MUTANT_CHECKPOINT_AHEAD] = {"checkpoint-ahead", "PERSIST", 0, NULL},
    [MUTANT_RESTORE_FORGOTTEN] = {"restore-forgotten", "RESTORE", 0, NULL},
    [MUTANT_SAVED_ELSEWHERE] = {"saved-elsewhere", "PREEMPT, PERSIST", 0, NULL},
    [MUTANT_RESUMED_ELSEWHERE] = {"resumed-elsewhere", "PREEMPT", 0, NULL},
    [MUTANT_ASKED_LATE] = {"asked-late", "ASKED, HALT", 0, NULL},
    [MUTANT_LEASE_ALONE] = {"lease-alone", "REWIND", 0, NULL},
    [MUTANT_HELD_SENT] = {"held-sent", "PERSIST", 1, "disks"},
    [MUTANT_HELD_FORGOTTEN] = {"held-forgotten", "PERSIST, TRUTH, PROGRESS", 1, "disks"},
    [MUTANT_HELD_HALF] = {"held-half", "GANG, IDS, GEN_UP, PERSIST, ADMIT, PROGRESS", 1, "disks"},
    [MUTANT_HELD_CLOCK] = {"held-clock", "TRUTH, REWIND", 1, "disks"},
    [MUTANT_ERROR_IGNORED] = {"error-ignored", "PERSIST, DRAINED", 1, "disks"},
    [MUTANT_SILENCE_UNNOTICED] = {"silence-unnoticed", "PROGRESS, LEFT, TRUTH", 1, "one way"},
    [MUTANT_HALF_OPEN_KEPT] = {"half-open-kept", "REWIND, TRUTH, PROGRESS", 1, "one way"},
    [MUTANT_PAUSE_UNSEEN] = {"pause-unseen", "REWIND, TRUTH", 1, "clocks"},
    [MUTANT_BACKED_UNRECORDED] = {"backed-unrecorded", "PERSIST", 1, "ps-jobs"},
    [MUTANT_CHANGES_ANYHOW] = {"changes-anyhow", "PS_JOB", 1, "ps-jobs"},
    [MUTANT_CHANGE_UNSENT] = {"change-unsent", "PS_JOB", 1, "ps-jobs"},
    [MUTANT_KEPT_ANYHOW] = {"kept-anyhow", "KEPT", 1, "ps-jobs"},
    [MUTANT_ANSWERED_ALONE] = {"answered-alone", "KEPT", 1, "ps-jobs"},
    [MUTANT_PS_TASK_PLANNED] = {"ps-task-planned", "PS_JOB", 1, "ps-jobs"},
    [MUTANT_COPY_BEHIND] = {"copy-behind", "KEPT", 1, "ps-jobs"},
    [MUTANT_TERMS_UNJUDGED] = {"terms-unjudged", "TERM", 1, "coordinators"},
    [MUTANT_TERM_UNRECORDED] = {"term-unrecorded", "TERM", 1, "coordinators"},
    [MUTANT_TERM_FORGOTTEN] = {"term-forgotten", "TERM", 1, "coordinators"},
    [MUTANT_SUPERSEDE_UNSTORED] = {"supersede-unstored", "TERM", 2, "coordinators"},
    [MUTANT_SUPERSEDE_UNSENT] = {"supersede-unsent", "TERM", 2, "coordinators"},
    [MUTANT_SUPERSEDE_IGNORED] = {"supersede-ignored", "TERM", 2, "coordinators"},
    [MUTANT_AHEAD_SUPERSEDED] = {"ahead-superseded", "KEEP", 5, "lies"},
    [MUTANT_VALUES_UNCOMPARED] = {"values-uncompared", "VALUE, PROGRESS", 1, "values"},
    [MUTANT_DIGEST_INVENTED] = {"digest-invented", "VALUE", 1, "values"},
    [MUTANT_ABSENT_ARRIVAL] = {"absent-arrival", "ARRIVED", 0, NULL},
    [MUTANT_APPLIED_AHEAD] = {"applied-ahead", "CKPT_BEHIND", 0, NULL},
    [MUTANT_EPOCH_FORGOTTEN] = {"epoch-forgotten", "CONSUMED", 0, NULL},
    [MUTANT_EPOCH_BEGUN_LATE] = {"epoch-begun-late", "CONSUMED", 0, NULL},
    [MUTANT_EXIT_WHITEWASHED] = {"exit-whitewashed", "TRUTH", 0, NULL},
    [MUTANT_EXIT_INVENTED] = {"exit-invented", "LEFT, ASSERT, REFUSED", 0, NULL},
    [MUTANT_KILL_LOST] = {"kill-lost", "PROGRESS, LEFT", 0, NULL},
    [MUTANT_DIRTY_SOURCE] = {"dirty-source", "TIMELINE", 0, NULL},
    [MUTANT_OWN_STATE_GIVEN] = {"own-state-given", "OWN_STATE", 4, "state keepers"},
    [MUTANT_PAUSE_UNSAVED] = {"pause-unsaved", "OWN_STATE", 4, "state keepers"},
    [MUTANT_HELLO_AS_REPORT] = {"hello-as-report", "TIMELINE, TRUTH, CONSUMED", 0, NULL},
    [MUTANT_HELLO_WATERMARK_IGNORED] = {"hello-watermark-ignored", "TRUTH, PROGRESS", 0, NULL},
    [MUTANT_UNORDERLY_AS_ORDERLY] = {"unorderly-as-orderly", "TRUTH, HALT", 0, NULL},
    [MUTANT_REPORT_OF_ANOTHER] = {"report-of-another", "TIMELINE, PROGRESS", 0, NULL},
    [MUTANT_PLAN_TO_SUCCESSOR] = {"plan-to-successor", "RANKS", 0, NULL},
    [MUTANT_PUBLISHED_UNSTORED] = {"published-unstored", "PUBLISHED", 0, NULL},
    [MUTANT_STATE_NOT_TAKEN_OVER] = {"state-not-taken-over", "ONCE, TIMELINE", 0, NULL},
    [MUTANT_COLLECTIVE_WITHOUT_ONE] = {"collective-without-one", "ORDER", 0, NULL},
    [MUTANT_APPLIED_TWICE] = {"applied-twice", "ONCE", 0, NULL},
    [MUTANT_ENTERED_UNRELEASED] = {"entered-unreleased", "ADMIT", 0, NULL},
    [MUTANT_OWN_EXIT] = {"own-exit", "TRUTH", 0, NULL},
    [MUTANT_TORN_NOT_DIRTY] = {"torn-not-dirty", "TIMELINE, ONCE", 0, NULL},
    [MUTANT_RECEIVER_NOT_DIRTY] = {"receiver-not-dirty", "TIMELINE", 0, NULL},
    [MUTANT_MESH_UNFENCED] = {"mesh-unfenced", "RANKS", 0, NULL},
    [MUTANT_CONSUMED_TWICE] = {"consumed-twice", "CONSUMED", 0, NULL},
    [MUTANT_CONSUMED_OLD_SLICE] = {"consumed-old-slice", "CONSUMED", 0, NULL},
    [MUTANT_BETWEEN_STEPS_NOT_REDONE] = {"between-steps-not-redone", "POINT", 0, NULL},
    [MUTANT_CHECKPOINT_TORN] = {"checkpoint-torn", "CKPT_TIMELINE", 0, NULL},
    [MUTANT_STOP_UNSEEN] = {"stop-unseen", "PREEMPT", 0, NULL},
    [MUTANT_IDLE_UNSENT] = {"idle-unsent", "REPORTED", 0, NULL},
    [MUTANT_CREATION_KEPT] = {"creation-kept", "LAYOUT", 3, "creations"},
    [MUTANT_CREATION_LOST] = {"creation-lost", "LAYOUT", 3, "creations"},
    [MUTANT_CREATION_RENAMED] = {"creation-renamed", "LAYOUT", 3, "creations"},
    [MUTANT_CREATION_UNSAVED] = {"creation-unsaved", "LAYOUT", 3, "creations"},
    [MUTANT_LAYOUT_UNSENT] = {"layout-unsent", "LAYOUT", 3, "creations"},
    [MUTANT_NO_GUARD] = {"ha-no-guard", "ONE_LINE, TERM_UP, GEN_UP, TWICE, IDS", 6, "replicas"},
    [MUTANT_LOOK_THEN_PUT] = {"ha-look-then-put", "ONE_LINE, TERM_UP", 6, "replicas"},
    [MUTANT_SENT_AS_NEW] = {"ha-sent-as-new", "TWICE, GEN_UP, IDS, ONE_LINE, ADMIT", 6, "replicas"},
    [MUTANT_NO_REQUEST_ID] = {"ha-no-request-id", "TWICE", 6, "replicas"},
    [MUTANT_SAID_BEFORE_LOG] = {"ha-said-before-log", "SAID", 6, "replicas"},
    [MUTANT_RESET_AT_ONCE] = {"ha-reset-at-once", "SAID, KEEP", 6, "replicas"},
    [MUTANT_TASK_END_AT_ONCE] = {"ha-task-end-at-once", "PERSIST, SAID", 6, "replicas"},
    [MUTANT_RELEASE_OVERTAKES] = {"ha-release-overtakes", "PERSIST, HALT", 6, "replicas"},
    [MUTANT_OWN_COPY] = {"ha-own-copy", "ONE_LINE, GEN_UP", 6, "replicas"},
    [MUTANT_GAP_APPLIED] = {"ha-gap-applied", "ONE_LINE", 6, "replicas"},
    [MUTANT_TERM_UNLOOKED] = {"ha-term-unlooked", "TERM_DOWN, TERM", 6, "replicas"},
    [MUTANT_TIME_FROM_ANSWER] = {"ha-time-from-answer", "BOTH", 6, "replicas"},
    [MUTANT_TIME_UNCHECKED] = {"ha-time-unchecked", "BOTH, REWIND", 6, "replicas"},
    [MUTANT_SUSPENDED_TIMERS] = {"ha-suspended-timers", "GIVEN_UP, REWIND, TRUTH", 6, "replicas"},
    [MUTANT_WATERMARK_OF_COPY] = {"ha-watermark-of-copy", "TRUTH, PROGRESS, HALT", 6, "replicas"},
    [MUTANT_TAIL_BEHIND] = {"ha-tail-behind", "END, CONSUMED, ADMIT, PROGRESS", 6, "replicas"},
    [MUTANT_STATE_KEPT] = {"ha-state-kept", "ONE_LINE", 6, "replicas"},
    [MUTANT_SNAPSHOT_ALONE] = {"ha-snapshot-alone", "TRIM", 7, "replicas"},
    [MUTANT_SNAPSHOT_SKIPPED] = {"ha-snapshot-skipped", "ONE_LINE", 7, "replicas"},
    [MUTANT_REVISION_ONLY] = {"ha-revision-only", "ONE_LINE, TERM_UP", 7, "replicas"},
    [MUTANT_BACKED_UNCOPIED] = {"ha-backed-uncopied", "KEPT", 7, "replicas"},
    [MUTANT_DISCARD_FORGOTTEN] = {"ha-discard-forgotten", "ONE_LINE", 7, "replicas"},
    [MUTANT_RESTORED_ACCEPTED] = {"ha-restored-accepted", "ONE_LINE, TERM_UP", 7, "replicas"},
};

bool mutant_acts(struct sim *sim, enum mutant mutant)
{
    if (sim->mutant != mutant || sim->mutated) {
        return false;
    }
    sim->mutated = true;
    trace(sim, "mutant %s acts", mutant_cases[mutant].name);
    return true;
}

bool mutant_goes_on(struct sim *sim, enum mutant mutant)
{
    if (sim->mutant != mutant) {
        return false;
    }
    sim->mutated = true;
    return true;
}

/* What an epoch that is over consumed. */
static void mutant_epoch(struct sim *sim, struct agent_arrived *arrived)
{
    if (mutant_goes_on(sim, MUTANT_EPOCH_FORGOTTEN)) {
        arrived->cursor.stream = 0;
    } else if (mutant_goes_on(sim, MUTANT_EPOCH_BEGUN_LATE)) {
        arrived->cursor.begin = arrived->applied;
    }
}

void mutant_arrived(struct sim *sim, struct agent_arrived *arrived)
{
    if (arrived->tasks == 0) {
        mutant_epoch(sim, arrived);
        return;
    }
    const struct job *job = job_by_id(sim, arrived->job);
    if (job == NULL) {
        return;
    }
    bool room = arrived->cursor.steps == 0 ||
                arrived->up_to - arrived->cursor.first < arrived->cursor.steps;
    if (room && arrived->up_to > 0 && mutant_acts(sim, MUTANT_ABSENT_ARRIVAL)) {
        arrived->up_to++;
    }
    if (job->plan->checkpoint_every != 0 && job->plan->segment_count == 1 &&
        mutant_goes_on(sim, MUTANT_APPLIED_AHEAD)) {
        uint64_t admitted = sim->meshes[job->mesh].admitted;
        arrived->applied = arrived->up_to < admitted ? arrived->up_to : admitted;
    }
}

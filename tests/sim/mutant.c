/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in the wiring between the cores, to show that each invariant can fail. The cores
 * are never changed. */
#include "sim.h"

const struct mutant_case mutant_cases[MUTANT_COUNT] = {
    [MUTANT_NONE] = {"none", "", false},
    [MUTANT_PLAN_UNRECORDED] = {"plan-unrecorded", "PERSIST", false},
    [MUTANT_WATERMARK_UNRECORDED] = {"watermark-unrecorded", "PERSIST", false},
    [MUTANT_ANSWER_UNRECORDED] = {"answer-unrecorded", "PERSIST", false},
    [MUTANT_START_UNRECORDED] = {"start-unrecorded", "PERSIST", false},
    [MUTANT_TASK_UNRECORDED] = {"task-unrecorded", "PERSIST", false},
    [MUTANT_CONTROL_UNRECORDED] = {"control-unrecorded", "PERSIST", false},
    [MUTANT_CHECKPOINT_UNRECORDED] = {"checkpoint-unrecorded", "PERSIST", false},
    [MUTANT_DONE_UNRECORDED] = {"done-unrecorded", "PERSIST", false},
    [MUTANT_DRAIN_UNRECORDED] = {"drain-unrecorded", "DRAINED", false},
    [MUTANT_END_MOVED] = {"end-moved", "END", false},
    [MUTANT_END_LOST] = {"end-lost", "END", false},
    [MUTANT_FEED_MOVED] = {"feed-moved", "FED", false},
    [MUTANT_RELEASE_AHEAD] = {"release-ahead", "ARRIVED", false},
    [MUTANT_OTHER_NONCE] = {"other-nonce", "GEN_UP", false},
    [MUTANT_TWO_OF_A_RANK] = {"two-of-a-rank", "RANKS", false},
    [MUTANT_HALT_PASSED] = {"halt-passed", "HALT", false},
    [MUTANT_BYE_LOST] = {"bye-lost", "PROGRESS", false},
    [MUTANT_BYE_EARLY] = {"bye-early", "HALT", false},
    [MUTANT_BYE_TO_ZOMBIE] = {"bye-to-zombie", "HALT", false},
    [MUTANT_START_LOST] = {"start-lost", "PROGRESS", false},
    [MUTANT_STOP_LOST] = {"stop-lost", "PROGRESS", false},
    [MUTANT_RAISED_UNSAID] = {"raised-unsaid", "PROGRESS", false},
    [MUTANT_RESUME_AT_MIN] = {"resume-at-min", "LINE", false},
    [MUTANT_SOURCE_ELSEWHERE] = {"source-elsewhere", "LINE", false},
    [MUTANT_CHECKPOINT_AHEAD] = {"checkpoint-ahead", "PERSIST", false},
    [MUTANT_RESTORE_FORGOTTEN] = {"restore-forgotten", "RESTORE", false},
    [MUTANT_SAVED_ELSEWHERE] = {"saved-elsewhere", "PREEMPT, PERSIST", false},
    [MUTANT_RESUMED_ELSEWHERE] = {"resumed-elsewhere", "PREEMPT", false},
    [MUTANT_ASKED_LATE] = {"asked-late", "ASKED", false},
    [MUTANT_LEASE_ALONE] = {"lease-alone", "REWIND", false},
    [MUTANT_HELD_SPOKEN] = {"held-spoken", "PERSIST", true},
    [MUTANT_HELD_FORGOTTEN] = {"held-forgotten", "PERSIST, TRUTH, PROGRESS", true},
    [MUTANT_HELD_CLOCK] = {"held-clock", "TRUTH, REWIND", true},
    [MUTANT_ERROR_IGNORED] = {"error-ignored", "PERSIST", true},
    [MUTANT_SILENCE_UNNOTICED] = {"silence-unnoticed", "PROGRESS, LEFT", true},
    [MUTANT_PAUSE_UNSEEN] = {"pause-unseen", "REWIND, TRUTH", true},
    [MUTANT_BACKED_UNRECORDED] = {"backed-unrecorded", "PERSIST", true},
    [MUTANT_KEPT_ANYHOW] = {"kept-anyhow", "KEPT", true},
    [MUTANT_ANSWERED_ALONE] = {"answered-alone", "KEPT", true},
    [MUTANT_ATTENDANT_PLANNED] = {"attendant-planned", "CREW", true},
    [MUTANT_TERMS_UNJUDGED] = {"terms-unjudged", "TERM", true},
    [MUTANT_TERM_UNRECORDED] = {"term-unrecorded", "TERM", true},
    [MUTANT_TERM_FORGOTTEN] = {"term-forgotten", "TERM", true},
    [MUTANT_ABSENT_ARRIVAL] = {"absent-arrival", "ARRIVED", false},
    [MUTANT_APPLIED_AHEAD] = {"applied-ahead", "CKPT_BEHIND", false},
    [MUTANT_EXIT_WHITEWASHED] = {"exit-whitewashed", "TRUTH", false},
    [MUTANT_EXIT_INVENTED] = {"exit-invented", "LEFT, ASSERT", false},
    [MUTANT_KILL_LOST] = {"kill-lost", "PROGRESS, LEFT", false},
    [MUTANT_DIRTY_SOURCE] = {"dirty-source", "LINE", false},
    [MUTANT_HELLO_AS_REPORT] = {"hello-as-report", "LINE, TRUTH", false},
    [MUTANT_HELLO_WATERMARK_IGNORED] = {"hello-watermark-ignored", "TRUTH", false},
    [MUTANT_UNORDERLY_AS_ORDERLY] = {"unorderly-as-orderly", "TRUTH, HALT", false},
    [MUTANT_REPORT_OF_ANOTHER] = {"report-of-another", "LINE, PROGRESS", false},
    [MUTANT_PLAN_TO_SUCCESSOR] = {"plan-to-successor", "RANKS", false},
    [MUTANT_PUBLISHED_UNSTORED] = {"published-unstored", "PUBLISHED", false},
    [MUTANT_STATE_NOT_TAKEN_OVER] = {"state-not-taken-over", "ONCE, LINE", false},
    [MUTANT_COLLECTIVE_WITHOUT_ONE] = {"collective-without-one", "ORDER", false},
    [MUTANT_APPLIED_TWICE] = {"applied-twice", "ONCE", false},
    [MUTANT_ENTERED_UNRELEASED] = {"entered-unreleased", "ADMIT", false},
    [MUTANT_OWN_EXIT] = {"own-exit", "TRUTH", false},
    [MUTANT_TORN_NOT_DIRTY] = {"torn-not-dirty", "LINE, ONCE", false},
    [MUTANT_RECEIVER_NOT_DIRTY] = {"receiver-not-dirty", "LINE", false},
    [MUTANT_MESH_UNFENCED] = {"mesh-unfenced", "RANKS", false},
    [MUTANT_FED_TWICE] = {"fed-twice", "FED", false},
    [MUTANT_FED_OLD_SLICE] = {"fed-old-slice", "FED", false},
    [MUTANT_OUTSIDE_NOT_REDONE] = {"outside-not-redone", "POINT", false},
    [MUTANT_CHECKPOINT_TORN] = {"checkpoint-torn", "CKPT_LINE", false},
    [MUTANT_STOP_UNHEARD] = {"stop-unheard", "PREEMPT", false},
    [MUTANT_STANDS_UNTOLD] = {"stands-untold", "TOLD", false},
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

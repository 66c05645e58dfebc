/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in the wiring between the cores, to show that each invariant can fail. The cores
 * are never changed. */
#include "sim.h"

const struct mutant_case mutant_cases[MUTANT_COUNT] = {
    [MUTANT_NONE] = {"none", ""},
    [MUTANT_PLAN_UNRECORDED] = {"plan-unrecorded", "PERSIST"},
    [MUTANT_WATERMARK_UNRECORDED] = {"watermark-unrecorded", "PERSIST"},
    [MUTANT_ANSWER_UNRECORDED] = {"answer-unrecorded", "PERSIST"},
    [MUTANT_START_UNRECORDED] = {"start-unrecorded", "PERSIST"},
    [MUTANT_TASK_UNRECORDED] = {"task-unrecorded", "PERSIST"},
    [MUTANT_CONTROL_UNRECORDED] = {"control-unrecorded", "PERSIST"},
    [MUTANT_CHECKPOINT_UNRECORDED] = {"checkpoint-unrecorded", "PERSIST"},
    [MUTANT_DONE_UNRECORDED] = {"done-unrecorded", "PERSIST"},
    [MUTANT_DRAIN_UNRECORDED] = {"drain-unrecorded", "DRAINED"},
    [MUTANT_END_MOVED] = {"end-moved", "END"},
    [MUTANT_END_LOST] = {"end-lost", "END"},
    [MUTANT_FEED_MOVED] = {"feed-moved", "FED"},
    [MUTANT_RELEASE_AHEAD] = {"release-ahead", "ARRIVED"},
    [MUTANT_OTHER_NONCE] = {"other-nonce", "GEN_UP"},
    [MUTANT_TWO_OF_A_RANK] = {"two-of-a-rank", "RANKS"},
    [MUTANT_HALT_PASSED] = {"halt-passed", "HALT"},
    [MUTANT_BYE_LOST] = {"bye-lost", "PROGRESS"},
    [MUTANT_BYE_EARLY] = {"bye-early", "HALT"},
    [MUTANT_BYE_TO_ZOMBIE] = {"bye-to-zombie", "HALT"},
    [MUTANT_START_LOST] = {"start-lost", "PROGRESS"},
    [MUTANT_STOP_LOST] = {"stop-lost", "PROGRESS"},
    [MUTANT_RAISED_UNSAID] = {"raised-unsaid", "PROGRESS"},
    [MUTANT_RESUME_AT_MIN] = {"resume-at-min", "LINE"},
    [MUTANT_SOURCE_ELSEWHERE] = {"source-elsewhere", "LINE"},
    [MUTANT_CHECKPOINT_AHEAD] = {"checkpoint-ahead", "PERSIST"},
    [MUTANT_RESTORE_FORGOTTEN] = {"restore-forgotten", "RESTORE"},
    [MUTANT_SAVED_ELSEWHERE] = {"saved-elsewhere", "PREEMPT, PERSIST"},
    [MUTANT_RESUMED_ELSEWHERE] = {"resumed-elsewhere", "PREEMPT"},
    [MUTANT_ASKED_LATE] = {"asked-late", "ASKED"},
    [MUTANT_LEASE_ALONE] = {"lease-alone", "REWIND"},
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
    [MUTANT_ABSENT_ARRIVAL] = {"absent-arrival", "ARRIVED"},
    [MUTANT_APPLIED_AHEAD] = {"applied-ahead", "CKPT_BEHIND"},
    [MUTANT_EXIT_WHITEWASHED] = {"exit-whitewashed", "TRUTH"},
    [MUTANT_EXIT_INVENTED] = {"exit-invented", "LEFT, ASSERT"},
    [MUTANT_KILL_LOST] = {"kill-lost", "PROGRESS, LEFT"},
    [MUTANT_DIRTY_SOURCE] = {"dirty-source", "LINE"},
    [MUTANT_HELLO_AS_REPORT] = {"hello-as-report", "LINE, TRUTH"},
    [MUTANT_HELLO_WATERMARK_IGNORED] = {"hello-watermark-ignored", "TRUTH"},
    [MUTANT_UNORDERLY_AS_ORDERLY] = {"unorderly-as-orderly", "TRUTH, HALT"},
    [MUTANT_REPORT_OF_ANOTHER] = {"report-of-another", "LINE, PROGRESS"},
    [MUTANT_PLAN_TO_SUCCESSOR] = {"plan-to-successor", "RANKS"},
    [MUTANT_PUBLISHED_UNSTORED] = {"published-unstored", "PUBLISHED"},
    [MUTANT_STATE_NOT_TAKEN_OVER] = {"state-not-taken-over", "ONCE, LINE"},
    [MUTANT_COLLECTIVE_WITHOUT_ONE] = {"collective-without-one", "ORDER"},
    [MUTANT_APPLIED_TWICE] = {"applied-twice", "ONCE"},
    [MUTANT_ENTERED_UNRELEASED] = {"entered-unreleased", "ADMIT"},
    [MUTANT_OWN_EXIT] = {"own-exit", "TRUTH"},
    [MUTANT_TORN_NOT_DIRTY] = {"torn-not-dirty", "LINE, ONCE"},
    [MUTANT_RECEIVER_NOT_DIRTY] = {"receiver-not-dirty", "LINE"},
    [MUTANT_MESH_UNFENCED] = {"mesh-unfenced", "RANKS"},
    [MUTANT_FED_TWICE] = {"fed-twice", "FED"},
    [MUTANT_FED_OLD_SLICE] = {"fed-old-slice", "FED"},
    [MUTANT_OUTSIDE_NOT_REDONE] = {"outside-not-redone", "POINT"},
    [MUTANT_CHECKPOINT_TORN] = {"checkpoint-torn", "CKPT_LINE"},
    [MUTANT_STOP_UNHEARD] = {"stop-unheard", "PREEMPT"},
    [MUTANT_STANDS_UNTOLD] = {"stands-untold", "TOLD"},
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

/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in the wiring between the cores, to show that each invariant can fail. The cores
 * are never changed. */
#include "sim.h"

const struct mutant_case mutant_cases[MUTANT_COUNT] = {
    [MUTANT_NONE] = {"none", ""},
    [MUTANT_RELEASE_AHEAD] = {"release-ahead", "ARRIVED"},
    [MUTANT_PLAN_UNRECORDED] = {"plan-unrecorded", "PERSIST"},
    [MUTANT_WATERMARK_UNRECORDED] = {"watermark-unrecorded", "PERSIST"},
    [MUTANT_ANSWER_UNRECORDED] = {"answer-unrecorded", "PERSIST"},
    [MUTANT_START_UNRECORDED] = {"start-unrecorded", "PERSIST"},
    [MUTANT_DONE_UNRECORDED] = {"done-unrecorded", "PERSIST"},
    [MUTANT_ABSENT_ARRIVAL] = {"absent-arrival", "ARRIVED"},
    [MUTANT_OTHER_NONCE] = {"other-nonce", "GEN_UP"},
    [MUTANT_TWO_OF_A_RANK] = {"two-of-a-rank", "RANKS"},
    [MUTANT_HALT_PASSED] = {"halt-passed", "HALT"},
    [MUTANT_BYE_LOST] = {"bye-lost", "PROGRESS"},
    [MUTANT_BYE_EARLY] = {"bye-early", "HALT"},
    [MUTANT_START_LOST] = {"start-lost", "PROGRESS"},
    [MUTANT_EXIT_WHITEWASHED] = {"exit-whitewashed", "TRUTH"},
    [MUTANT_STATE_NOT_TAKEN_OVER] = {"state-not-taken-over", "ONCE"},
    [MUTANT_COLLECTIVE_WITHOUT_ONE] = {"collective-without-one", "ORDER"},
    [MUTANT_APPLIED_TWICE] = {"applied-twice", "ONCE"},
    [MUTANT_STOP_LOST] = {"stop-lost", "PROGRESS"},
    [MUTANT_KILL_LOST] = {"kill-lost", "PROGRESS"},
    [MUTANT_EXIT_INVENTED] = {"exit-invented", "LEFT"},
    [MUTANT_ENTERED_UNRELEASED] = {"entered-unreleased", "ADMIT"},
    [MUTANT_FED_LESS] = {"fed-less", "FED"},
    [MUTANT_END_MOVED] = {"end-moved", "END"},
    [MUTANT_END_LOST] = {"end-lost", "END"},
    [MUTANT_WANT_LOST] = {"want-lost", "PROGRESS"},
    [MUTANT_DRAIN_UNTOLD] = {"drain-untold", "TRUTH"},
};

bool mutant_acts(struct sim *sim, enum mutant mutant)
{
    if (sim->mutant != (int)mutant || sim->mutated) {
        return false;
    }
    sim->mutated = true;
    trace(sim, "mutant %s acts", mutant_cases[mutant].name);
    return true;
}

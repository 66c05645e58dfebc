/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in what surrounds the core, to show that each invariant can
 * fail. The core itself is never changed. */
#include "world.h"

const struct mutant_case mutant_cases[MUTANT_COUNT] = {
    [MUTANT_NONE] = {"none", ""},
    [MUTANT_NO_GUARD] = {"no-guard", "ONE_LINE"},
    [MUTANT_LOOK_THEN_PUT] = {"look-then-put", "ONE_LINE"},
    [MUTANT_REVISION_ONLY] = {"revision-only", "ONE_LINE"},
    [MUTANT_ANSWERED_BEFORE_LOG] = {"answered-before-log", "SAID"},
    [MUTANT_CONFIRM_NOT_AWAITED] = {"confirm-not-awaited", "SAID"},
    [MUTANT_LEADS_FROM_OWN_COPY] = {"leads-from-own-copy", "TWICE"},
    [MUTANT_UNKNOWN_SENT_AS_NEW] = {"unknown-sent-as-new", "TWICE"},
    [MUTANT_NO_REQUEST_ID] = {"no-request-id", "TWICE"},
    [MUTANT_TIME_FROM_ANSWER] = {"time-from-answer", "BOTH"},
    [MUTANT_TIME_NOT_CHECKED] = {"time-not-checked", "BOTH"},
    [MUTANT_CLOCK_STOPS_IN_SLEEP] = {"clock-stops-in-sleep", "BOTH"},
    [MUTANT_SUSPENDED_TIMERS_RUN] = {"suspended-timers-run", "GIVEN_UP"},
    [MUTANT_TRIMMED_AT_OWN_SNAPSHOT] = {"trimmed-at-own-snapshot", "TRIM"},
    [MUTANT_GAP_APPLIED] = {"gap-applied", "ONE_LINE"},
    [MUTANT_NEWER_FORMAT_SKIPPED] = {"newer-format-skipped", "ONE_LINE"},
    [MUTANT_TWO_IN_FLIGHT] = {"two-in-flight", "ONE_LINE"},
    [MUTANT_PIECES_LEFT_OUT] = {"pieces-left-out", "ONE_LINE"},
};

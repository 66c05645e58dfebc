/* SPDX-License-Identifier: Apache-2.0
 * What happened to a job, and when: HistoryRequest and HistoryResponse. */
#include "common/wire/rows.h"

/* At their longest, tags and lengths counted: an event has 15 numbers of at most 11 bytes and three
 * texts. */
#define EVENT_BYTES_MAX (LIMIT_NAME_BYTES + LIMIT_ROSTER_BYTES + LIMIT_TEXT_BYTES + 15 * 12 + 24)
#define JOB_BYTES_MAX   16384
_Static_assert(JOB_BYTES_MAX + LIMIT_EVENTS_LISTED * EVENT_BYTES_MAX + 64 <= LIMIT_FRAME_BYTES,
    "the longest history_response fits");

ROWS(HistoryRequest) = {
    JOB(HistoryRequest, id, id.n),
    COPY(HistoryRequest, after),
    NUMBER(HistoryRequest, limit, 0, LIMIT_EVENTS_LISTED),
};
TABLE_WITH(HistoryRequest, history_request, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(HistoryEvent, struct history_event);

/* Unknown kinds are taken as they are, because a coordinator of a newer version may have more. */
ROWS(HistoryEvent) = {
    NUMBER(HistoryEvent, number, 1, UINT64_MAX),
    COPY(HistoryEvent, time_us),
    SIGNED(HistoryEvent, kind, HISTORY_SUBMITTED, INT32_MAX),
    COPY(HistoryEvent, generation),
    POSITION(HistoryEvent, position),
    NUMBER_OR_NONE(
        HistoryEvent, slot, HISTORY_EVENT___SLOT_SLOT, HISTORY_SLOT_NONE, LIMIT_TASKS_PER_JOB - 1),
    COPY(HistoryEvent, incarnation),
    NUMBER(HistoryEvent, tasks, 0, LIMIT_TASKS_PER_JOB),
    POSITION(HistoryEvent, undone),
    BOOL(HistoryEvent, restarted),
    COPY(HistoryEvent, waited_us),
    SIGNED(HistoryEvent, exit_code, INT32_MIN, INT32_MAX),
    SIGNED(HistoryEvent, exit_signal, 0, INT32_MAX),
    SIGNED(HistoryEvent, state, 0, INT32_MAX),
    SIGNED(HistoryEvent, code, CADRE_OK, CADRE_UNAUTHENTICATED),
    TEXT(HistoryEvent, worker, decode_name_or_empty),
    TEXT_FOR_PEOPLE(HistoryEvent, roster, decode_name_or_empty),
    TEXT_FOR_PEOPLE(HistoryEvent, text, decode_text),
};
static TABLE(HistoryEvent, history_event);

ROWS(HistoryResponse) = {
    MESSAGE(HistoryResponse, job, JobInfo),
    MESSAGES(HistoryResponse, events, HistoryEvent, events, event_count, LIMIT_EVENTS_LISTED),
    COPY(HistoryResponse, last),
    COPY(HistoryResponse, dropped),
    BOOL(HistoryResponse, more),
};
TABLE_WITH(HistoryResponse, history_response, .limit_bytes = LIMIT_FRAME_BYTES);

/* SPDX-License-Identifier: Apache-2.0
 * Responses of the service Coordinators. */
#include "common/wire/rows.h"

WIRE_MODEL(CoordinatorInfo, struct coordinator_info);

ROWS(CoordinatorInfo) = {
    TEXT(CoordinatorInfo, name, decode_name),
    TEXT(CoordinatorInfo, addresses, decode_text),
    TEXT(CoordinatorInfo, state, decode_name),
    TEXT_FOR_PEOPLE(CoordinatorInfo, text, decode_text),
    BOOL(CoordinatorInfo, leads),
    MESSAGE_OR_NONE(CoordinatorInfo, term, Term),
    COPY(CoordinatorInfo, since_us),
    COPY(CoordinatorInfo, applied),
    COPY(CoordinatorInfo, head),
    TEXT(CoordinatorInfo, version, decode_name_or_empty),
    SPAN(CoordinatorInfo, age_us),
    COPY(CoordinatorInfo, process),
    COPY(CoordinatorInfo, format_max),
    COPY(CoordinatorInfo, written_us),
};
static TABLE(CoordinatorInfo, coordinator_info);

ROWS(LeaderResponse) = {
    MESSAGE(LeaderResponse, self, CoordinatorInfo),
    SPAN(LeaderResponse, may_lead_us),
    TEXT(LeaderResponse, leader, decode_name_or_empty),
    TEXT(LeaderResponse, leader_addresses, decode_text),
};
TABLE_WITH(LeaderResponse, leader_response, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(ListCoordinatorsResponse) = {
    MESSAGES(ListCoordinatorsResponse, coordinators, CoordinatorInfo, coordinators, count,
        LIMIT_COORDINATORS),
};
TABLE_WITH(ListCoordinatorsResponse, list_coordinators_response, .limit_bytes = LIMIT_FRAME_BYTES);

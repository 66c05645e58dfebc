/* SPDX-License-Identifier: Apache-2.0
 * The answer to a query: what of a state the request asks for, packed. */
#ifndef CADRE_COORDINATOR_SERIES_RECORDS_SERIES_ANSWER_H
#define CADRE_COORDINATOR_SERIES_RECORDS_SERIES_ANSWER_H

#include "coordinator/series/records/series_records.h"

/* Appends a packed metrics_response to the buffer. RESOURCE_EXHAUSTED: no memory. Any thread. */
cadre_status series_answer(const struct series_state *state, const struct metrics_request *request,
    const struct verify_generation *generations, size_t generation_count,
    struct wire_buffer *buffer, struct cadre_error *error);

#endif

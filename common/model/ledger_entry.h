/* SPDX-License-Identifier: Apache-2.0
 * A commit of the coordinator's ledger as one entry of a log, from which another coordinator writes
 * the same rows into a ledger of its own. coordinator/entries/log_entry.h makes one of the records
 * of a commit, and records of it. */
#ifndef CADRE_MODEL_LEDGER_ENTRY_H
#define CADRE_MODEL_LEDGER_ENTRY_H

#include "common/model/history.h"
#include "common/model/record.h"

/* Of the records of an entry. A reader refuses an entry of a newer one: an older reader ignores
 * fields that it does not know, and would write other rows. */
#define LEDGER_FORMAT 1

/* The number of an event, beside those of enum core_record_type. */
#define LEDGER_EVENT 28

/* The placement of a task, or a member of a roster. */
struct ledger_placement {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t attempts;            /* of the slot ... */
    uint64_t attempts_generation; /* ... in the generation of this number */
    const char *worker;           /* "" in a roster */
};

/* Strings and arrays are borrowed. */
struct ledger_record {
    uint32_t type;     /* of core, or LEDGER_EVENT */
    struct job_id job; /* 0: of no job */
    uint64_t wall_us;  /* when, if its store keeps that; else 0 */
    struct core_record core;
    const uint8_t *spec; /* of CORE_RECORD_JOB: the packed job_spec */
    size_t spec_bytes;
    const struct ledger_placement *placements; /* of CORE_RECORD_STARTED and CORE_RECORD_PLAN */
    size_t placement_count;
    uint64_t committed;         /* of CORE_RECORD_ENDING */
    struct history_event event; /* of LEDGER_EVENT, without its number */
};

struct ledger_entry {
    uint32_t format;
    const struct ledger_record *records;
    size_t record_count;
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a parameter server with a backup may answer. The coordinator has recorded from whose copy
 * the server's variables may be taken by another one in its place; what it records next the server
 * says. Between the two either may be true, so what is answered has to be in the copies of both.
 *
 *     recorded: nobody ── the copy of b is whole ──▶ said: b ── ─ ─ ─ ──▶ recorded: b
 *         ▲                                          only with b's answer, from here on
 *         └──── ─ ─ ─ ◀── said: nobody ◀── b is lost ────────────────────────┘
 *              nothing is answered meanwhile, unless b is back
 *
 * Pure; the caller has a lock. */
#ifndef CADRE_PS_SERVER_BACKUP_RECORD_H
#define CADRE_PS_SERVER_BACKUP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/task_message.h"

struct backup_record {
    struct task_backed sent; /* the newest statement; number 0: as recorded for the life before */
    uint64_t counted;        /* whose copy may be recorded now; 0: surely nobody's */
    bool recorded;           /* the newest statement is */
};

/* A life begins; what is recorded then holds for it. */
void backup_record_begin(struct backup_record *backup_record, const struct task_backed *recorded);

/* The copy of `with` has all that is here; 0: nobody's has. True: `said` is another one, to be said
 * until it is recorded. Then call it again: between two copies nobody's is said first. */
bool backup_record_update(struct backup_record *backup_record, uint64_t with);

/* As the coordinator says it. */
void backup_record_confirmed(
    struct backup_record *backup_record, const struct task_backed *recorded);

/* Whether what is here may be answered, when the copy of `with` has all of it and that of `counted`
 * may be recorded. */
static inline bool backup_record_allows(uint64_t counted, uint64_t with)
{
    return counted == 0 || counted == with;
}

#endif

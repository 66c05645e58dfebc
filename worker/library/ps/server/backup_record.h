/* SPDX-License-Identifier: Apache-2.0
 * What a parameter server with a backup may answer. The coordinator has recorded from whose copy
 * a replacement may take the server's variables; the server reports what is to be recorded next.
 * Until that is confirmed either may be recorded, so an answer has to be in the copies of both.
 *
 *     recorded: none ─── the copy of b is whole ──▶ reported: b ── ─ ─ ──▶ recorded: b
 *         ▲                                         only with b's answer, from here on
 *         └──── ─ ─ ─ ◀── reported: none ◀── b is lost ──────────────────────┘
 *              nothing is answered meanwhile, unless b is back
 *
 * Pure; the caller has a lock. */
#ifndef CADRE_PS_SERVER_BACKUP_RECORD_H
#define CADRE_PS_SERVER_BACKUP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/task_message.h"

struct backup_record {
    struct task_backed sent; /* the newest report; number 0: as recorded for the incarnation
                              * before */
    uint64_t counted;        /* whose copy may be recorded now; 0: surely none */
    bool recorded;           /* the newest report is recorded */
};

/* An incarnation begins; `recorded` holds for it. */
void backup_record_begin(struct backup_record *backup_record, const struct task_backed *recorded);

/* The copy of `with` has all that is here; 0: no copy has. True: `sent` has changed and is to be
 * reported until it is recorded. Then call it again: between two copies "none" is reported
 * first. */
bool backup_record_update(struct backup_record *backup_record, uint64_t with);

/* The coordinator's record arrived. One that is older than a record before it is that of a ledger
 * that was put back: the copy that it names counts again, and the newest report is to be sent
 * again. */
void backup_record_confirmed(
    struct backup_record *backup_record, const struct task_backed *recorded);

/* Whether the state here may be answered, when the copy of `with` has all of it and that of
 * `counted` may be recorded. */
static inline bool backup_record_allows(uint64_t counted, uint64_t with)
{
    return counted == 0 || counted == with;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One moment for all parts of a strategy (participant.h), in the order that is said there. One that
 * fails is the last to be called, but for `undo`: that reaches all, and says whether it was well
 * with all of them. */
#ifndef CADRE_RUNTIME_PARTICIPANTS_H
#define CADRE_RUNTIME_PARTICIPANTS_H

#include "worker/library/runtime/strategy/participant.h"

/* At most 32 parts, which stay the caller's. */
void participants_list(
    const struct participant *const parts[], uint32_t count, struct participant_list *ret_list);

cadre_status participants_open(cadre_strategy *strategy, struct cadre_error *error);
void participants_close(cadre_strategy *strategy);
void participants_free(cadre_strategy *strategy);
cadre_status participants_check(const struct step_order *order, struct cadre_error *error);
void participants_place(cadre_strategy *strategy, enum loop_place place, bool reached);
cadre_status participants_halt(cadre_strategy *strategy, struct cadre_error *error);
cadre_status participants_still(cadre_strategy *strategy, struct cadre_error *error);
cadre_status participants_begin(struct step_order *order, struct cadre_error *error);
cadre_status participants_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error);
void participants_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure);
/* A part that has this moment is there where digests are told. */
cadre_status participants_differ(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
cadre_status participants_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
bool participants_is_cause(const cadre_strategy *strategy, const cadre_replica *replica);
void participants_commit(struct step_order *order);
bool participants_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause);
cadre_status participants_adopt(struct step_order *order, struct cadre_error *error);
void participants_report(const struct step_order *order);
cadre_status participants_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error);
void participants_over(cadre_strategy *strategy);
void participants_tell(const cadre_strategy *strategy, struct point *point);
cadre_status participants_explain(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error);
cadre_status participants_load(cadre_strategy *strategy, struct cadre_error *error);
cadre_status participants_prepare(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error);
cadre_status participants_pass(cadre_strategy *strategy, uint32_t local,
    const struct passing *passing, struct cadre_error *error);
cadre_status participants_greet(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error);
cadre_status participants_read(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error);
cadre_status participants_enter(
    cadre_strategy *strategy, enum entrance entrance, struct cadre_error *error);
void participants_settle(cadre_strategy *strategy);
cadre_status participants_reopen(cadre_strategy *strategy, struct cadre_error *error);

#endif

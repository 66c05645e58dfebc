/* SPDX-License-Identifier: Apache-2.0
 * One moment for all parts of a strategy (strategy_hooks.h), in the order that is said there. One
 * that fails is the last to be called, but for `undo`: that reaches all, and says whether it was
 * well with all of them. */
#ifndef CADRE_RUNTIME_HOOKS_H
#define CADRE_RUNTIME_HOOKS_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

/* At most 32 parts, which stay the caller's. */
void hooks_list(const struct strategy_hooks *const tables[], uint32_t count,
    struct strategy_hook_list *ret_list);

cadre_status hooks_open(cadre_strategy *strategy, struct cadre_error *error);
void hooks_close(cadre_strategy *strategy);
void hooks_free(cadre_strategy *strategy);
cadre_status hooks_check(const struct step_order *order, struct cadre_error *error);
void hooks_loop_point(cadre_strategy *strategy, enum loop_point loop_point, bool reached);
cadre_status hooks_halt(cadre_strategy *strategy, struct cadre_error *error);
cadre_status hooks_before_pause(cadre_strategy *strategy, struct cadre_error *error);
cadre_status hooks_begin(struct step_order *order, struct cadre_error *error);
cadre_status hooks_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error);
void hooks_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure);
/* A part that has this moment is there where digests are told. */
cadre_status hooks_diverged(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
cadre_status hooks_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
bool hooks_is_cause(const cadre_strategy *strategy, const cadre_replica *replica);
void hooks_commit(struct step_order *order);
bool hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause);
cadre_status hooks_adopt(struct step_order *order, struct cadre_error *error);
void hooks_report(const struct step_order *order);
cadre_status hooks_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error);
void hooks_generation_end(cadre_strategy *strategy);
void hooks_fill_status(const cadre_strategy *strategy, struct member_status *member_status);
cadre_status hooks_compare_layout(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error);
cadre_status hooks_load(cadre_strategy *strategy, struct cadre_error *error);
cadre_status hooks_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
cadre_status hooks_transfer(cadre_strategy *strategy, uint32_t local,
    const struct sync_plan *sync_plan, struct cadre_error *error);
cadre_status hooks_joined(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error);
cadre_status hooks_validate(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
cadre_status hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error);
void hooks_cleanup(cadre_strategy *strategy);
cadre_status hooks_reopen(cadre_strategy *strategy, struct cadre_error *error);

#endif

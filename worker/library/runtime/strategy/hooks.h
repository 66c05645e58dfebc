/* SPDX-License-Identifier: Apache-2.0
 * One moment for all parts of a strategy, in the order of strategy_hooks.h, which describes each.
 * The first that fails is the last to be called, but for `undo`: that reaches all, and returns
 * whether all returned true. */
#ifndef CADRE_RUNTIME_HOOKS_H
#define CADRE_RUNTIME_HOOKS_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

/* Makes the list of at most 32 parts, whose tables stay the caller's. */
void hooks_list(const struct strategy_hooks *const tables[], uint32_t count,
    struct strategy_hook_list *ret_list);

/* Opens the parts. */
cadre_status hooks_open(cadre_strategy *strategy, struct cadre_error *error);
/* Ends what the parts do. */
void hooks_close(cadre_strategy *strategy);
/* Frees what the parts hold. */
void hooks_free(cadre_strategy *strategy);
/* The process ends, with the strategy open. */
void hooks_exit(cadre_strategy *strategy);

/* The arguments of the program are checked. */
cadre_status hooks_check(const struct step_order *order, struct cadre_error *error);
/* The program's loop is at this point. */
void hooks_loop_point(cadre_strategy *strategy, enum loop_point loop_point, bool reached);
/* A step may begin, or the job stops here. */
cadre_status hooks_halt(cadre_strategy *strategy, struct cadre_error *error);
/* The generation may pause before the step. */
cadre_status hooks_before_pause(cadre_strategy *strategy, struct cadre_error *error);
/* An attempt begins. */
cadre_status hooks_begin(struct step_order *order, struct cadre_error *error);
/* A replica's function is about to be called. */
cadre_status hooks_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error);
/* A replica's function has returned. */
void hooks_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure);
/* The digests of the replicas differ. One part at least has this hook where digests are sent. */
cadre_status hooks_diverged(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
/* What is left to do before the step can be applied. */
cadre_status hooks_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error);
/* Whether a replica's failure is its own. */
bool hooks_is_cause(const cadre_strategy *strategy, const cadre_replica *replica);
/* The step is applied. */
void hooks_commit(struct step_order *order);
/* The attempt does not count. False: the process cannot go on. */
bool hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause);
/* Others had applied the step. */
cadre_status hooks_adopt(struct step_order *order, struct cadre_error *error);
/* The step is applied, and the coordinator has the report. */
void hooks_report(const struct step_order *order);

/* The digest of a replica's state, outside of steps; 0: no part compares. */
cadre_status hooks_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error);
/* The generation is over for this task. */
void hooks_generation_end(cadre_strategy *strategy);
/* The parts fill in this task's status. */
void hooks_fill_status(const cadre_strategy *strategy, struct member_status *member_status);
void hooks_members(cadre_strategy *strategy, const struct member_status *statuses, uint32_t count);
/* Whether the layout of the state of `rank` fits where it differs. */
cadre_status hooks_compare_layout(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error);
/* Rank 0 loads the checkpoint. */
cadre_status hooks_load(cadre_strategy *strategy, struct cadre_error *error);
/* What is given or taken is prepared. */
cadre_status hooks_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
/* It is passed on: the hook `pass`. */
cadre_status hooks_transfer(cadre_strategy *strategy, uint32_t local,
    const struct sync_plan *sync_plan, struct cadre_error *error);
/* A joiner has the state of `rank`. */
cadre_status hooks_joined(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error);
/* What was taken is checked: the hook `read`. */
cadre_status hooks_validate(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
/* What was taken is this task's from now on. */
cadre_status hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error);
/* What was prepared is freed. */
void hooks_cleanup(cadre_strategy *strategy);
/* The generation has begun. */
cadre_status hooks_reopen(cadre_strategy *strategy, struct cadre_error *error);

#endif

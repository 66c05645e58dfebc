/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/lifecycle/constructors.h"

#include "worker/library/runtime/collectives/collectives.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/digests/digests.h"
#include "worker/library/runtime/input/input_hooks.h"
#include "worker/library/runtime/neighbours/neighbours_hooks.h"
#include "worker/library/runtime/preemption/preemption.h"
#include "worker/library/runtime/reductions/reductions.h"
#include "worker/library/runtime/roles/chief.h"
#include "worker/library/runtime/state/state_hooks.h"
#include "worker/library/runtime/step/outputs.h"
#include "worker/library/runtime/summaries/summaries.h"
#include "worker/library/runtime/variables/variables_hooks.h"

/* From top to bottom. At the beginning of a step the moments go down this list, at its end up.
 *
 *                 begin, bind, complete        returned, commit, undo      a generation
 *   preemption    may stop the job here
 *   input         refreshes, announces         consumption, cursor         positions, cut again
 *   neighbours                                           who is asked for objects
 *   digests       hashes what replicas hold    what was compared           the next step is due
 *   state         copies for a checkpoint                                  state, its text
 *   ps job
 *   outputs                                    lends, or drops             those of the last step
 *   reductions
 *   variables     folds what is on read        keeps, or puts back
 *   summaries                                  the time of the step        another event file
 *   collectives   the implicit one             ends what was started
 *   devices       binds; settles               come to rest
 */
const struct strategy_hooks *const strategy_hook_tables[] = {
    &preemption_hooks,
    &input_hooks,
    &neighbours_hooks,
    &digests_hooks,
    &state_hooks,
    &ps_job_hooks,
    &outputs_hooks,
    &reductions_hooks,
    &variables_hooks,
    &summaries_hooks,
    &collectives_hooks,
    &devices_hooks,
};

const uint32_t strategy_hook_table_count =
    sizeof strategy_hook_tables / sizeof strategy_hook_tables[0];

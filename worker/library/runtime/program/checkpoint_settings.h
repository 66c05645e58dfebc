/* SPDX-License-Identifier: Apache-2.0
 * The program's own settings of checkpoints, merged with those of its environment. */
#ifndef CADRE_RUNTIME_CHECKPOINT_SETTINGS_H
#define CADRE_RUNTIME_CHECKPOINT_SETTINGS_H

#include <stdbool.h>

#include "cadre/checkpoint.h"
#include "common/base/error.h"

struct environment;

/* `clustered`: programs that were started by hand are one job. Makes the directory. On an error
 * nothing was changed. */
cadre_status checkpoint_settings_apply(struct environment *environment, bool clustered,
    const cadre_checkpoint_options *options, struct cadre_error *error);

#endif

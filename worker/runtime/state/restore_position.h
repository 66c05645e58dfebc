/* SPDX-License-Identifier: Apache-2.0
 * Where a checkpoint stands, before there is a strategy that could load it. */
#ifndef CADRE_RUNTIME_RESTORE_POSITION_H
#define CADRE_RUNTIME_RESTORE_POSITION_H

#include <stdint.h>

#include "common/base/error.h"

/* The position in the manifest at `path`. INVALID_ARGUMENT: it is no manifest. */
cadre_status restore_position(const char *path, uint64_t *ret_position, struct cadre_error *error);

#endif

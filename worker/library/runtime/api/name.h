/* SPDX-License-Identifier: Apache-2.0
 * Names that the program gives to variables, datasets and metrics: they are sent, and written to
 * checkpoints. */
#ifndef CADRE_RUNTIME_API_NAME_H
#define CADRE_RUNTIME_API_NAME_H

#include "common/base/error.h"

/* 1 to 127 bytes of printable ASCII, else INVALID_ARGUMENT; `what` is named so in the message. */
cadre_status name_check(const char *what, const char *name, struct cadre_error *error);

#endif

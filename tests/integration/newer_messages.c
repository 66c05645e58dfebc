/* SPDX-License-Identifier: Apache-2.0
 * The messages of a later version of the daemon to keepers, and from them. */
#include "worker/host/keeper/messages.h"

#undef KEEPER_VERSION
#define KEEPER_VERSION 1001

#include "worker/host/keeper/messages.c"

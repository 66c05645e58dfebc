/* SPDX-License-Identifier: Apache-2.0
 * What a later version of the daemon says to keepers, and hears from them. */
#include "worker/host/keeper/messages.h"

#undef KEEPER_VERSION
#define KEEPER_VERSION 1001

#include "worker/host/keeper/messages.c"

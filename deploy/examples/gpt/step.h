/* SPDX-License-Identifier: Apache-2.0
 * What a replica does in a step. */
#ifndef GPT_STEP_H
#define GPT_STEP_H

#include <cadre/cadre.h>

#include "settings.h"
#include "space.h"

struct training {
    const struct settings *settings;
    struct model model;
    struct space *spaces; /* one for each local replica, made in its first step */
};

/* inputs: windows u8 [rows, length + 1]; rows may be 0. outputs: f32 [1], the mean loss of the
 * whole batch in nats per byte, in the replica's memory. */
cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

/* The same without a way back. outputs: the sum of all losses. */
cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

/* No inputs. outputs: u8 [sample]: text that the first replica writes; zeros of the others. */
cadre_status sample_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The judge of a job's proof: what the ledger's records say, and what follows from it. */
#ifndef CADRE_CLIENT_VERIFICATION_H
#define CADRE_CLIENT_VERIFICATION_H

#include "cadre/client.h"
#include "common/wire/wire.h"

/* All that `response` says, not judged yet: a result for cadre_result_release() that owns `arena`,
 * in which the texts of `response` live. NULL: out of memory, and `arena` is still the caller's. */
cadre_verification *verification_new(
    const struct verify_response *response, struct wire_arena *arena);

/* Fills in the verdicts of a cadre_verification, as far as the options ask for them; takes long for
 * large sources. */
void verification_evaluate(cadre_verification *verification, const cadre_verify_options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs/ID/verification: the ledger's records, a page a turn, judged by a thread. One proof is
 * made at a time: it may take a thread for long. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/view/verification.h"
#include "coordinator/daemon/pages/api_deferred.h"

/* A proof that takes long to be judged is kept for so long at most; that of a job that has ended
 * does not change any more. */
#define GOOD_US_MAX   (100 * CADRE_US_PER_S)
#define GOOD_US_ENDED (600 * CADRE_US_PER_S)

struct proof {
    struct api_deferred base;
    struct proof *behind; /* waits for this one's end */
    struct wire_buffer page;
    struct audit_pages pages;
};

static void proof_release(struct api_deferred *deferred)
{
    struct proof *proof = (struct proof *)deferred;
    wire_buffer_free(&proof->page);
    audit_pages_free(&proof->pages);
}

/* ---- in a thread ---- */

static void judge(struct proof *proof)
{
    const cadre_verify_options options = {0};
    cadre_verification *verification = audit_pages_result(&proof->pages);
    if (verification != NULL) {
        verification_evaluate(verification, &options);
    }
    api_deferred_take(
        &proof->base, verification != NULL ? json_of_verification(verification) : NULL);
    cadre_result_release(verification);
}

static void add_page(struct api_deferred *deferred)
{
    struct proof *proof = (struct proof *)deferred;
    if (audit_pages_add(&proof->pages, proof->page.bytes, proof->page.size, &deferred->error) ==
            CADRE_OK &&
        proof->pages.whole) {
        judge(proof);
    }
}

/* ---- on the loop ---- */

static void next_page(struct proof *proof);

static void after_page(struct api_deferred *deferred)
{
    next_page((struct proof *)deferred);
}

/* Answers it, and begins with the next one. */
static void proof_end(struct proof *proof)
{
    struct daemon *daemon = proof->base.daemon;
    struct proof *behind = proof->behind;
    daemon->proof = behind;
    api_deferred_answer(&proof->base);
    if (behind != NULL) {
        next_page(behind);
    }
}

static cadre_status read_page(struct proof *proof, struct cadre_error *error)
{
    struct verify_response response;
    const struct verify_request request = {.id = proof->base.job, .from = proof->pages.next};
    CADRE_TRY(engine_verify(proof->base.daemon->engine, &request, &response, error));
    if (!proof->pages.begun && job_state_is_final(response.job.state)) {
        proof->base.good_us_min = GOOD_US_ENDED;
    }
    wire_buffer_clear(&proof->page);
    return wire_pack_verify_response(&response, &proof->page, error);
}

static void next_page(struct proof *proof)
{
    struct api_deferred *base = &proof->base;
    if (base->error.code != CADRE_OK || base->text != NULL || !api_deferred_is_wanted(base) ||
        read_page(proof, &base->error) != CADRE_OK) {
        proof_end(proof);
    } else {
        api_deferred_work(base, add_page, after_page);
    }
}

void api_verification(const struct api_request *api)
{
    static const char *const names[] = {NULL};
    struct cadre_error error = {0};
    struct job_id job;
    if (http_target_check(http_request_target(api->request), names, &error) != CADRE_OK ||
        api_job_id(api, &job, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    struct proof *proof = api_deferred_new(api, job, sizeof *proof, proof_release);
    if (proof == NULL) {
        return;
    }
    proof->base.good_us_max = GOOD_US_MAX;
    struct proof **at = &api->daemon->proof;
    while (*at != NULL) {
        at = &(*at)->behind;
    }
    *at = proof;
    if (api->daemon->proof == proof) {
        next_page(proof);
    }
}

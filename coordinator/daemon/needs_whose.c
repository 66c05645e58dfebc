/* SPDX-License-Identifier: Apache-2.0
 * Whose a content is: which contents jobs with tasks on a worker need. */
#include "coordinator/daemon/needs_state.h"

/* Contents that are asked for, and which of them were found. */
struct asked {
    struct hash_counts asked;
    struct hash_counts found;
    bool short_of_memory;
};

static void look_for(struct asked *asked, const struct sha256 *hash)
{
    if (hash_counts_of(&asked->asked, hash) > 0 && hash_counts_of(&asked->found, hash) == 0 &&
        !hash_counts_add(&asked->found, hash)) {
        asked->short_of_memory = true;
    }
}

static void look_in_files(struct asked *asked, const struct job_spec *spec)
{
    const struct sha256 program = needs_hash(spec->program.sha256);
    look_for(asked, &program);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct sha256 file = needs_hash(spec->files[i].sha256);
        look_for(asked, &file);
    }
}

static void look_in_checkpoints(
    struct asked *asked, const struct needs *needs, const struct job_id *jobs, size_t job_count)
{
    for (size_t i = 0; needs != NULL && i < needs->count; i++) {
        const struct holder *holder = &needs->holders[i];
        size_t job = 0;
        while (job < job_count && jobs[job].n != holder->job.n) {
            job++;
        }
        for (size_t k = 0; job < job_count && k < holder->count; k++) {
            look_for(asked, &holder->hashes[k]);
        }
    }
}

/* In what the jobs need that have a task there. */
static void look(struct asked *asked, struct daemon *daemon, const char *worker)
{
    struct job_id jobs[LIMIT_SLOTS_PER_WORKER];
    size_t count = 0;
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        if (!job_state_is_final(info.state) && count < LIMIT_SLOTS_PER_WORKER &&
            engine_worker_has_job(daemon->engine, worker, info.id)) {
            look_in_files(asked, engine_job_spec(daemon->engine, info.id));
            jobs[count++] = info.id;
        }
    }
    look_in_checkpoints(asked, daemon->needs, jobs, count);
}

cadre_status needs_of_worker(struct daemon *daemon, const char *worker, const struct sha256 *hashes,
    size_t count, bool *ret_needed, struct cadre_error *error)
{
    struct asked asked = {0};
    struct cadre_error ignored;
    for (size_t i = 0; i < count && !asked.short_of_memory; i++) {
        asked.short_of_memory = !hash_counts_add(&asked.asked, &hashes[i]);
    }
    look(&asked, daemon, worker);
    bool all = true;
    for (size_t i = 0; i < count && all; i++) {
        all = hash_counts_of(&asked.found, &hashes[i]) > 0;
    }
    if (!all && daemon->needs_grown) { /* its checkpoint may not be counted yet */
        daemon->needs_grown = false;
        if (needs_refresh(daemon, &ignored) == CADRE_OK) {
            look(&asked, daemon, worker);
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret_needed[i] = hash_counts_of(&asked.found, &hashes[i]) > 0;
    }
    hash_counts_free(&asked.asked);
    hash_counts_free(&asked.found);
    return asked.short_of_memory ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "the coordinator has no memory to look for contents")
                                 : CADRE_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Which contents are referenced by jobs with tasks on a worker; worker_permissions.c,
 * worker_contents.c and file_store.c call it. */
#include "coordinator/daemon/contents/content_references_state.h"

/* The requested contents, and which of them were found. */
struct search {
    struct content_refcounts search;
    struct content_refcounts found;
    bool short_of_memory;
};

static void search_hash(struct search *search, const struct sha256 *hash)
{
    if (content_refcounts_of(&search->search, hash) > 0 &&
        content_refcounts_of(&search->found, hash) == 0 &&
        !content_refcounts_add(&search->found, hash)) {
        search->short_of_memory = true;
    }
}

static void search_files(struct search *search, const struct job_spec *spec)
{
    const struct sha256 program = content_references_hash(spec->program.sha256);
    search_hash(search, &program);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct sha256 file = content_references_hash(spec->files[i].sha256);
        if (!job_file_is_object(&spec->files[i])) {
            search_hash(search, &file);
        }
    }
}

static void search_checkpoints(struct search *search,
    const struct content_references *content_references, const struct job_id *jobs,
    size_t job_count)
{
    for (size_t i = 0; content_references != NULL && i < content_references->count; i++) {
        const struct referrer *referrer = &content_references->referrers[i];
        size_t job = 0;
        while (job < job_count && jobs[job].n != referrer->job.n) {
            job++;
        }
        for (size_t k = 0; job < job_count && k < referrer->count; k++) {
            search_hash(search, &referrer->hashes[k]);
        }
    }
}

/* In the references of the jobs that have a task there. */
static void search_all(struct search *search, struct daemon *daemon, const char *worker)
{
    struct job_id jobs[LIMIT_SLOTS_PER_WORKER];
    size_t count = 0;
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        if (!job_state_is_final(info.state) && count < LIMIT_SLOTS_PER_WORKER &&
            engine_worker_has_job(daemon->engine, worker, info.id)) {
            search_files(search, engine_job_spec(daemon->engine, info.id));
            jobs[count++] = info.id;
        }
    }
    search_checkpoints(search, daemon->content_references, jobs, count);
}

cadre_status content_references_of_worker(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_referenced, struct cadre_error *error)
{
    struct search search = {0};
    struct cadre_error ignored;
    for (size_t i = 0; i < count && !search.short_of_memory; i++) {
        search.short_of_memory = !content_refcounts_add(&search.search, &hashes[i]);
    }
    search_all(&search, daemon, worker);
    bool all = true;
    for (size_t i = 0; i < count && all; i++) {
        all = content_refcounts_of(&search.found, &hashes[i]) > 0;
    }
    if (!all && daemon->references_added) { /* its checkpoint may not be counted yet */
        daemon->references_added = false;
        if (content_references_refresh(daemon, &ignored) == CADRE_OK) {
            search_all(&search, daemon, worker);
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret_referenced[i] = content_refcounts_of(&search.found, &hashes[i]) > 0;
    }
    content_refcounts_free(&search.search);
    content_refcounts_free(&search.found);
    return search.short_of_memory ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                        "the coordinator has no memory to look for contents")
                                  : CADRE_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * When a checkpoint is taken, and the thread that writes it. state_hooks.c calls it before steps,
 * the program by cadre_save, lifecycle/ and preemption/ at the end. */
#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cadre/checkpoint.h"
#include "common/base/thread.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/piggyback.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/summaries/summaries.h"
#include "worker/library/trace/trace.h"

/* --- the writer --- */

/* The digest of the copied state is known, and that of the written bytes is another one: it would
 * not be published. It is copied again when it is to be saved again. */
static cadre_status check_copy(struct checkpointer *checkpointer, struct cadre_error *error)
{
    struct checkpoint_copy *copy = &checkpointer->copy;
    if (checkpointer->held == 0 || copy->digest == checkpointer->held) {
        return CADRE_OK;
    }
    cadre_error_set(error, CADRE_DATA_LOSS,
        "what was written of the state after %llu steps is not that state: a bit has flipped in "
        "the memory of this host",
        (unsigned long long)copy->position);
    pthread_mutex_lock(&checkpointer->lock);
    copy->position = POSITION_NONE;
    pthread_mutex_unlock(&checkpointer->lock);
    return error->code;
}

/* The copy is the writer's meanwhile. */
static cadre_status write_copy(struct checkpointer *checkpointer, struct cadre_error *error)
{
    struct checkpoint_copy *copy = &checkpointer->copy;
    CADRE_ASSERT(copy->position != POSITION_NONE);
    CADRE_ASSERT(copy->manifest != NULL);
    struct sha256 hash;
    uint64_t bytes = 0;
    cadre_status status =
        checkpoint_write(copy, checkpointer->folder, checkpointer->writer, &bytes, &hash, error);
    if (status != CADRE_OK) {
        cadre_error_wrap(error, status, "the checkpoint after %llu steps is missing",
            (unsigned long long)copy->position);
        show_failure(error);
        return status;
    }
    if (check_copy(checkpointer, error) != CADRE_OK) {
        show_failure(error);
        return error->code;
    }
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(copy->position, checkpointer->writer, CHECKPOINT_TEXT_NAME, name);
    pthread_mutex_lock(&checkpointer->lock);
    memcpy(checkpointer->part_path, name, sizeof checkpointer->part_path);
    checkpointer->part = (struct task_part){.position = copy->position,
        .path = checkpointer->part_path,
        .shared = checkpointer->shared,
        .size_bytes = bytes,
        .digest = copy->digest,
        .compared = checkpoint_agreed_on(checkpointer, copy->digest)};
    memcpy(checkpointer->part.sha256, hash.bytes, sizeof checkpointer->part.sha256);
    checkpointer->written = copy->position;
    pthread_mutex_unlock(&checkpointer->lock);
    task_part(checkpointer->strategy->task, &checkpointer->part);
    return CADRE_OK;
}

static void delete_old(struct checkpointer *checkpointer, uint64_t published)
{
    CADRE_ASSERT(published != POSITION_NONE);
    CADRE_ASSERT(checkpointer->run[0] != '\0');
    struct cadre_error error;
    if (checkpoint_folder_prune(checkpointer->folder, checkpointer->run, published,
            checkpointer->kept, &error) != CADRE_OK) {
        cadre_error_wrap(&error, error.code, "old checkpoints stay");
        show_failure(&error);
    }
}

static void *write_on(void *user)
{
    struct checkpointer *checkpointer = user;
    crash_thread("checkpoint", 0);
    trace_thread_is(TRACE_THREAD_CHECKPOINT);
    pthread_mutex_lock(&checkpointer->lock);
    while (!checkpointer->closing || checkpointer->writing || checkpointer->tidying) {
        uint64_t published = checkpointer->published;
        if (checkpointer->writing) {
            struct cadre_error error = {0};
            pthread_mutex_unlock(&checkpointer->lock);
            struct trace_mark mark = trace_begin();
            cadre_status status = write_copy(checkpointer, &error);
            trace_end(mark, TRACE_CHECKPOINT, 0);
            pthread_mutex_lock(&checkpointer->lock);
            checkpointer->failure = status == CADRE_OK ? checkpointer->failure : error;
            checkpointer->writing = false;
            pthread_cond_broadcast(&checkpointer->changed);
        } else if (checkpointer->tidying) {
            pthread_mutex_unlock(&checkpointer->lock);
            delete_old(checkpointer, published);
            pthread_mutex_lock(&checkpointer->lock);
            checkpointer->tidying = checkpointer->published != published;
        } else {
            pthread_cond_wait(&checkpointer->changed, &checkpointer->lock);
        }
    }
    pthread_mutex_unlock(&checkpointer->lock);
    return NULL;
}

/* Under the lock, with work for it. */
static cadre_status checkpoint_wake(struct checkpointer *checkpointer, struct cadre_error *error)
{
    CADRE_ASSERT(checkpointer->writing || checkpointer->tidying);
    CADRE_ASSERT(!checkpointer->closing);
    if (!checkpointer->thread_runs) {
        int errnum = thread_start(&checkpointer->thread, write_on, checkpointer);
        if (errnum != 0) {
            return cadre_error_errno(error, errnum, "cannot start the writer of checkpoints");
        }
        checkpointer->thread_runs = true;
    }
    pthread_cond_broadcast(&checkpointer->changed);
    return CADRE_OK;
}

static bool is_writing(struct checkpointer *checkpointer)
{
    pthread_mutex_lock(&checkpointer->lock);
    bool writing = checkpointer->writing;
    pthread_mutex_unlock(&checkpointer->lock);
    return writing;
}

/* Takes the failure that the program has not received yet, if there is one. */
static cadre_status await_writer(struct checkpointer *checkpointer, struct cadre_error *error)
{
    pthread_mutex_lock(&checkpointer->lock);
    while (checkpointer->writing) {
        pthread_cond_wait(&checkpointer->changed, &checkpointer->lock);
    }
    *error = checkpointer->failure;
    checkpointer->failure = (struct cadre_error){0};
    pthread_mutex_unlock(&checkpointer->lock);
    return error->code;
}

/* --- the copy --- */

/* With the writer at rest. What is on disk already is only reported again. `held`: the digest of
 * the state that is copied; 0: not known. */
static cadre_status take_copy(
    struct checkpointer *checkpointer, uint64_t held, struct cadre_error *error)
{
    CADRE_ASSERT(!checkpointer->writing); /* the copy is the writer's while it writes */
    bool same = false;
    summaries_flush(checkpointer->strategy);
    cadre_status status = checkpointer_name_run(checkpointer, error);
    if (status == CADRE_OK) {
        status = checkpoint_copy_take(&checkpointer->copy, checkpointer->strategy, &same, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    checkpointer->tried_at = checkpointer->copy.position;
    if (same && checkpointer->written == checkpointer->copy.position) {
        task_part(checkpointer->strategy->task, &checkpointer->part);
        return CADRE_OK;
    }
    pthread_mutex_lock(&checkpointer->lock);
    checkpoint_agreed_begin(checkpointer, held);
    checkpointer->writing = true;
    status = checkpoint_wake(checkpointer, error);
    checkpointer->writing = status == CADRE_OK;
    pthread_mutex_unlock(&checkpointer->lock);
    return status;
}

/* Whether a chief before this one has written it: what is published is not written over, because a
 * writer that dies half way would leave nothing. */
static bool is_there(const struct checkpointer *checkpointer, uint64_t position)
{
    uint64_t published = task_published(checkpointer->strategy->task);
    return published != POSITION_NONE && published >= position && checkpointer->written != position;
}

/* --- between steps --- */

static void notice_published(struct checkpointer *checkpointer)
{
    uint64_t published = task_published(checkpointer->strategy->task);
    if (published == POSITION_NONE || published <= checkpointer->tidied ||
        checkpointer->run[0] == '\0') {
        return;
    }
    checkpointer->tidied = published;
    pthread_mutex_lock(&checkpointer->lock);
    checkpointer->published = published;
    checkpointer->tidying = true;
    struct cadre_error ignored; /* then old ones stay until the next one is published */
    checkpointer->tidying = checkpoint_wake(checkpointer, &ignored) == CADRE_OK;
    pthread_mutex_unlock(&checkpointer->lock);
}

static void report_late(struct checkpointer *checkpointer, uint64_t position)
{
    struct cadre_error error;
    if (checkpointer->late_reported) {
        return;
    }
    checkpointer->late_reported = true;
    cadre_error_set(&error, CADRE_UNAVAILABLE,
        "the checkpoint after %llu steps is left out, since the one before is still being written; "
        "set fewer of them (every %llu steps now), or a faster folder than %s",
        (unsigned long long)position, (unsigned long long)checkpointer->every,
        checkpointer->folder);
    show_failure(&error);
}

struct saving {
    bool wait;
    uint64_t held;             /* by the chief: the digest of its state; 0: not compared */
    struct cadre_error own;    /* why the chief could not; code OK: it could, or is another task */
    struct cadre_error theirs; /* the same, as received; of local replica 0 */
    int64_t failures;          /* over all replicas; of local replica 0 */
};

static void save_as_chief(struct checkpointer *checkpointer, struct saving *saving);

/* A checkpoint on demand is not left out. */
static cadre_status save_asked(struct checkpointer *checkpointer, struct cadre_error *error)
{
    struct saving saving = {.wait = false};
    CADRE_TRY(hooks_digest(checkpointer->strategy, 0, &saving.held, error));
    save_as_chief(checkpointer, &saving);
    *error = saving.own;
    return error->code;
}

void checkpoint_at_step(struct cadre_strategy *strategy)
{
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    struct cadre_error error;
    if (strategy->roster.rank != 0 || strategy_is_warm(strategy)) {
        return;
    }
    notice_published(checkpointer);
    uint64_t position = strategy_position(strategy);
    bool asked = position != 0 && task_checkpoint_at(strategy->task) == position &&
                 position != checkpointer->tried_at;
    struct trace_mark mark = trace_begin();
    if (asked && save_asked(checkpointer, &error) != CADRE_OK) {
        show_failure(&error);
    }
    if (asked) {
        trace_end(mark, TRACE_CHECKPOINT, 0);
    }
    if (asked || checkpointer->every == 0 || position % checkpointer->every != 0 ||
        position == checkpointer->tried_at || position == checkpointer->restored_at ||
        is_there(checkpointer, position)) {
        return;
    }
    checkpointer->tried_at = position;
    cadre_status status = CADRE_OK;
    if (position == 0) { /* the wait for the memory is now, not at the first checkpoint */
        status = checkpoint_copy_prepare(&checkpointer->copy, strategy, &error);
    } else if (is_writing(checkpointer)) {
        report_late(checkpointer, position);
    } else {
        status = take_copy(checkpointer, 0, &error);
        trace_end(mark, TRACE_CHECKPOINT, 0);
    }
    if (status != CADRE_OK) {
        cadre_error_wrap(&error, status, "the checkpoint after %llu steps is missing",
            (unsigned long long)(position == 0 ? checkpointer->every : position));
        show_failure(&error);
    }
}

uint64_t checkpoint_next(const struct cadre_strategy *strategy, uint64_t position)
{
    uint64_t every = strategy->state_part->checkpointer->every;
    return every == 0 ? POSITION_NONE : position - position % every + every;
}

bool checkpoint_taken_at(const struct cadre_strategy *strategy, uint64_t position)
{
    return strategy->state_part->checkpointer->tried_at == position;
}

/* --- on demand --- */

/* A failure that no call has returned is this call's when it does not wait, either. */
static void save_as_chief(struct checkpointer *checkpointer, struct saving *saving)
{
    struct cadre_error before;
    struct cadre_error now = {0};
    await_writer(checkpointer, &before);
    bool there = is_there(checkpointer, strategy_position(checkpointer->strategy));
    cadre_status status = there ? CADRE_OK : take_copy(checkpointer, saving->held, &now);
    if (status == CADRE_OK && saving->wait) {
        await_writer(checkpointer, &now);
    } else if (status == CADRE_OK) {
        now = before;
    }
    saving->own = now;
}

/* What the tasks exchange where they save; summed. */
struct save_message {
    int64_t failures;
    uint64_t digests;
    uint64_t count; /* of those that sent one */
};

/* A copy is published once all replicas are known to be equal. */
static cadre_status compare_on_replica(cadre_strategy *strategy, uint32_t local, uint64_t own,
    const struct save_message *message, struct cadre_error *error)
{
    bool equal = false;
    CADRE_TRY(
        piggyback_compare(strategy, local, own, message->digests, message->count, &equal, error));
    if (equal && local == 0) {
        verified_position_record(strategy, strategy_position(strategy), own);
        checkpoint_agreed(strategy, strategy_position(strategy), own);
    }
    return CADRE_OK;
}

/* Called again, perhaps with another chief, when a task is lost meanwhile. */
static cadre_status save_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct saving *saving = user;
    uint64_t position = strategy_position(strategy);
    struct save_message message = {.failures = 0};
    CADRE_TRY(hooks_digest(strategy, local, &message.digests, error));
    const uint64_t own = message.digests;
    message.count = own != 0 ? 1 : 0;
    if (strategy->roster.rank == 0 && local == 0) {
        saving->held = own;
        save_as_chief(strategy->state_part->checkpointer, saving);
        message.failures = saving->own.code != CADRE_OK ? 1 : 0;
    }
    const struct mesh_buffer flag = {.data = &message, .bytes = sizeof message, .dtype = MESH_I64};
    uint64_t key = collective_key(collective_key(position, UINT64_MAX - 2), saving->wait ? 1 : 0);
    cadre_status status = collective_sum(strategy, local, &flag, 1, key, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status,
            "cadre_save was called after %llu steps, and another task did something else; all "
            "tasks save together",
            (unsigned long long)position);
    }
    if (status == CADRE_OK) {
        status = compare_on_replica(strategy, local, own, &message, error);
    }
    if (status == CADRE_OK && message.failures != 0) {
        status = collective_share_error(strategy, local, 0, &saving->own, &saving->theirs, error);
    }
    if (status != CADRE_OK || local != 0) {
        return status;
    }
    saving->failures = message.failures;
    return message.failures == 0 && saving->wait
               ? task_await_published(strategy->task, position, false, error)
               : CADRE_OK;
}

static cadre_status save_position(cadre_strategy *strategy, bool wait, struct cadre_error *error)
{
    CADRE_TRY(sync_restore(strategy, error)); /* before a first step */
    if (strategy_is_warm(strategy) || strategy_is_catching_up(strategy)) {
        return CADRE_OK; /* it has nothing that others lack */
    }
    struct saving saving = {.wait = wait};
    strategy->state_part->checkpointer->asked = true;
    cadre_status status = strategy_between_steps(
        strategy, wait ? "cadre_save(wait)" : "cadre_save", save_on_replica, &saving, error);
    if (status == CADRE_DATA_LOSS && strategy->failed.code == CADRE_OK) {
        return strategy_set_failed(strategy, error); /* the replicas differ, which is final */
    }
    if (status == CADRE_OK && saving.own.code != CADRE_OK) {
        *error = saving.own;
        return error->code;
    }
    if (status == CADRE_OK && saving.failures != 0) {
        *error = saving.theirs;
        return error->code;
    }
    if (status == CADRE_OK && strategy->roster.rank == 0) {
        notice_published(strategy->state_part->checkpointer);
    }
    return status;
}

cadre_status checkpoint_before_stop(struct cadre_strategy *strategy, struct cadre_error *error)
{
    struct saving saving = {.wait = true};
    if (strategy->roster.rank == 0) {
        save_as_chief(strategy->state_part->checkpointer, &saving);
    }
    *error = saving.own;
    return error->code;
}

/* Whether the manifest in the folder is that of the checkpoint which the training went on from. */
static bool is_restored(const struct environment *environment, const char *name)
{
    char path[sizeof environment->output_folder + CHECKPOINT_NAME_BYTES];
    struct stat here;
    struct stat restored;
    snprintf(path, sizeof path, "%s/%s", environment->output_folder, name);
    return stat(path, &here) == 0 && stat(environment->restore_path, &restored) == 0 &&
           here.st_dev == restored.st_dev && here.st_ino == restored.st_ino;
}

/* Files beside the program's outputs: of a shared folder's checkpoint the tensors; of another all,
 * also when it was published before, by a chief before this one or by the job that this one goes on
 * from. The writer is at rest. The copy is of the last position, unless another chief had it
 * written. */
static cadre_status write_beside(struct checkpointer *checkpointer, struct cadre_error *error)
{
    const struct environment *environment = checkpointer->strategy->environment;
    uint64_t position = strategy_position(checkpointer->strategy);
    char name[CHECKPOINT_NAME_BYTES];
    uint64_t bytes = 0;
    struct sha256 hash;
    bool same = false;
    checkpoint_name_write(position, 0, CHECKPOINT_TEXT_NAME, name);
    if (!checkpointer->shared &&
        (checkpointer->written == position || is_restored(environment, name))) {
        return CADRE_OK;
    }
    CADRE_TRY(checkpointer_name_run(checkpointer, error));
    CADRE_TRY(checkpoint_copy_take(&checkpointer->copy, checkpointer->strategy, &same, error));
    const char *folder = environment->output_folder;
    return checkpointer->shared
               ? checkpoint_write_tensors(&checkpointer->copy, folder, error)
               : checkpoint_write(&checkpointer->copy, folder, 0, &bytes, &hash, error);
}

cadre_status checkpoint_save(
    struct cadre_strategy *strategy, uint64_t held, struct cadre_error *error)
{
    CADRE_ASSERT(!strategy_is_warm(strategy));
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    struct saving saving = {.wait = true, .held = held};
    if (strategy->roster.rank != 0 || !checkpointer->asked) {
        return CADRE_OK;
    }
    save_as_chief(checkpointer, &saving);
    if (saving.own.code != CADRE_OK) {
        *error = saving.own;
        return error->code;
    }
    bool beside = !checkpointer->shared || strategy->environment->output_asked;
    cadre_status status = beside ? write_beside(checkpointer, error) : CADRE_OK;
    if (status == CADRE_OK) {
        status = task_await_published(strategy->task, strategy_position(strategy), true, error);
    }
    if (status == CADRE_OK) {
        notice_published(checkpointer);
    }
    return status;
}

/* --- lifetime --- */

cadre_status checkpointer_open(struct cadre_strategy *strategy,
    struct checkpointer **ret_checkpointer, struct cadre_error *error)
{
    const struct environment *environment = strategy->environment;
    struct checkpointer *checkpointer = calloc(1, sizeof *checkpointer);
    *ret_checkpointer = checkpointer;
    if (checkpointer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for checkpoints");
    }
    checkpointer->strategy = strategy;
    checkpointer->shared = environment->checkpoint_folder[0] != '\0';
    checkpointer->folder =
        checkpointer->shared ? environment->checkpoint_folder : environment->output_folder;
    checkpointer->writer = checkpoint_folder_writer(checkpointer->folder, environment->incarnation);
    checkpointer->asked = environment->checkpoints_asked;
    checkpointer->every = environment->checkpoint_every;
    checkpointer->kept = environment->checkpoints_kept;
    checkpointer->restored_at = POSITION_NONE;
    checkpointer->tried_at = POSITION_NONE;
    checkpointer->written = POSITION_NONE;
    checkpoint_copy_clear(&checkpointer->copy);
    pthread_mutex_init(&checkpointer->lock, NULL);
    pthread_cond_init(&checkpointer->changed, NULL);
    return CADRE_OK;
}

void checkpointer_close(struct checkpointer *checkpointer)
{
    if (checkpointer == NULL) {
        return;
    }
    pthread_mutex_lock(&checkpointer->lock);
    checkpointer->closing = true;
    pthread_cond_broadcast(&checkpointer->changed);
    pthread_mutex_unlock(&checkpointer->lock);
    if (checkpointer->thread_runs) {
        pthread_join(checkpointer->thread, NULL);
    }
    CADRE_ASSERT(!checkpointer->writing);
    checkpoint_copy_clear(&checkpointer->copy);
    registered_free(checkpointer->strategy);
    pthread_cond_destroy(&checkpointer->changed);
    pthread_mutex_destroy(&checkpointer->lock);
    free(checkpointer);
}

/* --- public --- */

cadre_status cadre_save(cadre_strategy *strategy, bool wait)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        struct trace_mark mark = trace_begin();
        status = save_position(strategy, wait, &error);
        trace_end(mark, TRACE_CHECKPOINT, 0);
    }
    return api_return(status, &error);
}

uint64_t cadre_checkpoint_latest(const cadre_strategy *strategy)
{
    return strategy_is_registered(strategy) ? task_published(strategy->task) : CADRE_POSITION_NONE;
}

/* SPDX-License-Identifier: Apache-2.0
 * An engine with the state that a test gives it, and a daemon in a folder of its own whose contents
 * the test puts there. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_DAEMON_FAKE_ENGINE_H
#define CADRE_TESTS_UNIT_COORDINATOR_DAEMON_FAKE_ENGINE_H

#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"
#include "tests/lib/test.h"

#define FAKE_CHECKPOINTS_MAX 8 /* checkpoints of a job */
#define FAKE_JOBS_MAX        64

struct fake_job {
    uint64_t id;
    struct job_spec spec;
    enum job_state state;
    uint64_t ended_us;
    bool going;                                               /* see forgets_later */
    struct core_checkpoint checkpoints[FAKE_CHECKPOINTS_MAX]; /* oldest first */
    uint32_t checkpoint_count;
    bool restores;
    struct core_checkpoint origin;
};

struct engine {
    struct fake_job jobs[FAKE_JOBS_MAX]; /* oldest first */
    uint32_t job_count;
    bool broken;
    uint64_t nonce;     /* of its term */
    bool forgets_later; /* as with a shared log: forget_going() is when it is stored */
    uint64_t log_bytes;
    struct job_id damaged_job; /* by the last engine_checkpoint_damaged */
    uint64_t damaged_position;
    struct daemon *daemon;
};

/* The disk of the state directory has no room. */
extern bool fake_disk_full;

/* Folders and a loop as main.c makes them; `engine` stays the caller's. */
void daemon_open(struct daemon *daemon, struct engine *engine);
/* The same with contents in an object store, which is a folder, and threads of the pools' own. */
void daemon_open_objects(struct daemon *daemon, struct engine *engine);
/* Closes it and removes its folder. */
void daemon_close(struct daemon *daemon);

/* Runs the loop until no thread works for it. */
void settle(struct daemon *daemon);

/* Reads what is in the folder of contents, as a start does. */
void reopen_contents(struct daemon *daemon);

/* content_references_refresh(), again when manifests were read, and what it removes is removed. */
cadre_status refresh_references(struct daemon *daemon, struct cadre_error *error);

/* A job that runs, whose program's content is `program`. */
struct fake_job *add_job(struct engine *engine, uint64_t id, const char *program);
/* Removes a job from the engine. */
void forget_job(struct engine *engine, uint64_t id);
/* Those that are going are forgotten. */
void forget_going(struct engine *engine);
/* Adds a checkpoint to the kept ones of the job. */
void publish(struct fake_job *job, const struct core_checkpoint *checkpoint);
/* Removes the oldest checkpoint of the job. */
void drop_oldest(struct fake_job *job);

/* The SHA-256 of the text. */
struct sha256 hash_of_text(const char *text);
/* Whether the index has a content with this text. */
bool is_here(struct daemon *daemon, const char *text);
/* Puts a content as an upload leaves it: just written, and not requested. */
void put_content(struct daemon *daemon, const char *text);
/* Puts one that was uploaded two hours ago, and not requested since. */
void put_old_content(struct daemon *daemon, const char *text);
/* MissingBlobs listed it as here so long ago. */
void ask_for(struct daemon *daemon, const char *text, uint64_t seconds_ago);

#define CHECKPOINT_BLOCKS_MAX 4

/* A checkpoint whose file, "c-<position>.safetensors", has these texts as blocks; the last one is
 * NULL. Its blocks and its manifest are put as old contents. */
struct core_checkpoint put_checkpoint(
    struct daemon *daemon, uint64_t position, const char *const blocks[]);
/* The manifest alone, as text. Returns its size. */
size_t manifest_text(uint64_t position, const char *const blocks[], char ret_text[2048]);
/* Whether the manifest of the checkpoint is in the index. */
bool manifest_is_here(struct daemon *daemon, const struct core_checkpoint *checkpoint);
/* The part of the checkpoint as a task reports it. */
struct task_part part_of(const struct core_checkpoint *checkpoint);

#endif

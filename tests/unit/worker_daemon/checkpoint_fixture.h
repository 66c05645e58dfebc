/* SPDX-License-Identifier: Apache-2.0
 * What of the daemon moves checkpoints, with a task and its folder, a coordinator that is played,
 * and an agent that only records calls. */
#ifndef CADRE_TESTS_UNIT_WORKER_DAEMON_CHECKPOINT_FIXTURE_H
#define CADRE_TESTS_UNIT_WORKER_DAEMON_CHECKPOINT_FIXTURE_H

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/unit/worker_daemon/fake_coordinator.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/task_files.h"

#define BIG        ((size_t)1500 * 1000) /* a block of several messages */
#define SMALL      ((size_t)100)
#define FILE_BYTES (BIG + 2 * SMALL)

struct fixture {
    struct coordinator coordinator;
    struct daemon daemon;
    struct task_files task;
    struct task_files second; /* of the same job, listed when a test wants it */
    struct agent_start start;
    char folder[TEST_PATH_BYTES]; /* of the task */
    char path[TEST_PATH_BYTES];
    struct task_part part;
    uint8_t file[FILE_BYTES];
    char manifest[4096];
    /* what became of it */
    bool done;
    unsigned published;
    unsigned staged;
    unsigned resumed;
    cadre_status code;
    char text[LIMIT_TEXT_BYTES];
};

extern struct fixture *fixture; /* of the test that runs */

int set_up(void **state);
int tear_down(void **state);
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* <folder of the task>/<name>, until the next call. */
const char *in(const char *name);
void make_folder(const char *name);
void put_file(const char *name, const void *bytes, size_t size);
void hex(const void *bytes, size_t size, char ret_hex[SHA256_HEX_BYTES]);

/* A checkpoint of three blocks, the last two of them equal, as a chief leaves it. */
void write_checkpoint(uint64_t position);

/* What comes after a restore. */
void staged(struct task_files *task);

void until_done(void);
/* Until nothing more happens by itself. */
void until_quiet(void);

/* Publishes what was written last, until that has ended. */
void publish(void);
/* It went well, and the coordinator has kept so many contents. */
void assert_published(unsigned puts);

#endif

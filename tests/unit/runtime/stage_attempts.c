/* SPDX-License-Identifier: Apache-2.0
 * The processes of a stage, and the sockets that their daemon would have. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/model/roster_tree.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "stage_state.h"

#define INCARNATIONS_BEFORE (UINT64_C(1) << 32) /* a job that was started very often */

void stage_send(struct attempt *attempt, const struct task_down *down)
{
    struct wire_buffer buffer = {0};
    struct cadre_error error;
    if (attempt->fd < 0 || attempt->phase == ATTEMPT_GONE) {
        return;
    }
    CADRE_ASSERT(frame_pack_task_down(down, &buffer, &error) == CADRE_OK);
    ssize_t sent = send(attempt->fd, buffer.bytes, buffer.size, MSG_NOSIGNAL);
    (void)sent; /* a task that has exited is found when its socket is read */
    wire_buffer_free(&buffer);
}

void stage_start(struct stage *stage, uint32_t slot)
{
    CADRE_ASSERT(stage->attempt_count < STAGE_TASKS_MAX);
    struct attempt *attempt = &stage->attempts[stage->attempt_count];
    *attempt = (struct attempt){.phase = ATTEMPT_STARTED,
        .slot = slot,
        .incarnation = INCARNATIONS_BEFORE + ++stage->incarnations,
        .fd = -1};
    snprintf(attempt->path, sizeof attempt->path, "%s/task-%u.sock", stage->folder,
        stage->attempt_count);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CADRE_ASSERT(strlen(attempt->path) < sizeof address.sun_path);
    memcpy(address.sun_path, attempt->path, strlen(attempt->path) + 1);
    attempt->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CADRE_ASSERT(bind(attempt->listen_fd, (struct sockaddr *)&address, sizeof address) == 0);
    CADRE_ASSERT(listen(attempt->listen_fd, 8) == 0);
    char settings[8][TEST_PATH_BYTES + 64];
    const struct stage_job *job = stage->job;
    snprintf(settings[0], sizeof settings[0], "CADRE_SOCKET=%s", attempt->path);
    snprintf(settings[1], sizeof settings[1], "CADRE_OUTPUT_DIR=%s", stage->folder);
    snprintf(settings[2], sizeof settings[2], "CADRE_SLOT=%u", slot);
    snprintf(settings[3], sizeof settings[3], "CADRE_INCARNATION=%llu",
        (unsigned long long)attempt->incarnation);
    snprintf(settings[4], sizeof settings[4], "CADRE_TASKS=%u", job->tasks + job->grows);
    snprintf(settings[5], sizeof settings[5], "CADRE_REPLICAS=%u", job->replicas);
    snprintf(settings[6], sizeof settings[6], "STAGE_ATTEMPT=%u", stage->attempt_count);
    const char *environment[32] = {"CADRE_JOB=1"};
    size_t count = 1;
    for (size_t i = 0; i < 7; i++) {
        environment[count++] = settings[i];
    }
    if (job->restore != NULL) {
        snprintf(settings[7], sizeof settings[7], "CADRE_RESTORE=%s", job->restore);
        environment[count++] = settings[7];
    }
    for (size_t i = 0; job->environment != NULL && job->environment[i] != NULL; i++) {
        environment[count++] = job->environment[i];
    }
    const char *const argv[] = {job->self, job->what, NULL};
    program_start(
        &(struct program_spec){.argv = argv, .environment = environment}, &attempt->program);
    stage->attempt_count++;
    stage->end->started++;
}

static void receive(struct stage *stage, struct attempt *attempt)
{
    uint8_t *room = frame_reader_room(&attempt->reader, 65536);
    CADRE_ASSERT(room != NULL);
    ssize_t size = recv(attempt->fd, room, 65536, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        stage_on_gone(stage, attempt);
        return;
    }
    frame_reader_commit(&attempt->reader, (size_t)size);
    const uint8_t *payload;
    size_t bytes;
    struct cadre_error error;
    while (attempt->fd >= 0 &&
           frame_reader_next(&attempt->reader, &payload, &bytes, &error) == CADRE_OK) {
        struct task_up up;
        wire_arena_reset(stage->arena);
        assert_ok(wire_unpack_task_up(payload, bytes, stage->arena, &up, &error), &error);
        stage_on_up(stage, attempt, &up);
    }
}

/* The preambles go first; they are small enough to be there whole. */
static void greet(struct attempt *attempt)
{
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    attempt->fd = accept4(attempt->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CADRE_ASSERT(attempt->fd >= 0);
    frame_preamble_write(preamble);
    CADRE_ASSERT(send(attempt->fd, preamble, sizeof preamble, MSG_NOSIGNAL) == sizeof preamble);
    CADRE_ASSERT(recv(attempt->fd, preamble, sizeof preamble, MSG_WAITALL) == sizeof preamble);
    attempt->greeted = true;
}

bool stage_turn(struct stage *stage)
{
    struct pollfd polls[STAGE_TASKS_MAX * 2];
    struct attempt *of[STAGE_TASKS_MAX * 2];
    nfds_t count = 0;
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        struct attempt *attempt = &stage->attempts[i];
        if (attempt->phase != ATTEMPT_GONE) {
            of[count] = attempt;
            polls[count++] = (struct pollfd){
                .fd = attempt->greeted ? attempt->fd : attempt->listen_fd, .events = POLLIN};
            of[count] = attempt;
            polls[count++] = (struct pollfd){.fd = attempt->program.pidfd, .events = POLLIN};
        }
    }
    if (count == 0 || poll(polls, count, 1000) < 0) {
        return count > 0;
    }
    for (nfds_t i = 0; i < count; i += 2) {
        if (polls[i].revents != 0 && !of[i]->greeted) {
            greet(of[i]);
        } else if (polls[i].revents != 0 && of[i]->phase != ATTEMPT_GONE) {
            receive(stage, of[i]);
        } else if (polls[i + 1].revents != 0 && !of[i]->greeted) {
            of[i]->phase = ATTEMPT_GONE; /* it never sent anything */
        }
    }
    return true;
}

void stage_collect(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        struct attempt *attempt = &stage->attempts[i];
        struct program_result result;
        if (stage->failed || attempt->dropped) {
            program_signal(&attempt->program, attempt->dropped ? SIGKILL : SIGTERM);
        }
        program_finish(&attempt->program, 5 * CADRE_US_PER_S, &result);
        stage->end->exit_code[i] = result.exit_code;
        stage->end->printed[i] = result.out;
        stage->end->erred[i] = result.err;
        frame_reader_free(&attempt->reader);
        if (attempt->fd >= 0) {
            close(attempt->fd);
        }
        close(attempt->listen_fd);
    }
}

/* One for each run, below the only one of this process. */
void stage_send_parts(struct stage *stage, const struct task_down *down)
{
    struct task_down part = *down;
    struct roster_entry entries[STAGE_TASKS_MAX];
    part.plan.members = (uint32_t)down->plan.roster_count;
    part.plan.roster = entries;
    for (uint32_t own = 0; own < stage->roster_count; own++) {
        uint32_t first = roster_first_child(own);
        part.plan.roster_count = 0;
        for (uint32_t rank = stage->roster_count; rank-- > 0;) {
            bool child = rank >= first && rank < first + ROSTER_FAN_OUT;
            bool parent = own > 0 && rank == roster_parent(own);
            if (own == 0 || rank == own || child || parent) {
                struct roster_entry *entry = &entries[part.plan.roster_count++];
                *entry = down->plan.roster[rank];
                entry->rank = rank;
            }
        }
        stage_send(stage->roster[own], &part);
    }
}

void stage_make_folder(char folder[STAGE_FOLDER_BYTES])
{
    static const char *all;
    static unsigned runs;
    all = all == NULL ? test_temp_dir() : all;
    int length = snprintf(folder, STAGE_FOLDER_BYTES, "%s/%u", all, ++runs);
    CADRE_ASSERT(length < STAGE_FOLDER_BYTES);
    CADRE_ASSERT(mkdir(folder, 0700) == 0);
}

/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the hub of a communicator's ranks. All data go through it: it takes
 * each rank's part of an operation, folds them in order of ranks, and sends the results. Its thread
 * runs in the process that made the id and ends with the last connection. */
#include "tests/gpu/standin/nccl/nccl_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct guest {
    int fd; /* -1: closed */
    bool arrived;
    struct wire_hello hello;
    struct wire_call call;
    void *data;
};

struct hub {
    int listener;
    uint32_t world; /* 0: no rank has come */
    uint32_t present;
    ncclResult_t broken; /* all operations from now on */
    struct guest guests[STANDIN_RANKS_MAX];
};

void hub_address(const ncclUniqueId *id, struct sockaddr_un *ret_address, socklen_t *ret_bytes)
{
    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->sun_family = AF_UNIX;
    char *name = ret_address->sun_path + 1; /* an abstract name: no file is left behind */
    int length = snprintf(name, sizeof(ret_address->sun_path) - 1, "nccl-standin-");
    for (int i = 0; i < 16; i++) {
        length += snprintf(name + length, 3, "%02x", (unsigned char)id->internal[8 + i]);
    }
    *ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool move_all(int fd, bool out, void *data, size_t bytes)
{
    for (size_t moved = 0; moved < bytes;) {
        char *at = (char *)data + moved;
        ssize_t n =
            out ? send(fd, at, bytes - moved, MSG_NOSIGNAL) : recv(fd, at, bytes - moved, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        moved += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void answer(
    struct guest *guest, ncclResult_t result, const char *text, const void *data, size_t bytes)
{
    struct wire_answer head = {.result = (uint32_t)result, .bytes = bytes};
    snprintf(head.text, sizeof(head.text), "%s", text);
    if (guest->fd >= 0) {
        (void)(move_all(guest->fd, true, &head, sizeof(head)) &&
               move_all(guest->fd, true, (void *)(uintptr_t)data, bytes));
    }
}

static void answer_all(struct hub *hub, ncclResult_t result, const char *text)
{
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        answer(&hub->guests[rank], result, text, NULL, 0);
    }
}

/* --- coming together --- */

static bool check_guests(const struct hub *hub, char ret_text[160])
{
    for (uint32_t a = 0; a < hub->world; a++) {
        for (uint32_t b = 0; b < a; b++) {
            const struct wire_hello *one = &hub->guests[b].hello;
            const struct wire_hello *other = &hub->guests[a].hello;
            if (strcmp(one->host, other->host) == 0 && strcmp(one->bus, other->bus) == 0) {
                snprintf(ret_text, 160,
                    "stand-in: Duplicate GPU detected : rank %u and rank %u both on CUDA device %s",
                    b, a, one->bus);
                return false;
            }
        }
    }
    return true;
}

/* One more connection, or one that is no rank of this communicator. */
static void welcome(struct hub *hub, int fd)
{
    struct wire_hello hello;
    struct guest stranger = {.fd = fd};
    if (!move_all(fd, false, &hello, sizeof(hello))) {
        (void)close(fd);
        return;
    }
    hello.host[sizeof(hello.host) - 1] = '\0';
    hello.bus[sizeof(hello.bus) - 1] = '\0';
    hub->world = hub->world == 0 && hello.world <= STANDIN_RANKS_MAX ? hello.world : hub->world;
    if (hello.world != hub->world || hello.rank >= hub->world || hub->guests[hello.rank].fd >= 0) {
        answer(&stranger, ncclInvalidUsage, "stand-in: ranks do not agree who they are", NULL, 0);
        (void)close(fd);
        return;
    }
    hub->guests[hello.rank] = (struct guest){.fd = fd, .hello = hello};
    hub->present++;
}

static bool gather(struct hub *hub)
{
    char text[160] = "";
    while (hub->world == 0 || hub->present < hub->world) {
        int fd = accept(hub->listener, NULL, NULL);
        if (fd < 0 && errno != EINTR) {
            return false;
        }
        if (fd >= 0) {
            welcome(hub, fd);
        }
    }
    bool fine = check_guests(hub, text);
    answer_all(hub, fine ? ncclSuccess : ncclInvalidUsage, text);
    return fine;
}

/* --- operations --- */

static bool agree(const struct hub *hub, char ret_text[160])
{
    const struct wire_call *first = &hub->guests[0].call;
    for (uint32_t rank = 1; rank < hub->world; rank++) {
        const struct wire_call *call = &hub->guests[rank].call;
        if (call->kind != first->kind || call->type != first->type ||
            call->reduction != first->reduction || call->root != first->root ||
            call->count != first->count) {
            snprintf(ret_text, 160,
                "stand-in: rank 0 came to operation %u of %zu %s and rank %u to %u of %zu %s",
                first->kind, (size_t)first->count, reduce_type_name(first->type), rank, call->kind,
                (size_t)call->count, reduce_type_name(call->type));
            return false;
        }
    }
    return true;
}

/* Rank 0's data become the result. */
static void fold(struct hub *hub)
{
    const struct wire_call *call = &hub->guests[0].call;
    size_t count = call->bytes / reduce_element_bytes(call->type);
    void *sum = hub->guests[0].data;
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        void *data = hub->guests[rank].data;
        reduce_before(call->type, call->reduction, data, count, hub->world);
        if (rank > 0) {
            reduce_fold(call->type, call->reduction, sum, data, count);
        }
    }
    reduce_after(call->type, call->reduction, sum, count, hub->world);
}

static void gather_parts(struct hub *hub)
{
    size_t part = hub->guests[0].call.bytes;
    char *all = malloc(part * hub->world + 1);
    for (uint32_t rank = 0; all != NULL && rank < hub->world; rank++) {
        memcpy(all + part * rank, hub->guests[rank].data, part);
    }
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        answer(&hub->guests[rank], all != NULL ? ncclSuccess : ncclSystemError, "", all,
            all != NULL ? part * hub->world : 0);
    }
    free(all);
}

static void carry_out(struct hub *hub)
{
    const struct wire_call *call = &hub->guests[0].call;
    size_t bytes = call->bytes;
    bool reduces = call->kind != WIRE_BROADCAST && call->kind != WIRE_ALL_GATHER;
    if (reduces) {
        fold(hub);
    }
    if (call->kind == WIRE_ALL_GATHER) {
        gather_parts(hub);
        return;
    }
    const char *data = hub->guests[0].data;
    if (call->kind == WIRE_BROADCAST) {
        data = hub->guests[call->root].data;
        bytes = hub->guests[call->root].call.bytes;
    }
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        size_t wanted = bytes;
        const char *from = data;
        if (call->kind == WIRE_REDUCE) {
            wanted = rank == call->root ? bytes : 0;
        } else if (call->kind == WIRE_BROADCAST) {
            wanted = rank == call->root ? 0 : bytes;
        } else if (call->kind == WIRE_REDUCE_SCATTER) {
            wanted = bytes / hub->world;
            from = data + wanted * rank;
        }
        answer(&hub->guests[rank], ncclSuccess, "", from, wanted);
    }
}

static void end_operation(struct hub *hub)
{
    char text[160] = "";
    if (agree(hub, text)) {
        carry_out(hub);
    } else {
        fprintf(stderr, "%s\n", text);
        answer_all(hub, ncclInvalidUsage, text);
    }
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        free(hub->guests[rank].data);
        hub->guests[rank].data = NULL;
        hub->guests[rank].arrived = false;
    }
}

/* A rank has exited. NCCL's peers wait then, or receive that, depending on the links between
 * them. */
static void lose(struct hub *hub, uint32_t rank)
{
    STANDIN_CALL("ncclPeerLost");
    (void)close(hub->guests[rank].fd);
    hub->guests[rank].fd = -1;
    hub->present--;
    if (standin_fault != 0 && hub->broken == ncclSuccess) {
        hub->broken = (ncclResult_t)standin_fault;
        for (uint32_t other = 0; other < hub->world; other++) {
            if (hub->guests[other].arrived) {
                answer(&hub->guests[other], hub->broken, "stand-in: a rank went away", NULL, 0);
            }
        }
    }
}

static void receive(struct hub *hub, uint32_t rank)
{
    struct guest *guest = &hub->guests[rank];
    struct wire_call call;
    if (guest->arrived || !move_all(guest->fd, false, &call, sizeof(call))) {
        lose(hub, rank); /* a rank that arrived sends nothing more before the result */
        return;
    }
    void *data = malloc(call.bytes + 1);
    if (data == NULL || !move_all(guest->fd, false, data, call.bytes)) {
        free(data);
        lose(hub, rank);
        return;
    }
    free(guest->data);
    guest->data = data;
    guest->call = call;
    guest->arrived = true;
    if (hub->broken != ncclSuccess) {
        answer(guest, hub->broken, "stand-in: a rank went away", NULL, 0);
    }
}

static uint32_t count_arrived(const struct hub *hub)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < hub->world; rank++) {
        count += hub->guests[rank].arrived && hub->guests[rank].fd >= 0;
    }
    return count;
}

static void serve(struct hub *hub)
{
    struct pollfd polled[STANDIN_RANKS_MAX];
    while (hub->present > 0) {
        for (uint32_t rank = 0; rank < hub->world; rank++) {
            polled[rank] = (struct pollfd){.fd = hub->guests[rank].fd, .events = POLLIN};
        }
        if (poll(polled, hub->world, -1) < 0) {
            continue;
        }
        for (uint32_t rank = 0; rank < hub->world; rank++) {
            if (polled[rank].revents != 0 && hub->guests[rank].fd >= 0) {
                receive(hub, rank);
            }
        }
        if (count_arrived(hub) == hub->world && hub->broken == ncclSuccess) {
            end_operation(hub);
        }
    }
}

static void *hub_main(void *user)
{
    struct hub *hub = user;
    bool formed = gather(hub);
    (void)close(hub->listener);
    if (formed) {
        serve(hub);
    }
    for (uint32_t rank = 0; rank < STANDIN_RANKS_MAX; rank++) {
        if (hub->guests[rank].fd >= 0) {
            (void)close(hub->guests[rank].fd);
        }
        free(hub->guests[rank].data);
    }
    free(hub);
    return NULL;
}

static bool start_hub(const ncclUniqueId *id)
{
    struct sockaddr_un address;
    socklen_t bytes;
    pthread_t thread;
    struct hub *hub = calloc(1, sizeof(*hub));
    if (hub == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < STANDIN_RANKS_MAX; rank++) {
        hub->guests[rank].fd = -1;
    }
    hub_address(id, &address, &bytes);
    hub->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (hub->listener < 0) {
        free(hub);
        return false;
    }
    if (bind(hub->listener, (struct sockaddr *)&address, bytes) != 0 ||
        listen(hub->listener, STANDIN_RANKS_MAX) != 0 ||
        pthread_create(&thread, NULL, hub_main, hub) != 0) {
        (void)close(hub->listener);
        free(hub);
        return false;
    }
    pthread_detach(thread);
    return true;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
    STANDIN_CALL("ncclGetUniqueId");
    if (standin_fault != 0) {
        return nccl_set_error((ncclResult_t)standin_fault, "stand-in: this id was to fail");
    }
    memset(uniqueId, 0, sizeof(*uniqueId));
    memcpy(uniqueId->internal, "standin", 8);
    if (getrandom(uniqueId->internal + 8, 16, 0) != 16 || !start_hub(uniqueId)) {
        return nccl_set_error(ncclSystemError, "stand-in: no listener: %s", strerror(errno));
    }
    return ncclSuccess;
}

/* SPDX-License-Identifier: Apache-2.0
 * The links between the tasks of one host: sending, receiving and checking their handovers over
 * Unix sockets. Opened by host.c, stepped by form.c while the mesh forms. */
#include "worker/library/mesh/connect/links.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/library/mesh/bytes.h"

#define HANDOVER_MAGIC UINT32_C(0x48524443) /* "CDRH" */
#define HANDOVER_FDS   2

enum { AT_MAGIC = 0, AT_FLAGS = 4, AT_PAGE = 8, AT_ARENA = 16, AT_SENTINEL = 24, AT_VALUE = 32 };
_Static_assert(AT_VALUE + 8 == LINK_HANDOVER_BYTES, "no gap");

enum { HAS_PAGE = 1, HAS_ARENA = 2, HAS_SENTINEL = 4 };

static const struct link_memory nothing = {.fd = -1};

cadre_status mesh_links_open(struct links *links, const uint32_t *tasks, uint32_t task_count,
    uint32_t rank, struct cadre_error *error)
{
    *links = (struct links){.handover = {.page = nothing, .arena = nothing}};
    links->items = calloc(task_count, sizeof *links->items);
    if (links->items == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the links between %" PRIu32 " tasks of one host", task_count);
    }
    for (uint32_t i = 0; i < task_count; i++) {
        if (tasks[i] != rank) {
            links->items[links->count++] = (struct link){
                .rank = tasks[i], .fd = -1, .handover = {.page = nothing, .arena = nothing}};
        }
    }
    return CADRE_OK;
}

static void mesh_drop(struct link_memory *memory)
{
    if (memory->fd >= 0) {
        close(memory->fd);
    }
    *memory = nothing;
}

/* The state before it was connected. */
static void mesh_disconnect(struct link *link)
{
    if (link->fd >= 0) {
        close(link->fd);
    }
    mesh_drop(&link->handover.page);
    mesh_drop(&link->handover.arena);
    *link = (struct link){.rank = link->rank, .fd = -1, .handover = link->handover};
}

void mesh_links_close(struct links *links)
{
    for (uint32_t i = 0; i < links->count; i++) {
        mesh_disconnect(&links->items[i]);
    }
    free(links->items);
    *links = (struct links){.count = 0};
}

struct link *mesh_links_find(const struct links *links, uint32_t rank)
{
    uint32_t low = 0;
    uint32_t high = links->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (links->items[middle].rank == rank) {
            return &links->items[middle];
        }
        if (links->items[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

void mesh_link_connect(struct link *link, int fd)
{
    int on = 1;
    mesh_disconnect(link);
    link->fd = fd;
    /* Without it the other task's memory cannot be attached to. */
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

static cadre_status mesh_ended(struct link *link, struct cadre_error *error)
{
    mesh_disconnect(link);
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the task of rank %" PRIu32 " closed its connection before its mesh had formed",
        link->rank);
}

/* A control message with room for the sender's number and both descriptors. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(HANDOVER_FDS * sizeof(int))];
};

/* Adds one kind of control data behind those that the message has. */
static void put_control(
    struct msghdr *message, union control *control, int type, const void *data, size_t bytes)
{
    struct cmsghdr *header =
        (struct cmsghdr *)(void *)(control->bytes + (size_t)message->msg_controllen);
    message->msg_control = control->bytes;
    message->msg_controllen += CMSG_SPACE(bytes);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), data, bytes);
}

static cadre_status mesh_give(
    const struct link_handover *handover, struct link *link, struct cadre_error *error)
{
    uint8_t bytes[LINK_HANDOVER_BYTES];
    int fds[HANDOVER_FDS];
    size_t count = 0;
    uint32_t flags = 0;
    if (handover->page.fd >= 0) {
        fds[count++] = handover->page.fd;
        flags |= HAS_PAGE;
    }
    if (handover->arena.fd >= 0) {
        fds[count++] = handover->arena.fd;
        flags |= HAS_ARENA;
    }
    flags |= handover->attach.sentinel != 0 ? HAS_SENTINEL : 0;
    bytes_put_u32(bytes + AT_MAGIC, HANDOVER_MAGIC);
    bytes_put_u32(bytes + AT_FLAGS, flags);
    bytes_put_u64(bytes + AT_PAGE, handover->page.bytes);
    bytes_put_u64(bytes + AT_ARENA, handover->arena.bytes);
    bytes_put_u64(bytes + AT_SENTINEL, handover->attach.sentinel);
    bytes_put_u64(bytes + AT_VALUE, handover->attach.value);
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (handover->attach.sentinel != 0) {
        /* The receiver gets the number that this process has there. */
        struct ucred sender = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
        put_control(&message, &control, SCM_CREDENTIALS, &sender, sizeof sender);
    }
    if (count > 0) {
        put_control(&message, &control, SCM_RIGHTS, fds, count * sizeof(int));
    }
    /* It is the first thing after the handshake: there is room for it. */
    ssize_t sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != (ssize_t)sizeof bytes) {
        return mesh_ended(link, error);
    }
    link->given = true;
    return CADRE_OK;
}

/* Takes the descriptors of a message: the first two are kept, in the order they came. Returns the
 * number of the process that sent it; 0: not known. */
static pid_t mesh_collect(struct msghdr *message, int fds[HANDOVER_FDS], size_t *count)
{
    pid_t sender = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
            sender = credentials.pid;
        }
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            if (*count < HANDOVER_FDS) {
                fds[(*count)++] = fd;
            } else {
                close(fd);
            }
        }
    }
    return sender;
}

/* A memory file of at least so many bytes that is sealed against shrinking. */
static bool is_sound(const struct link_memory *memory)
{
    struct stat status;
    int seals = fcntl(memory->fd, F_GET_SEALS);
    return memory->bytes > 0 && fstat(memory->fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size >= memory->bytes && seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

/* Assigns the received descriptors to page and arena, and checks all of the handover. */
static bool mesh_understand(
    struct link *link, const int fds[HANDOVER_FDS], size_t count, bool from_lead)
{
    const uint8_t *bytes = link->bytes;
    uint32_t flags = bytes_get_u32(bytes + AT_FLAGS);
    size_t next = 0;
    if ((flags & HAS_PAGE) != 0 && next < count) {
        link->handover.page = (struct link_memory){fds[next++], bytes_get_u64(bytes + AT_PAGE)};
    }
    if ((flags & HAS_ARENA) != 0 && next < count) {
        link->handover.arena = (struct link_memory){fds[next++], bytes_get_u64(bytes + AT_ARENA)};
    }
    for (size_t i = next; i < count; i++) {
        close(fds[i]);
    }
    link->handover.attach.sentinel = bytes_get_u64(bytes + AT_SENTINEL);
    link->handover.attach.value = bytes_get_u64(bytes + AT_VALUE);
    uint32_t has = (link->handover.page.fd >= 0 ? (uint32_t)HAS_PAGE : 0u) |
                   (link->handover.arena.fd >= 0 ? (uint32_t)HAS_ARENA : 0u) |
                   (link->handover.attach.sentinel != 0 ? (uint32_t)HAS_SENTINEL : 0u);
    return bytes_get_u32(bytes + AT_MAGIC) == HANDOVER_MAGIC && flags == has && next == count &&
           (link->handover.page.fd < 0 || (from_lead && is_sound(&link->handover.page))) &&
           (link->handover.arena.fd < 0 || is_sound(&link->handover.arena));
}

/* A handover is one message: a peer that sends it in pieces is no task of this mesh. */
static cadre_status mesh_get(struct link *link, bool from_lead, struct cadre_error *error)
{
    union control control;
    struct iovec piece = {.iov_base = link->bytes, .iov_len = sizeof link->bytes};
    struct msghdr message = {.msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    ssize_t came = recvmsg(link->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) {
        return CADRE_PENDING;
    }
    if (came <= 0) {
        return mesh_ended(link, error);
    }
    int fds[HANDOVER_FDS];
    size_t count = 0;
    link->handover.attach.pid = mesh_collect(&message, fds, &count);
    bool sound = mesh_understand(link, fds, count, from_lead);
    if (!sound || came != (ssize_t)sizeof link->bytes || (message.msg_flags & MSG_CTRUNC) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the task of rank %" PRIu32
            " handed over something that is no shared memory of this mesh; all tasks must run the "
            "same release",
            link->rank);
    }
    link->got = true;
    return CADRE_OK;
}

cadre_status mesh_link_exchange(
    struct links *links, struct link *link, bool from_lead, struct cadre_error *error)
{
    if (!link->given) {
        CADRE_TRY(mesh_give(&links->handover, link, error));
    }
    return link->got ? CADRE_OK : mesh_get(link, from_lead, error);
}

struct link_memory mesh_link_take(struct link_memory *memory)
{
    struct link_memory taken = *memory;
    *memory = nothing;
    return taken;
}

/* SPDX-License-Identifier: Apache-2.0
 * What loopback TCP gives to blocking calls: a question of 16 bytes, a value in one direction, an
 * answer of 16 bytes in the other; a thread for each connection. `floor_servers CLIENTS [PART]` */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/servers/rounds_servers.h"

enum { PUSH, PULL, GATHER };
enum { PIECE = 256 << 10 };
static const char *const names[] = {"push", "pull", "gather", NULL};
static struct sockaddr_in address;

struct question {
    uint64_t operation;
    uint64_t bytes;
};

static bool send_all(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t step = send(fd, bytes + done, size - done, MSG_NOSIGNAL);
        if (step <= 0) {
            return false;
        }
        done += (size_t)step;
    }
    return true;
}

/* Over and over into the same small memory, which stays in the cache: less cannot be done. */
static bool receive_all(int fd, char *into, size_t size)
{
    for (size_t done = 0; done < size;) {
        size_t most = size - done < PIECE ? size - done : PIECE;
        ssize_t step = recv(fd, into, most, 0);
        if (step <= 0) {
            return false;
        }
        done += (size_t)step;
    }
    return true;
}

static void tune(int fd)
{
    int one = 1;
    int bytes = 512 << 10; /* more in flight falls out of the cache */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void *serve(void *argument)
{
    int fd = (int)(intptr_t)argument;
    char *held = calloc(1, SERVERS_LARGEST);
    struct question question;
    bool on = held != NULL;
    tune(fd);
    while (on && receive_all(fd, (char *)&question, sizeof question)) {
        if (question.operation == GATHER) {
            on = receive_all(fd, held, GATHER_ROWS * sizeof(int64_t));
        }
        if (question.operation == PUSH) {
            on = receive_all(fd, held, question.bytes) &&
                 send_all(fd, (const char *)&question, sizeof question);
        } else {
            on = on && send_all(fd, held, question.bytes);
        }
    }
    close(fd);
    free(held);
    return NULL;
}

static void be_server(int listener)
{
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0) {
            _exit(1);
        }
        pthread_detach(thread);
    }
}

static void *connect_client(int client)
{
    static int fd;
    (void)client;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    tune(fd);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? &fd : NULL;
}

static bool run(void *opened, size_t operation, size_t size_index)
{
    int fd = *(int *)opened;
    struct question question = {.operation = operation, .bytes = servers_sizes[size_index]};
    if (operation == GATHER) {
        question.bytes = (uint64_t)GATHER_ROWS * GATHER_ROW_FLOATS * sizeof(float);
    }
    char *bytes = servers_bytes();
    if (!send_all(fd, (const char *)&question, sizeof question) ||
        (operation == GATHER && !send_all(fd, bytes, GATHER_ROWS * sizeof(int64_t)))) {
        return false;
    }
    return operation == PUSH ? send_all(fd, bytes, question.bytes) &&
                                   receive_all(fd, (char *)&question, sizeof question)
                             : receive_all(fd, bytes, question.bytes);
}

int main(int argc, char **argv)
{
    static const struct servers_kind kind = {connect_client, run, names};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        return 2;
    }
    pid_t server = fork();
    if (server == 0) {
        be_server(listener);
    }
    int status = servers_rounds(&kind, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return status;
}

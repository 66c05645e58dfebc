/* SPDX-License-Identifier: Apache-2.0
 * What the programs of this folder share: servers as processes of their own, the times of one
 * window, and the rows that are printed when all rounds are through. */
#ifndef CADRE_BENCH_ROUNDS_H
#define CADRE_BENCH_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MESSAGE_BYTES   64
#define CONCURRENCY_MAX 256
#define ROUNDS_MAX      15

/* Round trips and their times in one window. */
struct samples {
    uint64_t *took_us;
    uint32_t count, room;
};

/* Room for the longest window; ends the program when memory is short. */
struct samples samples_open(void);
void samples_add(struct samples *samples, uint64_t took_us);

struct server_process {
    pid_t pid;
    int port;
};

/* Starts this program again as `program ROLE FOLDER`, and waits until it has sent its port. */
struct server_process server_spawn(const char *program, const char *role, const char *folder);
void server_kill(const struct server_process *server);

/* Inside the spawned program: sends the port (0 for none), so that the parent continues. */
void server_tell_port(int port);

/* One window of one server: what the CPUs did meanwhile. */
struct window {
    const struct server_process *server;
    uint64_t start_us, server_us, own_us, busy_us;
};

struct window window_begin(const struct server_process *server);

/* One line of the table. */
struct row {
    double per_s[ROUNDS_MAX], p50_us[ROUNDS_MAX], p99_us[ROUNDS_MAX];
    double cpu_us[ROUNDS_MAX]; /* the server's, per round trip */
    double others[ROUNDS_MAX]; /* CPUs that were busy with other programs */
    bool taken[ROUNDS_MAX];
};

/* Ends the window and takes it in as the row's round; the samples may be used again. False when
 * others used the CPUs so much that the window is worth another try; the quietest try stays. */
bool row_add(struct row *row, int round, struct samples *samples, const struct window *window);

/* Prints the medians, and the ratio of the throughputs to `base`. */
void row_print(const char *name, int concurrency, const struct row *row, int rounds,
    const char *base_name, const struct row *base);

/* How often a window is tried that others disturb. */
#define TRIES_MAX 3

/* The arguments [ROUNDS [WINDOW_MS]]; prints the usage and ends the program when they are wrong. */
void rounds_arguments(
    int argc, char **argv, const char *program, int *ret_rounds, uint64_t *ret_window_us);

#endif

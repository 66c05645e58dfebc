/* SPDX-License-Identifier: Apache-2.0
 * common/storage by commands, for the tests beside: a command a line, its fields with tabs between;
 * one line answers it, "status=N" and more fields. The settings are the environment's.
 *
 *   stat PATH                          bytes, version
 *   fetch PATH FILE PIECE THREADS      the whole object, into a file, by threads that take pieces
 *   open NUMBER PATH, part NUMBER OFFSET BYTES FILE, close NUMBER        one that stays open
 *   list FOLDER STARTS DEEP MOST       keys, with spaces between, as %XX where they are not plain
 *   put PATH FILE, put-if-absent PATH FILE, remove PATH
 *   upload PATH FILE PART THREADS      in parts; begun here, and joined by each thread
 *   begin PATH                         an upload, with its name; of one at a time:
 *   finish COUNT, leave                its end
 *   join PATH NAME NUMBER FILE         a part of one that this process or another began
 *   clear START                        ends the uploads that were left
 *   deadline MILLISECONDS              another client, with this one
 *
 * SIGUSR1 stops the client.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/storage/storage.h"

enum { FIELDS_MAX = 6, OPEN_MAX = 8, THREADS_MAX = 64 };

static struct storage_client *client;
static struct storage_object *opened[OPEN_MAX];
static struct storage_upload *begun;

static void answer(cadre_status status, const struct cadre_error *error)
{
    printf("status=%d\tmessage=%s\n", (int)status, status == CADRE_OK ? "" : error->text);
}

/* --- files beside --- */

static char *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        exit(2);
    }
    fclose(file);
    *ret_size = (size_t)size;
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* --- threads that share out pieces, or parts --- */

struct pieces {
    const struct storage_object *object; /* or, to write: */
    const char *path, *name;
    char *bytes;
    size_t size, piece;
    atomic_size_t next;
    pthread_mutex_t lock;
    cadre_status status; /* of the first that failed */
    struct cadre_error error;
};

static void fail(struct pieces *pieces, cadre_status status, const struct cadre_error *error)
{
    pthread_mutex_lock(&pieces->lock);
    if (pieces->status == CADRE_OK) {
        pieces->status = status;
        pieces->error = *error;
    }
    pthread_mutex_unlock(&pieces->lock);
}

static void *read_pieces(void *argument)
{
    struct pieces *pieces = argument;
    struct cadre_error error = {0};
    for (;;) {
        size_t at = atomic_fetch_add(&pieces->next, 1) * pieces->piece;
        if (at >= pieces->size) {
            return NULL;
        }
        size_t size = pieces->size - at < pieces->piece ? pieces->size - at : pieces->piece;
        cadre_status status = storage_read(pieces->object, at, pieces->bytes + at, size, &error);
        if (status != CADRE_OK) {
            fail(pieces, status, &error);
            return NULL;
        }
    }
}

static void *write_pieces(void *argument)
{
    struct pieces *pieces = argument;
    struct cadre_error error = {0};
    struct storage_upload *upload = NULL;
    cadre_status status = storage_upload_join(client, pieces->path, pieces->name, &upload, &error);
    while (status == CADRE_OK) {
        size_t part = atomic_fetch_add(&pieces->next, 1);
        size_t at = part * pieces->piece;
        if (at >= pieces->size) {
            break;
        }
        size_t size = pieces->size - at < pieces->piece ? pieces->size - at : pieces->piece;
        status = storage_upload_part(upload, (uint32_t)part + 1, pieces->bytes + at, size, &error);
    }
    if (status != CADRE_OK) {
        fail(pieces, status, &error);
    }
    storage_upload_leave(upload);
    return NULL;
}

static void run_threads(struct pieces *pieces, void *(*run)(void *), unsigned count)
{
    pthread_t threads[THREADS_MAX];
    count = count < THREADS_MAX ? count : THREADS_MAX;
    pthread_mutex_init(&pieces->lock, NULL);
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, run, pieces) != 0) {
            perror("pthread_create");
            exit(2);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&pieces->lock);
}

/* --- commands --- */

static void do_stat(char **fields)
{
    struct cadre_error error = {0};
    struct storage_object *object = NULL;
    cadre_status status = storage_open(client, fields[1], &object, &error);
    if (status != CADRE_OK) {
        answer(status, &error);
        return;
    }
    const struct storage_info *info = storage_info_of(object);
    printf("bytes=%llu\tversion=%s\tmodified_us=%lld\t", (unsigned long long)info->bytes,
        info->version, (long long)info->modified_us);
    answer(CADRE_OK, NULL);
    storage_close(object);
}

static void do_fetch(char **fields)
{
    struct cadre_error error = {0};
    struct storage_object *object = NULL;
    cadre_status status = storage_open(client, fields[1], &object, &error);
    if (status != CADRE_OK) {
        answer(status, &error);
        return;
    }
    size_t size = (size_t)storage_info_of(object)->bytes;
    struct pieces pieces = {.object = object,
        .bytes = malloc(size + 1),
        .size = size,
        .piece = strtoul(fields[3], NULL, 10)};
    if (!pieces.bytes) {
        perror("malloc");
        exit(2);
    }
    run_threads(&pieces, read_pieces, (unsigned)strtoul(fields[4], NULL, 10));
    if (pieces.status == CADRE_OK) {
        write_file(fields[2], pieces.bytes, size);
    }
    answer(pieces.status, &pieces.error);
    free(pieces.bytes);
    storage_close(object);
}

static struct storage_object **opened_at(const char *number)
{
    return &opened[strtoul(number, NULL, 10) % OPEN_MAX];
}

static void do_open(char **fields)
{
    struct cadre_error error = {0};
    answer(storage_open(client, fields[2], opened_at(fields[1]), &error), &error);
}

static void do_part(char **fields)
{
    struct cadre_error error = {0};
    size_t size = strtoul(fields[3], NULL, 10);
    char *bytes = malloc(size + 1);
    if (!bytes) {
        perror("malloc");
        exit(2);
    }
    cadre_status status =
        storage_read(*opened_at(fields[1]), strtoull(fields[2], NULL, 10), bytes, size, &error);
    if (status == CADRE_OK) {
        write_file(fields[4], bytes, size);
    }
    free(bytes);
    answer(status, &error);
}

static void do_close(char **fields)
{
    storage_close(*opened_at(fields[1]));
    *opened_at(fields[1]) = NULL;
    answer(CADRE_OK, NULL);
}

struct listing {
    unsigned long count, most;
};

static bool print_entry(void *user, const struct storage_entry *entry)
{
    struct listing *listing = user;
    printf("%s", listing->count == 0 ? "" : " ");
    for (const char *at = entry->path; *at; at++) {
        if (*at > ' ' && *at < 127 && *at != '%' && *at != '|') {
            putchar(*at);
        } else {
            printf("%%%02X", (unsigned)(unsigned char)*at);
        }
    }
    printf("|%llu", (unsigned long long)entry->info.bytes);
    return ++listing->count < listing->most;
}

static void do_list(char **fields)
{
    struct cadre_error error = {0};
    struct listing listing = {.most = strtoul(fields[4], NULL, 10)};
    printf("keys=");
    cadre_status status = storage_list(client, fields[1], fields[2][0] ? fields[2] : NULL,
        fields[3][0] == '1', print_entry, &listing, &error);
    printf("\tcount=%lu\t", listing.count);
    answer(status, &error);
}

static void do_put(char **fields)
{
    struct cadre_error error = {0};
    size_t size = 0;
    char *bytes = read_file(fields[2], &size);
    answer(storage_put(client, fields[1], bytes, size, &error), &error);
    free(bytes);
}

static void do_put_if_absent(char **fields)
{
    struct cadre_error error = {0};
    size_t size = 0;
    bool was_there = false;
    char *bytes = read_file(fields[2], &size);
    cadre_status status = storage_put_if_absent(client, fields[1], bytes, size, &was_there, &error);
    printf("was_there=%d\t", was_there);
    answer(status, &error);
    free(bytes);
}

static void do_remove(char **fields)
{
    struct cadre_error error = {0};
    answer(storage_remove(client, fields[1], &error), &error);
}

static void do_upload(char **fields)
{
    struct cadre_error error = {0};
    struct storage_upload *upload = NULL;
    cadre_status status = storage_upload_begin(client, fields[1], &upload, &error);
    if (status != CADRE_OK) {
        answer(status, &error);
        return;
    }
    struct pieces pieces = {.path = fields[1],
        .name = storage_upload_name(upload),
        .piece = strtoul(fields[3], NULL, 10)};
    pieces.bytes = read_file(fields[2], &pieces.size);
    run_threads(&pieces, write_pieces, (unsigned)strtoul(fields[4], NULL, 10));
    if (pieces.status == CADRE_OK) {
        size_t count = (pieces.size + pieces.piece - 1) / pieces.piece;
        answer(storage_upload_finish(upload, (uint32_t)count, &error), &error);
    } else {
        storage_upload_abort(upload);
        answer(pieces.status, &pieces.error);
    }
    free(pieces.bytes);
}

static void do_begin(char **fields)
{
    struct cadre_error error = {0};
    cadre_status status = storage_upload_begin(client, fields[1], &begun, &error);
    if (status == CADRE_OK) {
        printf("name=%s\t", storage_upload_name(begun));
    }
    answer(status, &error);
}

static void do_finish(char **fields)
{
    struct cadre_error error = {0};
    struct storage_upload *upload = begun;
    begun = NULL;
    answer(storage_upload_finish(upload, (uint32_t)strtoul(fields[1], NULL, 10), &error), &error);
}

static void do_leave(char **fields)
{
    (void)fields;
    storage_upload_leave(begun);
    begun = NULL;
    answer(CADRE_OK, NULL);
}

static void do_join(char **fields)
{
    struct cadre_error error = {0};
    struct storage_upload *upload = NULL;
    size_t size = 0;
    char *bytes = read_file(fields[4], &size);
    cadre_status status = storage_upload_join(client, fields[1], fields[2], &upload, &error);
    if (status == CADRE_OK) {
        status = storage_upload_part(
            upload, (uint32_t)strtoul(fields[3], NULL, 10), bytes, size, &error);
        storage_upload_leave(upload);
    }
    answer(status, &error);
    free(bytes);
}

static void do_clear(char **fields)
{
    struct cadre_error error = {0};
    struct timespec now;
    uint32_t count = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    cadre_status status = storage_uploads_clear(
        client, fields[1], ((int64_t)now.tv_sec + 3600) * 1000000, &count, &error);
    printf("count=%u\t", count);
    answer(status, &error);
}

static void do_deadline(char **fields)
{
    struct cadre_error error = {0};
    struct storage_options options = {.deadline_us = strtoull(fields[1], NULL, 10) * 1000};
    storage_client_close(client);
    client = NULL;
    answer(storage_client_open(&options, &client, &error), &error);
}

static const struct command {
    const char *name;
    int fields;
    void (*run)(char **fields);
} commands[] = {
    {"stat", 2, do_stat},
    {"fetch", 5, do_fetch},
    {"open", 3, do_open},
    {"part", 5, do_part},
    {"close", 2, do_close},
    {"list", 5, do_list},
    {"put", 3, do_put},
    {"put-if-absent", 3, do_put_if_absent},
    {"remove", 2, do_remove},
    {"upload", 5, do_upload},
    {"begin", 2, do_begin},
    {"finish", 2, do_finish},
    {"leave", 1, do_leave},
    {"join", 5, do_join},
    {"clear", 2, do_clear},
    {"deadline", 2, do_deadline},
};

static bool run_command(char *text)
{
    char *fields[FIELDS_MAX] = {NULL};
    int count = 0;
    for (char *rest = text; rest && count < FIELDS_MAX;) {
        fields[count++] = rest;
        rest = strchr(rest, '\t');
        if (rest) {
            *rest++ = '\0';
        }
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, fields[0]) == 0 && commands[i].fields == count) {
            commands[i].run(fields);
            fflush(stdout);
            return true;
        }
    }
    fprintf(stderr, "no command %s with %d fields\n", fields[0], count);
    return false;
}

static void *stop_at_signal(void *argument)
{
    sigset_t *set = argument;
    int number = 0;
    while (sigwait(set, &number) == 0) {
        storage_client_stop(client);
    }
    return NULL;
}

int main(void)
{
    static sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 ||
        pthread_create(&thread, NULL, stop_at_signal, &set) != 0 || pthread_detach(thread) != 0) {
        perror("pthread_create");
        return 2;
    }
    struct cadre_error error = {0};
    struct storage_options options = {0};
    cadre_status status = storage_client_open(&options, &client, &error);
    answer(status, &error);
    fflush(stdout);
    char *text = NULL;
    size_t room = 0;
    ssize_t length = 0;
    while (status == CADRE_OK && (length = getline(&text, &room, stdin)) > 0) {
        text[length - 1] = '\0';
        if (!run_command(text)) {
            return 2;
        }
    }
    free(text);
    storage_client_close(client);
    return 0;
}

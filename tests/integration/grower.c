/* SPDX-License-Identifier: Apache-2.0
 * A plain program whose state proves what was saved: how many tasks gave each of its states.
 *
 *     grower FOLDER
 *
 * It saves until FOLDER has a file named "end", and says where each task begins and ends. While
 * FOLDER has a file "hold", its saves wait. */
#include <cadre/cadre.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAVES_MAX 100000
#define WAIT_MS   5

struct counting {
    uint32_t saves;
    uint8_t sizes[SAVES_MAX]; /* of the world, at each of them */
};

static bool has(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Whether there is one more save: as the first task sees it. */
static bool goes_on(const char *folder)
{
    uint8_t more = 1;
    if (cadre_rank() == 0) {
        while (has(folder, "hold")) {
            poll(NULL, 0, WAIT_MS);
        }
        more = !has(folder, "end");
    }
    CADRE_CHECK(cadre_plain_broadcast(&more, 1, CADRE_U8, 0));
    return more != 0;
}

static void load(struct counting *counting)
{
    void *bytes;
    size_t size;
    cadre_status status = cadre_plain_load("counting", 0, &bytes, &size);
    if (status == CADRE_NOT_FOUND) {
        return;
    }
    CADRE_CHECK(status);
    counting->saves = (uint32_t)size;
    memcpy(counting->sizes, bytes, size);
    free(bytes);
}

/* "1x20 3x7": 20 saves by one task, then 7 by three. */
static void show(const struct counting *counting)
{
    printf("saved by");
    for (uint32_t i = 0, first = 0; i < counting->saves; i++) {
        if (i + 1 == counting->saves || counting->sizes[i + 1] != counting->sizes[first]) {
            printf(" %ux%u", counting->sizes[first], i + 1 - first);
            first = i + 1;
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static struct counting counting;
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    if (argc != 2) {
        fprintf(stderr, "usage: grower FOLDER\n");
        return 2;
    }
    load(&counting);
    printf("task %u of %u begins with %u\n", cadre_rank(), cadre_world_size(), counting.saves);
    while (counting.saves < SAVES_MAX && goes_on(argv[1])) {
        counting.sizes[counting.saves++] = (uint8_t)cadre_world_size();
        bool first = cadre_rank() == 0;
        cadre_status status =
            cadre_plain_save("counting", first ? counting.sizes : NULL, first ? counting.saves : 0);
        if (status == CADRE_CANCELLED) {
            printf("task %u leaves with %u: %s\n", cadre_rank(), counting.saves,
                cadre_error_message());
        }
        CADRE_CHECK(status);
    }
    if (cadre_rank() == 0) {
        show(&counting);
    }
    return cadre_plain_finish();
}

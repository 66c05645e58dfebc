/* SPDX-License-Identifier: Apache-2.0
 * Flips and crops: of which images, the same in any task, other ones in each epoch. */
#include "tests/unit/runtime/training.h"

#include <string.h>

enum { IMAGES = 64, HEIGHT = 3, WIDTH = 4, CHANNELS = 2, PIXELS = HEIGHT * WIDTH };

/* Channel 0 of pixel p of image i is i, channel 1 is p. */
static cadre_dataset *images(cadre_dtype dtype)
{
    static uint8_t bytes[IMAGES * PIXELS * CHANNELS];
    static float floats[IMAGES * PIXELS * CHANNELS];
    for (int i = 0; i < IMAGES * PIXELS; i++) {
        bytes[i * CHANNELS] = (uint8_t)(i / PIXELS);
        bytes[i * CHANNELS + 1] = (uint8_t)(i % PIXELS);
    }
    for (int i = 0; i < IMAGES * PIXELS * CHANNELS; i++) {
        floats[i] = (float)bytes[i];
    }
    const int64_t dims[4] = {IMAGES, HEIGHT, WIDTH, CHANNELS};
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_data(
        dtype, 4, dims, dtype == CADRE_U8 ? (const void *)bytes : floats, &tensor));
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

/* The pixels of all images of an epoch as they came out, by the image's number. */
struct seen {
    int64_t count;  /* images */
    int64_t pixels; /* of one */
    uint8_t of[IMAGES][PIXELS];
};

static uint8_t value_at(const cadre_tensor *tensor, int64_t i)
{
    const void *data = cadre_tensor_const_data(tensor);
    return cadre_tensor_dtype(tensor) == CADRE_U8 ? ((const uint8_t *)data)[i]
                                                  : (uint8_t)((const float *)data)[i];
}

static void look(const cadre_tensor *tensor, struct seen *seen)
{
    uint32_t rank = cadre_tensor_rank(tensor);
    int64_t count = rank == 4 ? cadre_tensor_dim(tensor, 0) : 1;
    seen->pixels = cadre_tensor_dim(tensor, rank - 3) * cadre_tensor_dim(tensor, rank - 2);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = i * seen->pixels * CHANNELS;
        uint8_t number = value_at(tensor, first);
        for (int64_t p = 0; p < seen->pixels; p++) {
            assert_int_equal(value_at(tensor, first + p * CHANNELS), number);
            seen->of[number][p] = value_at(tensor, first + p * CHANNELS + 1);
        }
    }
    seen->count += count;
}

/* Consumes `data`. */
static void read_all(cadre_dataset *data, uint64_t epoch, struct seen *seen)
{
    cadre_iterator *iterator;
    cadre_element element;
    cadre_status status;
    *seen = (struct seen){0};
    assert_public_ok(cadre_dataset_iterate(data, epoch, &iterator));
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        look(element.tensors[0], seen);
        cadre_element_release(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        fail_msg("%s", cadre_error_message());
    }
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    assert_int_equal(seen->count, IMAGES);
}

/* 0: as it was, 1: left to right, 2: upside down, 3: both; -1: none of them. */
static int flip_of(const uint8_t pixels[PIXELS])
{
    for (int kind = 0; kind < 4; kind++) {
        bool all = true;
        for (int p = 0; p < PIXELS; p++) {
            int row = (kind & 2) != 0 ? HEIGHT - 1 - p / WIDTH : p / WIDTH;
            int column = (kind & 1) != 0 ? WIDTH - 1 - p % WIDTH : p % WIDTH;
            all = all && pixels[p] == row * WIDTH + column;
        }
        if (all) {
            return kind;
        }
    }
    return -1;
}

static void all_flips_come_about_equally_often(void **state)
{
    (void)state;
    static const int possible[3] = {0xf, 0x3, 0x5}; /* kinds, by mode */
    for (int mode = CADRE_FLIP_BOTH; mode <= CADRE_FLIP_VERTICAL; mode++) {
        cadre_random_flip_options options = {.mode = (cadre_flip_mode)mode, .seed = 3};
        int times[4] = {0};
        struct seen seen;
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            read_all(cadre_dataset_map(images(CADRE_U8), cadre_random_flip_map, &options, NULL),
                epoch, &seen);
            for (int i = 0; i < IMAGES; i++) {
                int kind = flip_of(seen.of[i]);
                assert_true(kind >= 0);
                times[kind]++;
            }
        }
        int kinds = mode == CADRE_FLIP_BOTH ? 4 : 2;
        for (int kind = 0; kind < 4; kind++) {
            bool comes = (possible[mode] >> kind & 1) != 0;
            assert_true(comes ? times[kind] > 2 * IMAGES / kinds && times[kind] < 8 * IMAGES / kinds
                              : times[kind] == 0);
        }
    }
}

/* By place and in order, before and behind a batch, with threads, as bytes and floats. */
static void it_is_the_same_however_it_is_read(void **state)
{
    (void)state;
    cadre_random_flip_options flip = {.seed = 8};
    cadre_random_crop_options crop = {.seed = 8, .height = 2, .width = 3};
    const struct {
        cadre_map_function function;
        void *options;
    } maps[] = {{cadre_random_flip_map, &flip}, {cadre_random_crop_map, &crop}};
    static struct seen first[2];
    static struct seen seen;
    for (size_t m = 0; m < 2; m++) {
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            read_all(cadre_dataset_map(images(CADRE_U8), maps[m].function, maps[m].options, NULL),
                epoch, &first[epoch]);
            for (int way = 0; way < 16; way++) {
                cadre_dataset *data = images((way & 1) != 0 ? CADRE_F32 : CADRE_U8);
                const cadre_map_options threads = {.parallel = (way & 2) != 0 ? 3 : 0};
                data = (way & 4) != 0 ? cadre_dataset_shuffle(data, 9, 1, NULL) : data;
                data = (way & 8) != 0 ? cadre_dataset_batch(data, 5, false) : data;
                read_all(cadre_dataset_map(data, maps[m].function, maps[m].options, &threads),
                    epoch, &seen);
                assert_memory_equal(&seen, &first[epoch], sizeof seen);
            }
        }
        assert_memory_not_equal(&first[0], &first[1], sizeof seen);
    }
}

static void a_crop_is_a_window(void **state)
{
    (void)state;
    cadre_random_crop_options options = {.height = 2, .width = 3};
    int times[2][2] = {{0}}; /* top, left */
    struct seen seen;
    read_all(cadre_dataset_map(images(CADRE_U8), cadre_random_crop_map, &options, NULL), 0, &seen);
    assert_int_equal(seen.pixels, 6);
    for (int i = 0; i < IMAGES; i++) {
        int top = seen.of[i][0] / WIDTH;
        int left = seen.of[i][0] % WIDTH;
        assert_true(top <= 1 && left <= 1);
        times[top][left]++;
        for (int p = 0; p < 6; p++) {
            assert_int_equal(seen.of[i][p], (top + p / 3) * WIDTH + left + p % 3);
        }
    }
    assert_true(times[0][0] > 4 && times[0][1] > 4 && times[1][0] > 4 && times[1][1] > 4);
    options = (cadre_random_crop_options){.center = true, .height = 2, .width = 2};
    read_all(cadre_dataset_map(images(CADRE_F32), cadre_random_crop_map, &options, NULL), 0, &seen);
    for (int i = 0; i < IMAGES; i++) { /* rows 0 and 1 of 3, columns 1 and 2 of 4 */
        static const uint8_t middle[4] = {1, 2, 5, 6};
        assert_memory_equal(seen.of[i], middle, sizeof middle);
    }
    options = (cadre_random_crop_options){.height = HEIGHT, .width = WIDTH};
    read_all(cadre_dataset_map(images(CADRE_U8), cadre_random_crop_map, &options, NULL), 0, &seen);
    assert_int_equal(flip_of(seen.of[9]), 0);
}

/* --- in a strategy: with any number of replicas --- */

static void replicas_see_what_one_would(void **state)
{
    (void)state;
    cadre_random_flip_options options = {.seed = 4};
    static struct seen seen[3];
    for (uint32_t replicas = 1, n = 0; replicas <= 4; replicas *= 2, n++) {
        cadre_strategy *strategy = training_strategy(replicas);
        cadre_dataset *data = cadre_dataset_shuffle(images(CADRE_U8), CADRE_SHUFFLE_ALL, 2, NULL);
        data = cadre_dataset_map(data, cadre_random_flip_map, &options, NULL);
        data = cadre_dataset_batch(data, 8 * (int64_t)replicas, false);
        cadre_distributed_dataset *distributed;
        cadre_per_replica *batch;
        assert_public_ok(cadre_distribute_dataset(strategy, data, NULL, &distributed));
        for (uint64_t epoch = 0; cadre_next_epoch(distributed, 2, NULL); epoch++) {
            seen[n] = (struct seen){0};
            while (cadre_next(distributed, &batch) == CADRE_OK) {
                cadre_tensor *const *tensors = cadre_local_results(batch, 0);
                for (uint32_t r = 0; r < replicas; r++) {
                    look(tensors[r], &seen[n]);
                }
            }
            assert_int_equal(seen[n].count, IMAGES);
        }
        cadre_strategy_release(strategy);
    }
    assert_memory_equal(&seen[0], &seen[1], sizeof seen[0]);
    assert_memory_equal(&seen[0], &seen[2], sizeof seen[0]);
}

/* --- several components, bad input --- */

static void one_seed_is_one_draw(void **state)
{
    (void)state;
    cadre_dataset *const parts[2] = {images(CADRE_U8), images(CADRE_F32)};
    cadre_random_flip_options both[2] = {{.seed = 6}, {.component = 1, .seed = 6}};
    cadre_dataset *data = cadre_dataset_zip(parts, 2);
    data = cadre_dataset_map(data, cadre_random_flip_map, &both[0], NULL);
    data = cadre_dataset_map(data, cadre_random_flip_map, &both[1], NULL);
    cadre_iterator *iterator;
    cadre_element element;
    assert_public_ok(cadre_dataset_iterate(data, 0, &iterator));
    while (cadre_iterator_next(iterator, &element) == CADRE_OK) {
        for (int64_t i = 0; i < PIXELS * CHANNELS; i++) {
            assert_int_equal(value_at(element.tensors[0], i), value_at(element.tensors[1], i));
        }
        cadre_element_release(&element);
    }
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void refused(cadre_dataset *data, cadre_map_function function, void *options,
    cadre_status code, const char *part)
{
    cadre_iterator *iterator;
    cadre_element element;
    data = cadre_dataset_map(data, function, options, NULL);
    assert_public_ok(cadre_dataset_iterate(data, 0, &iterator));
    assert_public_error(cadre_iterator_next(iterator, &element), code, part);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void what_is_no_image_is_refused(void **state)
{
    (void)state;
    cadre_random_flip_options flip = {.mode = (cadre_flip_mode)7};
    cadre_random_crop_options crop = {.height = 4, .width = 4};
    refused(images(CADRE_U8), cadre_random_flip_map, &flip, CADRE_INVALID_ARGUMENT, "mode 7");
    refused(images(CADRE_U8), cadre_random_crop_map, &crop, CADRE_INVALID_ARGUMENT,
        "[4, 4] cannot be cut out of an image of [3, 4]");
    crop = (cadre_random_crop_options){.height = 2};
    refused(images(CADRE_U8), cadre_random_crop_map, &crop, CADRE_INVALID_ARGUMENT, "[2, 0]");
    flip = (cadre_random_flip_options){.component = 1};
    refused(images(CADRE_U8), cadre_random_flip_map, &flip, CADRE_INVALID_ARGUMENT, "component 1");
    flip = (cadre_random_flip_options){0};
    refused(cadre_dataset_range(0, 4, 1), cadre_random_flip_map, &flip, CADRE_INVALID_ARGUMENT,
        "component 0 is i64 []");
    refused(cadre_dataset_batch(cadre_dataset_batch(images(CADRE_U8), 2, true), 2, true),
        cadre_random_flip_map, &flip, CADRE_INVALID_ARGUMENT, "images are [height, width");
    refused(cadre_dataset_repeat(images(CADRE_U8), 2), cadre_random_flip_map, &flip,
        CADRE_FAILED_PRECONDITION, "put the map before repeat");
    refused(images(CADRE_U8), cadre_random_flip_map, NULL, CADRE_INVALID_ARGUMENT, "'user'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_flips_come_about_equally_often),
        cmocka_unit_test(it_is_the_same_however_it_is_read),
        cmocka_unit_test(a_crop_is_a_window),
        cmocka_unit_test(replicas_see_what_one_would),
        cmocka_unit_test(one_seed_is_one_draw),
        cmocka_unit_test(what_is_no_image_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

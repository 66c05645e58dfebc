/* SPDX-License-Identifier: Apache-2.0
 * Why no GPU is used, in each case that there is, on a machine that need not have any. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cadre/gpu.h"
#include "tests/lib/test.h"
#include "worker/library/device/device.h"
#include "common/gpus/pci_gpus.h"
#include "worker/library/device/device_plugin.h"

#define PRESENT "libc.so.6" /* a library that exists, in place of the driver's */

static const char *nowhere[] = {NULL};

static void assert_reason(const struct device_search *search, const char *part)
{
    struct device_found found;
    device_plugin_find(search, &found);
    assert_null(found.ops);
    assert_int_equal(found.count, 0);
    if (strstr(found.reason, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, found.reason);
    }
    assert_int_not_equal(found.reason[strlen(found.reason) - 1], '.');
}

static void the_environment_comes_first(void **state)
{
    (void)state;
    struct device_search search = {
        .devices = "cpu", .plugin = PLUGIN_NONE, .driver = PRESENT, .folders = nowhere};
    assert_reason(&search, "CADRE_DEVICES is cpu");
    search.devices = "";
    assert_reason(&search, "the driver sees no device");
    search.driver = "libno-such-driver.so.1"; /* a plugin that is named needs none */
    assert_reason(&search, "the driver sees no device");
}

static void plugins_that_cannot_be_used_say_why(void **state)
{
    (void)state;
    struct device_search search = {.plugin = "/no/such/plugin.so", .folders = nowhere};
    assert_reason(&search, "the plugin cannot be opened: /no/such/plugin.so");
    search.plugin = PLUGIN_OLDER;
    char wanted[96];
    snprintf(wanted, sizeof wanted, "is of another version than this library, which needs ABI %d",
        DEVICE_ABI);
    assert_reason(&search, wanted);
    search.plugin = PLUGIN_UNNAMED;
    assert_reason(&search, "has no cadre_device_plugin");
}

/* A card as Linux shows it. */
static void make_card(const char *folder, const char *address, const char *vendor,
    const char *class, const char *device)
{
    char path[TEST_PATH_BYTES];
    char file[TEST_PATH_BYTES + 16];
    const char *const names[] = {"vendor", "class", "device"};
    const char *const values[] = {vendor, class, device};
    assert_int_equal(mkdir(test_path(path, folder, address), 0700), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        test_write(file, values[i]);
    }
}

static void a_card_without_a_driver_is_named(void **state)
{
    (void)state;
    char text[64];
    const char *folder = test_temp_dir();
    struct device_search search = {
        .driver = "libno-such-driver.so.1", .pci_folder = "/no/such/folder", .folders = nowhere};
    assert_reason(&search, "no NVIDIA driver: libno-such-driver.so.1 cannot be opened");
    search.pci_folder = folder;
    make_card(folder, "0000:00:02.0", "0x8086\n", "0x030000\n", "0x1234\n");
    make_card(folder, "0000:01:00.0", "0x10de\n", "0x020000\n", "0x1021\n"); /* its network card */
    assert_false(pci_gpus_first(folder, text, sizeof text));
    assert_reason(&search, "no NVIDIA driver");
    make_card(folder, "0000:66:00.0", "0x10de\n", "0x030200\n", "0x2336\n");
    make_card(folder, "0000:65:00.0", "0x10de\n", "0x030200\n", "0x2335\n");
    assert_reason(&search, "an NVIDIA GPU is here (10de:2335 at 0000:65:00.0), but there is no "
                           "driver for it");
}

static void the_plugin_is_looked_for_in_folders(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folders[] = {"/no/such/folder", test_temp_dir(), NULL};
    struct device_search search = {.driver = PRESENT, .folders = folders};
    assert_reason(&search, "the plugin libcadre-cuda.so is not installed; name it by CADRE_PLUGIN "
                           "(looked in /no/such/folder, /");
    test_write(test_path(path, folders[1], DEVICE_PLUGIN_FILE), "no library");
    assert_reason(&search, "the plugin cannot be opened");
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *long_folders[] = {longest, "/b", NULL};
    search.folders = long_folders;
    assert_reason(&search, "(looked in, ...)");
}

static void *ask(void *user)
{
    const char **reason = user;
    (void)cadre_gpu_count(reason);
    return NULL;
}

/* The search is made once, also when the environment changes. */
static void a_process_looks_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    const char *reasons[4];
    struct cadre_error error = {0};
    struct device *device;
    setenv("CADRE_DEVICES", "cpu", 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &reasons[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_string_equal(reasons[i], "no GPU is used: CADRE_DEVICES is cpu");
    }
    setenv("CADRE_DEVICES", "", 1);
    setenv("CADRE_PLUGIN", PLUGIN_NONE, 1);
    assert_int_equal(cadre_gpu_count(NULL), 0);
    assert_string_equal(device_absence_reason(), reasons[0]);
    assert_null(device_plugin());
    assert_error(device_open(0, &device, &error), CADRE_FAILED_PRECONDITION, &error,
        "there is no GPU:0; no GPU is used: CADRE_DEVICES is cpu");
    assert_null(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_comes_first),
        cmocka_unit_test(plugins_that_cannot_be_used_say_why),
        cmocka_unit_test(a_card_without_a_driver_is_named),
        cmocka_unit_test(the_plugin_is_looked_for_in_folders),
        cmocka_unit_test(a_process_looks_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * The sources about a host's GPUs: the child's answer, the PCI bus (a made-up one), the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/probe/slot_gpus.h"
#include "common/gpus/pci_gpus.h"

static struct host_gpus gpus;
static struct cadre_error error;

/* A device of a made-up bus; `driver` NULL: none is bound. */
static void add_card(
    const char *bus, const char *address, const char *vendor, const char *class, const char *driver)
{
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    test_path(folder, bus, address);
    assert_int_equal(mkdir(folder, 0755), 0);
    test_write(test_path(path, folder, "vendor"), vendor);
    test_write(test_path(path, folder, "class"), class);
    test_write(test_path(path, folder, "device"), "0x2335\n");
    if (driver != NULL) {
        char target[128];
        snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver);
        assert_int_equal(symlink(target, test_path(path, folder, "driver")), 0);
    }
}

static const char *make_bus(void)
{
    const char *bus = test_temp_dir();
    add_card(bus, "0000:66:00.0", "0x10de\n", "0x030000\n", NULL);
    add_card(bus, "0000:65:00.0", "0x10de\n", "0x030200\n", "nvidia");
    add_card(bus, "0000:67:00.0", "0x10de\n", "0x030200\n", "vfio-pci");
    add_card(bus, "0000:68:00.0", "0x10de\n", "0x040300\n", "snd_hda_intel"); /* its sound */
    add_card(bus, "0000:69:00.0", "0x1002\n", "0x030000\n", "amdgpu");
    add_card(bus, "0000:6a:00.0", "0x10de\n", "junk\n", "nvidia");
    add_card(bus, "0000:6b:00.0", "0x10de\n", "0x030200\n", "nvidia");
    return bus;
}

static const char *make_program(const char *script)
{
    static char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "cadre-devices"), script);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static const char two[] =
    "#!/bin/sh\necho '{\"devices\": [{\"name\": \"H\", \"uuid\": \"GPU-1\", \"bus\": "
    "\"0000:65:00.0\"}, {\"name\": \"H\", \"uuid\": \"GPU-2\", \"bus\": \"0000:6B:00.0\"}]}'\n";

static void find(const char *script, const char *bus, const char *visible, uint32_t wanted)
{
    char variable[128];
    char *environment[] = {"PATH=/usr/bin:/bin", variable, NULL};
    snprintf(variable, sizeof variable, "CUDA_VISIBLE_DEVICES=%s", visible != NULL ? visible : "");
    environment[1] = visible != NULL ? variable : NULL;
    const struct host_gpus_search search = {.wanted = wanted,
        .program = make_program(script),
        .environment = environment,
        .timeout_us = speed_scaled_us(30 * CADRE_US_PER_S),
        .pci_folder = bus};
    host_gpus_find(&search, &gpus);
}

static void the_bus_is_read(void **state)
{
    (void)state;
    struct pci_gpu cards[8];
    assert_int_equal(pci_gpus(make_bus(), cards, 8), 4);
    static const char *const buses[] = {
        "0000:65:00.0", "0000:66:00.0", "0000:67:00.0", "0000:6b:00.0"};
    static const char *const drivers[] = {"nvidia", "", "vfio-pci", "nvidia"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(cards[i].bus, buses[i]);
        assert_string_equal(cards[i].driver, drivers[i]);
        assert_int_equal(cards[i].device, 0x2335);
    }
    assert_int_equal(pci_gpus("/nonexistent", cards, 8), 0);
}

static void what_is_not_offered_is_explained(void **state)
{
    (void)state;
    find(two, make_bus(), NULL, HOST_GPUS_ALL);
    assert_int_equal(gpus.usable, 2);
    assert_int_equal(gpus.count, 4);
    assert_string_equal(gpus.devices[0].visible, "GPU-1");
    assert_string_equal(gpus.devices[1].visible, "GPU-2");
    assert_string_equal(gpus.devices[2].name, "NVIDIA GPU 10de:2335");
    assert_string_equal(gpus.devices[2].bus, "0000:66:00.0");
    assert_non_null(strstr(gpus.devices[2].unused, "no driver is bound to it"));
    assert_string_equal(
        gpus.devices[3].unused, "it is bound to the driver vfio-pci, not to nvidia");
    struct gpu devices[LIMIT_GPUS_PER_WORKER];
    struct gpus view = host_gpus_view(&gpus, devices);
    assert_int_equal(view.count, 4);
    assert_int_equal(view.usable, 2);
    assert_string_equal(view.devices[3].unused, gpus.devices[3].unused);
}

static void the_plugin_may_leave_some_out(void **state)
{
    (void)state;
    static const char one[] = "#!/bin/sh\necho '{\"devices\": [{\"name\": \"H\", \"uuid\": "
                              "\"GPU-1\", \"bus\": \"0000:65:00.0\"}]}'\n";
    find(one, make_bus(), NULL, HOST_GPUS_ALL);
    assert_int_equal(gpus.count, 4);
    assert_non_null(strstr(gpus.devices[3].unused, "CUDA does not offer it here"));
    find(one, make_bus(), "GPU-1", HOST_GPUS_ALL);
    assert_string_equal(gpus.devices[3].unused, "CUDA_VISIBLE_DEVICES leaves it out");
}

/* Without any, the reason is each one's. */
static void none_is_explained(void **state)
{
    (void)state;
    const char *bus = make_bus();
    find("#!/bin/sh\necho '{\"devices\": [], \"reason\": \"the plugin is not installed\"}'\n", bus,
        NULL, HOST_GPUS_ALL);
    assert_int_equal(gpus.usable, 0);
    assert_int_equal(gpus.count, 4);
    assert_string_equal(gpus.reason, "the plugin is not installed");
    assert_string_equal(gpus.devices[0].unused, "the plugin is not installed");
    find("#!/bin/sh\necho nonsense\n", bus, NULL, HOST_GPUS_ALL);
    assert_int_equal(gpus.usable, 0);
    assert_int_equal(gpus.count, 4);
    assert_non_null(strstr(gpus.reason, "what cadre-devices printed cannot be read"));
    find("#!/bin/sh\necho '{\"devices\": [{\"name\": \"H\"}, 7]}'\n", bus, NULL, HOST_GPUS_ALL);
    assert_int_equal(gpus.usable, 0);
    assert_int_equal(gpus.count, 4);
}

static void tasks_may_get_fewer(void **state)
{
    (void)state;
    const char *bus = make_bus();
    find(two, bus, NULL, 1);
    assert_int_equal(gpus.usable, 1);
    assert_int_equal(gpus.count, 4);
    assert_string_equal(gpus.devices[1].unused, "the option --gpus 1 leaves it out");
    assert_string_equal(gpus.reason, "");
    find(two, bus, NULL, 3);
    assert_int_equal(gpus.usable, 2);
    assert_string_equal(
        gpus.reason, "the option --gpus 3 exceeds the 2 GPUs that can be used");
    /* The child is not run. */
    find("#!/bin/sh\ntouch \"$0.asked\"\n", bus, NULL, 0);
    assert_int_equal(gpus.usable, 0);
    assert_int_equal(gpus.count, 4);
    assert_string_equal(gpus.reason, "the option --gpus none");
    assert_string_equal(gpus.devices[0].unused, "the option --gpus none");
}

static void assert_visible(
    const char *script, const char *list, const char *first, const char *last)
{
    find(script, "/nonexistent", list, HOST_GPUS_ALL);
    assert_int_equal(gpus.usable, 2);
    assert_string_equal(gpus.devices[0].visible, first);
    assert_string_equal(gpus.devices[1].visible, last);
}

static void the_operators_list_counts(void **state)
{
    (void)state;
    static const char nameless[] =
        "#!/bin/sh\necho '{\"devices\": [{\"name\": \"H\", \"uuid\": \"GPU-1\"}, {\"name\": "
        "\"H\"}]}'\n";
    assert_visible(two, "3,5", "GPU-1", "GPU-2");
    assert_visible(two, "MIG-a,MIG-b", "MIG-a", "MIG-b");
    assert_visible(nameless, NULL, "0", "1"); /* the two kinds do not mix */
    assert_visible(nameless, "3,5", "3", "5");
    assert_visible(nameless, "3,5,7", "3", "5");
}

static void the_program_that_asks_has_to_be_there(void **state)
{
    (void)state;
    const struct host_gpus_search search = {.wanted = HOST_GPUS_ALL,
        .program = "/nonexistent/cadre-devices",
        .environment = environ,
        .timeout_us = CADRE_US_PER_S,
        .pci_folder = "/nonexistent"};
    host_gpus_find(&search, &gpus);
    assert_int_equal(gpus.count, 0);
    assert_string_equal(gpus.reason, "/nonexistent/cadre-devices, which looks for GPUs, cannot be "
                                     "run: No such file or directory");
}

static void the_option_is_read(void **state)
{
    (void)state;
    uint32_t wanted = 7;
    assert_ok(host_gpus_parse_count("all", &wanted, &error), &error);
    assert_int_equal(wanted, HOST_GPUS_ALL);
    assert_ok(host_gpus_parse_count("none", &wanted, &error), &error);
    assert_int_equal(wanted, 0);
    assert_ok(host_gpus_parse_count("64", &wanted, &error), &error);
    assert_int_equal(wanted, 64);
    static const char *const wrong[] = {
        "", "al", "none ", "65", "-1", "+1", " 1", "1x", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_error(host_gpus_parse_count(wrong[i], &wanted, &error), CADRE_INVALID_ARGUMENT,
            &error, "is neither \"all\" nor \"none\" nor a number from 0 to 64");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_bus_is_read),
        cmocka_unit_test(what_is_not_offered_is_explained),
        cmocka_unit_test(the_plugin_may_leave_some_out), cmocka_unit_test(none_is_explained),
        cmocka_unit_test(tasks_may_get_fewer), cmocka_unit_test(the_operators_list_counts),
        cmocka_unit_test(the_program_that_asks_has_to_be_there),
        cmocka_unit_test(the_option_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

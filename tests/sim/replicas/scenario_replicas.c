/* SPDX-License-Identifier: Apache-2.0
 * What several coordinators add to a scenario. */
#include "tests/sim/scenario.h"

static uint64_t between(struct prng *prng, uint64_t low, uint64_t high)
{
    return low + prng_uniform(prng, high - low + 1);
}

static void draw_snapshots(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1006);
    const uint64_t entry_bytes = 200;
    s->snapshot_bytes =
        entry_bytes * (prng_chance(&prng, 1, 2) ? between(&prng, 1, 10) : between(&prng, 10, 100));
    s->snapshot_after_us = between(&prng, s->log_lease_us, 20 * s->log_lease_us);
    s->snapshot_keep_us = prng_chance(&prng, 1, 2) ? 0 : between(&prng, 1, 2 * s->log_lease_us);
    s->snapshot_takes_us =
        prng_chance(&prng, 1, 3) ? 2 * s->log_lease_us : between(&prng, 1, s->log_lease_us / 10);
    s->snapshot_fails_in = prng_chance(&prng, 1, 4) ? (uint32_t)between(&prng, 2, 10) : 0;
    s->backup_in = prng_chance(&prng, 1, 2) ? (uint32_t)between(&prng, 2, 12)
                                            : (uint32_t)between(&prng, 12, 200);
}

void scenario_draw_replicas(struct scenario *s, struct prng prng, int world)
{
    static const uint32_t counts[] = {3, 3, 3, 3, 2, 5};
    static const uint64_t leases_us[] = {300000, 1000000, 3000000};
    prng.state = prng_mix(prng.state ^ 1005);
    s->replicas = counts[prng_uniform(&prng, 6)];
    s->log_lease_us = leases_us[prng_uniform(&prng, 3)];
    s->log_delay_us = between(&prng, s->log_lease_us / 2000, s->log_lease_us / 60);
    s->log_slow_in = prng_chance(&prng, 1, 3) ? (uint32_t)between(&prng, 10, 100) : 0;
    s->log_loses_in = prng_chance(&prng, 1, 3) ? (uint32_t)between(&prng, 8, 200) : 0;
    s->clocks_in_bound = !prng_chance(&prng, 1, 5);
    uint64_t bound = s->clocks_in_bound ? SCENARIO_PPM_MAX : 20 * SCENARIO_PPM_MAX;
    for (uint32_t r = 0; r < SCENARIO_REPLICAS_MAX; r++) {
        s->replica_ppm[r] = (int32_t)between(&prng, 0, 2 * bound) - (int32_t)bound;
        s->replica_offset_us[r] = between(&prng, 1, UINT64_C(36000000000));
    }
    s->snapshot_bytes = 0;
    s->snapshot_fails_in = 0;
    s->backup_in = 0;
    if (world >= WORLD_HA_2) {
        draw_snapshots(s, prng);
    }
}

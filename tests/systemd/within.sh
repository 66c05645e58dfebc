# SPDX-License-Identifier: Apache-2.0
# What happens in the emulated machine; its result is the second serial line. Copied there by qemu.
set -uo pipefail
export HOME=/root TERM=dumb
exec 2>&1
cd /srv || exit 1

good() {
    printf 'good: %s\n' "$1"
}

fail() {
    printf 'FAILED: %s\n' "$1"
    tail -n 8 /srv/last
    systemctl status --no-pager -l -n 25 cadre-worker cadre-coordinator
    systemd-cgls --no-pager /system.slice | grep -A 20 cadre
    exit 1
}

check() {
    local end=$((SECONDS + $1))
    until bash -c "$3" >/srv/last 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "$2: $3"
        read -rt 0.3 <> <(:) || true
    done
    good "$2"
}

check 5 "control groups of version 2" 'test "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs'
dpkg -i /shared/1/*.deb >/srv/last 2>&1 || fail "dpkg -i"
# Emulated, on a busy host, a worker takes longer to start than one may be away.
printf 'lease = 2m\nreport-timeout = 2m\n' >>/etc/cadre/coordinator.conf
systemctl restart cadre-coordinator || fail "restart of the coordinator"
check 60 "the worker has joined" 'cadre workers | grep -q ready'
check 5 "it can limit memory, pids and cpu" \
    'journalctl -u cadre-worker | grep -q "cgroup v2, with limits for memory, pids, cpu"'

cc -O1 -o /srv/hungry /shared/hungry.c || fail "cc"
cadre submit --workers 1 --memory 64MiB --pids 30 ./hungry -- memory >/srv/last 2>&1 && fail "512 MiB of 64"
cat /srv/last
grep -qi 'memory' /srv/last || fail "a task that takes 512 MiB of 64"
good "a task that takes 512 MiB of 64 is killed, with the reason"
cadre submit --workers 1 --memory 64MiB --pids 30 ./hungry -- processes >/srv/last 2>&1 && fail "200 processes of 30"
cat /srv/last
grep -q 'one too many' /srv/last || fail "200 processes of 30"
good "a task that starts 200 processes of 30 is refused them"

mkdir digits && cp /shared/examples/digits/* digits && cd digits
cc -std=c11 -D_GNU_SOURCE *.c $(pkg-config --cflags --libs cadre-static) -o digits >/srv/last 2>&1 || fail "cc digits"
cadre submit --detach --workers 1 --replicas 2 --memory 256MiB --file digits-train.bin --file digits-test.bin \
    --max-restarts 9 ./digits -- --epochs 1000000 >/srv/last 2>&1 || fail "submit"
job=$(grep -oE '[0-9]+' /srv/last | head -n 1)
running="cadre workers | grep -q ready && cadre job $job | grep -qi running"
check 60 "a long job runs" "pgrep -x digits && $running"
pids=$(pgrep -x digits | sort)
one=$(head -n 1 <<<"$pids")
cat "/proc/$one/cgroup"
check 5 "its task is in a group of its own, with its limit" \
    "grep -q 268435456 /sys/fs/cgroup\$(cut -d: -f3 /proc/$one/cgroup)/memory.max"
same() {
    [ "$(pgrep -x digits | sort)" = "$pids" ] || fail "$1: tasks were $pids and are $(pgrep -x digits)"
}
main() {
    systemctl show -P MainPID cadre-worker
}
systemctl restart cadre-worker >/srv/last 2>&1 || fail "restart"
check 60 "worker restarted, the job goes on" "$running"
same restart
kill -9 "$(main)"
check 60 "worker killed: back, and the job goes on" "systemctl is-active cadre-worker && $running"
same "kill -9"
check 5 "still within its limit" \
    "grep -q 268435456 /sys/fs/cgroup\$(cut -d: -f3 /proc/$one/cgroup)/memory.max"
systemctl reload cadre-worker || fail "reload"
check 20 "reloaded" "systemctl is-active cadre-worker && $running"
cadre cancel "$job" >/dev/null
check 30 "cancelled: nothing of it is left" "! pgrep -x digits && ! find /sys/fs/cgroup -name 'job-$job' | grep -q ."
systemctl stop cadre-worker || fail "stop"
check 5 "stopped" "! pgrep cadre-keeper && ! pgrep cadre-worker"
dpkg -P $(dpkg-query -W -f "\${Package} " "cadre-*" "libcadre*") >/srv/last 2>&1 || fail "dpkg -P"
check 5 "purged: no group is left" "! find /sys/fs/cgroup -name '*cadre*' | grep -q ."
printf 'all of it is good\n'

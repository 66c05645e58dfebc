# SPDX-License-Identifier: Apache-2.0
# What happens to the services, one thing after the other. Sourced by run.

remember_files
in_machine 'dpkg -i /shared/1/*.deb' >"$work/dpkg.log" 2>&1 || fail "dpkg -i: $(tail -n 5 "$work/dpkg.log")"
check 20 "installed: both services run, the worker has joined" 'cadre workers | grep -q ready'
in_machine 'systemd-analyze security --no-pager cadre-coordinator | tail -n 1
    systemd-analyze security --no-pager cadre-worker | tail -n 1'
check 5 "the coordinator is exposed 1.5 at most" \
    "systemd-analyze security --no-pager cadre-coordinator | tail -n 1 | grep -qE ': (0|1)\.[0-5] '"
check 5 "the worker, which starts the tasks of others, is exposed 4.2 at most" \
    "systemd-analyze security --no-pager cadre-worker | tail -n 1 | grep -qE ': ([0-3]\.[0-9]|4\.[0-2]) '"
check 5 "the status says what it is at" 'systemctl show -P StatusText cadre-coordinator | grep -q "1 worker"'

check 5 "both are healthy" 'for port in 9464 9465; do
    exec 3<>/dev/tcp/127.0.0.1/$port && printf "GET /healthz HTTP/1.0\\r\\n\\r\\n" >&3 &&
        grep -q " 200 " <&3 || exit 1
done'
in_machine 'systemctl reload cadre-coordinator cadre-worker' || fail "reload"
check 20 "reloaded (SIGHUP)" 'systemctl is-active cadre-coordinator cadre-worker && cadre workers | grep -q ready'

# Programs against what is installed, without the tree.
in_machine 'set -e; cp -r /shared/examples /srv
    for name in digits gpt mlp perceptron records recsys; do
        cmake -S /srv/examples/$name -B /srv/$name -G Ninja && ninja -C /srv/$name
    done
    cp /srv/examples/digits/*.bin /srv/digits
    cc -std=c11 -D_GNU_SOURCE /srv/examples/digits/*.c $(pkg-config --cflags --libs cadre) -lm -o /srv/digits/shared
    cc -std=c11 -D_GNU_SOURCE /srv/examples/digits/*.c $(pkg-config --cflags --libs cadre-static) -o /srv/digits/static
    cc -std=c11 -D_GNU_SOURCE /srv/examples/submit/submit.c -o /srv/client \
        $(pkg-config --cflags --libs cadre-client)
    cd /srv/digits; ./shared --epochs 2; ./static --epochs 2' >"$work/examples.log" 2>&1 ||
    fail "examples: $(tail -n 15 "$work/examples.log")"
good "all examples build alone, by find_package and by pkg-config"
in_machine 'cd /srv/digits && cadre submit --workers 1 --file digits-train.bin --file digits-test.bin ./shared -- \
    --epochs 3' >"$work/submit.log" 2>&1 || fail "a job with libcadre.so: $(tail -n 5 "$work/submit.log")"
good "a job whose program needs libcadre.so"
check 20 "a program with libcadre-client.so submits a job" 'cd /srv/digits && /srv/client -f digits-train.bin \
    -f digits-test.bin ./shared --epochs 2'
check 10 "journal: a job is found by its number" 'journalctl CADRE_JOB=1 -u cadre-coordinator | grep -q "job=1"'

# A long job, through which the rest happens.
submit 1000000
check 20 "a job runs" 'pgrep -x digits'
pids=$(task_pids)

old=$(main_pid coordinator)
in_machine 'systemctl restart cadre-coordinator'
check 20 "coordinator restarted, its job goes on" "$(state_of running) && cadre workers | grep -q ready"
[ "$(task_pids)" = "$pids" ] || fail "a restart of the coordinator ended a task"
[ "$(main_pid coordinator)" != "$old" ] || fail "the coordinator was not restarted"
in_machine "kill -9 $(main_pid coordinator)"
check 20 "coordinator killed: back, and the job goes on" "$(state_of running) && cadre workers | grep -q ready"
[ "$(task_pids)" = "$pids" ] || fail "the death of the coordinator ended a task"

kept=$(in_machine 'systemctl show -P ExecStart cadre-worker' | grep -c -e --keep-tasks)
# same_tasks WHAT: only where tasks outlive their worker.
same_tasks() {
    if [ "$kept" -eq 0 ]; then
        printf 'not checked: task processes after "%s" (this worker has no --keep-tasks)\n' "$1"
    elif [ "$(task_pids)" != "$pids" ]; then
        fail "$1: tasks were \"$pids\" and are \"$(task_pids)\""
    fi
}
in_machine 'systemctl restart cadre-worker'
check 60 "worker restarted, the job goes on" "cadre workers | grep -q ready && $(state_of running) && pgrep -x digits"
same_tasks "restart of the worker"
in_machine "kill -9 $(main_pid worker)"
check 60 "worker killed: back, and the job goes on" "cadre workers | grep -q ready && $(state_of running) &&
    pgrep -x digits"
same_tasks "death of the worker"

# A loop that is stuck; in a shorter time than the units'.
for daemon in coordinator worker; do
    in_machine "mkdir -p /run/systemd/system/cadre-$daemon.service.d
        printf '[Service]\nWatchdogSec=2s\n' >/run/systemd/system/cadre-$daemon.service.d/fast.conf
        systemctl daemon-reload; systemctl restart cadre-$daemon"
    check 20 "$daemon up with a short watchdog" "systemctl is-active cadre-$daemon"
    old=$(main_pid "$daemon")
    in_machine "kill -STOP $old"
    check 150 "$daemon stood still: systemd started it again" \
        "test \$(systemctl show -P MainPID cadre-$daemon) != $old && systemctl is-active cadre-$daemon"
    in_machine "rm -r /run/systemd/system/cadre-$daemon.service.d; systemctl daemon-reload"
done
check 60 "the job goes on" "cadre workers | grep -q ready && $(state_of running) && pgrep -x digits"

pids=$(task_pids)
in_machine 'dpkg -i /shared/2/*.deb' >"$work/dpkg.log" 2>&1 || fail "upgrade: $(tail -n 5 "$work/dpkg.log")"
check 60 "upgraded in the middle of a job, which goes on" "cadre workers | grep -q ready && $(state_of running) &&
    pgrep -x digits && dpkg-query -W cadre-worker | grep -q -e '-2$'"
same_tasks "upgrade"

machine_reboot || fail "the machine does not come up again"
check 60 "rebooted in the middle of a job, which goes on" "cadre workers | grep -q ready && $(state_of running) &&
    pgrep -x digits"
in_machine "cadre cancel $job" >/dev/null 2>&1
submit 300
check 120 "a job ends well after all that" "$(state_of succeeded)"

check 10 "journal: what the daemons say is there" \
    'journalctl -u cadre-worker -o json | grep -q "joined the coordinator"'

# Elsewhere with what was copied: the ledger and all jobs.
in_machine 'set -e; systemctl stop cadre-coordinator; tar -C /var/lib/cadre -cf /srv/backup.tar coordinator
    rm -rf /var/lib/cadre/coordinator; systemctl start cadre-coordinator; systemctl stop cadre-coordinator
    rm -rf /var/lib/cadre/coordinator; tar -C /var/lib/cadre -xpf /srv/backup.tar; systemctl start cadre-coordinator' ||
    fail "backup and restore"
check 20 "restored from a copy: the jobs are there" "$(state_of succeeded)"

in_machine 'dpkg -r $(dpkg-query -W -f "\${Package} " "cadre-*" "libcadre*")' >"$work/dpkg.log" 2>&1 ||
    fail "dpkg -r: $(tail -n 5 "$work/dpkg.log")"
check 5 "removed: state and configuration stay" 'test -d /var/lib/cadre/coordinator && test -f /etc/cadre/worker.conf &&
    ! pgrep ^cadre-'
purge_all

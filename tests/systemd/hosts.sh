# SPDX-License-Identifier: Apache-2.0
# What happens on the three machines. Sourced by hosts.

# ---- the cluster: deploy/docs/guides/two-hosts.md, "With packages and units" ----

packages desk 1 cadre-client
must desk 'cd /srv && cadre pki init pki
    cadre pki issue pki coordinator main -o tls-main
    for name in main host-a; do cadre pki issue pki worker $name -o tls-worker-$name; done
    cadre pki issue pki client anna -o tls-anna'
copy desk tls-main main
copy desk tls-worker-main main
copy desk tls-worker-host-a host-a

packages main 1 cadre-coordinator cadre-client
must main 'cd /srv && cp tls-main/*.pem /etc/cadre/tls/coordinator/ && chmod 600 /etc/cadre/tls/coordinator/*
    printf "%s\n" "listen = unix:/run/cadre/coordinator.sock" "listen = 0.0.0.0:7070" \
        "tls-dir = /etc/cadre/tls/coordinator" >>/etc/cadre/coordinator.conf
    systemctl restart cadre-coordinator || journalctl -u cadre-coordinator -n 20'
grep -q 'may not be read by the user' "$work/said" || fail "a key of root is not reported: $(tail -n 3 "$work/said")"
good "a key that the coordinator may not read is reported"
must main 'cd /srv && install -o cadre -g cadre -m 600 tls-main/*.pem /etc/cadre/tls/coordinator/
    systemctl restart cadre-coordinator'
for host in main host-a; do
    packages "$host" 1 cadre-worker cadre-client libcadre0
    must "$host" "cd /srv && install -m 600 tls-worker-$host/*.pem /etc/cadre/tls/worker/
        printf '%s\n' 'coordinator = 10.0.0.1:7070' 'tls-dir = /etc/cadre/tls/worker' >>/etc/cadre/worker.conf
        systemctl restart cadre-worker"
done
as_anna='export CADRE_COORDINATOR=10.0.0.1:7070 CADRE_TLS_DIR=/srv/tls-anna; cd /srv'
check 30 "both workers have joined, each by the name in its certificate" desk \
    "$as_anna; for name in main host-a; do cadre workers | grep -E \"^\$name +ready\" || exit 1; done"
check 10 "all three daemons are healthy, by plain HTTP on loopback" main \
    'for port in 9464 9465; do exec 3<>/dev/tcp/127.0.0.1/$port && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 &&
        grep -q " 200 " <&3 || exit 1; done'
check 5 "the coordinator's socket serves its own host" main 'cadre workers | grep -q host-a'
on desk "cd /srv; CADRE_COORDINATOR=10.0.0.1:7070 cadre workers" >"$work/said" 2>&1 && fail "no certificate: let in"
grep -q 'tls' "$work/said" || fail "without a certificate: $(cat "$work/said")"
good "without a certificate: $(tail -n 1 "$work/said")"
good "the worker: $(on host-a 'journalctl -u cadre-worker | grep -o "each job has.*" | tail -n 1')"

# ---- programs, built on the desk from the package alone ----

packages desk 1 libcadre0 libcadre-dev
must desk 'cp -r /shared/examples /srv
    for name in digits submit; do
        cmake -S /srv/examples/$name -B /srv/$name -G Ninja && ninja -C /srv/$name
    done
    for name in submit follow; do
        cc -std=c11 -Wall -Werror -D_GNU_SOURCE /srv/examples/submit/$name.c -o /srv/$name-by-pkg-config \
            $(pkg-config --cflags --libs cadre-client)
    done
    cd /srv/examples/digits && for kind in cadre cadre-static; do
        cc -std=c11 -Wall -Werror -D_GNU_SOURCE *.c $(pkg-config --cflags --libs $kind) -lm -o /srv/digits/by-$kind
    done'
good "digits and submit build by find_package and by pkg-config"
for program in digits by-cadre by-cadre-static; do
    must desk "$as_anna/digits; cadre submit --workers 2 --file digits-train.bin --file digits-test.bin ./$program -- \
        --epochs 5"
done
must desk 'cd /srv/digits && ./digits --epochs 1 && cadre run -n 2 ./by-cadre -- --epochs 1'
good "digits runs by hand and by cadre run, where there is no daemon"
good "digits trains on both hosts, linked by cadre::static, cadre and cadre-static"
must desk "$as_anna/digits; cadre get 1 -o /srv/got; test -f /srv/got/checkpoints/*.safetensors
    cadre logs --task 0 1 | grep 'test accuracy'; cadre verify 1"
good "logs, get, verify"
for program in submit/example-submit submit-by-pkg-config; do
    must desk "$as_anna/digits; /srv/$program -w 2 -f digits-train.bin -f digits-test.bin ./digits --epochs 2"
done
# They follow until the jobs end or their standard input does.
must desk "$as_anna; mkfifo silence; exec 3<>silence
    timeout 20 submit/example-follow 1 2 <&3 && timeout 20 ./follow-by-pkg-config 3 <&3"
good "clients of cadre::client and of pkg-config submit and follow"

# ---- operating it, with a job that runs ----

must desk "$as_anna/digits; cadre submit --detach --workers 1:2 --max-restarts 9 --checkpoint-every 200 \
    --file digits-train.bin --file digits-test.bin ./digits -- --epochs 1000000"
job=$(grep -oE '[0-9]+' "$work/said" | head -n 1)
goes_on="$as_anna; cadre job $job | grep -qi running"
check 30 "a job runs on both hosts" host-a 'pgrep -x digits'
pids=$(on host-a 'pgrep -x digits | sort')
uid=$(on host-a 'ps -o uid= -C digits | sort -u')
[ "$uid" -ge 60928 ] || fail "its task runs as the user $uid"
must host-a 'systemctl restart cadre-worker'
check 30 "the worker is restarted, its tasks are not" desk "$goes_on && cadre workers | grep -E '^host-a +ready'"
[ "$(on host-a 'pgrep -x digits | sort')" = "$pids" ] || fail "a restart of the worker ended a task"

old=$(on host-a 'cat /etc/cadre/tls/worker/cert.pem')
must desk 'cd /srv && cadre pki issue pki worker host-a -o tls-worker-host-a --force'
copy desk tls-worker-host-a host-a
must host-a 'cd /srv && install -m 600 tls-worker-host-a/*.pem /etc/cadre/tls/worker/ && systemctl reload cadre-worker'
[ "$(on host-a 'cat /etc/cadre/tls/worker/cert.pem')" != "$old" ] || fail "the certificate is the old one"
check 20 "a renewed certificate is taken up, the job goes on" host-a \
    'journalctl -u cadre-worker | grep -i tls | grep -qiE "again|reload|new"'
check 5 "the job goes on" desk "$goes_on"

packages host-a 1 cadre-worker cadre-client libcadre0
check 30 "the packages are put in place again, as an upgrade does: no task ends" desk \
    "$goes_on && cadre workers | grep -E '^host-a +ready'"
[ "$(on host-a 'pgrep -x digits | sort')" = "$pids" ] || fail "new packages of the worker ended a task"

must desk "$as_anna; cadre drain host-a"
check 60 "drained: the job goes on with the other worker" desk "$goes_on && ! cadre job $job | grep -q host-a"
must host-a 'systemctl restart cadre-worker'
check 60 "back again, and the job grows" desk "$goes_on && cadre workers | grep -E '^host-a +ready'"
must desk "$as_anna; cadre cancel $job"

# ---- GPUs: the package of them, where it was built; there is no driver in these machines ----

if ls "$work/shared/1/"cadre-cuda_*.deb >/dev/null 2>&1; then
    packages host-a 1 cadre-cuda
    on host-a 'cadre-devices' >"$work/said" 2>&1
    grep -qi 'driver' "$work/said" || fail "cadre-devices without a driver: $(cat "$work/said")"
    good "cadre-cuda: $(head -n 1 "$work/said")"
else
    printf 'not checked: cadre-cuda, which was not built (no CUDA Toolkit)\n'
fi

# ---- and away with it ----

for machine in desk host-a main; do
    in_machine "dpkg -V $installed" >"$work/said" 2>&1
    grep -v ' c /etc/cadre/' "$work/said" && fail "dpkg -V on $machine: what is printed above"
    purge_all
done

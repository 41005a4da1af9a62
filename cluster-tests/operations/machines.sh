# Machines made of namespaces, and the service of a node on them; sourced by `run` beside it, never run.
#
# Owns what a machine is: a network, an /etc and a /var of its own, held by one process. Never knows what the operator does there.

# shellcheck shell=bash

# The user that nodes run as, known on the machines alone.
user_id=64123

# The process that holds the namespaces of each machine, and the node that runs there.
declare -A holder node

# A machine with a network, an /etc and a /var of its own; nothing of it is left once its first process has ended.
machine() {
    local name=$1 address=$2 own=$home/$1 nth
    mkdir -p "$own/etc/quorate/tls" "$own/var/lib/quorate" "$own/var/log/quorate" "$own/var/tmp"
    { echo "127.0.0.1 localhost"; for nth in 1 2 3 4 5 6 7; do echo "10.0.0.$nth quorate-$nth.example"; done; } >"$own/etc/hosts"
    printf 'hosts: files\npasswd: files\ngroup: files\n' >"$own/etc/nsswitch.conf"
    printf 'root:x:0:0::/root:/bin/sh\nquorate:x:%s:%s::/var/lib/quorate:/bin/false\n' $user_id $user_id >"$own/etc/passwd"
    printf 'root:x:0:\nquorate:x:%s:\n' $user_id >"$own/etc/group"
    # The CAs that the tools of clouds believe, and what openssl asks for.
    cp -a /etc/ssl "$own/etc/"
    chmod 1777 "$own/var/tmp"
    chown -R $user_id:$user_id "$own/var/lib/quorate" "$own/var/log/quorate"
    chgrp -R $user_id "$own/etc/quorate" && chmod 0750 "$own/etc/quorate" "$own/etc/quorate/tls"
    setpriv --pdeathsig KILL unshare --net --mount sh -c "mount --bind '$own/etc' /etc && mount --bind '$own/var' /var && touch '$own/made' && exec sleep infinity" &
    holder[$name]=$!
    eventually "the machine $name" test -e "$own/made"
    on "$name" ip link set lo up
    if [[ $name == desk ]]; then
        on desk ip link add quorate type bridge
        on desk ip link set quorate up
        on desk ip addr add "$address/24" dev quorate
    else
        on desk ip link add "to$name" type veth peer name eth0 netns "${holder[$name]}"
        on desk ip link set "to$name" master quorate up
        on "$name" ip addr add "$address/24" dev eth0
        on "$name" ip link set eth0 up
    fi
}

# Runs a command on a machine, as root, with the programs in its path.
on() {
    local name=$1
    shift
    nsenter --target "${holder[$name]}" --net --mount --wd="$home/desk/work" \
        env HOME="$home/desk/work" PATH="$programs:$age:/usr/sbin:/usr/bin:/sbin:/bin" "${cloud[@]}" "$@"
}

# The operator at the desk.
desk() { on desk "$@"; }

# Runs a command on a machine as the user of the node, where the unit of the package would run it.
as_node() {
    local name=$1
    shift
    on "$name" setpriv --reuid quorate --regid quorate --clear-groups env -C / "$@"
}

# Puts a file of the operator onto a machine as one whose content is nobody's business but the node's.
give() {
    local name=$1 from=$2 to=$3
    on "$name" install -o root -g quorate -m 0640 "$from" "$to.new"
    on "$name" mv "$to.new" "$to"
}

# Runs a node on a machine as its user, which is $! then; it ends with this script at the latest.
service() {
    local name=$1
    shift
    setpriv --pdeathsig KILL nsenter --target "${holder[$name]}" --net --mount --wd=/ env "${cloud[@]}" \
        setpriv --reuid $user_id --regid $user_id --clear-groups --pdeathsig KILL "$programs/quorate-node" "$@" >>"$home/$name/log" 2>&1 &
}

start() {
    service "$1" --config /etc/quorate/node.toml
    node[$1]=$!
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# Waits for the end of a node, and prints its exit code.
ends() {
    local name=$1 code=0 pid=${node[$1]}
    eventually "the end of the node on machine $name" gone "$pid"
    wait "$pid" || code=$?
    unset "node[$name]"
    ended_with=$code
}

stop() {
    kill -TERM "${node[$1]}"
    ends "$1"
    [[ $ended_with -eq 0 ]] || die "the node on machine $1 ended with exit code $ended_with on SIGTERM"
}

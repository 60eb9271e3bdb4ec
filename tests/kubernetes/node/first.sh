#!/usr/bin/env bash
# The first process of a node, in namespaces of its own: mounts, network and processes of the node end with it.
#   first.sh FOLDER NAME OUTSIDE INSIDE PODS
# OUTSIDE and INSIDE are the ends of the cable between the machine, whose network is file descriptor 3, and the node; PODS
# are three numbers of the pods' addresses.
set -euo pipefail
folder=$1 name=$2 outside=$3 inside=$4 pods=$5
mount --make-rshared /
for place in /run /var/log /var/lib; do mount -t tmpfs tmpfs "$place"; done
# The kubelet writes these where they differ, for the whole machine: it reads what it wants, in files.
while read -r setting value; do
  echo "$value" >"$folder/setting-${setting//\//-}"
  mount --bind "$folder/setting-${setting//\//-}" "/proc/sys/$setting"
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
hostname "$name"
ip link set lo up
ip link add eth0 type veth peer name "$name"
ip link set "$name" netns /proc/self/fd/3
ip address add "$inside/30" dev eth0
ip link set eth0 up
ip route add default via "$outside"
echo 1 >/proc/sys/net/ipv4/ip_forward
mkdir -p "$folder/network"
cat >"$folder/network/10-pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
"ipam": {"type": "host-local", "dataDir": "/run/addresses", "ranges": [[{"subnet": "$pods.0/24"}]],
"routes": [{"dst": "0.0.0.0/0"}]}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
echo ready
exec 1>/dev/null 3>&-
# A shell that waits reaps what others leave.
sleep infinity &
wait

#!/usr/bin/env bash
# Replaces itself by systemd as the first process of namespaces of its own, on a copy of this machine's files in memory:
#   boot.sh FOLDER
# FOLDER/changed has the files that differ. Needs new namespaces of mounts, processes and control groups.
set -euo pipefail
folder=$1/memory root=$1/memory/root
mount --make-rprivate /
mkdir "$folder"
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/work" "$root"
cp -r "$1/changed" "$folder/changed"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changed,workdir=$folder/work" "$root"
rm -rf "$root/var/lib/taskgate" "$root/var/lib/private/taskgate"
for place in proc run tmp dev sys sys/fs/cgroup; do
  case $place in
    proc) mount -t proc proc "$root/proc" ;;
    sys) mount -t sysfs -o ro sysfs "$root/sys" ;;
    *) mount -t tmpfs tmpfs "$root/$place" ;;
  esac
done
# The kernel's settings are those of the machine.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
if [ -d /sys/fs/cgroup/systemd ]; then
  mkdir "$root/sys/fs/cgroup/systemd"
  mount -t cgroup -o none,name=systemd,xattr cgroup "$root/sys/fs/cgroup/systemd"
else
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
cd "$root"
pivot_root . mnt
umount -l /mnt
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --show-status=no

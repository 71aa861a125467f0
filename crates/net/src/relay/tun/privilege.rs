//! How a process of an ordinary user may make network namespaces.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Gives this process a user namespace of its own, in which it keeps its user and group and may make
/// network namespaces. Nothing happens if it runs as root, which may do so anyway.
///
/// Must be called while the process has no other thread, or the kernel refuses. Many systems permit
/// this to ordinary users, some do not: then there is an error, or [`TunRelay::start`] has one.
///
/// [`TunRelay::start`]: super::TunRelay::start
pub fn own_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this the kernel takes no map of groups from an ordinary user.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

//! Network namespaces of a test, gone when they are dropped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::geteuid;

/// A namespace with a loopback interface that is up.
pub(crate) struct Namespace(File);

impl Namespace {
    /// A new one, or why there can be none here.
    pub(crate) fn new() -> Result<Self, String> {
        if !geteuid().is_root() {
            return Err("not root".to_owned());
        }
        if !Path::new("/dev/net/tun").exists() {
            return Err("there is no /dev/net/tun".to_owned());
        }
        if Command::new("ip").arg("-Version").output().is_err() {
            return Err("there is no program ip".to_owned());
        }
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
            File::open("/proc/thread-self/ns/net").map_err(|error| error.to_string())
        });
        let made = made.join().unwrap();
        let space = Self(made.map_err(|why| format!("no network namespace: {why}"))?);
        space.ip("link set lo up");
        Ok(space)
    }

    /// Runs `work` in it; what it makes and starts stays in it.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let running = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            running.join().unwrap()
        })
    }

    /// Runs `ip` with these words in it; its output.
    pub(crate) fn ip(&self, words: &str) -> String {
        let done = self.run(|| Command::new("ip").args(words.split(' ')).output().unwrap());
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ip {words}: {error}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Joins two with a pair of interfaces of these names, which are up.
    pub(crate) fn link(&self, name: &str, other: &Self, theirs: &str) {
        let place = format!("/proc/{}/fd/{}", std::process::id(), other.0.as_raw_fd());
        self.ip(&format!(
            "link add name {name} type veth peer name {theirs} netns {place}"
        ));
        self.ip(&format!("link set {name} up"));
        other.ip(&format!("link set {theirs} up"));
    }

    /// The names of its interfaces, and its routes.
    pub(crate) fn state(&self) -> String {
        let links = self.ip("-brief link");
        let names: Vec<&str> = links
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let routes = self.ip("route") + &self.ip("-6 route");
        format!("{}\n{routes}", names.join(" "))
    }

    /// Waits until the state is as wanted.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !wanted(&self.state()) {
            assert!(Instant::now() < until, "{}", self.state());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

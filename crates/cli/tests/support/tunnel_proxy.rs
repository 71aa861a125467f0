//! A proxy, as `tunnel serve` runs it.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Running, Site, swiftwater};

/// A running proxy that reaches loopback addresses, and the folder in which it runs.
pub(crate) struct TunnelProxy {
    directory: TempDir,
    pub(crate) server: Running,
}

impl TunnelProxy {
    /// With `files` in its folder, which `flags` may name: who may use it is in them.
    pub(crate) fn start(files: &[(&str, &str)], flags: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let mut command = swiftwater();
        command.args(["tunnel", "serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--target-port", "1-65535", "--allow-target", "127.0.0.0/8"]);
        command.arg("--state-dir").arg(directory.path());
        command.args(flags).current_dir(directory.path());
        let server = Running::start(command);
        Self { directory, server }
    }

    pub(crate) fn address(&self) -> &str {
        self.server.first["address"].as_str().unwrap()
    }

    /// The path of a file in its folder.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn certificate(&self) -> String {
        self.file("dev-cert.pem")
    }

    /// A `get` through the proxy, without credentials, from `site`, whose content goes to its file `received`.
    pub(crate) fn get(&self, site: &Site, url: &str) -> Command {
        let mut get = swiftwater();
        get.args(["get", url, "--no-state", "--force"]);
        get.args(["--proxy", self.address()]);
        get.args(["--proxy-ca", &self.certificate()]);
        get.arg("--ca").arg(site.certificate());
        get.arg("-o").arg(site.path("received"));
        get
    }

    /// A `tunnel connect` to the proxy, without credentials, with these flags.
    pub(crate) fn connect(&self, flags: &[&str]) -> Command {
        let mut connect = swiftwater();
        connect.args(["tunnel", "connect", self.address(), "--json"]);
        connect.args(["--ca", &self.certificate()]).args(flags);
        connect
    }

    /// Ends it, and returns the content of a file in its folder.
    pub(crate) fn ended(self, name: &str) -> String {
        let Self { directory, server } = self;
        assert_eq!(server.interrupt(), Some(0));
        fs::read_to_string(directory.path().join(name)).unwrap()
    }
}

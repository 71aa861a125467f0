//! Running the built binary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tempfile::TempDir;

static COMMANDS: AtomicU32 = AtomicU32::new(0);

/// A command of the binary with a separate home directory.
pub(crate) fn swiftwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swiftwater"));
    command
        .env_remove("RUST_LOG")
        .env_remove("SSLKEYLOGFILE")
        .env_remove("QLOGDIR")
        .stdin(Stdio::null());
    // The record of one run about a port must not affect another test's server at it.
    let nth = COMMANDS.fetch_add(1, Ordering::Relaxed);
    let state = format!("state-{}-{nth}", std::process::id());
    command.env(
        "XDG_STATE_HOME",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(state),
    );
    // A proxy of the machine can't reach the servers of a test.
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
}

/// Runs a command line to its end.
pub(crate) fn run<const N: usize>(args: [&str; N]) -> Output {
    swiftwater().args(args).output().expect("the binary starts")
}

/// Checks exit code and that standard error is exactly one line without a panic; returns the line.
#[track_caller]
pub(crate) fn failed(output: &Output, code: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "stderr: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "not one line: {error}");
    assert!(error.starts_with("error: "), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error.trim_end().to_owned()
}

#[track_caller]
pub(crate) fn succeeded(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "stderr: {error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The keys of a JSON object, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

/// A program that runs until it is dropped, and its first line of output.
pub(crate) struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) first: Value,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let first = read_json(&mut output);
        Self {
            child,
            output,
            first,
        }
    }

    /// The next line of output.
    pub(crate) fn next(&mut self) -> Value {
        read_json(&mut self.output)
    }

    /// The number of the process, for signals.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it politely to end and returns the next line of output, which must be its last words.
    #[cfg(unix)]
    pub(crate) fn ended(mut self) -> Value {
        self.ask_to_end();
        let ended = self.next();
        assert_eq!(ended["event"], "ended");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        ended
    }

    /// Asks it politely to end and returns the exit code.
    #[cfg(unix)]
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        self.ask_to_end();
        self.child.wait().unwrap().code()
    }

    /// Ends it although it has something to do: a second request does that, and two at once may count as one.
    #[cfg(unix)]
    pub(crate) fn end_at_once(mut self) {
        while self.child.try_wait().unwrap().is_none() {
            self.ask_to_end();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    #[cfg(unix)]
    fn ask_to_end(&self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_json(output: &mut impl BufRead) -> Value {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
}

/// A running `serve` with a directory of files.
pub(crate) struct Site {
    pub(crate) directory: TempDir,
    pub(crate) server: Running,
    pub(crate) port: u16,
}

impl Site {
    pub(crate) fn start(files: &[(&str, &[u8])]) -> Self {
        Self::start_with(files, &[])
    }

    pub(crate) fn start_with(files: &[(&str, &[u8])], flags: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let site = directory.path().join("site");
        fs::create_dir_all(&site).unwrap();
        for (name, data) in files {
            let path = site.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, data).unwrap();
        }
        let mut command = swiftwater();
        command
            .arg("serve")
            .arg(&site)
            .args(["--listen", "127.0.0.1:0", "--json", "--hq"]);
        command
            .arg("--state-dir")
            .arg(directory.path().join("state"))
            .args(flags);
        let server = Running::start(command);
        let address: SocketAddr = server.first["address"].as_str().unwrap().parse().unwrap();
        Self {
            directory,
            server,
            port: address.port(),
        }
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.path().join("state").join("dev-cert.pem")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// A `get` over `hq-interop` that trusts the server and writes to `out`.
    pub(crate) fn get(&self, paths: &[&str]) -> Command {
        let mut command = self.get_http(paths);
        command.args(["--protocol", "hq"]);
        command
    }

    /// A `get` over HTTP that trusts the server and writes to the directory `out`.
    pub(crate) fn get_http(&self, paths: &[&str]) -> Command {
        let mut command = self.ask(paths);
        command.arg("-o").arg(self.path("out/"));
        command
    }

    /// A `get` over HTTP that trusts the server.
    pub(crate) fn ask(&self, paths: &[&str]) -> Command {
        let mut command = swiftwater();
        command
            .arg("get")
            .args(paths.iter().map(|path| self.url(path)));
        command.arg("--ca").arg(self.certificate());
        command
    }
}

/// The names in a directory, sorted, hidden ones included.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

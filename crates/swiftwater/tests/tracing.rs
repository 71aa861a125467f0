//! Events of connections at a tracing subscriber. It is global, so that it sees those of other tests, too.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater::{Client, DevCertificate, Server};
use tracing_subscriber::EnvFilter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Those with all of these parts.
    fn of(&self, parts: [&str; 2]) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        text.lines().filter(has_all).map(str::to_owned).collect()
    }
}

/// The value of a span's field in a line.
fn field(line: &str, name: &str) -> String {
    let start = line.find(&format!("{name}=")).unwrap() + name.len() + 1;
    let value = line[start..].split([' ', '}']).next().unwrap();
    value.to_owned()
}

#[tokio::test]
async fn both_ends_of_a_connection_report_its_end() {
    let lines = Lines::default();
    let writer = lines.clone();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("swiftwater::connection=debug"))
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let certificate = DevCertificate::generate(["localhost", "127.0.0.1"]).unwrap();
    let server = Server::builder()
        .dev_certificate(&certificate)
        .alpn(["test"])
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    let client = Client::builder()
        .alpn(["test"])
        .trust_only([certificate.certificate_der()])
        .build()
        .unwrap();
    let address = format!("127.0.0.1:{}", server.local_addr().port());
    let work = async {
        let ours = client.connect(&address).await.unwrap();
        let theirs = server.accept().await.unwrap();
        ours.close(7, b"done");
        theirs.closed().await;
    };
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("the test hangs");

    let remote = format!("remote={address}}}");
    let begin = lines.of(["connected", &remote]);
    assert_eq!(begin.len(), 1, "{begin:?}");
    let id = format!("id={} ", field(&begin[0], "id"));
    let connected = lines.of(["connected", &id]);
    assert_eq!(connected.len(), 2, "{connected:?}");
    assert_ne!(field(&connected[0], "side"), field(&connected[1], "side"));
    let closed = lines.of(["closed", &id]);
    assert_eq!(closed.len(), 2, "{closed:?}");
    assert!(closed.iter().all(|line| line.contains(" INFO ")));
    assert!(!lines.of(["version chosen", &id]).is_empty());
    assert!(!lines.of(["protocol=test", &id]).is_empty());
    assert!(lines.of(["TRACE", ""]).is_empty());
}

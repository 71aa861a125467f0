//! Heap allocations per packet over real sockets, both ends and the runtime together.
//!
//! The application writes from and reads into buffers of its own, as `perf` does. Before counting begins, flow
//! control windows have grown, and each end's buffers were full once: what is left are allocations that never end.

#![allow(missing_docs, clippy::print_stdout, reason = "a benchmark")]

use std::time::Duration;

use swiftwater::{Client, Connection, DevCertificate, RecvStream, SendStream, Server};
use tokio::time::timeout;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// A writer that is blocked for this long remains blocked without a reader. (After a quarter of a second
/// without packets connections release memory.)
const STALLED: Duration = Duration::from_millis(100);
/// Bytes moved before counting begins, and while counting.
const WARM_UP: usize = 64 << 20;
const COUNTED: usize = 256 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let certificate = DevCertificate::generate(["localhost"])?;
    let server = Server::builder()
        .dev_certificate(&certificate)
        .alpn(["bench"])
        .bind("127.0.0.1:0".parse()?)?;
    let client = Client::builder()
        .trust_only([certificate.certificate_der()])
        .alpn(["bench"])
        .build()?;
    let address = server.local_addr();
    let accepted = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("the server closed")?;
        let (send, recv) = connection.accept_bi().await?;
        Ok::<_, Failure>((server, connection, send, recv))
    });
    let connection = client.connect_to(address, "localhost").await?;
    let (mut send, _unused) = connection.open_bi().await?;
    send.write_all(b"x").await?;
    let (_server, peer, _unused, recv) = accepted.await??;

    let mut flow = Flow {
        send,
        recv,
        data: vec![7; 1 << 16],
        sink: vec![0; 1 << 16],
    };
    let profiler = dhat::Profiler::builder().testing().build();
    for _ in 0..3 {
        flow.pass(WARM_UP).await?;
        flow.fill().await?;
    }
    let packets = packets(&connection, &peer);
    let blocks = dhat::HeapStats::get().total_blocks;
    flow.pass(COUNTED).await?;
    let blocks = dhat::HeapStats::get().total_blocks - blocks;
    let packets = self::packets(&connection, &peer) - packets;
    drop(profiler);
    println!(
        "{blocks} allocations for {packets} packets sent and received ({:.5} per packet)",
        blocks as f64 / packets as f64
    );
    Ok(())
}

/// Packets sent by both ends so far.
fn packets(client: &Connection, server: &Connection) -> u64 {
    let sent = |connection: &Connection| connection.stats().packets_sent.get();
    sent(client) + sent(server)
}

/// A stream, and the application's buffers at both ends.
struct Flow {
    send: SendStream,
    recv: RecvStream,
    data: Vec<u8>,
    sink: Vec<u8>,
}

impl Flow {
    /// Sends `bytes` and reads them at the other end.
    async fn pass(&mut self, bytes: usize) -> Result<(), Failure> {
        let writing = async {
            let mut left = bytes;
            while left > 0 {
                let n = left.min(self.data.len());
                self.send.write_all(&self.data[..n]).await?;
                left -= n;
            }
            Ok::<_, Failure>(())
        };
        tokio::try_join!(writing, read(&mut self.recv, &mut self.sink, bytes))?;
        Ok(())
    }

    /// Sends as much as fits into both ends' buffers, before anything is read.
    async fn fill(&mut self) -> Result<(), Failure> {
        let mut written = 0;
        while let Ok(n) = timeout(STALLED, self.send.write(&self.data)).await {
            written += n?;
        }
        read(&mut self.recv, &mut self.sink, written).await
    }
}

async fn read(recv: &mut RecvStream, sink: &mut [u8], bytes: usize) -> Result<(), Failure> {
    let mut left = bytes;
    while left > 0 {
        let room = sink.len().min(left);
        left -= recv
            .read(&mut sink[..room])
            .await?
            .ok_or("the stream ended")?;
    }
    Ok(())
}

//! Heap allocations per packet over real sockets, both ends and the runtime together.
//!
//! The application writes from and reads into buffers of its own, as `perf` does.

#![allow(missing_docs, clippy::print_stdout, reason = "a benchmark")]

use swiftwater::{Client, Connection, DevCertificate, RecvStream, SendStream, Server};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

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
    let (mut send, _recv) = connection.open_bi().await?;
    send.write_all(b"x").await?;
    let (_server, peer, _send, mut recv) = accepted.await??;

    move_bytes(&mut send, &mut recv, WARM_UP).await?;
    let profiler = dhat::Profiler::builder().testing().build();
    let packets = packets(&connection, &peer);
    let blocks = dhat::HeapStats::get().total_blocks;
    move_bytes(&mut send, &mut recv, COUNTED).await?;
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

/// Sends `bytes` and reads them at the other end.
async fn move_bytes(
    send: &mut SendStream,
    recv: &mut RecvStream,
    bytes: usize,
) -> Result<(), Failure> {
    let data = vec![7; 1 << 16];
    let mut sink = vec![0; 1 << 16];
    let writing = async {
        let mut left = bytes;
        while left > 0 {
            let n = left.min(data.len());
            send.write_all(&data[..n]).await?;
            left -= n;
        }
        Ok::<_, Failure>(())
    };
    let reading = async {
        let mut left = bytes.saturating_sub(1);
        while left > 0 {
            let n = recv.read(&mut sink).await?.ok_or("the stream ended")?;
            left = left.saturating_sub(n);
        }
        Ok::<_, Failure>(())
    };
    tokio::try_join!(writing, reading)?;
    Ok(())
}

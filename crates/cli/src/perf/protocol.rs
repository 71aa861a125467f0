//! Both ends of the `perf` protocol on one stream.

use std::fmt;

use swiftwater::{Connection, RecvStream, SendStream};

use super::zeroes::{BLOCK, Zeroes};
use crate::exit::{Exit, Failure};

/// Sends a request of `up` bytes, reads a response of `down` bytes, and fails if it has another size.
pub async fn request(connection: &Connection, up: u64, down: u64) -> Result<(), Failure> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(broken)?;
    let sending = async {
        send.write_all(&down.to_be_bytes()).await.map_err(broken)?;
        send_zeroes(&mut send, up).await?;
        send.finish().map_err(broken)
    };
    // Concurrently, so that a server that answers early doesn't block both ends.
    let ((), received) = tokio::try_join!(sending, read_all(&mut recv))?;
    if received == down {
        Ok(())
    } else {
        let text = format!("requested {down} bytes, but the server sent {received}");
        Err(Failure::new(Exit::Differs, text))
    }
}

/// Answers one request; returns the bytes received, without the number, and sent.
pub async fn answer(mut send: SendStream, mut recv: RecvStream) -> Result<(u64, u64), Failure> {
    let mut number = [0; 8];
    recv.read_exact(&mut number).await.map_err(broken)?;
    let down = u64::from_be_bytes(number);
    let up = read_all(&mut recv).await?;
    send_zeroes(&mut send, down).await?;
    send.finish().map_err(broken)?;
    Ok((up, down))
}

async fn send_zeroes(send: &mut SendStream, count: u64) -> Result<(), Failure> {
    let mut zeroes = Zeroes::new(count);
    while let Some(block) = zeroes.next_block() {
        send.write_chunk(block).await.map_err(broken)?;
    }
    Ok(())
}

async fn read_all(recv: &mut RecvStream) -> Result<u64, Failure> {
    let mut buffer = Vec::new();
    let mut total = 0;
    // Most requests are short: the large buffer is for those that aren't.
    buffer.resize(4 * 1024, 0);
    while let Some(read) = recv.read(&mut buffer).await.map_err(broken)? {
        total += read as u64;
        if read == buffer.len() && read < BLOCK {
            buffer.resize(BLOCK, 0);
        }
    }
    Ok(total)
}

fn broken(error: impl fmt::Display) -> Failure {
    Failure::new(Exit::Connection, error)
}

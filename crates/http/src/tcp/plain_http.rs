//! Plain HTTP on a port for TLS: answered with 400 in plain text.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::lingering_close;

const ANSWER: &str = "400 Bad Request: the plain HTTP request was sent to an HTTPS port\n";

/// Whether the first byte of `stream` starts a request of HTTP/1.1, or the preface of HTTP/2. Records of TLS
/// start with their content type, 22 (RFC 8446, section 5.1); methods are letters.
pub(super) async fn is_spoken(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    Ok(length == 1 && first[0].is_ascii_uppercase())
}

/// Answers 400 and ends `stream`; discards at most `bytes` of further data for at most `time`, so that
/// the client reads the answer before its connection is reset.
pub(super) async fn refuse<S>(stream: &mut S, bytes: usize, time: Duration) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let length = ANSWER.len();
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\n\
         content-type: text/plain; charset=utf-8\r\n\
         content-length: {length}\r\n\
         connection: close\r\n\r\n{ANSWER}"
    );
    stream.write_all(response.as_bytes()).await?;
    lingering_close::end(stream, bytes, time).await
}

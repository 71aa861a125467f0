//! What the quiche programs share: settings, fresh connection IDs, sending, and the key log.

pub mod server;

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use quiche::{Config, Connection, ConnectionId, MAX_CONN_ID_LEN};
use ring::rand::{SecureRandom, SystemRandom};
use swiftwater_interop_program::arguments::IDLE;
use swiftwater_interop_program::hq;

/// Largest UDP payload that is sent, bytes.
pub const DATAGRAM: usize = 1350;

/// Streams that the peer may have open at once.
const STREAMS: u64 = 100;

/// Flow-control windows at first, bytes.
const WINDOW: u64 = 1_000_000;

/// Settings of both sides.
pub fn config() -> quiche::Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[hq::ALPN])?;
    config.set_max_idle_timeout(u64::try_from(IDLE.as_millis()).unwrap_or(u64::MAX));
    config.set_max_recv_udp_payload_size(65_527);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(10 * WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_active_connection_id_limit(4);
    config.log_keys();
    Ok(config)
}

/// Hands the connection the file that `SSLKEYLOGFILE` names, if it does.
pub fn log_keys(connection: &mut Connection) -> io::Result<()> {
    if let Some(path) = std::env::var_os("SSLKEYLOGFILE") {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        connection.set_keylog(Box::new(file));
    }
    Ok(())
}

/// Longest pause before a datagram whose time is in the future, so that incoming ones don't wait
/// long.
const PACING: Duration = Duration::from_millis(2);

/// A random connection ID of full length.
pub fn fresh_cid() -> Result<ConnectionId<'static>, ring::error::Unspecified> {
    let mut bytes = vec![0; MAX_CONN_ID_LEN];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(ConnectionId::from_vec(bytes))
}

/// Gives the peer as many connection IDs as it accepts; returns the new ones.
pub fn issue_cids(connection: &mut Connection) -> Vec<ConnectionId<'static>> {
    let mut issued = Vec::new();
    while connection.scids_left() > 0 {
        let (Ok(cid), Ok(token)) = (fresh_cid(), fresh_cid()) else {
            break;
        };
        let mut reset = [0; 16];
        reset.copy_from_slice(&token.as_ref()[..16]);
        let token = u128::from_be_bytes(reset);
        if connection.new_scid(&cid, token, false).is_err() {
            break;
        }
        issued.push(cid);
    }
    issued
}

/// The state of sending: a datagram may have to wait for its time, or for room in the socket.
#[derive(Debug)]
pub struct Outgoing {
    buffer: Vec<u8>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            buffer: vec![0; 65_535],
        }
    }
}

impl Outgoing {
    /// Sends the pending packets of a connection now; each datagram through the socket that `choose`
    /// finds for its local address. Pauses are short and block the program: it is for correctness,
    /// not for speed.
    pub fn flush<'a>(
        &mut self,
        connection: &mut Connection,
        choose: impl Fn(SocketAddr) -> Option<&'a UdpSocket>,
    ) -> io::Result<()> {
        loop {
            match connection.send(&mut self.buffer) {
                Ok((size, info)) => {
                    let wait = info.at.saturating_duration_since(Instant::now());
                    std::thread::sleep(wait.min(PACING));
                    let Some(socket) = choose(info.from) else {
                        continue;
                    };
                    match socket.send_to(&self.buffer[..size], info.to) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                        Err(error) => return Err(error),
                    }
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => {
                    println!("sending: {error}");
                    let _ = connection.close(false, 1, b"sending");
                    return Ok(());
                }
            }
        }
    }
}

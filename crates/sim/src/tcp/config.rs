//! Parameters of an endpoint. The defaults are those of Linux.

use std::time::Duration;

/// Parameters of TCP connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Window to start with, packets (RFC 6928). Default 10.
    pub initial_window: u64,
    /// Receive window at the start, bytes. Default 81,920: what 128 KiB of memory (`tcp_rmem`) hold of
    /// packets of 1500 bytes.
    pub receive_window: u64,
    /// What it may grow to, bytes. Default 3,932,160: what 6 MiB hold.
    pub max_receive_window: u64,
    /// Repetitions of a SYN until the connection fails (`tcp_syn_retries`). Default 6; the first
    /// `syn_linear_timeouts` are not counted.
    pub syn_retries: u32,
    /// Timeouts of a SYN that are not doubled (`tcp_syn_linear_timeouts`). Default 4; 0 is RFC 6298.
    pub syn_linear_timeouts: u32,
    /// Repetitions of a SYN-ACK until the server gives up (`tcp_synack_retries`). Default 5.
    pub syn_ack_retries: u32,
    /// Timeouts in a row until an established connection fails (`tcp_retries2`). Default 15.
    pub retries: u32,
    /// Return to the initial window after idle time (`tcp_slow_start_after_idle`). Default true.
    pub slow_start_after_idle: bool,
    /// Send a tail loss probe (RFC 8985, section 7). Default true.
    pub loss_probe: bool,
    /// How long the acknowledgement of a single segment may wait. Default 40 ms.
    pub delayed_ack: Duration,
    /// Tick of the clock that timers run on, see [`Ticks`](super::Ticks). Default 4 ms, 250 in a second;
    /// zero for timers that expire when they are due.
    pub tick: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_window: 10,
            receive_window: 81_920,
            max_receive_window: 3_932_160,
            syn_retries: 6,
            syn_linear_timeouts: 4,
            syn_ack_retries: 5,
            retries: 15,
            slow_start_after_idle: true,
            loss_probe: true,
            delayed_ack: super::DELAYED_ACK,
            tick: Duration::from_millis(4),
        }
    }
}
